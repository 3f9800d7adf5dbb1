"""What is known about subjects and items, from a table of its own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from irtaudit.data import columns
from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.responses import listed
from irtaudit.data.tables import Table, parse_table
from irtaudit.errors import DataError


def columns_there(table: pd.DataFrame, axis: str) -> str:
    """What a message says about a table of items or subjects that lacks a column.

    Parameters
    ----------
    table : DataFrame
        Of a matrix.
    axis : str
        "item" or "subject".
    """
    if len(table.columns):
        return f"the {axis} table has: {listed(table.columns, limit=20)}"
    return (
        f"nothing describes the {axis}s here. Name a table of them with --{axis}s ({axis}s= from Python, "
        f"data.{axis}s in a plan)"
    )


def read_covariates(
    path: str | Path, names: pd.Index, axis: str, max_bytes: int = MAX_BYTES
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Covariates of subjects or items from a CSV, TSV or Parquet table with a row for each name.

    The column of names is the first one; if none of its values is a name of the matrix, a column recognised
    by its header (`subject`, `model`, ...; `item`, `question_id`, ...) that has some. Text stays text
    (labels such as 01 are not numbers) with NaN for an empty cell, NA, NaN and null; Parquet columns keep
    their type.

    Parameters
    ----------
    path : path
        The table.
    names : Index
        Names of the matrix, in its order.
    axis : {"subject", "item"}
        What the names are.

    Returns
    -------
    table : DataFrame
        One row per name of the matrix, in its order; NaN where the file has no such row.
    notes : tuple of str
        How many names the file lacks and how many it has too many, if any.

    Raises
    ------
    DataError
        If the table cannot be read, no column holds names of the matrix, or a name or column is given twice.
    """
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    key = _name_column(table, names, axis)
    found = pd.Index(table.texts(key), dtype=object)
    _refuse_repeats(found, table, axis)
    others = [j for j in range(len(table.names)) if j != key]
    covariates = pd.DataFrame({table.names[j]: table.covariate(j) for j in others}).set_axis(found)
    return covariates.reindex(names), _notes(names, found, axis, table.path)


def _name_column(table: Table, names: pd.Index, axis: str) -> int:
    candidates = [0, *columns.recognised(table, axis)]
    for column in candidates:
        if pd.Index(table.texts(column), dtype=object).isin(names).any():
            return column
    tried = listed(dict.fromkeys(table.names[j] for j in candidates))
    raise DataError(
        f"{table.path} describes none of the {len(names)} {axis}s: column(s) {tried} hold names such as "
        f"{listed(table.texts(0)[:3])}, the responses have {listed(names[:3])}"
    )


def _refuse_repeats(found: pd.Index, table: Table, axis: str) -> None:
    repeated = found.duplicated()
    if repeated.any():
        name = found[repeated][0]
        rows = [table.place(row) for row, other in enumerate(found) if other == name]
        raise DataError(f"{table.path}: {axis} {name!r} is described twice ({listed(rows, 2)}); keep one row")
    headers = pd.Index(table.names, dtype=object)
    if headers.duplicated().any():
        raise DataError(
            f"{table.path}: column(s) {listed(headers[headers.duplicated()])} given twice; rename one"
        )


def _notes(names: pd.Index, found: pd.Index, axis: str, path: Path) -> tuple[str, ...]:
    lacking, unknown = names[~names.isin(found)], found[~found.isin(names)]
    notes = []
    if len(lacking):
        notes.append(f"{len(lacking)} of {len(names)} {axis}s are not described in {path}: {listed(lacking)}")
    if len(unknown):
        notes.append(
            f"{len(unknown)} {axis}(s) in {path} have no responses and were ignored: {listed(unknown)}"
        )
    return tuple(notes)
