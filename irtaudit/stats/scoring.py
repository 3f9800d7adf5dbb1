"""Proper scores of predicted probabilities for 0/1 outcomes, single or counted."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

CLIP = 1e-8
"""Probabilities are moved into [CLIP, 1 - CLIP] before a logarithm is taken."""

Axes = tuple[int, ...]


@overload
def log_loss(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: None = None,
    trials: ArrayLike | None = None,
) -> float: ...
@overload
def log_loss(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes,
    trials: ArrayLike | None = None,
) -> NDArray[np.float64]: ...
def log_loss(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes | None = None,
    trials: ArrayLike | None = None,
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
    trials : array, optional
        Number of outcomes behind each entry of `outcomes`, which is then the share of them that are 1; every
        single outcome counts. Broadcast against `outcomes`; default one each.

    Returns
    -------
    float, or array where `axis` is given
        NaN where nothing counts.
    """
    return _mean(_nats(outcomes, probabilities), outcomes, where, axis, trials)


@overload
def brier(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: None = None,
    trials: ArrayLike | None = None,
) -> float: ...
@overload
def brier(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes,
    trials: ArrayLike | None = None,
) -> NDArray[np.float64]: ...
def brier(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes | None = None,
    trials: ArrayLike | None = None,
) -> Any:
    """Mean squared difference between 0/1 outcomes and their probabilities (Brier 1950).

    Parameters
    ----------
    outcomes, probabilities, where, axis, trials
        As in :func:`log_loss`.

    Returns
    -------
    float, or array where `axis` is given
        NaN where nothing counts.
    """
    y, p = np.asarray(outcomes, dtype=float), np.asarray(probabilities, dtype=float)
    squares = (y - p) ** 2 if trials is None else y * (1 - p) ** 2 + (1 - y) * p**2
    return _mean(squares, outcomes, where, axis, trials)


@overload
def log_likelihood(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: None = None,
    trials: ArrayLike | None = None,
) -> float: ...
@overload
def log_likelihood(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes,
    trials: ArrayLike | None = None,
) -> NDArray[np.float64]: ...
def log_likelihood(
    outcomes: ArrayLike,
    probabilities: ArrayLike,
    where: ArrayLike | None = None,
    *,
    axis: Axes | None = None,
    trials: ArrayLike | None = None,
) -> Any:
    """Sum over outcomes of the log-probability of what was observed, in nats.

    Parameters
    ----------
    outcomes, probabilities, where, axis, trials
        As in :func:`log_loss`.

    Returns
    -------
    float, or array where `axis` is given
    """
    nats = _nats(outcomes, probabilities)
    return _weighted(-nats, _counted(nats, outcomes, where, trials)).sum(axis=axis)


def _nats(outcomes: ArrayLike, probabilities: ArrayLike) -> NDArray[Any]:
    """Minus the mean log-probability of the outcomes behind each share."""
    y = np.asarray(outcomes, dtype=float)
    p = np.clip(np.asarray(probabilities, dtype=float), CLIP, 1 - CLIP)
    if ((y == 0) | (y == 1) | np.isnan(y)).all():
        return np.asarray(-np.log(np.where(y == 1, p, 1 - p)))
    return np.asarray(-(y * np.log(p) + (1 - y) * np.log1p(-p)))


def _counted(
    values: NDArray[Any], outcomes: ArrayLike, where: ArrayLike | None, trials: ArrayLike | None
) -> NDArray[Any]:
    """How often each value counts: booleans, or with `trials` their numbers."""
    counted = ~np.isnan(np.asarray(outcomes, dtype=float))
    if where is not None:
        counted = counted & np.asarray(where, dtype=bool)
    if trials is not None:
        counted = np.where(counted, trials, 0)
    return np.broadcast_to(counted, np.broadcast_shapes(values.shape, counted.shape))


def _weighted(values: NDArray[Any], counted: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.where(counted > 0, values, 0.0) * counted)


def _mean(
    values: NDArray[Any],
    outcomes: ArrayLike,
    where: ArrayLike | None,
    axis: Axes | None,
    trials: ArrayLike | None,
) -> Any:
    counted = _counted(values, outcomes, where, trials)
    total = _weighted(values, counted).sum(axis=axis)
    n = counted.sum(axis=axis)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)[()]
