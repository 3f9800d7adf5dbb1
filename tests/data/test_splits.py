"""Splits: exact size, only observed cells, each equally likely, whatever the order of the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from irtaudit.data import ResponseMatrix, Splits, make_splits
from irtaudit.errors import DataError, PlanError


def panel(n_subjects: int = 12, n_items: int = 15, missing: float = 0.2, seed: int = 1) -> ResponseMatrix:
    rng = np.random.default_rng(seed)
    cells = (rng.random((n_subjects, n_items)) < 0.7).astype(float)
    cells[rng.random(cells.shape) < missing] = np.nan
    return ResponseMatrix.from_array(cells)


@given(
    st.integers(0, 50),
    st.integers(1, 4),
    st.floats(0.05, 0.95),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_every_split_holds_out_exactly_its_share_of_observed_cells(
    data_seed: int, n_splits: int, fraction: float, stratified: bool, seed: int
) -> None:
    matrix = panel(seed=data_seed)
    splits = make_splits(matrix, n_splits, fraction, seed, stratified)
    assert splits.n_splits == n_splits
    assert splits.seeds == tuple(range(seed, seed + n_splits))
    assert not (splits.test & ~matrix.observed).any()
    assert (splits.test.sum(axis=(1, 2)) == round(fraction * matrix.observed.sum())).all()
    heldout, training = splits.heldout(matrix), splits.training(matrix)
    np.testing.assert_array_equal(heldout ^ training, np.broadcast_to(matrix.observed, heldout.shape))


def test_default_is_five_splits_of_a_fifth_with_the_published_seeds() -> None:
    matrix = panel(missing=0)
    splits = make_splits(matrix)
    assert splits.seeds == (2026, 2027, 2028, 2029, 2030)
    assert splits.test.sum(axis=(1, 2)).tolist() == [36] * 5  # 180 cells
    assert len({split.tobytes() for split in splits.test}) == 5


@pytest.mark.parametrize("stratified", [False, True])
def test_a_split_depends_on_its_seed_alone(stratified: bool) -> None:
    matrix = panel()
    together = make_splits(matrix, 3, seed=7, stratified=stratified)
    for s in range(3):
        alone = make_splits(matrix, 1, seed=7 + s, stratified=stratified)
        np.testing.assert_array_equal(alone.test[0], together.test[s])


@pytest.mark.parametrize("stratified", [False, True])
def test_a_permuted_matrix_gets_the_same_cells_by_name(stratified: bool) -> None:
    matrix = panel()
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(matrix.n_subjects), rng.permutation(matrix.n_items)
    permuted = matrix.select(subjects=matrix.subjects.index[rows], items=matrix.items.index[columns])
    expected = make_splits(matrix, stratified=stratified).test[:, rows][:, :, columns]
    np.testing.assert_array_equal(make_splits(permuted, stratified=stratified).test, expected)


def test_every_observed_cell_is_equally_likely() -> None:
    matrix = panel(6, 8, missing=0.25)
    n_splits = 2000
    counts = make_splits(matrix, n_splits, 0.25).test.sum(axis=0)[matrix.observed]
    n_observed = len(counts)
    share = round(0.25 * n_observed) / n_observed
    # Cells of one split are drawn without replacement, so counts have the covariance of a multivariate
    # hypergeometric draw: share (1 - share) n / (n - 1) times the centring matrix, a chi-square on n - 1.
    variance = n_splits * share * (1 - share) * n_observed / (n_observed - 1)
    statistic = ((counts - n_splits * share) ** 2).sum() / variance
    assert 1e-4 < stats.chi2.cdf(statistic, n_observed - 1) < 1 - 1e-4


@given(st.integers(0, 30))
def test_stratified_splits_hold_out_the_same_share_of_passes_as_of_fails(seed: int) -> None:
    matrix = panel(seed=seed)
    test = make_splits(matrix, stratified=True).test
    passes = np.where(test, matrix.responses, 0).sum(axis=(1, 2))
    expected = test[0].sum() * np.nanmean(matrix.responses)
    assert (np.abs(passes - expected) <= 0.5).all()


def test_unstratified_splits_let_the_share_of_passes_vary() -> None:
    matrix = panel()
    passes = np.where(make_splits(matrix, 50).test, matrix.responses, 0).sum(axis=(1, 2))
    assert np.ptp(passes) > 3


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"n_splits": 0}, "n_splits is 0; expected a whole number"),
        ({"n_splits": 2.5}, r"n_splits is 2\.5; expected a whole number"),
        ({"n_splits": True}, "n_splits is True; expected a whole number"),
        (
            {"n_splits": 10**8},
            r"n_splits is 100,000,000; a matrix of \d+ cells is split [\d,]+ times at most",
        ),
        ({"test_fraction": 0.0}, r"test_fraction is 0\.0; expected a share"),
        ({"test_fraction": 1.0}, r"test_fraction is 1\.0; expected a share"),
        ({"test_fraction": float("nan")}, "test_fraction is nan; expected a share"),
        ({"test_fraction": "a fifth"}, "test_fraction is 'a fifth'; expected a share"),
        ({"test_fraction": 0.0001}, "holds out 0 of"),
        ({"test_fraction": 0.9999}, "holds out .* of"),
        ({"seed": -1}, "seed is -1; expected a whole number"),
        ({"seed": None}, "seed is None; expected a whole number"),
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, object], found: str) -> None:
    with pytest.raises(PlanError, match=found):
        make_splits(panel(), **wrong)  # type: ignore[arg-type]


def test_whole_numbers_may_be_numpys() -> None:
    given = make_splits(panel(), n_splits=np.int64(2), seed=np.int32(7))
    assert given.seeds == (7, 8)
    assert [type(seed) for seed in given.seeds] == [int, int]
    np.testing.assert_array_equal(given.test, make_splits(panel(), n_splits=2, seed=7).test)


def test_a_callers_masks_are_copied_and_keep_no_seed() -> None:
    mask = np.zeros((2, 3, 4), dtype=bool)
    mask[[0, 1], 0, [0, 1]] = True
    splits = Splits.from_test_masks(mask)
    mask[:] = False
    assert splits.test.sum() == 2
    assert splits.seeds == (None, None)
    with pytest.raises(ValueError, match="read-only"):
        splits.test[0, 0, 0] = False


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((3, 4), dtype=bool), r"one split is mask\[None\]"),
        (np.ones((1, 3, 4)), "found float64"),
        (np.array(True), "boolean .split, subject, item. array"),
        (np.zeros((0, 3, 4), dtype=bool), "there are no splits"),
        (np.ones((3, 3, 4), dtype=bool), r"splits 0 and 1 .* hold out the same cells"),
        (np.arange(2)[:, None, None] * np.ones((2, 3, 4), dtype=int) == 1, r"\[0\] hold none"),
    ],
)
def test_what_is_no_mask_is_refused(mask: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Splits.from_test_masks(mask)


def test_one_seed_for_each_split() -> None:
    with pytest.raises(DataError, match="1 seeds for 2 splits"):
        Splits(np.ones((2, 1, 1), dtype=bool), (1,))


def test_splits_of_another_matrix_are_refused() -> None:
    splits = make_splits(panel(12, 15))
    with pytest.raises(DataError, match=r"12 subjects x 15 items, the matrix has 11 x 15"):
        splits.training(panel(11, 15))


def test_splits_that_leave_nothing_to_train_or_test_on_are_refused() -> None:
    matrix = ResponseMatrix.from_array([[1.0, np.nan]])
    with pytest.raises(DataError, match="split 0 holds out no observed cell"):
        Splits.from_test_masks(np.array([[[False, True]]])).heldout(matrix)
    with pytest.raises(DataError, match="split 0 leaves no observed cell"):
        Splits.from_test_masks(np.array([[[True, False]]])).training(matrix)


def test_aligning_follows_names_through_subset_and_order() -> None:
    matrix = panel()
    smaller = matrix.select(subjects=matrix.subjects.index[[5, 2, 9, 0]], items=matrix.items.index[::-2])
    splits = make_splits(matrix)
    found = splits.align(matrix, smaller)
    assert found.seeds == splits.seeds
    for i, subject in enumerate(smaller.subjects.index):
        for j, item in enumerate(smaller.items.index):
            row, column = matrix.subjects.index.get_loc(subject), matrix.items.index.get_loc(item)
            np.testing.assert_array_equal(found.test[:, i, j], splits.test[:, row, column])
    with pytest.raises(DataError, match="aligned"):
        make_splits(smaller).align(smaller, matrix)
