"""Posterior predictive checks: statistics by hand, comfort for the true model, alarm for a wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality import predictive as predictive_module
from irtaudit.dimensionality.predictive import CHECKS, predictive_checks
from irtaudit.irt.fit import fit
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec

FAST = {"preset": "quick", "n_restarts": 1, "workers": 1}


def _fitted(matrix: ResponseMatrix, family: str = "2pl") -> FitResult:
    return fit(matrix, ModelSpec.unidimensional(family), **FAST)


def test_observed_values_are_those_of_the_panel() -> None:
    matrix = panel(0, 30, 8, missing=0.2)
    table = predictive_checks(_fitted(matrix), matrix, n_draws=5).set_index("check")
    y = matrix.responses
    assert table.loc["score_sd", "observed"] == pytest.approx(np.nanmean(y, axis=1).std())
    ratios = []
    for j in range(8):
        for k in range(j):
            n = [[np.sum((y[:, j] == a) & (y[:, k] == b)) + 0.5 for b in (0, 1)] for a in (0, 1)]
            ratios.append(np.log(n[1][1] * n[0][0] / (n[1][0] * n[0][1])))
    assert table.loc["log_odds_ratio_mean", "observed"] == pytest.approx(np.mean(ratios), abs=1e-5)
    assert table.loc["log_odds_ratio_sd", "observed"] == pytest.approx(np.std(ratios), abs=1e-5)


def test_the_true_model_gives_no_alarm_and_the_table_keeps_its_contract() -> None:
    p = []
    for seed in range(6):
        matrix = panel(seed, missing=0.1)
        table = predictive_checks(_fitted(matrix), matrix, n_draws=100, seed=seed)
        assert list(table.columns) == CHECKS
        assert (table["low"] <= table["expected"]).all()
        assert (table["expected"] <= table["high"]).all()
        assert table["p"].between(0, 1).all()
        assert (table["seed"] == seed).all()
        p.append(table.set_index("check")["p"])
    # the checks are conservative: .025 should hardly ever be reached
    assert (np.array(p) <= 0.025).mean() < 0.15


def test_a_second_factor_shows_in_the_odds_ratios_but_not_in_the_scores() -> None:
    matrix = panel(1, 80, 60, correlation=0.0)
    table = predictive_checks(_fitted(matrix), matrix, n_draws=100).set_index("check")
    assert table.loc["log_odds_ratio_sd", "p"] <= 0.02
    assert table.loc["log_odds_ratio_sd", "observed"] > table.loc["log_odds_ratio_sd", "high"]
    assert table.loc["odds_ratios_off", "observed"] > table.loc["odds_ratios_off", "high"]
    assert table.loc["score_sd", "p"] > 0.05


def test_the_seed_decides_and_many_items_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = panel(2, 30, 20)
    fitted = _fitted(matrix)
    one, same = (predictive_checks(fitted, matrix, n_draws=10, seed=1) for _ in range(2))
    assert one.equals(same)
    assert not one.equals(predictive_checks(fitted, matrix, n_draws=10, seed=2))
    monkeypatch.setattr(predictive_module, "MAX_ITEMS", 5)
    shown = predictive_module._pair_items(matrix)
    rates = np.sort(matrix.responses.mean(axis=0))
    assert len(shown) == 5
    assert {rates[0], rates[-1]} <= set(matrix.responses.mean(axis=0)[shown])
