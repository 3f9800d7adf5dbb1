"""Proper scores of predicted probabilities for 0/1 outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

CLIP = 1e-8
"""Probabilities are moved into [CLIP, 1 - CLIP] before a logarithm is taken."""


def log_loss(outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None) -> NDArray[Any]:
    """Mean negative log-likelihood of 0/1 outcomes.

    Parameters
    ----------
    outcomes : (..., subject, item) array of 0, 1 or NaN
        A cell that is NaN never counts.
    probabilities : (..., subject, item) array
        Probability of a 1; broadcast against `outcomes`.
    where : (..., subject, item) bool array, optional
        The cells that count; default all.

    Returns
    -------
    (...) array
        Nats per cell, averaged over the last two axes; NaN where no cell counts.
    """
    return _mean(_nats(outcomes, probabilities), outcomes, where)


def brier(outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None) -> NDArray[Any]:
    """Mean squared difference between 0/1 outcomes and their probabilities (Brier 1950).

    Parameters
    ----------
    outcomes : (..., subject, item) array of 0, 1 or NaN
    probabilities : (..., subject, item) array
    where : (..., subject, item) bool array, optional
        The cells that count; default all.

    Returns
    -------
    (...) array
        Averaged over the last two axes; NaN where no cell counts.
    """
    squares = (np.asarray(outcomes, dtype=float) - np.asarray(probabilities, dtype=float)) ** 2
    return _mean(squares, outcomes, where)


def log_likelihood(
    outcomes: ArrayLike, probabilities: ArrayLike, where: ArrayLike | None = None
) -> NDArray[Any]:
    """Sum over cells of the log-probability of what was observed.

    Parameters
    ----------
    outcomes : (..., subject, item) array of 0, 1 or NaN
    probabilities : (..., subject, item) array
    where : (..., subject, item) bool array, optional
        The cells that count; default all.

    Returns
    -------
    (...) array
        Nats, summed over the last two axes.
    """
    nats = _nats(outcomes, probabilities)
    return np.asarray(-np.where(_counted(nats, outcomes, where), nats, 0.0).sum(axis=(-2, -1)))


def _nats(outcomes: ArrayLike, probabilities: ArrayLike) -> NDArray[Any]:
    y = np.asarray(outcomes, dtype=float)
    p = np.clip(np.asarray(probabilities, dtype=float), CLIP, 1 - CLIP)
    return np.asarray(-np.log(np.where(y == 1, p, 1 - p)))


def _counted(values: NDArray[Any], outcomes: ArrayLike, where: ArrayLike | None) -> NDArray[Any]:
    counted = ~np.isnan(np.asarray(outcomes, dtype=float))
    if where is not None:
        counted = counted & np.asarray(where, dtype=bool)
    return np.broadcast_to(counted, np.broadcast_shapes(values.shape, counted.shape))


def _mean(values: NDArray[Any], outcomes: ArrayLike, where: ArrayLike | None) -> NDArray[Any]:
    counted = _counted(values, outcomes, where)
    total = np.where(counted, values, 0.0).sum(axis=(-2, -1))
    cells = counted.sum(axis=(-2, -1))
    return np.where(cells > 0, total / np.maximum(cells, 1), np.nan)
