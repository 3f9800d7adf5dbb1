"""Reliability and information: formulas, derivatives, and truth planted in simulated panels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.reliability import (
    GRID,
    empirical_reliability,
    information,
    information_table,
    reliability_table,
)
from irtaudit.irt.fit import fit
from irtaudit.irt.spec import ModelSpec

FAST = {"preset": "quick", "n_restarts": 1, "workers": 1}


def test_reliability_is_the_squared_correlation_of_means_with_draws() -> None:
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(0, 0.9, 500), rng.uniform(0.3, 0.6, 500)
    theta = rng.normal(mean, sd, (4000, 500))  # abilities by this posterior
    squared = np.mean([np.corrcoef(mean, draw)[0, 1] ** 2 for draw in theta])
    assert empirical_reliability(mean, sd) == pytest.approx(squared, abs=0.005)
    assert empirical_reliability(mean, 0 * sd) == 1
    assert empirical_reliability(np.ones(9), np.ones(9)) == 0
    assert np.isnan(empirical_reliability([1.0], [0.5]))


def test_information_is_minus_the_expected_second_derivative() -> None:
    slope, intercept, guess = np.array([0.8, 1.6]), np.array([-0.5, 0.7]), np.array([0.0, 0.25])
    at, h = 0.4, 1e-4
    total = 0.0
    for a, d, c in zip(slope, intercept, guess, strict=True):

        def p(theta: float, a: float = a, d: float = d, c: float = c) -> float:
            return float(c + (1 - c) * expit(a * theta + d))

        for outcome in (0, 1):
            log_p = [np.log(p(at + s * h) if outcome else 1 - p(at + s * h)) for s in (-1, 0, 1)]
            curvature = (log_p[0] - 2 * log_p[1] + log_p[2]) / h**2
            total -= (p(at) if outcome else 1 - p(at)) * curvature
    assert information([at], slope, intercept, guess)[0] == pytest.approx(total, rel=1e-4)


def test_information_of_a_2pl_peaks_at_the_difficulty_with_a_quarter_of_the_squared_slope() -> None:
    curve = information(GRID, np.array([2.0]), np.array([-2.0]))
    assert GRID[np.argmax(curve)] == pytest.approx(1.0)
    assert curve.max() == pytest.approx(1.0)


def test_the_reliability_of_a_fit_is_the_squared_correlation_with_the_true_abilities() -> None:
    squared, claimed = [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=(150, 1))
        eta = theta * np.exp(rng.normal(0, 0.3, 25)) + rng.normal(0, 1, 25)
        matrix = ResponseMatrix.from_array((rng.random(eta.shape) < expit(eta)).astype(float))
        fitted = fit(matrix, ModelSpec.unidimensional(), **FAST)
        squared.append(np.corrcoef(fitted.abilities["ability"], theta[:, 0])[0, 1] ** 2)
        claimed.append(reliability_table({"uni": fitted})["reliability"].item())
    assert 0.7 < np.mean(claimed) < 0.9
    # 16 panels: standard error .005. Items count as known, which claims .01 to .02 too much.
    assert np.mean(claimed) == pytest.approx(np.mean(squared), abs=0.03)


def test_tables_have_a_row_per_dimension_and_only_its_own_items_inform_it() -> None:
    matrix = panel(0, 60, 30, correlation=0.3)
    spec = ModelSpec.confirmatory("2pl", ["a", "b"] * 14 + ["a", "a"], name="kind")
    fits = {"kind": fit(matrix, spec, **FAST)}
    table = reliability_table(fits)
    assert table["factor"].tolist() == ["a", "b"]
    assert table["items"].tolist() == [16, 14]
    curves = information_table(fits)
    assert len(curves) == 2 * len(GRID)
    parameters = fits["kind"].item_parameters
    only_a = parameters[parameters["slope_a"] > 0]
    expected = information(GRID, only_a["slope_a"], only_a["intercept"])
    of_a = curves[curves["factor"] == "a"]
    np.testing.assert_allclose(of_a["information"], expected)
    np.testing.assert_allclose(of_a["se"], 1 / np.sqrt(expected))
    row = table.iloc[0]
    assert row["smallest_se"] == pytest.approx(of_a["se"].min())
    assert row["most_informative"] == of_a["theta"].iloc[np.argmin(of_a["se"])]
    assert list(reliability_table({}).columns) == list(table.columns)
    assert list(information_table({}).columns) == list(curves.columns)
