"""The response matrix: which subject passed which item.

Subjects are what is measured (AI models, agents, people); items are what they answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from irtaudit.errors import DataError

Selector = Sequence[str] | NDArray[Any] | pd.Series | pd.Index
"""What `ResponseMatrix.select` takes: names, or one boolean per name."""


@dataclass(frozen=True, eq=False)
class ResponseMatrix:
    """Responses of subjects to items, with what is known about both.

    Parameters
    ----------
    responses : (subject, item) array
        1 passed, 0 failed, NaN not observed. Copied; the stored array is float64 and read-only.
    items : DataFrame
        Index: item names, unique text, in the order of the array's columns. Columns: covariates of the items.
        Like `subjects` it is copied, and every look at it gives a copy.
    subjects : DataFrame
        Index: subject names, unique text, in the order of the array's rows. Columns: covariates of the
        subjects.
    source : str, optional
        Where the responses come from, for messages and reports.
    notes : tuple of str
        What a reader of the report should know about how the data was read.

    Raises
    ------
    DataError
        If shapes and tables disagree, a name is empty, not text or given twice, or a cell is none of 0, 1,
        NaN.
    """

    responses: NDArray[np.float64]
    items: pd.DataFrame
    subjects: pd.DataFrame
    source: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        items = _checked_table(self.items, "item")
        subjects = _checked_table(self.subjects, "subject")
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "subjects", subjects)
        object.__setattr__(self, "responses", _checked_responses(self.responses, subjects.index, items.index))
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def from_array(
        cls,
        responses: ArrayLike,
        *,
        subjects: pd.DataFrame | Iterable[str] | None = None,
        items: pd.DataFrame | Iterable[str] | None = None,
        source: str | None = None,
    ) -> ResponseMatrix:
        """Build a matrix from a (subject, item) array and names, tables or nothing at all.

        Without names the axes are called `subject_01`, `subject_02`, ... and `item_001`, ..., padded so that
        sorting the names keeps their order.
        """
        cells = np.asarray(responses)
        if cells.ndim != 2:
            raise DataError(f"responses have {cells.ndim} dimension(s), expected two: (subject, item)")
        return cls(
            responses=cells,
            items=_as_table(items, "item", cells.shape[1]),
            subjects=_as_table(subjects, "subject", cells.shape[0]),
            source=source,
        )

    @property
    def n_subjects(self) -> int:
        """Number of subjects (rows)."""
        return int(self.responses.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items (columns)."""
        return int(self.responses.shape[1])

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """(subject, item) boolean, read-only: is the response known?"""
        observed = ~np.isnan(self.responses)
        observed.setflags(write=False)
        return observed

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 over names and cells, whatever the order of rows and columns.

        Covariates, notes and the source do not enter. The hashed bytes are the JSON text `[sorted subject
        names, sorted item names]` in ASCII, a newline, and one byte per cell (0, 1, or 2 for not observed),
        subject by subject in the order of those names.
        """
        rows, columns = sorted_order(self.subjects.index), sorted_order(self.items.index)
        names = [self.subjects.index[rows].tolist(), self.items.index[columns].tolist()]
        cells = np.where(self.observed, self.responses, 2.0).astype(np.uint8)[np.ix_(rows, columns)]
        text = json.dumps(names, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii") + b"\n" + cells.tobytes()).hexdigest()

    def select(self, *, subjects: Selector | None = None, items: Selector | None = None) -> ResponseMatrix:
        """Keep some subjects and items.

        Parameters
        ----------
        subjects, items : names or booleans, optional
            Names to keep, in the order wanted, or one boolean per name (a Series of booleans is taken by
            position). Everything by default.

        Raises
        ------
        DataError
            If a name is unknown, a boolean mask has the wrong length, or nothing is left.
        """
        rows = _positions(subjects, self.subjects.index)
        columns = _positions(items, self.items.index)
        return ResponseMatrix(
            responses=self.responses[np.ix_(rows, columns)],
            items=self.items.iloc[columns],
            subjects=self.subjects.iloc[rows],
            source=self.source,
            notes=self.notes,
        )

    def sorted(self) -> ResponseMatrix:
        """The same matrix with subjects and items in the order of their names (by code point)."""
        return self.select(
            subjects=self.subjects.index[sorted_order(self.subjects.index)],
            items=self.items.index[sorted_order(self.items.index)],
        )

    def __repr__(self) -> str:
        seen = int(self.observed.sum())
        size = f"{self.n_subjects} subjects x {self.n_items} items, {seen} of {self.responses.size} observed"
        return f"ResponseMatrix({size}{'' if self.source is None else f', source={self.source!r}'})"


class _Table:
    """A table of a matrix: what is handed out is a copy, so that no caller can change the matrix."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, matrix: ResponseMatrix | None, owner: type | None = None) -> Any:
        return self if matrix is None else matrix.__dict__[self.name].copy()

    def __set__(self, matrix: ResponseMatrix, table: pd.DataFrame) -> None:
        matrix.__dict__[self.name] = table


