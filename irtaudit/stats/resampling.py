"""Intervals for differences measured on repeated random splits of the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


SAMPLING_DF = 20
"""Degrees of freedom that the spread within splits counts for, beside those of the spread between them."""


def corrected_interval(
    differences: ArrayLike,
    test_over_train: float,
    *,
    n_comparisons: int = 1,
    level: float = 0.95,
    sampling: ArrayLike | None = None,
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
    sampling : (split,) array, optional
        Variance of each difference as the mean over its held-out cells. It predicts the variance between
        splits, which five splits tell poorly, see Notes.

    Returns
    -------
    Interval
        Mean, lower and upper limit. With fewer than two splits the limits are NaN: one split has no spread.

    Notes
    -----
    Were the held-out cells all that differs between splits, a variance v within them would make for one of
    ``v / (1 + test/train)`` between them, as they overlap by chance; v itself leaves room for the choice of
    training cells. The variance between splits is averaged with v, which counts for `SAMPLING_DF` degrees of
    freedom, as empirical Bayes does with many variances of few degrees each (Smyth 2004). On simulated panels
    (``experiments/verdict``) single intervals then hold the mean difference in .95 to 1.00 of panels for
    models with as many dimensions as the responses have. Models with dimensions to spare differ more between
    splits, by which of them they use: there it is .85 to .95.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.
    Smyth (2004), Linear models and empirical Bayes methods, Statistical Applications in Genetics and
    Molecular Biology 3.
    """
    d = np.asarray(differences, dtype=float)
    if d.size < 2:
        return Interval(float(d.mean()) if d.size else np.nan, np.nan, np.nan)
    df, variance = d.size - 1, d.var(ddof=1)
    if sampling is not None:
        within = np.asarray(sampling, dtype=float).mean()
        variance = (df * variance + SAMPLING_DF * within) / (df + SAMPLING_DF)
        df += SAMPLING_DF
    quantile = student.ppf(1 - (1 - level) / (2 * n_comparisons), df)
    half = quantile * np.sqrt(variance * (1 / d.size + test_over_train))
    return Interval(float(d.mean()), float(d.mean() - half), float(d.mean() + half))


def joint_intervals(intervals: Sequence[Callable[[int], Interval]], threshold: float) -> list[Interval]:
    """Intervals that are read together: does any lie above a threshold?

    The level is kept for that question, not for all the intervals at once: a limit that lies above by chance
    is what shall be rare. Each interval is corrected for the number of all (Bonferroni). One that is then
    wholly below the threshold is settled and cannot be the one above, so the others are corrected for their
    own number only. Some lower limit is above a threshold that no true value exceeds in about 2.5 % of
    experiments, as meant, wherever the true values lie (the tests count it); comparisons that are far below
    do not make the others harder to tell.

    Parameters
    ----------
    intervals : sequence of callable
        Each gives the interval of one comparison, corrected for a number of them.
    threshold : float
        NaN: none is settled.

    Returns
    -------
    list of Interval
        In the order given.

    References
    ----------
    Hansen (2005), A test for superior predictive ability, J. Business and Economic Statistics 23, and Romano,
    Shaikh and Wolf (2014), A practical two-step method for testing moment inequalities, Econometrica 82: what
    is clearly inferior need not be corrected for.
    """
    found = [interval(len(intervals)) for interval in intervals]
    left = sum(not one.high < threshold for one in found)
    return [
        one if one.high < threshold else interval(left)
        for one, interval in zip(found, intervals, strict=True)
    ]
