"""Exploratory loadings of planted clusters: simple after rotation, the same for every restart."""

from __future__ import annotations

import numpy as np
import pytest

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import PlanError
from irtaudit.irt.fit import fit
from irtaudit.irt.loadings import LOGIT_PER_PROBIT, rotated_loadings, standardised_loadings
from irtaudit.irt.spec import ModelSpec


def test_planted_clusters_are_found_and_restarts_agree() -> None:
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(300, 2))
    slope = 2.0
    p = 1 / (1 + np.exp(-slope * theta[:, np.repeat([0, 1], [24, 12])] - rng.normal(size=36)))
    matrix = ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0)
    result = fit(matrix, ModelSpec.exploratory("2pl", 2), n_restarts=4, workers=1)
    found = rotated_loadings(result)
    loading = slope / LOGIT_PER_PROBIT / np.sqrt(1 + (slope / LOGIT_PER_PROBIT) ** 2)
    own = np.repeat([[1, 0], [0, 1]], [24, 12], axis=0) == 1
    # A loading of .76 from 300 subjects has a standard error of about .05.
    assert np.abs(found.loadings.to_numpy()[own] - loading).max() < 0.2
    assert np.abs(found.loadings.to_numpy()[~own]).max() < 0.25
    assert found.loadings.to_numpy()[own].mean() == pytest.approx(loading, abs=0.05)
    assert len(found.congruence) == 3 * 2
    assert found.congruence["congruence"].min() > 0.99
    likelihood = result.restarts.set_index("restart")["train_log_lik"]
    shortfall = found.congruence.groupby("restart")["shortfall"].first()
    best = likelihood.max()
    assert shortfall.to_numpy() == pytest.approx(((best - likelihood) / -best)[shortfall.index].to_numpy())
    assert (shortfall >= 0).all()
    oblique = rotated_loadings(result, "oblimin")
    assert abs(oblique.correlation.iloc[0, 1]) < 0.2


def test_oblique_dimensions_agree_where_restarts_do() -> None:
    rng = np.random.default_rng(1)
    theta = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=300)
    p = 1 / (1 + np.exp(-2 * theta[:, np.repeat([0, 1], [24, 12])] - rng.normal(size=36)))
    matrix = ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0)
    result = fit(matrix, ModelSpec.exploratory("2pl", 2), n_restarts=3, workers=1)
    oblique = rotated_loadings(result, "oblimin")
    # The dimensions correlate, so that no orthogonal turn alone could bring a restart onto them.
    assert oblique.correlation.iloc[0, 1] > 0.2
    # From .95 on two dimensions count as the same (Lorenzo-Seva and ten Berge 2006).
    assert oblique.congruence["congruence"].min() > 0.97
    assert oblique.model == "exploratory_2d_2pl"


def test_standardised_loadings_are_correlations() -> None:
    matrix = ResponseMatrix.from_array((np.random.default_rng(1).random((20, 9)) < 0.5) * 1.0)
    result = fit(matrix, ModelSpec.exploratory("2pl", 3), n_restarts=1, preset="quick", workers=1)
    loadings = standardised_loadings(result)
    assert loadings.shape == (9, 3)
    assert ((loadings**2).sum(axis=1) < 1).all()


def test_identified_loadings_are_not_rotated() -> None:
    matrix = ResponseMatrix.from_array((np.random.default_rng(1).random((20, 9)) < 0.5) * 1.0)
    result = fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, preset="quick", workers=1)
    with pytest.raises(PlanError, match="not exploratory"):
        rotated_loadings(result)
