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
AS_GOOD = 0.01
"""Restarts whose training log-likelihood is worse than the selected one's by no more than this share of it
have found a solution as good. Chosen to be about as far as restarts of one solution lie apart in
``congruence.csv`` of ``irtaudit audit --demo``."""
SETTLED = 0.9
"""Share of the restarts as good as the selected one that must find its dimensions."""
LOADINGS = ["model", "criterion", "item"]
CONGRUENCE = ["model", "criterion", "restart", "dim", "congruence", "shortfall"]
CORRELATIONS = ["model", "dim_1", "dim_2", "correlation"]
AGREEMENT = ["model", "dims", "restarts", "as_good", "agree", "settled", "lowest", "median"]


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
        ``model, criterion, restart, dim, congruence`` (Tucker's coefficient, -1 to 1), ``shortfall`` (how
        much worse the restart's training log-likelihood is, as a share of the selected one's).
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


def as_good(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`congruence_table` about restarts that fit as well as the selected one."""
    return found[found["shortfall"] <= AS_GOOD]


def agreement_table(rotated: Sequence[RotatedLoadings]) -> pd.DataFrame:
    """Do the restarts of a model find the same dimensions, by varimax?

    A restart that ends at a clearly lower training likelihood, `AS_GOOD`, has missed the solution that the
    selected one found and says nothing about whether there is another as good. Among the rest at least
    `SETTLED` must find the dimensions of the selected one, so that neither a single odd restart nor their
    number decides; and at least one other must, or nothing shows that they would be found again.

    Returns
    -------
    DataFrame
        ``model, dims, restarts`` (the selected one included), ``as_good`` (those that fit as well, itself
        included), ``agree`` (of these, all of whose dimensions have a congruence of at least `EQUAL` with the
        selected one, itself included), ``settled`` (whether the loadings may be interpreted), ``lowest,
        median`` (congruence over the other restarts that fit as well, and dimensions; NaN without any).
    """
    rows = [_agreement(one) for one in rotated if one.criterion == "varimax"]
    return pd.DataFrame(rows, columns=AGREEMENT)


def _agreement(one: RotatedLoadings) -> dict[str, object]:
    judged = as_good(one.congruence)
    worst = judged.groupby("restart")["congruence"].min()
    good, agree = 1 + len(worst), 1 + int((worst >= EQUAL).sum())
    return {
        "model": one.model,
        "dims": one.loadings.shape[1],
        "restarts": 1 + one.congruence["restart"].nunique(),
        "as_good": good,
        "agree": agree,
        "settled": agree > 1 and agree >= SETTLED * good,
        "lowest": judged["congruence"].min(),
        "median": judged["congruence"].median(),
    }
