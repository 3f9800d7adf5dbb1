"""Intervals for proportions and their differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, norm

Limits = tuple[NDArray[Any], NDArray[Any]]


def wilson(
    successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95, quantile: float | None = None
) -> Limits:
    """Score interval of a proportion (Wilson 1927).

    Parameters
    ----------
    successes, trials : array
        Counts; need not be whole, so that `trials` may be an effective number. Zero trials: NaN limits.
    level : float
        Confidence level.
    quantile : float, optional
        Two-sided quantile to use instead of the normal one, of a t distribution say.

    Returns
    -------
    low, high : array
    """
    n = _positive(trials)
    p = np.asarray(successes, dtype=float) / n
    z = norm.ppf((1 + level) / 2) if quantile is None else quantile
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # the limits at 0 and at all successes are 0 and 1 exactly, but for rounding
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95) -> Limits:
    """Exact interval of a proportion (Clopper and Pearson 1934); zero trials: NaN limits.

    Returns
    -------
    low, high : array
    """
    s, n = np.asarray(successes, dtype=float), _positive(trials)
    tail = (1 - level) / 2
    low = np.where(s > 0, beta.ppf(tail, s, n - s + 1), 0.0 * n)
    high = np.where(s < n, beta.ppf(1 - tail, s + 1, n - s), 1.0 + 0.0 * n)
    return low, high


def newcombe(
    successes: ArrayLike, trials: ArrayLike, other: ArrayLike, other_trials: ArrayLike, *, level: float = 0.95
) -> Limits:
    """Interval of the difference of two independent proportions, first minus second.

    Returns
    -------
    low, high : array

    References
    ----------
    Newcombe (1998), Interval estimation for the difference between independent proportions, method 10,
    Statistics in Medicine 17.
    """
    p1, p2 = np.asarray(successes) / _positive(trials), np.asarray(other) / _positive(other_trials)
    low1, high1 = wilson(successes, trials, level=level)
    low2, high2 = wilson(other, other_trials, level=level)
    low = p1 - p2 - np.hypot(p1 - low1, high2 - p2)
    return low, p1 - p2 + np.hypot(high1 - p1, p2 - low2)


def _positive(trials: ArrayLike) -> NDArray[Any]:
    n = np.asarray(trials, dtype=float)
    return np.where(n > 0, n, np.nan)
