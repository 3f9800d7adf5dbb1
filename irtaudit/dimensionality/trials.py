"""Cells that count several trials: how far trials of one cell agree, and what is not made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irtaudit.data.responses import ResponseMatrix
from irtaudit.words import counted

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

OVERDISPERSED = 1.2
"""Dispersion from which intervals are called too narrow: they are by a tenth."""
LEFT_OUT = (
    "left out, because it is made for one response a cell: eigenvalue tests, fit of items and models, local "
    "dependence, predictive checks, reliability and rotated loadings, groups item by item (--group); read "
    "the data with --trials majority to have them"
)


def dispersion(fit: FitResult, matrix: ResponseMatrix) -> float:
    """Pearson's dispersion of the cells that count several trials.

    The mean of ``n (y - P)^2 / (P (1 - P))`` over cells with share y of n trials. It is about 1 where trials
    of a cell are independent given ability and item, and up to n where they repeat each other, as a model
    does that answers without sampling.

    Parameters
    ----------
    fit : FitResult
        To every observed cell of `matrix`.
    matrix : ResponseMatrix

    Returns
    -------
    float
        NaN where no cell has several trials.

    References
    ----------
    McCullagh and Nelder (1989), Generalized Linear Models, section 4.5.
    """
    several = matrix.n_trials > 1
    if not several.any():
        return float("nan")
    y, n, p = matrix.responses[several], matrix.n_trials[several], fit.probabilities()[several]
    return float((n * (y - p) ** 2 / np.maximum(p * (1 - p), 1e-8)).mean())


def trial_facts(matrix: ResponseMatrix, fit: FitResult | None) -> dict[str, float | None] | None:
    """Numbers about the trials of cells, for programs; None where each cell has one response."""
    if matrix.trials is None:
        return None
    each = matrix.trials[matrix.observed]
    return {
        "cells": each.size,
        "fewest": int(each.min()),
        "most": int(each.max()),
        "dispersion": None if fit is None else dispersion(fit, matrix),
    }


def trial_notes(matrix: ResponseMatrix, fit: FitResult | None) -> list[str]:
    """What a reader should know where cells count trials; nothing where each has one response.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix.
    fit : FitResult or None
        The best one-dimensional model, fitted to every observed cell.
    """
    facts = trial_facts(matrix, fit)
    if facts is None:
        return []
    notes = [
        f"{facts['cells']:,} cells count {_trials_each(matrix)}; the models are "
        "binomial, every trial is a response, cells are held out whole, and likelihoods leave out the "
        "constant of the binomial",
        LEFT_OUT,
    ]
    return notes if fit is None else [*notes, _agreement(dispersion(fit, matrix))]


def _trials_each(matrix: ResponseMatrix) -> str:
    each = matrix.n_trials[matrix.observed]
    fewest, most = int(each.min()), int(each.max())
    return f"{counted(most, 'trial') if fewest == most else f'{fewest} to {most} trials'} each"


def _agreement(found: float) -> str:
    said = (
        f"trials of one cell spread {found:.2f} times as much as independent ones would (Pearson dispersion)"
    )
    if not found > OVERDISPERSED:
        return said
    return (
        f"{said}: they repeat each other in part, so intervals of abilities and items are too narrow, by "
        f"a factor of about {np.sqrt(found):.1f}, and the simulated power is too high"
    )
