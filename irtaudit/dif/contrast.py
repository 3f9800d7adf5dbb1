"""Two groups on the items of one scope: the data of a comparison, in the order in which screens want it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dif.scopes import SINGLE, Scope

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Contrast:
    """Responses of the two groups, then of everybody else, to the items of a scope.

    Attributes
    ----------
    rows : (subject,) int array
        Positions of the subjects in the matrix: reference, focal, the others.
    side : (subject,) array
        0.5 reference, -0.5 focal, 0 others.
    items : (item,) int array
        Positions of the items in the matrix.
    responses : (subject, item) float32 array
        0 where not observed.
    observed : (subject, item) bool array
    scope : Scope or None
        None: no model was fitted, and only totals can be matched.
    theta : (subject,) array or None
    probability : (subject, item) array or None
        Pass probabilities of the fitted model without DIF.
    """

    rows: Array
    side: Array
    items: Array
    responses: Array
    observed: Array
    scope: Scope | None
    theta: Array | None
    probability: Array | None

    @property
    def name(self) -> str:
        """Name of the scope."""
        return SINGLE if self.scope is None else self.scope.name

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def n_compared(self) -> int:
        """Number of subjects in the two groups, which come first."""
        return int((self.side != 0).sum())

    def compared(self) -> Contrast:
        """The same contrast without anybody else."""
        return self.take(np.arange(self.n_compared))

    def take(self, order: Array) -> Contrast:
        """The subjects in another order, or fewer of them."""
        return replace(
            self,
            rows=self.rows[order],
            side=self.side[order],
            responses=self.responses[order],
            observed=self.observed[order],
            theta=None if self.theta is None else self.theta[order],
            probability=None if self.probability is None else self.probability[order],
        )

    def regrouped(self, rng: np.random.Generator) -> Contrast:
        """The compared subjects dealt at random into groups of the same sizes."""
        n = self.n_compared
        shuffled = replace(self, side=np.concatenate([rng.permutation(self.side[:n]), self.side[n:]]))
        return shuffled.take(_order(shuffled.side))


def _order(sides: Array) -> Array:
    """Positions of the reference group, the focal group, everybody else."""
    return np.concatenate([np.flatnonzero(sides == side) for side in (0.5, -0.5, 0.0)])


def make_contrast(matrix: ResponseMatrix, sides: Array, scope: Scope | None) -> Contrast:
    """Put the subjects of a comparison in order and cut out the items of the scope.

    Parameters
    ----------
    matrix : ResponseMatrix
    sides : (subject,) array
        See :meth:`irtaudit.dif.groups.Groups.sides`.
    scope : Scope or None
        None: every item, and no model.

    Returns
    -------
    Contrast
    """
    rows = _order(sides)
    items = np.arange(matrix.n_items) if scope is None else scope.items
    cells = np.ix_(rows, items)
    return Contrast(
        rows=rows,
        side=sides[rows],
        items=items,
        responses=np.nan_to_num(matrix.responses[cells]).astype(np.float32),
        observed=matrix.observed[cells],
        scope=scope,
        theta=None if scope is None else scope.theta[rows],
        probability=None if scope is None else scope.probability[rows],
    )