# Set when the fields are known: as a default value a table would be taken for one.
ResponseMatrix.items = _Table("items")  # type: ignore[assignment]  # reads as the field's type
ResponseMatrix.subjects = _Table("subjects")  # type: ignore[assignment]  # likewise


def sorted_order(names: pd.Index) -> NDArray[np.intp]:
    """Positions that put `names` in order of their code points, on every machine and locale."""
    return np.argsort(np.asarray(names, dtype=object), kind="stable")


def listed(names: Iterable[object], limit: int = 5) -> str:
    """Names for a message: quoted, the first few, and how many more there are."""
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def check_names(names: Iterable[object], axis: str) -> None:
    """Raise DataError unless every name is text that can be written to a file, not blank, and unique."""
    seen: set[object] = set()
    for position, name in enumerate(names, start=1):
        if not isinstance(name, str):
            raise DataError(
                f"{axis} {position} is named {name!r} ({type(name).__name__}); names are text: "
                "convert them, for example with index.astype(str)"
            )
        if not name.strip():
            raise DataError(f"{axis} {position} has an empty name")
        if "\0" in name or not _encodable(name):
            raise DataError(f"{axis} {position} is named {name!r}, which cannot be written as UTF-8 text")
        if name in seen:
            raise DataError(f"{axis} name {name!r} is given twice; names identify {axis}s and must be unique")
        seen.add(name)
    if not seen:
        raise DataError(f"there are no {axis}s; a response matrix needs at least one")


def _encodable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _as_table(given: pd.DataFrame | Iterable[str] | None, axis: str, count: int) -> pd.DataFrame:
    if isinstance(given, pd.DataFrame):
        return given
    width = len(str(count))
    names = [f"{axis}_{i:0{width}d}" for i in range(1, count + 1)] if given is None else list(given)
    return pd.DataFrame(index=pd.Index(names, dtype=object))


def _checked_table(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise DataError(f"{axis}s is a {type(table).__name__}, expected a DataFrame indexed by {axis} name")
    check_names(table.index, axis)
    return table.set_axis(pd.Index(table.index, dtype=object, name=axis), axis=0)


def _checked_responses(responses: ArrayLike, subjects: pd.Index, items: pd.Index) -> NDArray[np.float64]:
    try:
        cells = np.array(responses, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"responses are not numbers ({error}); expected 0, 1 or NaN in every cell") from None
    if cells.shape != (len(subjects), len(items)):
        raise DataError(
            f"responses have shape {cells.shape}, the tables name {len(subjects)} subjects and {len(items)} "
            f"items; expected shape {(len(subjects), len(items))}: subjects in rows, items in columns"
        )
    wrong = np.argwhere(~((cells == 0) | (cells == 1) | np.isnan(cells)))
    if len(wrong):
        i, j = wrong[0]
        raise DataError(
            f"{len(wrong)} cell(s) are none of 0, 1, NaN; the first is {cells[i, j]} at subject "
            f"{subjects[i]!r}, item {items[j]!r}: binarise scores first, for example (scores == 1.0)"
        )
    cells += 0.0  # -0.0 becomes 0.0, so that equal data has equal bytes
    cells.setflags(write=False)
    return cells


def _positions(selector: Selector | None, names: pd.Index) -> NDArray[np.intp]:
    if selector is None:
        return np.arange(len(names))
    wanted = np.asarray(selector)
    if wanted.ndim != 1:
        raise DataError(f"{selector!r} selects no {names.name}s; expected a list of names, or of booleans")
    if wanted.dtype == bool:
        if wanted.shape != names.shape:
            raise DataError(
                f"a mask of {wanted.size} booleans cannot select among {len(names)} {names.name}s"
            )
        return np.flatnonzero(wanted)
    found = names.get_indexer(pd.Index(np.asarray(wanted, dtype=object), dtype=object))
    if (found < 0).any():
        raise DataError(f"unknown {names.name}(s): {listed(wanted[found < 0].tolist())}")
    return found
