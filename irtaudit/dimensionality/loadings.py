"""Rotated loadings of exploratory fits as tables, and whether their restarts agree on the dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtaudit.irt.loadings import RotatedLoadings, rotated_loadings

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

EQUAL = 0.95
"""Congruence from which two dimensions count as the same (Lorenzo-Seva and ten Berge 2006)."""
LOADINGS = ["model", "criterion", "item"]
CONGRUENCE = ["model", "criterion", "restart", "dim", "congruence"]
CORRELATIONS = ["model", "dim_1", "dim_2", "correlation"]
AGREEMENT = ["model", "dims", "restarts", "agree", "lowest", "median"]


def rotate_all(fits: Mapping[str, FitResult]) -> tuple[RotatedLoadings, ...]:
    """Every exploratory fit rotated by varimax and by oblimin, in the order of the fits.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits of exploratory models.
    """
    return tuple(
        rotated_loadings(fit, criterion) for fit in fits.values() for criterion in ("varimax", "oblimin")
    )


def loadings_table(rotated: Sequence[RotatedLoadings]) -> pd.DataFrame:
    """Loadings of every item.

    Returns
    -------
    DataFrame
        ``model, criterion, item`` and a column per dimension, empty where the model has fewer: the
        correlation of the item's latent response with the dimension (oblimin: its partial regression).
    """
    frames = [
        one.loadings.reset_index().assign(model=one.model, criterion=one.criterion).round(6)
        for one in rotated
    ]
    if not frames:
        return pd.DataFrame(columns=LOADINGS)
    table = pd.concat(frames, ignore_index=True)
    return table[[*LOADINGS, *(column for column in table if column not in LOADINGS)]]


def congruence_table(rotated: Sequence[RotatedLoadings]) -> pd.DataFrame:
    """Congruence of every other restart with the selected one.

    Returns
    -------
    DataFrame
        ``model, criterion, restart, dim, congruence`` (Tucker's coefficient, -1 to 1).
    """
    frames = [one.congruence.assign(model=one.model, criterion=one.criterion) for one in rotated]
    return pd.concat(frames, ignore_index=True)[CONGRUENCE] if frames else pd.DataFrame(columns=CONGRUENCE)


def rotated_correlations(rotated: Sequence[RotatedLoadings]) -> pd.DataFrame:
    """Correlations of the dimensions that oblimin finds.

    Returns
    -------
    DataFrame
        ``model, dim_1, dim_2, correlation``.
    """
    rows = []
    for one in rotated:
        if one.criterion == "oblimin":
            dims, r = list(one.correlation), one.correlation.to_numpy()
            pairs = zip(*np.triu_indices(len(dims), 1), strict=True)
            rows += [(one.model, dims[a], dims[b], r[a, b]) for a, b in pairs]
    return pd.DataFrame(rows, columns=CORRELATIONS)


def agreement_table(rotated: Sequence[RotatedLoadings]) -> pd.DataFrame:
    """Do the restarts of a model find the same dimensions, by varimax?

    Returns
    -------
    DataFrame
        ``model, dims, restarts`` (the selected one included), ``agree`` (restarts all of whose dimensions
        have a congruence of at least `EQUAL` with the selected one, itself included), ``lowest, median``
        (congruence over the other restarts and dimensions; NaN with one restart).
    """
    rows = []
    for one in rotated:
        if one.criterion == "varimax":
            worst = one.congruence.groupby("restart")["congruence"].min()
            values = one.congruence["congruence"].to_numpy(dtype=float)
            rows.append(
                {
                    "model": one.model,
                    "dims": one.loadings.shape[1],
                    "restarts": 1 + len(worst),
                    "agree": 1 + int((worst >= EQUAL).sum()),
                    "lowest": float(values.min()) if len(values) else np.nan,
                    "median": float(np.median(values)) if len(values) else np.nan,
                }
            )
    return pd.DataFrame(rows, columns=AGREEMENT)
