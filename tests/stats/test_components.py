from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from irtaudit.stats.components import (
    null_eigenvalues,
    permuted_eigenvalues,
    principal_components,
    retained,
)

DATA = np.random.default_rng(0).normal(size=(25, 4)) @ np.array(
    [[1, 0.8, -0.6, 0], [0, 0.6, 0, 0], [0, 0, 0.8, 0], [0, 0, 0, 1.0]]
)


@pytest.mark.parametrize("ranked", [False, True])
def test_components_reproduce_the_correlation_matrix(ranked: bool) -> None:
    found = principal_components(DATA, ranked=ranked)
    expected = np.corrcoef((rankdata(DATA, axis=0) if ranked else DATA).T)
    assert found.loadings @ found.loadings.T == pytest.approx(expected, abs=1e-12)
    assert found.eigenvalues.sum() == pytest.approx(4)
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert found.scores.var(axis=0) == pytest.approx(found.eigenvalues)
    assert (found.loadings.sum(axis=0) >= 0).all()


def test_loadings_are_correlations_with_the_scores() -> None:
    found = principal_components(DATA)
    for column, loading in zip(DATA.T, found.loadings[:, 0], strict=True):
        assert np.corrcoef(column, found.scores[:, 0])[0, 1] == pytest.approx(loading)


@pytest.mark.parametrize("ranked", [False, True])
def test_null_eigenvalues_are_those_of_unrelated_columns(ranked: bool) -> None:
    rng = np.random.default_rng(1)
    null = null_eigenvalues(18, 4, 3000, rng, ranked=ranked)
    assert null.sum(axis=1) == pytest.approx(np.full(3000, 4.0))
    # E tr(R^2) = p + p (p - 1) / (n - 1) for independent columns
    expected = 4 + 12 / 17
    spread = (null**2).sum(axis=1)
    assert spread.mean() == pytest.approx(expected, abs=5 * spread.std() / np.sqrt(3000))
    shuffled = (permuted_eigenvalues(DATA[:18], 3000, rng, ranked=ranked) ** 2).sum(axis=1)
    assert shuffled.mean() == pytest.approx(expected, abs=5 * shuffled.std() / np.sqrt(3000))


def test_retained_stops_at_the_first_failure() -> None:
    assert retained([2.0, 1.0, 0.9], [1.5, 1.2, 0.5]) == 1
    assert retained([1.0, 1.0], [1.5, 0.5]) == 0
    assert retained([2.0, 1.5], [1.0, 1.0]) == 2
