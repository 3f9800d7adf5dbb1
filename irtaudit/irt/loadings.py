"""Loadings of an exploratory fit that mean something: standardised, rotated, aligned over restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.errors import PlanError
from irtaudit.irt.predict import plug_in, slope_matrix
from irtaudit.irt.result import FitResult
from irtaudit.stats.rotation import Criterion, align, congruence, rotate

LOGIT_PER_PROBIT = 1.702
"""A logistic slope over this is nearly the slope of a normal ogive (Haley 1952)."""


@dataclass(frozen=True, eq=False)
class RotatedLoadings:
    """Rotated loadings of one split's selected restart, and how well the other restarts agree with them.

    Attributes
    ----------
    model : str
    loadings : DataFrame (item, dim)
        Correlation of each item's latent response with each rotated dimension.
    correlation : DataFrame (dim, dim)
        Correlations of the rotated dimensions.
    congruence : DataFrame
        Columns ``restart, dim, congruence, shortfall``: Tucker's coefficient between this and every other
        restart, each turned towards this one by an orthogonal matrix and then rotated as this one was; and
        how much worse the training log-likelihood of that restart is, as a share of this one's.
    criterion : str
    """

    model: str
    loadings: pd.DataFrame
    correlation: pd.DataFrame
    congruence: pd.DataFrame
    criterion: Criterion


def rotated_loadings(fit: FitResult, criterion: Criterion = "varimax", *, split: int = 0) -> RotatedLoadings:
    """Rotate an exploratory fit, with signs and order fixed, and compare its restarts.

    Parameters
    ----------
    fit : FitResult
        Of an exploratory model.
    criterion : {"varimax", "oblimin"}
    split : int
        Position of the split.

    Returns
    -------
    RotatedLoadings

    Raises
    ------
    PlanError
        When the model is not exploratory: its loadings are identified as they are.
    """
    if fit.spec.structure != "exploratory":
        raise PlanError(f"{fit.spec.name} is not exploratory; only exploratory loadings are rotated.")
    selected = fit.selected_restart(split)
    own = standardised_loadings(fit, split, selected)
    rotation = rotate(own, criterion)
    dims = list(fit.spec.factors)
    likelihood = _likelihoods(fit, split)
    rows = [
        (restart, dim, value, reached / likelihood[selected] - 1)
        for restart, reached in likelihood.items()
        if restart != selected
        for dim, value in zip(
            dims,
            congruence(
                align(standardised_loadings(fit, split, restart), own) @ rotation.turn, rotation.loadings
            ),
            strict=True,
        )
    ]
    return RotatedLoadings(
        model=fit.spec.name,
        loadings=pd.DataFrame(rotation.loadings, index=pd.Index(fit.items, name="item"), columns=dims),
        correlation=pd.DataFrame(rotation.correlation, index=dims, columns=dims),
        congruence=pd.DataFrame(rows, columns=["restart", "dim", "congruence", "shortfall"]),
        criterion=criterion,
    )


def standardised_loadings(fit: FitResult, split: int = 0, restart: int | None = None) -> NDArray[np.float64]:
    """Loadings on the scale of a factor analysis, from the posterior means of the slopes.

    With ``b = slope / 1.702`` an item's latent response has loadings ``b / sqrt(1 + b b')``
    (Takane and de Leeuw 1987, Psychometrika 52, 393-408).

    Parameters
    ----------
    fit : FitResult
    split, restart : int
        As in :meth:`FitResult.posterior`.

    Returns
    -------
    (item, dim) array, between -1 and 1
    """
    b = slope_matrix(fit.layout, plug_in(*fit.posterior(split, restart))) / LOGIT_PER_PROBIT
    return np.asarray(b / np.sqrt(1 + (b**2).sum(axis=1, keepdims=True)), dtype=np.float64)


def _likelihoods(fit: FitResult, split: int) -> dict[int, float]:
    """Training log-likelihood of every restart of a split that ended well."""
    rows = fit.restarts[(fit.restarts["split"] == fit.splits[split]) & fit.restarts["train_log_lik"].notna()]
    return dict(zip(rows["restart"].astype(int), rows["train_log_lik"].astype(float), strict=True))
