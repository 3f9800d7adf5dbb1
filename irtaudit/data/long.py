"""Long tables: one row per response, with its subject and item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data import cells, columns
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.tables import Table
from irtaudit.errors import DataError


def read_long(
    table: Table,
    *,
    subject_column: str | None,
    item_column: str | None,
    response_column: str | None,
    pass_at: float | None,
    max_bytes: int,
) -> ResponseMatrix:
    """The matrix in a long table; cells without a row are not observed, further columns are left alone.

    Raises
    ------
    DataError
        If a role has no column or several, a name is empty, a cell is given twice or holds no response, or
        the matrix would not fit in `max_bytes`.
    """
    subject = columns.find(table, columns.SUBJECT, subject_column)
    item = columns.find(table, columns.ITEM, item_column)
    response = columns.find(table, columns.RESPONSE, response_column)
    rows, subjects = factorise(table, subject, columns.SUBJECT)
    cols, items = factorise(table, item, columns.ITEM)
    observed = cells.responses(
        table.values(response),
        pass_at,
        lambda row: f"{table.path}, {table.place(row)}, column {table.names[response]!r}",
    )
    refuse_too_large(len(subjects), len(items), max_bytes, str(table.path))
    _refuse_repeats(table, rows, cols, observed, subjects, items)
    return pivot(rows, cols, observed, subjects, items, source=str(table.path))


def long_columns(
    matrix: ResponseMatrix,
) -> tuple[NDArray[np.object_], NDArray[np.object_], NDArray[np.float64]]:
    """Subject, item and response of each row of the long table of a matrix.

    Every observed cell has a row. So does one unobserved cell (NaN) of each subject and item that would
    otherwise not be named.
    """
    rows, cols = np.nonzero(kept_cells(matrix))
    subjects = matrix.subjects.index.to_numpy(dtype=object)[rows]
    items = matrix.items.index.to_numpy(dtype=object)[cols]
    return subjects, items, matrix.responses[rows, cols]


def long_rows(matrix: ResponseMatrix) -> Iterator[list[str]]:
    """Header and records of the long text table of a matrix; a missing response is an empty field."""
    yield ["subject", "item", "response"]
    for subject, item, response in zip(*long_columns(matrix), strict=True):
        yield [subject, item, "" if np.isnan(response) else str(int(response))]


def factorise(table: Table, column: int, axis: str) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """Code of each row and the distinct names of a column; a DataError names the row that has no name."""
    codes, names = pd.factorize(table.texts(column))
    for code, name in enumerate(names):
        if not name.strip():
            row = int(np.argmax(codes == code))
            raise DataError(
                f"{table.path}, {table.place(row)}: the {axis} has no name (column {table.names[column]!r})"
            )
    return codes, names


def refuse_too_large(n_subjects: int, n_items: int, max_bytes: int, source: str) -> None:
    """Raise DataError if the full matrix (8 bytes a cell) would not fit in `max_bytes`."""
    if n_subjects * n_items * 8 > max_bytes:
        raise DataError(
            f"{source} names {n_subjects:,} subjects and {n_items:,} items, a matrix of more than "
            f"{max_bytes:,} bytes: is a column mistaken for names? If not, raise the limit (max_bytes=, "
            "--max-bytes)"
        )


def pivot(
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    observed: NDArray[np.float64],
    subjects: NDArray[np.object_],
    items: NDArray[np.object_],
    source: str,
) -> ResponseMatrix:
    """The matrix, sorted by name, with response `observed[n]` at row `rows[n]` and column `cols[n]`."""
    responses = np.full((len(subjects), len(items)), np.nan)
    responses[rows, cols] = observed
    return ResponseMatrix.from_array(responses, subjects=subjects, items=items, source=source).sorted()


def kept_cells(matrix: ResponseMatrix) -> NDArray[np.bool_]:
    """Cells to write so that every name occurs: the observed ones, and one of each empty subject and item."""
    kept = matrix.observed.copy()
    kept[~kept.any(axis=1), 0] = True
    kept[0, ~kept.any(axis=0)] = True
    return kept


def _refuse_repeats(
    table: Table,
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    observed: NDArray[np.float64],
    subjects: NDArray[np.object_],
    items: NDArray[np.object_],
) -> None:
    frame = pd.DataFrame({"row": rows, "column": cols, "response": observed})
    repeated = frame.duplicated(["row", "column"], keep=False)
    if not repeated.any():
        return
    same = frame.duplicated(keep=False)
    first = int(
        np.flatnonzero(repeated & ~same)[0] if (repeated & ~same).any() else np.flatnonzero(repeated)[0]
    )
    where = np.flatnonzero((rows == rows[first]) & (cols == cols[first]))
    answers = ", ".join(f"{_word(observed[i])} at {table.place(i)}" for i in where[:5])
    kind = "the same response" if same[where].all() else "conflicting responses"
    raise DataError(
        f"{table.path}: {int(frame[repeated].groupby(['row', 'column']).ngroups)} cell(s) are given more "
        f"than once; subject {subjects[rows[first]]!r}, item {items[cols[first]]!r} has {kind}: {answers}. "
        "Keep one row per response (repeated runs of one item: average them and use --pass-at, or name "
        "them as separate items)"
    )


def _word(response: float) -> str:
    return "missing" if np.isnan(response) else str(int(response))
