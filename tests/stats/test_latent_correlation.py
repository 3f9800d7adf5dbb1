"""Correlations behind measurement errors: against integrals that share no code with the sampler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from irtaudit.stats.latent_correlation import latent_correlations

Array = NDArray[Any]


def _measured(n: int, r: Array, precision: float, seed: int) -> tuple[Array, Array, Array]:
    """Latent values, measurements and their precisions, which differ between units."""
    rng = np.random.default_rng(seed)
    latent = rng.multivariate_normal(np.zeros(len(r)), r, n)
    w = precision * rng.uniform(0.5, 1.5, latent.shape)
    return latent, latent + rng.normal(size=latent.shape) / np.sqrt(w), w


def _of_units(y: Array, w: Array, r: Array) -> tuple[float, Array]:
    """Log-likelihood of R, and correlations of the units' second moments given R, unit by unit."""
    log_lik, means, covariances = 0.0, [], []
    for value, precision in zip(y, w, strict=True):
        log_lik += multivariate_normal.logpdf(value, cov=r + np.diag(1 / precision))
        covariance = np.linalg.inv(np.linalg.inv(r) + np.diag(precision))
        covariances.append(covariance)
        means.append(covariance @ (precision * value))
    moments = np.cov(np.transpose(means), bias=True) + np.mean(covariances, axis=0)
    return log_lik, moments / np.sqrt(np.outer(np.diag(moments), np.diag(moments)))


def _average(y: Array, w: Array, matrices: list[Array]) -> Array:
    """Mean over matrices that are uniform, weighted by their likelihood."""
    log_lik, found = zip(*(_of_units(y, w, r) for r in matrices), strict=True)
    weight = np.exp(np.array(log_lik) - max(log_lik))
    return np.average(np.array(found), axis=0, weights=weight)


@pytest.mark.parametrize(("truth", "precision"), [(0.5, 6.0), (0.95, 4.0), (-0.8, 1.5)])
def test_two_variables_against_the_integral_over_their_correlation(truth: float, precision: float) -> None:
    _, y, w = _measured(30, np.array([[1, truth], [truth, 1]]), precision, seed=3)
    grid = np.linspace(-0.995, 0.995, 200)
    expected = _average(y, w, [np.array([[1, r], [r, 1]]) for r in grid])[0, 1]
    found = [latent_correlations([w * y], [w], [np.eye(2)], seed=seed)[0, 0, 1] for seed in range(4)]
    # Four chains: their mean is as good as they are close, and they are close.
    assert np.std(found, ddof=1) < 0.02
    assert np.mean(found) == pytest.approx(expected, abs=4 * max(np.std(found, ddof=1), 0.002) / 2)


def test_three_variables_against_uniform_matrices() -> None:
    truth = np.array([[1, 0.8, 0.5], [0.8, 1, 0.6], [0.5, 0.6, 1]])
    _, y, w = _measured(25, truth, 3.0, seed=4)
    rng, uniform = np.random.default_rng(0), []
    while len(uniform) < 500:
        r = np.eye(3)
        r[np.tril_indices(3, -1)] = rng.uniform(-1, 1, 3)
        r = r + r.T - np.eye(3)
        if np.linalg.eigvalsh(r)[0] > 0:
            uniform.append(r)
    expected = _average(y, w, uniform)
    found = np.mean([latent_correlations([w * y], [w], [np.eye(3)], seed=s)[0] for s in range(4)], axis=0)
    # About 20 of the uniform matrices carry the weight, and R's posterior SD is about .15: .03 of error.
    np.testing.assert_allclose(found, expected, atol=0.08)


def test_exact_measurements_are_simply_correlated() -> None:
    latent, _, w = _measured(40, np.array([[1, 0.6], [0.6, 1]]), 1e7, seed=5)
    found = latent_correlations([w * latent], [w], [np.eye(2)])[0]
    np.testing.assert_allclose(found, np.corrcoef(latent.T), atol=1e-6)


def test_without_measurements_nothing_is_claimed() -> None:
    nothing = np.zeros((200, 10, 3))
    found = latent_correlations(nothing, nothing, np.broadcast_to(np.eye(3), (200, 3, 3)))
    # Under the uniform prior each correlation has SD 1/2; 200 chains of about 20 independent draws each.
    np.testing.assert_allclose(found.mean(axis=0), np.eye(3), atol=4 * 0.5 / np.sqrt(200 * 20))
    assert np.abs(found[:, 0, 1]).max() < 0.6


def test_few_measurements_of_high_correlations_are_not_pulled_down() -> None:
    r = np.full((3, 3), 0.95) + 0.05 * np.eye(3)
    problems = [_measured(80, r, 5.0, seed) for seed in range(20)]
    values = np.stack([w * y for _, y, w in problems])
    found = latent_correlations(values, np.stack([w for _, _, w in problems]), np.stack([np.eye(3)] * 20))
    error = [
        one[0, 1] - np.corrcoef(latent.T)[0, 1] for one, (latent, _, _) in zip(found, problems, strict=True)
    ]
    # The measurements themselves correlate .79; the uniform prior, whose mean is 0, pulls by .02 in the mean.
    assert abs(np.mean(error)) < 0.03 + 3 * np.std(error, ddof=1) / np.sqrt(20)
    assert np.sqrt(np.mean(np.square(error))) < 0.05


def test_a_seed_names_the_answer() -> None:
    _, y, w = _measured(20, np.eye(2), 2.0, seed=6)
    once, again, other = (latent_correlations([w * y], [w], [np.eye(2)], seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)
