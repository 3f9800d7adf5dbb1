"""The response matrix: which subject passed which item.

Subjects are what is measured (AI models, agents, people); items are what they answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from irtaudit.errors import DataError, check_kind, shown_value

Selector = Sequence[str] | NDArray[Any] | pd.Series | pd.Index
"""What `ResponseMatrix.select` takes: names, or one boolean per name."""
Number = TypeVar("Number", np.float64, np.int64)
MOST_TRIALS = 2**24
"""Trials of one cell: up to here single precision counts exactly."""


@dataclass(frozen=True, eq=False)
class ResponseMatrix:
    """Responses of subjects to items, with what is known about both.

    Parameters
    ----------
    responses : (subject, item) array
        1 passed, 0 failed, NaN not observed; with `trials` the share of the cell's trials that passed.
        Copied; the stored array is float64 and read-only.
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
    trials : (subject, item) array of whole numbers, optional
        How many trials each cell counts, 0 where it is not observed. Default, and what is stored where no
        cell has several: None, one trial for each observed cell. The stored array is int64 and read-only.

    Raises
    ------
    DataError
        If shapes and tables disagree, a name is empty, not text or given twice, a cell is none of 0, 1, NaN,
        or trials are no counts that fit the responses.
    """

    responses: NDArray[np.float64]
    items: pd.DataFrame
    subjects: pd.DataFrame
    source: str | None = None
    notes: tuple[str, ...] = ()
    trials: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        items = _checked_table(vars(self)["items"], "item")
        subjects = _checked_table(vars(self)["subjects"], "subject")
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "subjects", subjects)
        cells, trials = _as_cells(self.responses, subjects.index, items.index), None
        if self.trials is not None:
            trials = _checked_trials(self.trials, cells.shape)
            cells = _checked_shares(cells, trials, subjects.index, items.index)
        if trials is None or trials.max(initial=0) <= 1:
            trials = None
            _refuse_scores(cells, subjects.index, items.index)
        object.__setattr__(self, "trials", trials)
        object.__setattr__(self, "responses", _frozen(cells))
        check_kind("notes", self.notes, (tuple, list), "a tuple of text", DataError)
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def from_array(
        cls,
        responses: ArrayLike,
        *,
        subjects: pd.DataFrame | Iterable[str] | None = None,
        items: pd.DataFrame | Iterable[str] | None = None,
        source: str | None = None,
        trials: ArrayLike | None = None,
    ) -> ResponseMatrix:
        """Build a matrix from a (subject, item) array and names, tables or nothing at all.

        Without names the axes are called `subject_01`, `subject_02`, ... and `item_001`, ..., padded so that
        sorting the names keeps their order.
        """
        cells = _as_array("responses", responses)
        if cells.ndim != 2:
            raise DataError(f"responses have {cells.ndim} dimension(s), expected two: (subject, item)")
        return cls(
            responses=cells,
            items=_as_table(items, "item", cells.shape[1]),
            subjects=_as_table(subjects, "subject", cells.shape[0]),
            source=source,
            trials=None if trials is None else _as_array("trials", trials),
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
    def n_trials(self) -> NDArray[np.int64]:
        """(subject, item) int64, read-only: trials of each cell, 0 where it is not observed."""
        return _frozen(self.observed.astype(np.int64) if self.trials is None else self.trials)

    @cached_property
    def passes(self) -> NDArray[np.int64]:
        """(subject, item) int64, read-only: trials of each cell that passed, 0 where it is not observed."""
        return _frozen(np.rint(np.nan_to_num(self.responses) * self.n_trials).astype(np.int64))

    def totals(self, axis: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Passes and trials, summed over subjects (axis 0: by item), items (1: by subject), or all cells."""
        if self.trials is None:
            return np.asarray(np.nansum(self.responses, axis=axis)), np.asarray(self.observed.sum(axis=axis))
        return np.asarray(self.passes.sum(axis=axis), float), np.asarray(self.trials.sum(axis=axis))

    def n_responses(self, cells: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(...) trials in the (..., subject, item) cells that are True; unobserved ones hold none."""
        if self.trials is None:
            return np.asarray((self.observed & cells).sum(axis=(-2, -1)))
        return np.asarray(np.where(cells, self.trials, 0).sum(axis=(-2, -1)))

    @property
    def pass_rate(self) -> float:
        """Share of all trials that passed; NaN where nothing is observed."""
        passes, trials = self.totals()
        return float(passes / trials) if trials else float("nan")

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 over names and cells, whatever the order of rows and columns.

        Covariates, notes and the source do not enter. The hashed bytes are the JSON text `[sorted subject
        names, sorted item names]` in ASCII, a newline, and the cells as `cell_bytes` has them, subject by
        subject in the order of those names.
        """
        rows, columns = sorted_order(self.subjects.index), sorted_order(self.items.index)
        names = [self.subjects.index[rows].tolist(), self.items.index[columns].tolist()]
        cells = self.cell_bytes(rows, columns)
        text = json.dumps(names, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii") + b"\n" + cells).hexdigest()

    def cell_bytes(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> bytes:
        """Bytes that differ wherever cells do: of each cell, subject by subject, in the order given.

        One byte (0, 1, or 2 for not observed); with several trials a cell two little-endian 32-bit numbers,
        the trials and the passes.
        """
        at = np.ix_(rows, columns)
        if self.trials is None:
            cells = self.responses[at]
            cells[np.isnan(cells)] = 2
            return cells.astype(np.uint8).tobytes()
        return np.stack([self.n_trials[at], self.passes[at]], axis=-1).astype("<u4").tobytes()

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
            trials=None if self.trials is None else self.trials[np.ix_(rows, columns)],
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
        size += "" if self.trials is None else f", {int(self.trials.sum())} trials"
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


def check_matrix(value: object, what: str = "matrix") -> None:
    """Raise DataError unless the value is a response matrix."""
    make = "a ResponseMatrix: read_responses(path) or ResponseMatrix.from_array(array) makes one"
    check_kind(what, value, ResponseMatrix, make, DataError)


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
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise DataError(f"{axis}s is {shown_value(given)}; expected names, or a table indexed by name")
    width = len(str(count))
    names = [f"{axis}_{i:0{width}d}" for i in range(1, count + 1)] if given is None else list(given)
    return pd.DataFrame(index=pd.Index(names, dtype=object))


def _checked_table(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    make = f"a DataFrame indexed by {axis} name; ResponseMatrix.from_array also takes names"
    check_kind(f"{axis}s", table, pd.DataFrame, make, DataError)
    check_names(table.index, axis)
    return table.set_axis(pd.Index(table.index, dtype=object, name=axis), axis=0)


def _as_array(what: str, given: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except ValueError:
        raise DataError(f"{what} has rows of different lengths; expected one value per cell") from None


def _as_cells(responses: ArrayLike, subjects: pd.Index, items: pd.Index) -> NDArray[np.float64]:
    try:
        cells = np.array(responses, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"responses are not numbers ({error}); expected 0, 1 or NaN in every cell") from None
    if cells.shape != (len(subjects), len(items)):
        raise DataError(
            f"responses have shape {cells.shape}, the tables name {len(subjects)} subjects and {len(items)} "
            f"items; expected shape {(len(subjects), len(items))}: subjects in rows, items in columns"
        )
    cells += 0.0  # -0.0 becomes 0.0, so that equal data has equal bytes
    return cells


def _refuse_scores(cells: NDArray[np.float64], subjects: pd.Index, items: pd.Index) -> None:
    wrong = np.argwhere(~((cells == 0) | (cells == 1) | np.isnan(cells)))
    if len(wrong):
        i, j = wrong[0]
        raise DataError(
            f"{len(wrong)} cell(s) are none of 0, 1, NaN; the first is {cells[i, j]} at subject "
            f"{subjects[i]!r}, item {items[j]!r}: binarise scores first, for example (scores == 1.0)"
        )


def _checked_trials(trials: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    given = _as_array("trials", trials)
    if given.shape != shape or given.dtype.kind not in "iuf":
        raise DataError(
            f"trials are {given.dtype} of shape {given.shape}, expected whole numbers of shape {shape}, one "
            "for each response"
        )
    if not ((given >= 0) & (given <= MOST_TRIALS) & (given == np.rint(given))).all():
        raise DataError(f"trials are no counts: expected whole numbers from 0 to {MOST_TRIALS:,}")
    return _frozen(given.astype(np.int64))


def _checked_shares(
    cells: NDArray[np.float64], trials: NDArray[np.int64], subjects: pd.Index, items: pd.Index
) -> NDArray[np.float64]:
    """The share of passes among the trials of each cell, as exact as a double can be."""
    passes = np.rint(np.nan_to_num(cells) * trials)
    shares: NDArray[np.float64] = np.full(cells.shape, np.nan)
    np.divide(passes, trials, out=shares, where=trials > 0)
    near = np.isclose(shares, cells, rtol=0, atol=1e-9, equal_nan=True)
    wrong = np.argwhere(~(near & ((trials == 0) | ((shares >= 0) & (shares <= 1)))))
    if len(wrong):
        i, j = wrong[0]
        raise DataError(
            f"{len(wrong)} cell(s) are no share of their trials; the first is {cells[i, j]} of "
            f"{trials[i, j]} trial(s) at subject {subjects[i]!r}, item {items[j]!r}: expected passes / "
            "trials, and NaN where there are none"
        )
    return shares


def _frozen(array: NDArray[Number]) -> NDArray[Number]:
    array.setflags(write=False)
    return array


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
