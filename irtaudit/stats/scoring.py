"""Proper scores of predicted probabilities for 0/1 outcomes."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

CLIP = 1e-8
"""Probabilities are moved into [CLIP, 1 - CLIP] before a logarithm is taken."""

Axes = tuple[int, ...]


@overload
def log_loss(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: None = None
) -> float: ...
@overload
def log_loss(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes
) -> NDArray[np.float64]: ...
def log_loss(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes | None = None
) -> Any:
    """Mean negative log-likelihood of 0/1 outcomes, in nats per outcome.

    Parameters
    ----------
    outcomes : array of 0, 1 or NaN
        NaN never counts.
    probabilities : array
        Probability of a 1; broadcast against `outcomes`.
    where : bool array, optional
        The outcomes that count; default all.
    axis : tuple of int, optional
        Axes to average over, (-2, -1) for one value per split of (split, subject, item); default all.

    Returns
    -------
    float, or array where `axis` is given
        NaN where nothing counts.
    """
    return _mean(_nats(outcomes, probabilities), outcomes, where, axis)


@overload
def brier(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: None = None
) -> float: ...
@overload
def brier(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes
) -> NDArray[np.float64]: ...
def brier(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes | None = None
) -> Any:
    """Mean squared difference between 0/1 outcomes and their probabilities (Brier 1950).

    Parameters
    ----------
    outcomes, probabilities, where, axis
        As in :func:`log_loss`.

    Returns
    -------
    float, or array where `axis` is given
        NaN where nothing counts.
    """
    squares = (np.asarray(outcomes, dtype=float) - np.asarray(probabilities, dtype=float)) ** 2
    return _mean(squares, outcomes, where, axis)


@overload
def log_likelihood(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: None = None
) -> float: ...
@overload
def log_likelihood(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes
) -> NDArray[np.float64]: ...
def log_likelihood(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None, *, axis: Axes | None = None
) -> Any:
    """Sum over outcomes of the log-probability of what was observed, in nats.

    Parameters
    ----------
    outcomes, probabilities, where, axis
        As in :func:`log_loss`.

    Returns
    -------
    float, or array where `axis` is given
    """
    nats = _nats(outcomes, probabilities)
    return np.where(_counted(nats, outcomes, where), -nats, 0.0).sum(axis=axis)


def _nats(outcomes: ArrayLike, probabilities: ArrayLike) -> NDArray[Any]:
    y = np.asarray(outcomes, dtype=float)
    p = np.clip(np.asarray(probabilities, dtype=float), CLIP, 1 - CLIP)
    return np.asarray(-np.log(np.where(y == 1, p, 1 - p)))


def _counted(values: NDArray[Any], outcomes: ArrayLike, where: ArrayLike | None) -> NDArray[Any]:
    counted = ~np.isnan(np.asarray(outcomes, dtype=float))
    if where is not None:
        counted = counted & np.asarray(where, dtype=bool)
    return np.broadcast_to(counted, np.broadcast_shapes(values.shape, counted.shape))


def _mean(values: NDArray[Any], outcomes: ArrayLike, where: ArrayLike | None, axis: Axes | None) -> Any:
    counted = _counted(values, outcomes, where)
    total = np.where(counted, values, 0.0).sum(axis=axis)
    n = counted.sum(axis=axis)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)[()]
