"""Random binary panels with given column totals, column rates or cell probabilities.

Panels are (draw, unit, column) float32 stacks of 0 and 1, 0 where not observed; a column is an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, int], Array]
"""From a generator and a number of panels to (draw, unit, column) float32 cells."""

CELLS_AT_ONCE = 500_000
"""Cells drawn together: their arrays stay in a core's cache."""
LONGEST_LOGIT = 15.0
"""Where row or column effects end: a unit that passes everything would need an infinite one."""


def permuted_within_columns(totals: Array, observed: Array) -> Draw:
    """Panels whose columns are drawn conditional on their totals: the passes fall on any observed cells.

    Parameters
    ----------
    totals : (column,) array
        Passes of each column.
    observed : (unit, column) bool array

    Returns
    -------
    function
    """
    return lambda rng, n: _placed(np.broadcast_to(totals, (n, len(totals))), observed, rng)


def bernoulli_columns(totals: Array, observed: Array, *, constant: bool = False) -> Draw:
    """Panels whose columns are independent Bernoulli draws at the columns' pass rates.

    Parameters
    ----------
    totals : (column,) array
        Passes of each column.
    observed : (unit, column) bool array
    constant : bool
        Keep columns that come out constant; else each is redrawn until it is not.

    Returns
    -------
    function
    """
    seen = observed.sum(axis=0)
    rate = totals / np.maximum(seen, 1)
    fixed = _constant(totals, seen)

    def draw(rng: np.random.Generator, n: int) -> Array:
        drawn = rng.binomial(seen, rate, size=(n, len(seen)))
        while not constant and (again := _constant(drawn, seen) & ~fixed).any():
            columns = np.nonzero(again)[1]
            drawn[again] = rng.binomial(seen[columns], rate[columns])
        return _placed(drawn, observed, rng)

    return draw


def bernoulli_cells(probability: Array, observed: Array) -> Draw:
    """Panels of independent cells with given probabilities; constant columns are redrawn until they are not.

    Parameters
    ----------
    probability : (unit, column) array
        Not every panel may be constant in a column.
    observed : (unit, column) bool array

    Returns
    -------
    function
    """
    p = np.where(observed, probability, 0.0).astype(np.float32)
    seen = observed.sum(axis=0)

    def draw(rng: np.random.Generator, n: int) -> Array:
        cells = (rng.random((n, *p.shape), dtype=np.float32) < p).astype(np.float32)
        while (again := _constant(cells.sum(axis=1), seen)).any():
            panel, column = np.nonzero(again)
            cells[panel, :, column] = rng.random((len(panel), len(p)), dtype=np.float32) < p.T[column]
        return cells

    return draw


def drawn(draw: Draw, n_panels: int, rng: np.random.Generator, cells: int) -> Iterator[Array]:
    """Panels a cache-full at a time.

    Parameters
    ----------
    draw : function
    n_panels : int
    rng : Generator
    cells : int
        Cells of one panel.

    Yields
    ------
    (draw, unit, column) array
    """
    size = max(1, CELLS_AT_ONCE // cells)
    for start in range(0, n_panels, size):
        yield draw(rng, min(size, n_panels - start))


def expected_margins(responses: Array, observed: Array) -> Array:
    """Cell probabilities ``sigmoid(unit + column)`` whose sums are the panel's row and column totals.

    Of all distributions of independent cells with these expected totals it has the largest entropy.

    Parameters
    ----------
    responses : (unit, column) array
        0 where not observed.
    observed : (unit, column) bool array

    Returns
    -------
    (unit, column) array

    References
    ----------
    Saracco, Di Clemente, Gabrielli and Squartini (2015), Randomizing bipartite networks: the case of the
    World Trade Web, Scientific Reports 5.
    """
    y = np.where(observed, responses, 0.0)
    rows, columns, n = y.sum(axis=1), y.sum(axis=0), len(y)

    def value(effects: Array) -> tuple[float, Array]:
        eta = effects[:n, None] + effects[n:]
        excess = np.where(observed, expit(eta), 0.0)
        gradient = np.concatenate([excess.sum(axis=1) - rows, excess.sum(axis=0) - columns])
        return float(np.logaddexp(0, eta)[observed].sum() - (y * eta).sum()), gradient

    bounds = [(-LONGEST_LOGIT, LONGEST_LOGIT)] * sum(y.shape)
    start = np.zeros(sum(y.shape))
    found = minimize(
        value,
        start,
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-5},
    )
    return np.asarray(expit(found.x[:n, None] + found.x[n:]))


def _placed(totals: Array, observed: Array, rng: np.random.Generator) -> Array:
    """Passes put on random observed cells, unit by unit: each at the rate of what is left from it on."""
    cells = np.empty((len(totals), *observed.shape), dtype=np.float32)
    left = totals.astype(np.float32)
    places = np.maximum(np.cumsum(observed[::-1], axis=0)[::-1], 1).astype(np.float32)
    u, rate = np.empty_like(left), np.empty_like(left)
    for i, seen in enumerate(observed):
        rng.random(dtype=np.float32, out=u)  # below 1, so that a rate of exactly 0 or 1 decides
        np.divide(left, places[i], out=rate)
        passes = np.less(u, rate, out=cells[:, i])
        passes *= seen
        left -= passes
    return cells


def _constant(totals: Array, seen: Array) -> Array:
    return np.asarray((totals == 0) | (totals == seen))
