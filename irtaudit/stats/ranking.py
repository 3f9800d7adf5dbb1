"""Ranks of uncertain quantities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import rankdata


def rank_intervals(
    means: ArrayLike, sds: ArrayLike, *, seed: int, level: float = 0.95, n_draws: int = 4000
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Interval of each quantity's rank when the quantities are independent normals.

    Parameters
    ----------
    means, sds : (n,) array
        Mean and SD of each quantity.
    seed : int
        Seed of the draws.
    level : float
        Level of each interval.
    n_draws : int
        Monte Carlo draws of all quantities together.

    Returns
    -------
    low, high : (n,) int array
        Best and worst rank; 1 is the highest quantity.
    """
    m, s = np.asarray(means, dtype=float), np.asarray(sds, dtype=float)
    draws = np.random.default_rng(seed).normal(m, s, (n_draws, m.size))
    ranks = rankdata(-draws, axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(ranks, [tail, 1 - tail], axis=0)
    return np.floor(low).astype(int), np.ceil(high).astype(int)


def probability_greater(means: ArrayLike, sds: ArrayLike) -> NDArray[np.float64]:
    """Probability that one quantity exceeds another, when the quantities are independent normals.

    Parameters
    ----------
    means, sds : (n,) array
        Mean and SD of each quantity.

    Returns
    -------
    (n, n) array
        ``[i, j]``: that quantity i is the greater one. .5 on the diagonal, and where neither has a spread and
        both are equal.
    """
    m, s = np.asarray(means, dtype=float), np.asarray(sds, dtype=float)
    difference = m[:, None] - m
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / np.hypot(s[:, None], s)
    return np.asarray(ndtr(np.where(difference == 0, 0.0, z)))
