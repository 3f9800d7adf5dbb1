"""What "equally able" means: the matching variable of the compared models, and their strata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.options import DifOptions
from irtaudit.dif.scopes import Scope
from irtaudit.errors import PlanError

Array = NDArray[Any]

GRID = np.linspace(-6, 6, 121)
"""Abilities at which posteriors are evaluated when models are matched anew."""


@dataclass(frozen=True, eq=False)
class Matching:
    """Matching of the compared models for some of the items.

    Attributes
    ----------
    items : (item,) int array
        Positions in the contrast. Without purification one matching serves all items.
    value : (simulation, subject) array
        Fitted ability or total score; one row serves every simulation unless they are matched anew.
    members : (simulation, group x stratum, subject) float32 array
        1 where the subject is in the group and stratum; reference strata first.
    """

    items: Array
    value: Array
    members: Array

    @property
    def n_strata(self) -> int:
        """Number of strata, empty ones included."""
        return int(self.members.shape[-2]) // 2


def match(
    contrast: Contrast,
    responses: Array,
    options: DifOptions,
    anchors: Array | None = None,
    *,
    anew: bool = False,
) -> tuple[Matching, ...]:
    """Match the compared models.

    Parameters
    ----------
    contrast : Contrast
    responses : (simulation, subject, item) array
        Only the compared subjects, who come first, are used.
    options : DifOptions
    anchors : (item,) bool array, optional
        Items of the matching variable; default all. Every other item is matched on the anchors and itself.
    anew : bool
        Estimate abilities from `responses` even where the fit supplies them.

    Returns
    -------
    tuple of Matching
        Together they cover every item once.
    """
    compared = contrast.compared()
    y = responses[:, : compared.n_compared]
    everything = np.arange(contrast.n_items)
    if anchors is None or anchors.all():
        return (_matching(compared, everything, y, np.ones(contrast.n_items, dtype=bool), options, anew),)
    shared = _matching(compared, everything[anchors], y, anchors, options, True)
    own = (
        _matching(compared, np.array([j]), y, anchors | (everything == j), options, True)
        for j in everything[~anchors]
    )
    return (shared, *own)


def _matching(
    compared: Contrast, items: Array, y: Array, basis: Array, options: DifOptions, anew: bool
) -> Matching:
    if options.match == "total":
        value = totals(y, compared.observed, basis)
    elif anew or compared.theta is None:
        assert compared.scope is not None  # abilities are matched only where a fit supplies them
        value = abilities(compared.scope, y, compared.observed, basis)
    else:
        value = compared.theta[None]
    return Matching(items, value, _members(_strata(value, options), compared.side))


def totals(responses: Array, observed: Array, basis: Array) -> Array:
    """Number of the `basis` items passed; with missing cells the pass rate times their number, rounded.

    Parameters
    ----------
    responses : (simulation, subject, item) array
    observed : (subject, item) bool array
    basis : (item,) bool array

    Returns
    -------
    (simulation, subject) array
    """
    passes = responses @ basis.astype(responses.dtype)
    seen = (observed & basis).sum(axis=-1)
    if (seen == basis.sum()).all():
        return np.asarray(passes, dtype=float)
    return np.asarray(np.round(passes / np.maximum(seen, 1) * basis.sum()))


def abilities(scope: Scope, responses: Array, observed: Array, basis: Array) -> Array:
    """Posterior mean abilities from the `basis` items at the scope's item parameters, theta ~ N(0, 1).

    Parameters
    ----------
    scope : Scope
    responses : (simulation, subject, item) array
        0 where not observed.
    observed : (subject, item) bool array
    basis : (item,) bool array

    Returns
    -------
    (simulation, subject) array
    """
    p = np.clip(scope.probability_at(GRID), 1e-8, 1 - 1e-8)
    use = np.where(basis, 1.0, 0.0)
    failing = (observed * use) @ np.log1p(-p).T - GRID**2 / 2
    odds = np.log(p / (1 - p)) * use
    log_posterior = responses @ odds.T.astype(responses.dtype) + failing
    log_posterior -= log_posterior.max(axis=-1, keepdims=True)
    posterior = np.exp(log_posterior)
    return np.asarray((posterior @ GRID) / posterior.sum(axis=-1))


def _strata(value: Array, options: DifOptions) -> Array:
    """(simulation, subject) number of each subject's stratum."""
    if options.bands == "score":
        return np.asarray(np.unique(value, return_inverse=True)[1]).reshape(value.shape)
    n = value.shape[-1]
    if options.bands > n:
        raise PlanError(
            f"{options.bands} ability bands were asked for, but only {n} models are compared; use fewer "
            "bands (three is the default)."
        )
    edges = np.quantile(value, np.arange(1, options.bands) / options.bands, axis=-1)
    return np.asarray((value > edges[..., None]).sum(axis=0))


def _members(strata: Array, side: Array) -> Array:
    numbers = np.arange(int(strata.max()) + 1)
    within = strata[..., None, :] == numbers[:, None]
    return np.concatenate([within & (side > 0), within & (side < 0)], axis=-2).astype(np.float32)
