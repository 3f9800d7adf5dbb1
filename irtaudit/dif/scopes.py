"""Scopes: the items that one ability explains, with that ability and the items' parameters, from a fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import PlanError

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

Array = NDArray[Any]
SINGLE = "single score"
"""Name of the scope that holds every item."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Items matched on one ability.

    Attributes
    ----------
    name : str
        `SINGLE`, or ``<column>:<factor>`` of a confirmatory model.
    items : (item,) int array
        Positions of the items in the matrix.
    family : str
        Family of the item response model: 1pl, 2pl or 3pl.
    theta : (subject,) array
        Ability, posterior means, in SDs of the population.
    slope, intercept, guess : (item,) arrays
        Logits per unit of theta, logits, probability.
    """

    name: str
    items: Array
    family: str
    theta: Array
    slope: Array
    intercept: Array
    guess: Array

    @property
    def probability(self) -> Array:
        """(subject, item) pass probabilities."""
        return self.probability_at(self.theta)

    def probability_at(self, theta: Array) -> Array:
        """(ability, item) pass probabilities at given abilities."""
        logistic = expit(theta[:, None] * self.slope + self.intercept)
        return np.asarray(self.guess + (1 - self.guess) * logistic)


def scopes_of(fit: FitResult, matrix: ResponseMatrix) -> tuple[Scope, ...]:
    """Scopes of a fitted model: one for a unidimensional model, one per factor of a confirmatory one.

    Items that load on several factors belong to no scope.

    Parameters
    ----------
    fit : FitResult
        Fitted to every observed cell of the matrix.
    matrix : ResponseMatrix

    Returns
    -------
    tuple of Scope

    Raises
    ------
    PlanError
        When the fit is of another matrix, held cells out, or has no factor with items of its own.
    """
    _check(fit, matrix)
    q = fit.spec.pattern(len(fit.items))
    own = q.sum(axis=1) == 1
    scopes = tuple(_scope(fit, d, np.flatnonzero(own & q[:, d])) for d in range(fit.spec.dims))
    if not any(len(scope.items) for scope in scopes):
        raise PlanError(
            f"Every item of {fit.spec.name} loads on several factors, so no scope has its own ability."
        )
    return tuple(scope for scope in scopes if len(scope.items))


def with_scopes(fits: Iterable[FitResult]) -> list[FitResult]:
    """Those fits on whose abilities groups can be matched, see :func:`scopes_of`.

    Parameters
    ----------
    fits : iterable of FitResult
    """
    return [
        fit
        for fit in fits
        if fit.spec.structure != "exploratory" and (fit.spec.pattern(len(fit.items)).sum(axis=1) == 1).any()
    ]


def _check(fit: FitResult, matrix: ResponseMatrix) -> None:
    if fit.spec.structure == "exploratory":
        raise PlanError(
            f"{fit.spec.name} has no ability to match on: its dimensions may be rotated. Use a "
            "unidimensional or confirmatory model."
        )
    same = fit.subjects == tuple(matrix.subjects.index) and fit.items == tuple(matrix.items.index)
    if not same or fit.data_sha256 != matrix.sha256:
        raise PlanError(
            f"The fit of {fit.spec.name} is of another matrix ({len(fit.subjects)} x {len(fit.items)}; this "
            f"one is {matrix.n_subjects} x {matrix.n_items}): fit the very matrix whose groups are compared."
        )
    if fit.splits != ("all",):
        raise PlanError(
            f"The fit of {fit.spec.name} held cells out; group comparisons need one of every observed cell: "
            "fit(matrix, spec) without splits."
        )


def _scope(fit: FitResult, dim: int, items: Array) -> Scope:
    factor = fit.spec.factors[dim]
    parameters = fit.item_parameters.iloc[items]
    column = re.fullmatch(r"confirmatory_(.+)_[123]pl", fit.spec.name)
    return Scope(
        name=SINGLE if fit.spec.dims == 1 else f"{column[1] if column else fit.spec.name}:{factor}",
        items=items,
        family=fit.spec.family,
        theta=fit.abilities[factor].to_numpy(dtype=float),
        slope=parameters[f"slope_{factor}"].to_numpy(dtype=float),
        intercept=parameters["intercept"].to_numpy(dtype=float),
        guess=parameters["guess"].to_numpy(dtype=float) if "guess" in parameters else np.zeros(len(items)),
    )
