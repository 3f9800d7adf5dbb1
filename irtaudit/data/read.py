"""Read responses from whatever file they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from irtaudit.data import cells, columns
from irtaudit.data.covariates import read_covariates
from irtaudit.data.files import MAX_BYTES, decode_text, read_content
from irtaudit.data.long import read_long
from irtaudit.data.pyirt import read_pyirt
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.tables import Table, parse_table
from irtaudit.data.wide import could_be_wide, read_wide
from irtaudit.errors import DataError

Layout = Literal["wide", "long", "py-irt"]


def read_responses(
    path: str | Path,
    *,
    items: str | Path | None = None,
    subjects: str | Path | None = None,
    subject_column: str | None = None,
    item_column: str | None = None,
    response_column: str | None = None,
    pass_at: float | None = None,
    layout: Layout | None = None,
    max_bytes: int = MAX_BYTES,
) -> ResponseMatrix:
    """Read a response matrix; what the file is, its content says.

    Three layouts are read. *Wide*: a table (CSV, TSV, Parquet) with a row per subject and a column per
    item, subjects in the first column. *Long*: such a table with a row per response and columns for
    subject, item and response. *py- irt*: JSON lines. Text may be gzip-compressed. Subjects and items come
    back sorted by name.

    A response is 0 or 1, true or false, pass or fail (in any case); nothing, NA, NaN and null mean not
    observed.

    Parameters
    ----------
    path : path
        The file.
    items, subjects : path, optional
        Tables (CSV, TSV, Parquet) that describe items and subjects, one row each; see `read_covariates`.
    subject_column, item_column, response_column : str, optional
        Columns of a long table (the first also of a wide one) that are not recognised by their names, or to
        choose between several that are.
    pass_at : float, optional
        Needed for scores between 0 and 1: a response passes when its score is at least this. 1.0 counts
        full marks only.
    layout : {"wide", "long", "py-irt"}, optional
        Settles what a file is that could be two things.
    max_bytes : int
        Refuse files that are longer once decompressed, and matrices that would take more memory.

    Returns
    -------
    ResponseMatrix
        `notes` says which names the item and subject tables lack or have too many.

    Raises
    ------
    DataError
        If the file is not what it should be; the message names file, line or row, column and cell.
    PlanError
        If `pass_at` is not above 0 and at most 1.
    StorageError
        If the operating system refuses to read the file.
    """
    cells.check_pass_at(pass_at)
    path = Path(path)
    content = read_content(path, max_bytes)
    named = {"subject_column": subject_column, "item_column": item_column, "response_column": response_column}
    if layout == "py-irt" or (layout is None and _is_json(content)):
        _refuse_columns(named, path)
        text = decode_text(content, path)
        matrix = read_pyirt(text, path, pass_at=pass_at, max_bytes=max_bytes)
    else:
        table = parse_table(content, path, max_bytes)
        if (layout or _layout(table, **named)) == "long":
            matrix = read_long(table, **named, pass_at=pass_at, max_bytes=max_bytes)
        else:
            matrix = read_wide(table, subject_column=subject_column, pass_at=pass_at)
    return describe(matrix, items=items, subjects=subjects, max_bytes=max_bytes)


def describe(
    matrix: ResponseMatrix,
    *,
    items: str | Path | None = None,
    subjects: str | Path | None = None,
    max_bytes: int = MAX_BYTES,
) -> ResponseMatrix:
    """The same responses with the covariates in the given tables in place of those the matrix had.

    Raises
    ------
    DataError
        As `read_covariates` does.
    """
    item_table, subject_table, notes = matrix.items, matrix.subjects, matrix.notes
    if items is not None:
        item_table, found = read_covariates(items, matrix.items.index, "item", max_bytes)
        notes += found
    if subjects is not None:
        subject_table, found = read_covariates(subjects, matrix.subjects.index, "subject", max_bytes)
        notes += found
    return ResponseMatrix(matrix.responses, item_table, subject_table, matrix.source, notes)


def _is_json(content: bytes) -> bool:
    return content[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _refuse_columns(named: dict[str, str | None], path: Path) -> None:
    given = [name for name, column in named.items() if column is not None]
    if given:
        raise DataError(f"{path} is read as JSON lines, which have no columns; leave out {', '.join(given)}")


def _layout(
    table: Table, subject_column: str | None, item_column: str | None, response_column: str | None
) -> Layout:
    """Long if item or response column are named, or all three roles are recognised; else wide."""
    if item_column is not None or response_column is not None:
        return "long"
    roles = [columns.recognised(table, role) for role in (columns.SUBJECT, columns.ITEM, columns.RESPONSE)]
    if subject_column is not None:
        roles[0] = [columns.find(table, columns.SUBJECT, subject_column)]
    if not all(roles):
        return "wide"
    if could_be_wide(table, roles[0][0]):
        raise DataError(
            f"{table.path} can be read as a wide table and, by its column names, as a long one; say which "
            "(layout=, --from)"
        )
    return "long"
