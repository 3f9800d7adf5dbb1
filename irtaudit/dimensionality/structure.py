"""The structure of one panel in one value: eigenvalues, the one-factor test, fit, reliability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.dependence import FitChecks, check_fit
from irtaudit.dimensionality.eigenvalues import (
    DRAWS,
    EigenvalueNull,
    eigenvalue_nulls,
    eigenvalue_table,
    plug_in_null,
)
from irtaudit.dimensionality.loadings import (
    agreement_table,
    congruence_table,
    loadings_table,
    rotate_all,
    rotated_correlations,
)
from irtaudit.dimensionality.predictive import CHECKS, predictive_checks
from irtaudit.dimensionality.reliability import information_table, reliability_table
from irtaudit.dimensionality.residuals import PANELS
from irtaudit.irt.spec import ModelSpec
from irtaudit.words import counted

if TYPE_CHECKING:
    from irtaudit.irt.loadings import RotatedLoadings
    from irtaudit.irt.result import FitResult


@dataclass(frozen=True, eq=False)
class Structure:
    """What the responses and the full-data fits say about dimensions, dependence and precision.

    Attributes
    ----------
    nulls : mapping of str to EigenvalueNull
        ``permuted, redrawn, margins, paper``; with a one-dimensional fit also ``one_factor, residual``.
    checks : FitChecks or None
        How the one-dimensional model fits; None without one.
    predictive : DataFrame
        Posterior predictive checks of the one-dimensional fit; no rows without one.
    reliability, information : DataFrame
        Of every dimension of the full-data fits.
    rotated : tuple of RotatedLoadings
        Of exploratory full-data fits, by varimax and by oblimin.
    """

    nulls: Mapping[str, EigenvalueNull]
    checks: FitChecks | None
    predictive: pd.DataFrame
    reliability: pd.DataFrame
    information: pd.DataFrame
    rotated: tuple[RotatedLoadings, ...] = ()

    def __repr__(self) -> str:
        fitted = "no one-dimensional fit" if self.checks is None else self.checks.model
        return (
            f"Structure({fitted}, nulls: {', '.join(self.nulls)}, {counted(len(self.rotated), 'rotation')})"
        )

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by the stem of their file name."""
        found = {
            "eigenvalues": eigenvalue_table(list(self.nulls.values())),
            "reliability": self.reliability,
            "information": self.information,
            "predictive_checks": self.predictive,
        }
        if self.checks is not None:
            found["local_dependence"] = self.checks.pairs
            found["item_fit"] = self.checks.items
            found["person_fit"] = self.checks.subjects
        if self.rotated:
            found["loadings"] = loadings_table(self.rotated)
            found["congruence"] = congruence_table(self.rotated)
            found["rotated_correlations"] = rotated_correlations(self.rotated)
        return found

    @property
    def summary(self) -> dict[str, Any]:
        """Numbers for programs: every test with its cut-off and p-value, the checks, the reliability."""
        tests = eigenvalue_table(list(self.nulls.values()))
        return {
            "eigenvalue_tests": tests[tests["tested"]].drop(columns="tested"),
            "one_factor": None if self.checks is None else _checks_summary(self.checks),
            "predictive_checks": self.predictive,
            "reliability": self.reliability,
            "restarts_of_loadings": agreement_table(self.rotated),
        }


def _checks_summary(checks: FitChecks) -> dict[str, Any]:
    items, subjects = checks.items, checks.subjects
    return {
        "model": checks.model,
        "preset": checks.preset,
        "panels": checks.n_panels,
        "seed": checks.seed,
        "p": checks.residual.p,
        "pairs": checks.n_pairs,
        "dependent_pairs": checks.n_dependent,
        "q3_cutoff": checks.q3_cutoff,
        "items_that_do_not_fit": items.loc[items["flag"], "item"].tolist(),
        "models_that_do_not_fit": subjects.loc[subjects["flag"], "subject"].tolist(),
    }


def describe_structure(
    matrix: ResponseMatrix,
    full: Mapping[str, FitResult],
    best: str | None,
    *,
    exploratory: Mapping[str, FitResult] | None = None,
    n_draws: int = DRAWS,
    n_panels: int = PANELS,
    seed: int = 0,
    workers: int | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Structure:
    """Describe the structure of a panel.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix.
    full : mapping of str to FitResult
        Fits to every observed cell, the best one-dimensional model among them.
    best : str or None
        Its name. The one-factor test and the checks of fit use its family, the 2PL where it is a 1PL: items
        that differ in discrimination are no second dimension.
    exploratory : mapping of str to FitResult, optional
        Full-data fits whose loadings are rotated and whose restarts are compared.
    n_draws, n_panels : int
        Random panels per null, and refitted simulated panels.
    seed, workers, device, progress
        As in :func:`irtaudit.dimensionality.residuals.refit`.

    Returns
    -------
    Structure
    """
    nulls = eigenvalue_nulls(matrix, n_draws=n_draws, seed=seed)
    checks, predictive = None, pd.DataFrame(columns=CHECKS)
    if best is not None and best in full:
        fit = full[best]
        nulls["one_factor"] = plug_in_null(matrix, fit.probabilities(), n_draws=n_draws, seed=seed)
        checks = check_fit(
            matrix,
            _with_slopes(fit.spec),
            n_panels=n_panels,
            seed=seed,
            workers=workers,
            device=device,
            progress=progress,
        )
        nulls["residual"] = checks.residual
        predictive = predictive_checks(fit, matrix, seed=seed)
    return Structure(
        nulls,
        checks,
        predictive,
        reliability_table(full),
        information_table(full),
        rotate_all(exploratory or {}),
    )


def _with_slopes(spec: ModelSpec) -> ModelSpec:
    if spec.family != "1pl":
        return spec
    return replace(ModelSpec.unidimensional("2pl", priors=spec.priors), factors=spec.factors)
