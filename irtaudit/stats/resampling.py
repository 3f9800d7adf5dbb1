"""Intervals for differences measured on repeated random splits of the same data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student


class Interval(NamedTuple):
    """An estimate between two limits; NaN limits: undefined."""

    estimate: float
    low: float
    high: float

    @property
    def defined(self) -> bool:
        """Whether the limits exist."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


def corrected_interval(
    differences: ArrayLike, test_over_train: float, *, n_comparisons: int = 1, level: float = 0.95
) -> Interval:
    """Corrected resampled t interval of a mean over overlapping splits.

    Splits of one data set share most of their training cells, so their differences are correlated and
    ``s / sqrt(n)`` is too small; the variance factor ``1/n`` becomes ``1/n + test/train``.

    Parameters
    ----------
    differences : (split,) array
        One paired difference per split.
    test_over_train : float
        Held-out cells over training cells of a split: .25 for 80/20.
    n_comparisons : int
        Intervals that are read together (Bonferroni): each gets level ``1 - (1 - level) / n_comparisons``.
    level : float
        Joint confidence level.

    Returns
    -------
    Interval
        Mean, lower and upper limit. With fewer than two splits the limits are NaN: one split has no spread.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.
    """
    d = np.asarray(differences, dtype=float)
    if d.size < 2:
        return Interval(float(d.mean()) if d.size else np.nan, np.nan, np.nan)
    quantile = student.ppf(1 - (1 - level) / (2 * n_comparisons), d.size - 1)
    half = quantile * d.std(ddof=1) * np.sqrt(1 / d.size + test_over_train)
    return Interval(float(d.mean()), float(d.mean() - half), float(d.mean() + half))
