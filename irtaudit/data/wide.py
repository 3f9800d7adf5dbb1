"""Wide tables: one row per subject, one column per item."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data import cells, columns
from irtaudit.data.responses import ResponseMatrix, listed
from irtaudit.data.tables import Table
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError

_IF_LONG = "for a long table name its columns (--subject-column, --item-column, --response-column)"


def read_wide(table: Table, *, subject_column: str | None, pass_at: float | None) -> ResponseMatrix:
    """The matrix in a wide table: subjects in `subject_column` or the first column, the others are items.

    Raises
    ------
    DataError
        If a name is empty or repeated, the rows look like items, or a cell holds no response.
    """
    numbered = _row_numbers(table)
    subject = (
        numbered or 0 if subject_column is None else columns.find(table, columns.SUBJECT, subject_column)
    )
    if subject_column is None and columns.means(table.names[0], columns.ITEM):
        raise DataError(
            f"{table.path}: the first column is {table.names[0]!r}, so its rows look like items; expected "
            "subjects in rows and items in columns: transpose it, or name the column (subject_column=, "
            "--subject-column)"
        )
    positions = [j for j in range(len(table.names)) if j != subject and not (numbered and j == 0)]
    items = [table.names[j] for j in positions]
    subjects = table.texts(subject)
    _check_names(subjects, "subject", table.place, table)
    _check_names(np.array(items, dtype=object), "item", lambda i: f"column {positions[i] + 1}", table)
    responses = _responses(table, positions, subjects, pass_at)
    return ResponseMatrix.from_array(
        responses, subjects=subjects, items=items, source=str(table.path)
    ).sorted()


def _row_numbers(table: Table) -> int | None:
    """Column of the subjects after a first one of pandas's row numbers (0, 1, ... and no name); else None."""
    named = columns.recognised(table, columns.SUBJECT)
    if table.names[0] not in ("", "Unnamed: 0") or len(named) != 1:
        return None
    return named[0] if table.texts(0).tolist() == [str(row) for row in range(table.n_rows)] else None


def wide_rows(matrix: ResponseMatrix) -> Iterator[list[str]]:
    """Header and records of the wide text table of a matrix; a missing response is an empty field."""
    words = np.array(["0", "1", ""], dtype=object)
    yield ["subject", *matrix.items.index]
    for name, row in zip(matrix.subjects.index, matrix.responses, strict=True):
        yield [name, *words[np.where(np.isnan(row), 2, row).astype(np.intp)]]


def could_be_wide(table: Table, subject: int) -> bool:
    """Is every column but `subject` full of responses, and every subject named once?"""
    if pd.Series(table.texts(subject), dtype=object).duplicated().any():
        return False
    others = (j for j in range(len(table.names)) if j != subject)
    return not any(cells.unreadable(cells.scores(table.values(j))).any() for j in others)


def _check_names(names: NDArray[np.object_], axis: str, place: Callable[[int], str], table: Table) -> None:
    blank = [i for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise DataError(f"{table.path}, {place(blank[0])}: the {axis} has no name")
    repeated = np.flatnonzero(pd.Series(names, dtype=object).duplicated())
    if len(repeated):
        name = names[repeated[0]]
        where = " and ".join(place(int(i)) for i in np.flatnonzero(names == name)[:2])
        raise DataError(
            f"{table.path}: {axis} name {name!r} is given twice ({where}); in a wide table each row is one "
            f"subject and each column one item; {_IF_LONG}"
        )


def _responses(
    table: Table, positions: list[int], subjects: NDArray[np.object_], pass_at: float | None
) -> NDArray[np.float64]:
    values = [table.values(j) for j in positions]
    names = [table.names[j] for j in positions]
    score = cells.scores(np.column_stack(values))

    def found(cell: NDArray[np.intp]) -> tuple[str, str]:
        place = (
            f"{table.path}, {table.place(cell[0])} (subject {subjects[cell[0]]!r}), column {names[cell[1]]!r}"
        )
        return place, cells.shown(values[cell[1]][cell[0]])

    wrong = cells.unreadable(score)
    if wrong.any():
        _refuse_covariates(table, names, score)
        place, value = found(np.argwhere(wrong)[0])
        raise DataError(f"{place}: found {value}, {cells.EXPECTED}")
    fractions = cells.fractional(score)
    if pass_at is None and fractions.any():
        place, value = found(np.argwhere(fractions)[0])
        columns_with = [names[j] for j in np.flatnonzero(fractions.any(axis=0))]
        raise UndecidedError(
            f"{place}: found {value}, between 0 and 1 (so do {len(columns_with)} of {len(names)} columns: "
            f"{listed(columns_with)}): {cells.CUT_OFF}. Columns that are no items belong into the subject "
            "table (subjects=, --subjects)",
            "pass_at",
            1.0,
        )
    return cells.binarise(score, pass_at)


def _refuse_covariates(table: Table, names: list[str], score: NDArray[np.float64]) -> None:
    """Raise DataError if there are columns most of whose cells are no responses: they are no items."""
    seen = ~np.isnan(score)
    mostly = cells.unreadable(score).sum(axis=0) > seen.sum(axis=0) / 2
    if mostly.any():
        found = listed((names[j] for j in np.flatnonzero(mostly)), 10)
        raise DataError(
            f"{table.path}: column(s) {found} hold something else than responses; in a wide table every "
            "column but the subject's is an item: put what describes subjects into a table of its own "
            f"(subjects=, --subjects); {_IF_LONG}"
        )
