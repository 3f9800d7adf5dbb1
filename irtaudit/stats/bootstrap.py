"""Resampling without loops: a draw is a row of counts that says how often each unit is in it.

A bootstrap sample, a sample of whole clusters, a panel without one of its units and a random subset are all
rows of one matrix (draw, unit), and a statistic of weighted units serves them all.
"""

from __future__ import annotations

from itertools import chain, combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from irtaudit.stats.resampling import Interval

Counts = NDArray[np.float64]
FEW_CLUSTERS = 20
"""Below this many clusters the percentile interval is too short and a t interval takes its place."""


def unit_draws(n_units: int, n_draws: int, rng: np.random.Generator) -> Counts:
    """Bootstrap samples of `n_units` units, with replacement.

    Returns
    -------
    (draw, unit) array of counts; each row sums to `n_units`.
    """
    return rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=n_draws).astype(float)


def cluster_draws(clusters: ArrayLike, n_draws: int, rng: np.random.Generator) -> Counts:
    """Bootstrap samples of whole clusters: as many as there are, with replacement.

    Parameters
    ----------
    clusters : (unit,) array
        Cluster of each unit, of any kind that sorts.

    Returns
    -------
    (draw, unit) array of counts; rows sum to different numbers where clusters differ in size.
    """
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return unit_draws(names.size, n_draws, rng)[:, codes]


def stratified_draws(strata: ArrayLike, n_draws: int, rng: np.random.Generator) -> Counts:
    """Bootstrap samples within each stratum, with replacement; every draw keeps the strata's sizes.

    Returns
    -------
    (draw, unit) array of counts
    """
    codes = np.asarray(strata)
    counts = np.zeros((n_draws, codes.size))
    for stratum in np.unique(codes):
        member = codes == stratum
        counts[:, member] = unit_draws(int(member.sum()), n_draws, rng)
    return counts


def without_each(groups: ArrayLike) -> tuple[list[Any], Counts]:
    """The sample without each of its groups in turn.

    Parameters
    ----------
    groups : (unit,) array
        Group of each unit; all different: leave one unit out.

    Returns
    -------
    names : list
        The group that is left out, in sorted order.
    counts : (group, unit) array of 0 and 1
    """
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    return names.tolist(), (codes[None, :] != np.arange(names.size)[:, None]).astype(float)


def subsets(n_units: int, size: int, rng: np.random.Generator, *, limit: int = 50_000) -> tuple[Counts, bool]:
    """All subsets of a size, or `limit` random ones when there are more than that.

    Returns
    -------
    counts : (subset, unit) array of 0 and 1
    complete : bool
        Whether these are all.
    """
    number = comb(n_units, size)
    if number <= limit:
        flat = chain.from_iterable(combinations(range(n_units), size))
        chosen = np.fromiter(flat, dtype=np.intp, count=number * size).reshape(number, size)
    else:
        chosen = np.argpartition(rng.random((limit, n_units)), size - 1, axis=1)[:, :size]
    counts = np.zeros((len(chosen), n_units))
    np.put_along_axis(counts, chosen, 1.0, axis=1)
    return counts, number <= limit


def percentile_interval(estimate: float, draws: ArrayLike, level: float = 0.95) -> Interval:
    """Percentile bootstrap interval over the draws in which the statistic is defined."""
    values = _defined(draws)
    if not np.isfinite(estimate) or values.size < 2:
        return Interval(estimate, np.nan, np.nan)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high))


def two_sided_p(draws: ArrayLike) -> float:
    """Bootstrap p-value of "the statistic is 0": twice the smaller share of draws on one side of 0.

    The floor is 2 / (B + 1), because the sample itself counts as a draw on either side.

    Returns
    -------
    float
        NaN without a defined draw.
    """
    values = _defined(draws)
    if values.size == 0:
        return float("nan")
    smaller = min((values <= 0).sum(), (values >= 0).sum())
    return float(min(1.0, 2 * (1 + smaller) / (values.size + 1)))


class ClusterInterval(NamedTuple):
    """Interval of a statistic whose units come in clusters.

    `low` and `high` follow `rule`, "t" or "percentile"; `percentile_low` and `percentile_high` always stand
    beside them. `p` is two-sided and follows the same rule. `degenerate` counts draws without a value.
    """

    low: float
    high: float
    p: float
    rule: str
    percentile_low: float
    percentile_high: float
    n_clusters: int
    degenerate: int


def cluster_interval(
    estimate: float, draws: ArrayLike, n_clusters: int, level: float = 0.95
) -> ClusterInterval:
    """Interval from a cluster bootstrap: below `FEW_CLUSTERS` estimate +- t(G - 1) x SD of the draws.

    With few clusters the percentile interval is too short (at 8 clusters it covers .90 to .94); the t
    interval on the bootstrap SD holds its level.

    Parameters
    ----------
    estimate : float
        The statistic of the sample.
    draws : (draw,) array
        The statistic in samples of :func:`cluster_draws`, NaN where it is undefined.
    n_clusters : int
        G, the clusters represented.
    level : float
        Confidence level.

    Returns
    -------
    ClusterInterval
        NaN limits with fewer than two clusters.

    References
    ----------
    Cameron, Gelbach and Miller (2008), Bootstrap-based improvements for inference with clustered errors,
    Review of Economics and Statistics 90.
    """
    values = _defined(draws)
    degenerate = int(np.size(draws) - values.size)
    if n_clusters < 2 or values.size < 2 or not np.isfinite(estimate):
        nan = np.nan
        return ClusterInterval(nan, nan, nan, "undefined", nan, nan, n_clusters, degenerate)
    _, low, high = percentile_interval(estimate, values, level)
    if n_clusters >= FEW_CLUSTERS:
        return ClusterInterval(
            low, high, two_sided_p(values), "percentile", low, high, n_clusters, degenerate
        )
    sd, df = float(values.std(ddof=1)), n_clusters - 1
    half = float(student.ppf((1 + level) / 2, df)) * sd
    p = float(2 * student.sf(abs(estimate) / sd, df)) if sd > 0 else float("nan")
    return ClusterInterval(estimate - half, estimate + half, p, "t", low, high, n_clusters, degenerate)


def _defined(draws: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(draws, dtype=float)
    return np.asarray(values[np.isfinite(values)])
