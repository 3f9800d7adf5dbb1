"""Metrics of yes/no decisions from their four counts, and what a policy that never looks would score.

A metric is a function of counts, so one table of metrics serves observed counts, resampled counts and the
expected shares of a constant policy: its closed form is the metric at those shares. An always-positive
policy on a share ``pi`` of positives has F1 = 2 pi / (1 + pi); one that says yes at random with probability
``q`` has F1 = 2 pi q / (pi + q).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


class Confusion(NamedTuple):
    """Counts (or shares) of decisions, four arrays that broadcast: true and false, positive and negative."""

    tp: Array
    fp: Array
    fn: Array
    tn: Array


def confusion(tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, tn: ArrayLike) -> Confusion:
    """Counts as float arrays; NaN anywhere makes every metric of that cell NaN."""
    return Confusion(*(np.asarray(count, dtype=float) for count in (tp, fp, fn, tn)))


def _ratio(part: Array, whole: Array) -> Array:
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0))


def recall(c: Confusion) -> Array:
    """Share of positives that are called positive; NaN without positives."""
    return _ratio(c.tp, c.tp + c.fn)


def specificity(c: Confusion) -> Array:
    """Share of negatives that are called negative; NaN without negatives."""
    return _ratio(c.tn, c.tn + c.fp)


def precision(c: Confusion) -> Array:
    """Share of positive calls that are right; NaN when nothing is called positive."""
    return _ratio(c.tp, c.tp + c.fp)


def accuracy(c: Confusion) -> Array:
    """Share of decisions that are right."""
    return _ratio(c.tp + c.tn, c.tp + c.fp + c.fn + c.tn)


def balanced_accuracy(c: Confusion) -> Array:
    """Mean of recall and specificity: .5 for every policy that never looks."""
    return (recall(c) + specificity(c)) / 2


def f_beta(c: Confusion, beta: float = 1.0) -> Array:
    """Weighted harmonic mean of precision and recall (van Rijsbergen 1979): 0 without a true positive."""
    weight = beta**2
    return _ratio((1 + weight) * c.tp, (1 + weight) * c.tp + weight * c.fn + c.fp)


def f1(c: Confusion) -> Array:
    """F-beta with beta 1: blind to true negatives."""
    return f_beta(c)


def mcc(c: Confusion) -> Array:
    """Matthews correlation of calls and truth; NaN when either is constant."""
    margins = (c.tp + c.fp) * (c.tp + c.fn) * (c.tn + c.fp) * (c.tn + c.fn)
    return _ratio(c.tp * c.tn - c.fp * c.fn, np.sqrt(margins))


def kappa(c: Confusion) -> Array:
    """Agreement of calls and truth beyond chance (Cohen 1960); NaN when both are constant and equal."""
    n = c.tp + c.fp + c.fn + c.tn
    chance = _ratio((c.tp + c.fp) * (c.tp + c.fn) + (c.fn + c.tn) * (c.fp + c.tn), n**2)
    return _ratio(accuracy(c) - chance, 1 - chance)


METRICS: Mapping[str, Callable[[Confusion], Array]] = MappingProxyType(
    {
        "recall": recall,
        "specificity": specificity,
        "precision": precision,
        "accuracy": accuracy,
        "balanced_accuracy": balanced_accuracy,
        "f1": f1,
        "mcc": mcc,
        "kappa": kappa,
    }
)
"""Every metric by name; each takes a `Confusion` and returns an array."""


def random_policy(prevalence: ArrayLike, q: float) -> Confusion:
    """Expected shares of the decisions of a policy that says yes with probability `q` and never looks.

    Parameters
    ----------
    prevalence : array
        Share of positives.
    q : float
        1 always says yes, 0 never does.
    """
    pi = np.asarray(prevalence, dtype=float)
    return Confusion(tp=pi * q, fp=(1 - pi) * q, fn=pi * (1 - q), tn=(1 - pi) * (1 - q))


def best_constant(metric: str, prevalence: ArrayLike) -> tuple[Array, str]:
    """Highest score on `metric` of the two policies that never look, and which one it is.

    Where a metric is undefined for a constant policy (MCC) its limit counts, which is 0: a policy that says
    yes at random with any probability strictly between 0 and 1 has MCC 0.

    Returns
    -------
    score : array
        Shape of `prevalence`.
    policy : str
        "always positive" or "always negative", by the mean over `prevalence`.
    """
    score = METRICS[metric]
    yes, no = (np.nan_to_num(score(random_policy(prevalence, q)), nan=0.0) for q in (1.0, 0.0))
    return np.maximum(yes, no), "always negative" if no.mean() > yes.mean() else "always positive"


def recover_confusion(
    f1_printed: float,
    specificity_printed: float,
    positives: int,
    negatives: int,
    *,
    f1_decimals: int,
    specificity_decimals: int,
    most: int = 1_000,
) -> list[tuple[int, int]]:
    """All pairs (TP, FP) whose F1 and specificity round to the printed values.

    For each FP the printed F1 bounds TP through TP = F1 (P + FP) / (2 - F1).

    Parameters
    ----------
    f1_printed, specificity_printed : float
        Published values.
    positives, negatives : int
        Labels of the benchmark, P and N.
    f1_decimals, specificity_decimals : int
        Decimals of the published values.
    most : int
        Stop at so many pairs.

    Returns
    -------
    list of (int, int)
        One pair: the counts are recovered. More or none: they are not determined, or do not fit P and N.
    """
    fp = np.arange(negatives + 1)
    specific = 1 - fp / negatives if negatives else np.full(1, np.nan)
    fp = fp[_prints_as(specific, specificity_printed, specificity_decimals)]
    half = 0.5 * 10.0**-f1_decimals
    lowest, highest = (np.clip(end, 0, 1) for end in (f1_printed - half, f1_printed + half))
    first = np.maximum(np.floor(lowest * (positives + fp) / (2 - lowest)) - 1, 0).astype(int)
    last = np.minimum(np.ceil(highest * (positives + fp) / (2 - highest)) + 1, positives).astype(int)
    found: list[tuple[int, int]] = []
    for f, start, stop in zip(fp, first, last, strict=True):
        tp = np.arange(start, stop + 1)
        fits = tp[_prints_as(f1(confusion(tp, f, positives - tp, negatives - f)), f1_printed, f1_decimals)]
        found += [(int(t), int(f)) for t in fits[: most - len(found)]]
        if len(found) >= most:
            break
    return found


def _prints_as(values: Array, printed: float, decimals: int) -> Array:
    # half a unit and a hair: both directions of rounding an exact half are in use
    return np.abs(values - printed) <= 0.5 * 10.0**-decimals + 1e-12
