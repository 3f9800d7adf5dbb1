"""Tests against simulated data: where does the observed value stand among those of the null?

A *stack* is a (1 + simulation, ...) array whose first row was computed from the observed data and whose other
rows were computed the same way from simulated data. Values that differ by rounding alone count as equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROUNDING = 1e-5


def simulated_p(stack: Array) -> Array:
    """Probability under the null of a value as large as the observed one, (1 + #) / (B + 1).

    Parameters
    ----------
    stack : (1 + simulation, ...) array

    Returns
    -------
    (...) array
    """
    as_large = stack[1:] >= _lowest_equal(stack[0])
    return np.asarray((1 + as_large.sum(axis=0)) / len(stack))


def family_p(stack: Array) -> Array:
    """Probability under the null that the largest of all items' values reaches an item's observed one.

    Parameters
    ----------
    stack : (1 + simulation, item) array

    Returns
    -------
    (item,) array
        Single-step adjusted p-values (Westfall and Young 1993).
    """
    largest = np.sort(stack[1:].max(axis=1, initial=-np.inf))
    as_large = len(largest) - np.searchsorted(largest, _lowest_equal(stack[0]))
    return np.asarray((1 + as_large) / len(stack))


def cutoff(null: Array, level: float) -> Array:
    """Value that is exceeded exactly where the simulated p-value is at most `level`.

    Parameters
    ----------
    null : (simulation, ...) array
    level : float

    Returns
    -------
    (...) array
        Infinite where the simulations are too few for that level.
    """
    rank = int(level * (len(null) + 1) + 1e-9)
    if rank == 0:
        return np.full(null.shape[1:], np.inf)
    return np.asarray(np.partition(null, -rank, axis=0)[-rank])


def exceeds(value: Array, limit: Array | float) -> Array:
    """Whether a value is above a cut-off by more than rounding."""
    return np.asarray(_lowest_equal(value) > limit)


def _lowest_equal(value: Array) -> Array:
    return np.asarray(value - ROUNDING * (1 + np.abs(value)))


def standardised(stack: Array) -> Array:
    """Values minus their mean, over their standard deviation, both over the whole stack.

    The observed row takes part, so that all rows are exchangeable under the null: with the simulated rows
    alone the test would reject too often.

    Parameters
    ----------
    stack : (1 + simulation, ...) array

    Returns
    -------
    array of the same shape
        0 where nothing varies.
    """
    centred = stack - stack.mean(axis=0)
    spread = stack.std(axis=0)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))
