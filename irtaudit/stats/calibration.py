"""How well yes/no calls agree with known answers, and how far their stated confidence can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irtaudit.stats.classification import METRICS, Confusion, best_constant, confusion
from irtaudit.stats.proportions import wilson

_EQUAL = 1e-12  # two ways to compute the same score differ by rounding


class MetricInterval(NamedTuple):
    """One metric of a table of counts, and what the better of two constant policies scores on it.

    Attributes
    ----------
    metric : str
    estimate, low, high : float
        With a 95 % interval unless another level was asked for; NaN where undefined.
    method : str
        Of the interval.
    constant : float
        Score of the best policy that never looks.
    policy : str
        Which one that is.
    low_above, high_above : float
        Interval of estimate minus constant, both taken anew in each draw.
    """

    metric: str
    estimate: float
    low: float
    high: float
    method: str
    constant: float
    policy: str
    low_above: float
    high_above: float


def metric_intervals(
    tp: int,
    fp: int,
    fn: int,
    tn: int,
    rng: np.random.Generator,
    *,
    n_draws: int = 10_000,
    level: float = 0.95,
) -> list[MetricInterval]:
    """Every metric of a two-by-two table with its interval, next to the constant baseline.

    Shares with a fixed denominator get Wilson's interval. The others, and every difference from the constant
    baseline, get a percentile interval over multinomial draws of the four counts.

    Parameters
    ----------
    tp, fp, fn, tn : int
    rng : Generator
    n_draws : int
    level : float

    Returns
    -------
    list of MetricInterval
        In the order of `irtaudit.stats.classification.METRICS`.
    """
    counts = np.array([tp, fp, fn, tn], dtype=float)
    total = counts.sum()
    seen = confusion(*counts)
    drawn = confusion(*rng.multinomial(int(total), counts / total, size=n_draws).T)
    exact = {
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "precision": (tp, tp + fp),
        "accuracy": (tp + tn, int(total)),
    }
    return [_interval(name, seen, drawn, exact.get(name), level) for name in METRICS]


def _interval(
    name: str, seen: Confusion, drawn: Confusion, share: tuple[int, int] | None, level: float
) -> MetricInterval:
    values = METRICS[name](drawn)
    constant, policy = best_constant(name, _prevalence(seen))
    # the policy is fixed by the observed table, its score moves with the prevalence of each draw
    above = values - best_constant(name, _prevalence(drawn))[0]
    above = np.where(np.abs(above) < _EQUAL, 0.0, above)
    low, high = _percentiles(values, level) if share is None else wilson(*share, level=level)
    low_above, high_above = _percentiles(above, level)
    return MetricInterval(
        name,
        float(METRICS[name](seen)),
        float(low),
        float(high),
        "bootstrap" if share is None else "Wilson",
        float(constant),
        policy,
        low_above,
        high_above,
    )


def _prevalence(counts: Confusion) -> NDArray[np.float64]:
    return np.asarray((counts.tp + counts.fn) / sum(counts), dtype=float)


def _percentiles(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    defined = values[np.isfinite(values)]
    if defined.size < 2:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class ReliabilityBin(NamedTuple):
    """Calls with similar confidence: how many, how confident on average, how often right (with interval)."""

    low_edge: float
    high_edge: float
    n: int
    confidence: float
    right: float
    low: float
    high: float


def reliability_curve(confidence: ArrayLike, right: ArrayLike, n_bins: int = 5) -> list[ReliabilityBin]:
    """Share of right calls by stated confidence, in bins of equal width over [0, 1]; empty bins are left out.

    Parameters
    ----------
    confidence : (call,) array
        Between 0 and 1.
    right : (call,) array of bool
    n_bins : int

    Returns
    -------
    list of ReliabilityBin
    """
    stated, correct = np.asarray(confidence, dtype=float), np.asarray(right, dtype=bool)
    bins = np.minimum((stated * n_bins).astype(int), n_bins - 1)
    return [
        _bin(b, n_bins, stated[bins == b], correct[bins == b]) for b in range(n_bins) if (bins == b).any()
    ]


def _bin(b: int, n_bins: int, stated: NDArray[np.float64], correct: NDArray[np.bool_]) -> ReliabilityBin:
    low, high = wilson(correct.sum(), correct.size)
    edges = b / n_bins, (b + 1) / n_bins
    return ReliabilityBin(
        *edges, correct.size, float(stated.mean()), float(correct.mean()), float(low), float(high)
    )
