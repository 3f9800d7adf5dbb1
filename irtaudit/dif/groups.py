"""The two groups that are compared, fixed before anyone looks: which column, reference and focal level."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.covariates import columns_there
from irtaudit.errors import PlanError

MIN_GROUP = 2
"""Models a group needs: one model has no spread of its own."""


@dataclass(frozen=True)
class Groups:
    """A comparison of two levels of a subject column.

    Attributes
    ----------
    column : str
    reference, focal : str
        Positive effects favour the reference.
    """

    column: str
    reference: str
    focal: str

    def __post_init__(self) -> None:
        if self.reference == self.focal:
            raise PlanError(
                f"Both groups of {self.column!r} are {self.reference!r}; name two different levels, "
                "the reference first."
            )

    @property
    def name(self) -> str:
        """Name of the comparison in every table: ``developer:OpenAI_vs_Anthropic``."""
        return f"{self.column}:{self.reference}_vs_{self.focal}"

    def sides(self, subjects: pd.DataFrame) -> NDArray[np.float64]:
        """Side of each subject.

        Parameters
        ----------
        subjects : DataFrame
            Subject table of the matrix.

        Returns
        -------
        (subject,) array
            0.5 in the reference group, -0.5 in the focal group, 0 in neither.

        Raises
        ------
        PlanError
            When the column or a level is unknown, or a group has fewer than `MIN_GROUP` models.
        """
        levels = level_texts(subjects, self.column)
        members = [levels == level for level in (self.reference, self.focal)]
        for level, found in zip((self.reference, self.focal), members, strict=True):
            if not found.any():
                raise PlanError(f"No model has {self.column} {level!r}; {_levels_there(levels, self.column)}")
            if found.sum() < MIN_GROUP:
                raise PlanError(
                    f"{self.column} {level!r} has {int(found.sum())} model; a comparison needs at least "
                    f"{MIN_GROUP} in each group. {_levels_there(levels, self.column)}"
                )
        return np.where(members[0], 0.5, np.where(members[1], -0.5, 0.0))


def level_texts(subjects: pd.DataFrame, column: str) -> NDArray[Any]:
    """Levels of a subject column as text; None where missing.

    Raises
    ------
    PlanError
        When there is no such column.
    """
    if column not in subjects.columns:
        raise PlanError(f"There is no subject column {column!r}; {columns_there(subjects, 'subject')}.")
    values = subjects[column]
    texts = [None if missing else str(value) for value, missing in zip(values, values.isna(), strict=True)]
    return np.array(texts, dtype=object)


def _levels_there(levels: NDArray[Any], column: str) -> str:
    counts = pd.Series(levels).value_counts()
    shown = ", ".join(f"{name!r} ({n})" for name, n in counts.head(10).items())
    more = f" and {len(counts) - 10} more" if len(counts) > 10 else ""
    return f"Levels of {column} and their models: {shown or 'none'}{more}."


def parse_groups(text: str) -> Groups:
    """Read ``COLUMN:REFERENCE,FOCAL``.

    Parameters
    ----------
    text : str
        A level that holds a comma stands in double quotes: ``developer:"Acme, Inc.",Other``.

    Returns
    -------
    Groups

    Raises
    ------
    PlanError
        When the text has another form.
    """
    column, colon, rest = text.partition(":")
    levels: Sequence[str] = next(csv.reader([rest], skipinitialspace=True), [])
    if not (colon and column.strip() and len(levels) == 2 and all(level.strip() for level in levels)):
        raise PlanError(
            f"{text!r} does not name two groups; expected COLUMN:REFERENCE,FOCAL, for example "
            "developer:OpenAI,Anthropic."
        )
    return Groups(column.strip(), levels[0].strip(), levels[1].strip())
