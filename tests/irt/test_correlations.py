"""Intervals of factor correlations: wider where they should be, and around a planted truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from panels import random_matrix
from scipy.stats import t as student

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import PlanError
from irtaudit.irt import correlations
from irtaudit.irt.correlations import COLUMNS, factor_correlation_intervals
from irtaudit.irt.fit import fit
from irtaudit.irt.result import FitResult, ability_correlations, moment_correlations
from irtaudit.irt.spec import ModelSpec


def test_moments_are_those_of_the_mixture_of_posteriors() -> None:
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(40, 2)) @ [[1, 0.6], [0, 0.8]], rng.uniform(0.1, 0.6, size=(40, 2))
    draws = mean + sd * rng.normal(size=(4000, 40, 2))
    expected = np.corrcoef(draws.reshape(-1, 2).T)
    # 160,000 draws around 40 fixed means: the correlation's standard error is below .003.
    np.testing.assert_allclose(moment_correlations(mean, sd), expected, atol=0.01)
    np.testing.assert_allclose(moment_correlations(mean, 0 * sd), np.corrcoef(mean.T), atol=1e-12)


def test_a_posterior_gives_its_likelihood_back() -> None:
    # Exact posteriors of unrelated subjects whose measurements are known: R = 0 and R = .9 as the prior that
    # each posterior was found under must lead to the same correlations.
    rng = np.random.default_rng(2)
    theta = rng.multivariate_normal(np.zeros(2), [[1, 0.9], [0.9, 1]], size=60)
    w = rng.uniform(2, 6, size=theta.shape)
    y = theta + rng.normal(size=theta.shape) / np.sqrt(w)
    found = []
    for r in (0.0, 0.9):
        prior = np.array([[1, r], [r, 1]])
        inverse = np.linalg.inv(prior)
        precision = w[:, :, None] * np.eye(2) + inverse
        mean = np.linalg.solve(precision, (w * y)[..., None])[..., 0]
        sd = 1 / np.sqrt(w + np.diag(inverse))  # mean-field: one over the root of the precision's diagonal
        spec = ModelSpec.confirmatory("2pl", ["a", "b"] * 3)
        found.append(ability_correlations(spec, mean[None], sd[None], prior[None], seed=1)[0, 0, 1])
    assert found[0] == pytest.approx(found[1], abs=0.01)
    assert found[0] == pytest.approx(np.corrcoef(theta.T)[0, 1], abs=0.06)


def test_items_on_several_factors_take_the_moments_at_the_mode() -> None:
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=(1, 30, 2)), rng.uniform(0.2, 0.5, size=(1, 30, 2))
    spec = ModelSpec.from_pattern("2pl", [[1, 0]] * 3 + [[1, 1]] + [[0, 1]] * 3, name="crossed")
    found = ability_correlations(spec, mean, sd, np.eye(2)[None])[0]
    np.testing.assert_allclose(found, moment_correlations(mean[0], sd[0]))
    assert not spec.simple


def test_intervals_of_a_planted_panel() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([[1, 0.7], [0.7, 1]])
    theta = rng.multivariate_normal(np.zeros(2), truth, size=60)
    p = 1 / (1 + np.exp(-1.5 * theta[:, np.repeat([0, 1], 40)] - rng.normal(size=80)))
    matrix = ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0)
    result = fit(matrix, ModelSpec.confirmatory("2pl", ["a"] * 40 + ["b"] * 40), n_restarts=1, workers=1)
    table = factor_correlation_intervals(result, matrix, workers=1)
    assert list(table) == COLUMNS
    row = table.iloc[0]
    assert (row["factor_1"], row["factor_2"]) == ("a", "b")
    assert row["correlation"] == pytest.approx(result.factor_correlations.loc["a", "b"])
    assert row["population_low"] < row["panel_low"] < row["correlation"] < row["panel_high"]
    assert row["panel_high"] < row["population_high"] < 1
    # This seed's panel and population are both inside; over seeds that is what 95 % means.
    assert row["panel_low"] < np.corrcoef(theta.T)[0, 1] < row["panel_high"]
    assert row["population_low"] < 0.7 < row["population_high"]
    # Forty items each leave a measurement error of z like that of sampling sixty subjects, 1 / sqrt(57), and
    # arcsin r is sqrt(1 - r^2), .7 here, as steep as z.
    assert 0.035 < row["measurement_sd"] < 0.14
    r, half = row["correlation"], student.ppf(0.975, 25) * row["measurement_sd"]
    np.testing.assert_allclose(
        np.arcsin(row[["panel_low", "panel_high"]].astype(float)), np.arcsin(r) + np.array([-half, half])
    )
    for side in ("low", "high"):
        population, panel = (
            np.arctanh(row[f"{of}_{side}"]) - np.arctanh(r) for of in ("population", "panel")
        )
        assert population**2 == pytest.approx(panel**2 + 1.96**2 / 57, rel=1e-4)
    again = factor_correlation_intervals(result, matrix, workers=1)
    assert again.equals(table)


def test_labels_that_split_one_ability_leave_a_correlation_of_one_open() -> None:
    rng = np.random.default_rng(3)
    p = 1 / (1 + np.exp(-1.5 * rng.normal(size=(50, 1)) - rng.normal(size=24)))
    matrix = ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0)
    result = fit(matrix, ModelSpec.confirmatory("2pl", ["a", "b"] * 12), n_restarts=1, workers=1)
    row = factor_correlation_intervals(result, matrix, workers=1).iloc[0]
    assert row["correlation"] < 1
    assert row["panel_high"] == row["population_high"] == 1


def test_errors_of_measurement_do_not_depend_on_the_correlation_on_the_arcsine_scale() -> None:
    rng, spread = np.random.default_rng(4), {}
    for r in (0.3, 0.9):
        u = rng.multivariate_normal(np.zeros(2), [[1, r], [r, 1]], size=(1500, 80))
        measured = u + 0.2 * rng.normal(size=u.shape)
        z, own = ((x - x.mean(1, keepdims=True)) for x in (measured, u))
        found, truth = (x.prod(2).mean(1) for x in (z, own))
        found /= np.sqrt((z.var(1) - 0.04).prod(1))
        truth /= np.sqrt(own.var(1).prod(1))
        spread[r] = [(f(found) - f(truth)).std() for f in (np.arcsin, np.arctanh)]
    # An SD over 1,500 panels has a standard error of 2 %; z would tell the two apart by a factor of two.
    assert spread[0.3][0] == pytest.approx(spread[0.9][0], rel=0.15)
    assert spread[0.9][1] > 1.8 * spread[0.3][1]


def test_uncorrelated_models_have_no_correlations() -> None:
    matrix = random_matrix(12, 9)
    result = fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, preset="quick", workers=1)
    with pytest.raises(PlanError, match="no learned factor correlations"):
        factor_correlation_intervals(result, matrix)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"n_refits": 0}, "n_refits is 0"),
        ({"n_refits": True}, "n_refits is True"),
        ({"level": 1.5}, "level is 1.5"),
    ],
)
def test_options_that_make_no_sense_are_refused(option: dict[str, float], message: str) -> None:
    matrix = random_matrix(12, 9)
    result = fit(
        matrix, ModelSpec.confirmatory("2pl", list("abc") * 3), n_restarts=1, preset="quick", workers=1
    )
    with pytest.raises(PlanError, match=message):
        factor_correlation_intervals(result, matrix, **option)  # type: ignore[arg-type]  # ints are floats


@pytest.mark.parametrize("r", [0.9999, 1.0, -1.0])
def test_at_the_edge_the_population_interval_still_holds_the_panels(
    r: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = random_matrix(25, 8)
    result = fit(
        matrix, ModelSpec.confirmatory("2pl", list("ab") * 4), n_restarts=1, preset="quick", workers=1
    )
    found = pd.DataFrame([[1, r], [r, 1]], index=list("ab"), columns=list("ab"))
    monkeypatch.setattr(FitResult, "factor_correlations", found)
    own = np.full((25, 1), 0.5)
    monkeypatch.setattr(correlations, "_refits", lambda *_: (own + 0.059, own))
    row = factor_correlation_intervals(result, matrix).iloc[0]
    assert row["population_low"] <= row["panel_low"] <= r <= row["panel_high"] <= row["population_high"]
    assert row["population_high"] - row["population_low"] < 0.05


def test_without_any_refit_there_is_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_matrix(25, 8)
    result = fit(
        matrix, ModelSpec.confirmatory("2pl", list("ab") * 4), n_restarts=1, preset="quick", workers=1
    )
    monkeypatch.setattr(correlations, "_refits", lambda *_: (np.empty((0, 1)), np.empty((0, 1))))
    row = factor_correlation_intervals(result, matrix).iloc[0]
    assert np.isfinite(row["correlation"])
    assert row[["panel_low", "panel_high", "population_low", "population_high"]].isna().all()
