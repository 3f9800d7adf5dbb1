"""The held-out comparison once more, on a subset of the items: does the answer rest on some of them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from irtaudit.data.covariates import columns_there
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.dimensionality.baselines import additive_baselines
from irtaudit.dimensionality.compare import PAIRED, TABLE, Comparison, compare
from irtaudit.dimensionality.plan import FAMILIES, Followup
from irtaudit.errors import PlanError
from irtaudit.words import counted

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

MIN_ITEMS = 3
FOLLOWUPS = ["followup", "items", *TABLE, *PAIRED[1:]]
"""Columns of ``followups.csv``."""


@dataclass(frozen=True, eq=False)
class Followed:
    """What a follow-up found.

    Attributes
    ----------
    followup : Followup
    n_items : int
        That were left.
    comparison : Comparison
        Of those items alone, on the held-out cells of the main comparison that belong to them.
    """

    followup: Followup
    n_items: int
    comparison: Comparison


def subset(followup: Followup, matrix: ResponseMatrix, splits: Splits) -> tuple[ResponseMatrix, Splits]:
    """The matrix without the items that a follow-up leaves out, and the splits of what remains.

    Parameters
    ----------
    followup : Followup
    matrix : ResponseMatrix
        The screened matrix.
    splits : Splits
        Of that matrix.

    Raises
    ------
    PlanError
        When there is no such column or value, or hardly an item is left.
    """
    if followup.column not in matrix.items:
        raise PlanError(
            f"The follow-up {followup.name!r} needs the item column {followup.column!r}; "
            f"{columns_there(matrix.items, 'item')}."
        )
    values = matrix.items[followup.column].astype(str)
    absent = [value for value in followup.leave_out if value not in set(values)]
    if absent:
        raise PlanError(
            f"The follow-up {followup.name!r} leaves out {', '.join(map(repr, absent))}, which no item of "
            f"column {followup.column!r} has; it has: {', '.join(sorted(set(values)))}."
        )
    stays = (~values.isin(followup.leave_out)).to_numpy()
    if stays.sum() < MIN_ITEMS:
        raise PlanError(
            f"The follow-up {followup.name!r} leaves {counted(int(stays.sum()), 'item')} of "
            f"{matrix.n_items}; at least {MIN_ITEMS} are needed. Leave out fewer values of "
            f"{followup.column!r}."
        )
    kept = matrix.select(items=stays)
    return kept, splits.align(matrix, kept)


def followup_models(followup: Followup, items: pd.DataFrame) -> tuple[str, ...]:
    """Names of the models of a follow-up: those it names, or the default ones for the items that remain."""
    if followup.models is not None:
        return followup.models
    several = items[followup.column].nunique() > 1
    richer = f"confirmatory_{followup.column}_2pl" if several else "exploratory_2d_2pl"
    return (*(f"unidimensional_{family}" for family in FAMILIES), richer)


def follow(
    followup: Followup, matrix: ResponseMatrix, splits: Splits, fits: Mapping[str, FitResult]
) -> Followed:
    """Compare the fits of a follow-up.

    Parameters
    ----------
    followup : Followup
    matrix, splits
        As :func:`subset` gives them.
    fits : mapping of str to FitResult
    """
    names = next(iter(fits.values())).splits
    baselines = additive_baselines(matrix, splits, names)
    comparison = compare(fits, baselines=baselines, matrix=matrix, splits=splits)
    return Followed(followup, matrix.n_items, comparison)


def followups_table(followed: Sequence[Followed]) -> pd.DataFrame:
    """Every model of every follow-up.

    Returns
    -------
    DataFrame
        Columns `FOLLOWUPS`: name and number of items; those of ``comparison.csv``; difference to the
        strongest one-dimensional model, as in `Comparison.paired` (missing for that model itself).
    """
    frames = [
        one.comparison.table.merge(one.comparison.paired, on="model", how="left").assign(
            followup=one.followup.name, items=one.n_items
        )
        for one in followed
    ]
    return pd.concat(frames, ignore_index=True)[FOLLOWUPS] if frames else pd.DataFrame(columns=FOLLOWUPS)
