"""Rates shrunk towards their common mean by as much as the data ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, psi

MAX_PSEUDO_COUNT = 1e4
"""Largest ``a + b``: rates that do not differ at all are shrunk to their common mean in effect."""


def beta_binomial_prior(successes: ArrayLike, trials: ArrayLike) -> tuple[float, float]:
    """Beta(a, b) under which the totals of many groups are most likely.

    Parameters
    ----------
    successes, trials : (group,) array
        Totals of each group; groups without a trial carry no information.

    Returns
    -------
    a, b : float
        Pseudo-counts of successes and failures. Without any trial: 1 and 1.

    Notes
    -----
    Maximum likelihood of the beta-binomial distribution over the mean ``a / (a + b)`` and the concentration
    ``a + b``, the latter within [0.01, MAX_PSEUDO_COUNT].
    """
    s, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    if n.sum() == 0:
        return 1.0, 1.0

    rate = (s.sum() + 0.5) / (n.sum() + 1)
    start = np.array([np.log(rate / (1 - rate)), np.log(4.0)])
    bounds = [(-12.0, 12.0), (np.log(0.01), np.log(MAX_PSEUDO_COUNT))]
    found = minimize(_minus_log_likelihood, start, args=(s, n), jac=True, bounds=bounds, method="L-BFGS-B")
    mean, total = expit(found.x[0]), np.exp(found.x[1])
    return float(total * mean), float(total * (1 - mean))


def _minus_log_likelihood(v: NDArray[Any], s: NDArray[Any], n: NDArray[Any]) -> tuple[float, NDArray[Any]]:
    """Beta-binomial value and gradient in v = (logit mean, log concentration)."""
    mean, total = expit(v[0]), np.exp(v[1])
    a, b = total * mean, total * (1 - mean)
    value = (betaln(s + a, n - s + b) - betaln(a, b)).sum()
    common = psi(n + total) - psi(total)
    by_a = (psi(s + a) - psi(a) - common).sum()
    by_b = (psi(n - s + b) - psi(b) - common).sum()
    gradient = np.array([total * mean * (1 - mean) * (by_a - by_b), a * by_a + b * by_b])
    return -float(value), -gradient


def shrunken_rates(successes: ArrayLike, trials: ArrayLike) -> NDArray[Any]:
    """Posterior mean rate of each group under the prior that the groups themselves suggest.

    Parameters
    ----------
    successes, trials : (group,) array
        Totals of each group; a group without a trial gets the prior's mean.

    Returns
    -------
    (group,) array
        Rates strictly between 0 and 1 (empirical Bayes, beta-binomial).
    """
    s, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    a, b = beta_binomial_prior(s, n)
    return np.asarray((s + a) / (n + a + b))
