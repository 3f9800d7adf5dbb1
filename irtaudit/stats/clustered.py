"""Interval of a proportion whose trials come in clusters: several runs of each task, say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from irtaudit.stats.proportions import wilson

FEW_EFFECTIVE = 5
"""With fewer effective successes or failures than this the design effect is not estimated well enough."""
BY_CLUSTERS = "Wilson, n = clusters"
"""The method where the number of clusters takes the place of that of trials."""


class ClusteredProportion(NamedTuple):
    """A proportion with its interval.

    Attributes
    ----------
    estimate, low, high : float
        NaN without a trial.
    deff : float
        Design effect: variance of the estimate over that of as many independent trials; at least 1, NaN
        where it cannot be estimated.
    method : str
        How the interval was obtained.
    """

    estimate: float
    low: float
    high: float
    deff: float
    method: str


def clustered_proportion(
    successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95
) -> ClusteredProportion:
    """Wilson interval at the effective number of trials.

    The variance between clusters gives the design effect; Wilson's interval is taken at ``trials / deff``
    with a t quantile of ``clusters - 1`` degrees of freedom. Where fewer than 5 effective successes or
    failures are left, the number of clusters takes the place of that of trials, which is as if all trials
    of a cluster agreed. One trial per cluster is the ordinary Wilson interval. By simulation of 4,000 samples
    (50 clusters of 10 with intraclass correlation .5, and four other designs) this covers .942 to .986, where
    Wilson's interval on all trials covers .47 to .94: ``experiments/protocol_intervals``.

    Parameters
    ----------
    successes, trials : (cluster,) array
        Counts; clusters without a trial do not count.
    level : float

    Returns
    -------
    ClusteredProportion
    """
    n = np.asarray(trials, dtype=float)
    y, n = np.asarray(successes, dtype=float)[n > 0], n[n > 0]
    total, clusters = n.sum(), n.size
    if not clusters:
        return ClusteredProportion(np.nan, np.nan, np.nan, np.nan, "no trials")
    p = float(y.sum() / total)
    if n.max() == 1:
        low, high = wilson(y.sum(), total, level=level)
        return ClusteredProportion(p, float(low), float(high), 1.0, "Wilson")
    deff = _design_effect(y, n, p)
    if not min(p, 1 - p) * total / deff >= FEW_EFFECTIVE:
        low, high = wilson(p * clusters, clusters, level=level)
        return ClusteredProportion(p, float(low), float(high), deff, BY_CLUSTERS)
    quantile = float(student.ppf((1 + level) / 2, clusters - 1))
    low, high = wilson(y.sum() / deff, total / deff, quantile=quantile)
    return ClusteredProportion(p, float(low), float(high), deff, "Wilson, n / deff, t quantile")


def _design_effect(y: np.ndarray, n: np.ndarray, p: float) -> float:
    """Ratio of the linearised between-cluster variance to p (1 - p) / n; NaN where either is undefined."""
    if n.size < 2 or not 0 < p < 1:
        return float("nan")
    between = n.size / (n.size - 1) * np.square(y - p * n).sum() / n.sum() ** 2
    return max(1.0, float(between / (p * (1 - p) / n.sum())))
