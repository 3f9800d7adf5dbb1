"""The saturation screen: the paper's four pass rates, hand-counted shares, and the interval's coverage."""

from __future__ import annotations

import numpy as np
import pytest

from irtaudit.data.bundled import load_swebench_verified
from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.present_structure import saturation_claim
from irtaudit.dimensionality.saturation import SATURATION, saturation
from irtaudit.errors import DataError, PlanError


def _simulated(mean: float, seed: int, n: int = 81, j: int = 200) -> ResponseMatrix:
    """Responses of models whose pass rates scatter around a mean."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(30 * mean, 30 * (1 - mean), (n, 1))
    return ResponseMatrix.from_array((rng.random((n, j)) < rates).astype(float))


def test_the_papers_four_data_sets_three_are_saturated() -> None:
    means = {"first": 0.93, "second": 0.94, "third": 0.92, "HarmBench": 0.67}
    table = saturation({name: _simulated(mean, s) for s, (name, mean) in enumerate(means.items())})
    assert list(table.columns) == SATURATION
    assert table["data"].tolist() == list(means)
    assert table["reading"].tolist() == ["saturated"] * 3 + ["open"]
    assert (np.abs(table["pass_rate"] - list(means.values())) < 0.03).all()
    assert saturation({"x": _simulated(0.9, 9)})["reading"].item() == "borderline"


def test_shares_are_counted_over_observed_cells() -> None:
    nan = np.nan
    cells = np.ones((5, 13))
    cells[:, 12] = nan  # answered by nobody, so neither constant nor not
    cells[0, :6] = 0
    cells[:, 6] = 0  # failed by all
    cells[:, 7] = [1, nan, nan, 1, 1]  # passed by all who answered
    cells[4, :] = nan
    cells[4, 0] = 0
    row = saturation({"hand": ResponseMatrix.from_array(cells)}).iloc[0]
    # items 8-12 and 7 are constant; items 1-6 are not
    assert row["constant_items"] == pytest.approx(6 / 12)
    rates = [5 / 12, 10 / 11, 10 / 11, 11 / 12, 0.0]
    assert row["pass_rate"] == pytest.approx(np.mean(rates))
    assert row["models_above"] == pytest.approx(3 / 5)
    assert row["responses"] == 12 + 11 + 11 + 12 + 1
    assert (row["models"], row["items"]) == (5, 13)


def test_the_interval_covers_the_mean_of_the_population_of_models() -> None:
    covered = []
    for seed in range(200):
        row = saturation({"x": _simulated(0.8, seed, n=40, j=50)}, n_draws=400, seed=seed).iloc[0]
        covered.append(row["low"] <= 0.8 <= row["high"])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.05)


def test_the_bundled_data_set_is_open() -> None:
    row = saturation({"SWE-bench Verified": load_swebench_verified()}).iloc[0]
    assert row["reading"] == "open"
    assert row["constant_items"] == pytest.approx(32 / 500)


def test_a_subject_without_responses_takes_no_part_and_no_data_is_refused() -> None:
    cells = np.array([[1, 0], [1, 1], [np.nan, np.nan]])
    assert saturation({"x": ResponseMatrix.from_array(cells)})["pass_rate"].item() == 0.75
    with pytest.raises(DataError, match="No data set"):
        saturation({})
    with pytest.raises(DataError, match="'empty' holds no response"):
        saturation({"empty": ResponseMatrix.from_array(np.full((2, 2), np.nan))})


@pytest.mark.parametrize("others", [0, 3])
def test_one_model_with_responses_has_no_interval_whatever_its_rate(others: int) -> None:
    for passed in (1.0, 0.0):
        cells = np.vstack([np.full((1, 4), passed), np.full((others, 4), np.nan)])
        row = saturation({"x": ResponseMatrix.from_array(cells)}).iloc[0]
        assert (row["pass_rate"], row["reading"]) == (passed, "undecided")
        assert np.isnan([row["low"], row["high"]]).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0},
        {"threshold": 1.1},
        {"threshold": float("nan")},
        {"threshold": float("inf")},
        {"threshold": "high"},
        {"threshold": True},
        {"n_draws": 0},
        {"n_draws": 2.5},
        {"seed": -1},
        {"seed": True},
    ],
)
def test_impossible_screens_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=f"^{next(iter(wrong))} is "):
        saturation({"x": _simulated(0.8, 1, 5, 5)}, **wrong)  # type: ignore[arg-type]  # what a user may try


def test_what_one_model_does_not_tell_is_not_claimed() -> None:
    alone = ResponseMatrix.from_array([[1.0, 0.0]])
    several = saturation({"x": alone, "y": _simulated(0.5, 1), "z": alone})
    assert saturation_claim(several) == (
        "The data set is not saturated. One model alone does not tell whether these are saturated: x, z."
    )
