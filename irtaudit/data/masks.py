"""A caller's own held-out cells, from a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data import columns
from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.long import factorise
from irtaudit.data.responses import ResponseMatrix, check_matrix, listed
from irtaudit.data.splits import Splits
from irtaudit.data.tables import Table, parse_table
from irtaudit.errors import DataError


def read_test_masks(path: str | Path, matrix: ResponseMatrix, max_bytes: int = MAX_BYTES) -> Splits:
    """Held-out cells from a long table (CSV, TSV, Parquet) with columns `split`, `subject`, `item`.

    Splits are ordered by their label, as numbers if all labels are whole numbers. Read the masks for the
    matrix as it was read, then follow the screen with `splits.align(before, after)`.

    Parameters
    ----------
    path : path
        The table.
    matrix : ResponseMatrix
        The responses whose cells it names.
    max_bytes : int
        Refuse files that are longer once decompressed.

    Returns
    -------
    Splits

    Raises
    ------
    DataError
        If a column is missing, a subject or item is not in the matrix, a cell is named twice in a split, or
        a cell to hold out is not observed.
    """
    check_matrix(matrix)
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    labels, splits = factorise(table, columns.find(table, "split", "split"), "split")
    rows = _codes(table, columns.SUBJECT, matrix.subjects.index)
    cols = _codes(table, columns.ITEM, matrix.items.index)
    order = _label_order(splits)
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order))
    _refuse(
        pd.DataFrame({"split": labels, "row": rows, "column": cols}).duplicated(),
        table,
        "is named twice in its split",
    )
    _refuse(~matrix.observed[rows, cols], table, "is not observed, so it cannot be held out")
    test = np.zeros((len(splits), matrix.n_subjects, matrix.n_items), dtype=bool)
    test[ranks[labels], rows, cols] = True
    return Splits.from_test_masks(test)


def _codes(table: Table, axis: str, names: pd.Index) -> NDArray[np.intp]:
    codes, found = factorise(table, columns.find(table, axis, None), axis)
    positions = names.get_indexer(pd.Index(found, dtype=object))
    if (positions < 0).any():
        unknown = listed(found[positions < 0])
        raise DataError(f"{table.path} holds out {axis}(s) that the responses do not have: {unknown}")
    found_at: NDArray[np.intp] = positions[codes]
    return found_at


def _label_order(labels: NDArray[np.object_]) -> NDArray[np.intp]:
    whole = all(label.strip().isdecimal() for label in labels)
    return np.argsort([int(label) for label in labels] if whole else labels, kind="stable")


def _refuse(bad: NDArray[np.bool_] | pd.Series, table: Table, complaint: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise DataError(
            f"{table.path}, {table.place(int(rows[0]))}: the cell {complaint} ({len(rows)} such rows)"
        )
