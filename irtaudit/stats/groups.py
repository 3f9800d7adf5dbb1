"""Do groups differ? Kruskal-Wallis with a permutation p."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata


class GroupDifference(NamedTuple):
    """A permutation Kruskal-Wallis test.

    `epsilon_squared_df_adjusted` is (H - k + 1) / (n - k), which others call eta squared of H; it can be
    below 0 and must not be confused with `epsilon_squared_unadjusted`, H / (n - 1).
    """

    h: float
    p: float
    n: int
    n_groups: int
    epsilon_squared_df_adjusted: float
    epsilon_squared_unadjusted: float


def kruskal_permutation(
    values: ArrayLike, groups: ArrayLike, n_draws: int, rng: np.random.Generator
) -> GroupDifference:
    """Kruskal-Wallis H, tie-corrected, with p from permuting the values over the groups.

    Parameters
    ----------
    values : (unit,) array
        Values, of residuals say; midranks are taken.
    groups : (unit,) array
        Group of each unit.
    n_draws : int
        Permutations; p = (1 + number at least as large) / (B + 1).

    Returns
    -------
    GroupDifference
        NaN with fewer than two groups, no more units than groups, or all values equal.
    """
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    ranks = rankdata(np.asarray(values, dtype=float)) - (np.size(values) + 1) / 2
    n, k = ranks.size, names.size
    if k < 2 or n <= k or not ranks.any():
        return GroupDifference(np.nan, np.nan, n, k, np.nan, np.nan)
    member = (codes[:, None] == np.arange(k)).astype(float)
    shuffled = rng.permuted(np.broadcast_to(ranks, (n_draws, n)), axis=1)
    h = float(_h(ranks[None], member)[0])
    p = (1 + int((_h(shuffled, member) >= h - 1e-9).sum())) / (n_draws + 1)
    return GroupDifference(h, p, n, k, (h - k + 1) / (n - k), h / (n - 1))


def _h(ranks: NDArray[np.float64], member: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kruskal-Wallis H of centred ranks (draw, unit): between-group sum of squares over the variance."""
    between = ((ranks @ member) ** 2 / member.sum(axis=0)).sum(axis=1)
    return np.asarray(between / ranks[0].var(ddof=1))
