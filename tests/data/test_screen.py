"""Screening, merging of small factors, and warnings about missing responses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from irtaudit.data import (
    ResponseMatrix,
    load_swebench_verified,
    merge_small_factors,
    missingness_warnings,
    screen,
)
from irtaudit.errors import DataError

NAN = np.nan


def test_each_dropped_name_has_its_reason() -> None:
    cells = np.array(
        [
            [1, 0, NAN, 1, 0, NAN],
            [1, 0, NAN, 0, 1, NAN],
            [NAN, 0, NAN, 1, 0, NAN],
            [NAN, NAN, NAN, NAN, NAN, NAN],
            [1, NAN, NAN, NAN, NAN, NAN],
        ]
    )
    matrix = ResponseMatrix.from_array(cells, subjects=list("abcde"), items=list("uvwxyz"))
    screened = screen(matrix)
    assert screened.dropped.to_dict("split")["data"] == [
        ["subject", "d", "no observed response"],
        ["item", "u", "constant: all 3 observed responses are passes"],
        ["item", "v", "constant: all 3 observed responses are fails"],
        ["item", "w", "no observed response"],
        ["item", "z", "no observed response"],
        ["subject", "e", "no observed response"],  # only item u, now gone, told anything of it
    ]
    assert screened.matrix.subjects.index.tolist() == ["a", "b", "c"]
    assert screened.matrix.items.index.tolist() == ["x", "y"]


def test_subjects_who_pass_or_fail_everything_stay() -> None:
    matrix = ResponseMatrix.from_array([[1, 1], [0, 0], [1, 0]])
    assert screen(matrix).dropped.empty
    assert screen(matrix).dropped.columns.tolist() == ["axis", "name", "reason"]


def test_swebench_verified_loses_its_32_constant_tasks() -> None:
    screened = screen(load_swebench_verified())
    assert screened.matrix.responses.shape == (134, 468)
    assert screened.dropped["axis"].tolist() == ["item"] * 32


@given(arrays(float, (5, 6), elements=st.sampled_from([0.0, 1.0, NAN])))
def test_what_is_left_needs_no_screening_and_what_is_dropped_did(cells: np.ndarray) -> None:
    matrix = ResponseMatrix.from_array(cells)
    varied = (cells == 0).any(axis=0) & (cells == 1).any(axis=0)
    if not varied.any():
        with pytest.raises(DataError, match="leaves nothing"):
            screen(matrix)
        return
    screened = screen(matrix)
    left = screened.matrix
    assert left.items.index.tolist() == matrix.items.index[varied].tolist()
    assert (
        left.subjects.index.tolist() == matrix.subjects.index[matrix.observed[:, varied].any(axis=1)].tolist()
    )
    assert len(screened.dropped) == matrix.n_subjects + matrix.n_items - left.n_subjects - left.n_items
    assert screen(left).dropped.empty


@pytest.mark.parametrize("cells", [np.ones((3, 4)), np.zeros((3, 4)), np.full((3, 4), NAN)])
def test_a_matrix_that_tells_nothing_is_refused(cells: np.ndarray) -> None:
    with pytest.raises(DataError, match="screening leaves nothing of 3 subjects x 4 items"):
        screen(ResponseMatrix.from_array(cells))


def labels(**counts: int) -> pd.Series:
    text = [name for name, count in counts.items() for _ in range(count)]
    return pd.Series(text, index=[f"item_{i}" for i in range(len(text))], name="repo", dtype=object)


def test_small_factors_become_other_when_they_are_enough_together() -> None:
    given_labels = labels(django=5, flask=1, seaborn=2)
    merged, note = merge_small_factors(given_labels)
    assert merged.value_counts().to_dict() == {"django": 5, "other": 3}
    assert merged.index.equals(given_labels.index)
    assert note is not None
    for part in ("'repo'", "'flask' (1)", "'seaborn' (2)", "'other' (3 items)"):
        assert part in note
    assert "other" not in given_labels.tolist()


def test_small_factors_join_a_factor_already_called_other() -> None:
    merged, note = merge_small_factors(labels(django=5, other=4, flask=1))
    assert merged.value_counts().to_dict() == {"django": 5, "other": 5}
    assert note is not None


def test_large_enough_factors_are_left_alone() -> None:
    merged, note = merge_small_factors(labels(django=3, sympy=4))
    assert note is None
    assert merged.value_counts().to_dict() == {"django": 3, "sympy": 4}
    assert merge_small_factors(labels(a=1, b=9), minimum=1)[1] is None


def test_blanks_around_a_label_make_no_factor_of_their_own() -> None:
    merged, note = merge_small_factors(labels(**{"django": 3, "django ": 2, " sympy": 3}))
    assert merged.value_counts().to_dict() == {"django": 5, "sympy": 3}
    assert note == "blanks around labels of 'repo' do not count: ' sympy', 'django '"


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"django": 5, "flask": 2}, r"'flask' \(2\).*together they have 2"),
        ({"django": 5, "other": 2}, r"'other' \(2\)"),
        ({"django": 5, "other": 1, "flask": 1}, r"'flask' \(1\), 'other' \(1\)"),
    ],
)
def test_small_factors_that_stay_small_are_refused_by_name(counts: dict[str, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        merge_small_factors(labels(**counts))


def test_items_without_a_label_are_refused_by_name() -> None:
    series = labels(django=4)
    series["item_2"] = NAN
    with pytest.raises(DataError, match=r"1 item.s. have no factor label of 'repo': 'item_2'"):
        merge_small_factors(series)


def simulated_panel(
    rng: np.random.Generator, missing: str, n_subjects: int = 60, n_items: int = 80
) -> ResponseMatrix:
    ability, difficulty = rng.normal(size=n_subjects), rng.normal(size=n_items)
    group = np.array(["closed", "open"])[np.arange(n_subjects) % 2]
    passed = rng.random((n_subjects, n_items)) < 1 / (1 + np.exp(difficulty - ability[:, None]))
    share = {
        "at random": np.full(passed.shape, 0.15),
        "weak subjects": 0.15 / (1 + np.exp(2 * ability))[:, None] * np.ones(passed.shape) * 2,
        "hard items": 0.3 / (1 + np.exp(-2 * difficulty)) * np.ones(passed.shape),
        "open models": np.where(group == "open", 0.25, 0.05)[:, None] * np.ones(passed.shape),
    }[missing]
    cells = np.where(rng.random(passed.shape) < share, NAN, passed)
    names = [f"model_{i:02d}" for i in range(n_subjects)]
    table = pd.DataFrame({"access": group, "size": ability}, index=names)
    return ResponseMatrix.from_array(cells, subjects=table)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("weak subjects", "subjects with more missing responses have lower pass rates"),
        ("hard items", "items with more missing responses have lower pass rates"),
        ("open models", "the share of missing responses differs by 'access'"),
    ],
)
def test_planted_patterns_of_missing_responses_are_found(missing: str, words: str) -> None:
    rng = np.random.default_rng(5)
    found = [missingness_warnings(simulated_panel(rng, missing)) for _ in range(20)]
    assert sum(any(words in warning for warning in warnings) for warnings in found) >= 19
    assert "p = " in found[0][0]


def test_responses_missing_at_random_warn_about_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(6)
    warned = sum(bool(missingness_warnings(simulated_panel(rng, "at random"))) for _ in range(150))
    # three looks at .01: at most .03 of panels; 12 is 3.6 binomial standard deviations above 4.5
    assert warned <= 12


def test_nothing_missing_nothing_said() -> None:
    assert missingness_warnings(load_swebench_verified()) == []


def test_too_small_or_constant_patterns_are_not_tested() -> None:
    cells = np.tile([1.0, 0.0, NAN], (4, 1))
    table = pd.DataFrame({"access": ["a", "a", "b", "b"]}, index=list("abcd"))
    assert missingness_warnings(ResponseMatrix.from_array(cells, subjects=table)) == []
