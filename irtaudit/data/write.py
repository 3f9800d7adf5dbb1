"""Write a response matrix in any of the layouts that `read_responses` reads."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from irtaudit.data.files import as_path, atomic_path, escape_formula
from irtaudit.data.long import long_columns, long_rows
from irtaudit.data.pyirt import pyirt_lines
from irtaudit.data.responses import ResponseMatrix, check_matrix
from irtaudit.data.trials import refuse_counts
from irtaudit.data.wide import wide_rows
from irtaudit.errors import PlanError

FORMATS = ("wide-csv", "long-csv", "wide-tsv", "long-tsv", "wide-parquet", "long-parquet", "py-irt")

_BY_SUFFIX = {
    ".csv": "wide-csv",
    ".tsv": "wide-tsv",
    ".parquet": "wide-parquet",
    ".jsonl": "py-irt",
    ".jsonlines": "py-irt",
}


def write_responses(matrix: ResponseMatrix, path: str | Path, format: str | None = None) -> str:
    """Write responses so that `read_responses` gives the same subjects, items and cells.

    Text is UTF-8, and gzip-compressed if the name ends in .gz. In CSV and TSV a name that a spreadsheet
    would take for a formula gets a leading apostrophe, which `read_responses` takes off again; Parquet and
    JSON lines hold every name as it is. Covariates are not written. Counts of trials go into long tables
    alone, as columns ``passes, trials``.

    Parameters
    ----------
    matrix : ResponseMatrix
        What to write, in its order.
    path : path
        Where to. The file is replaced whole or not at all.
    format : str, optional
        One of wide-csv, long-csv, wide-tsv, long-tsv, wide-parquet, long-parquet, py-irt. By default what
        the suffix says (.csv, .tsv and .parquet are wide, .jsonl and .jsonlines py-irt).

    Returns
    -------
    str
        The format written.

    Raises
    ------
    PlanError
        If the format is unknown, not told by the suffix, holds no counts of trials where the matrix has them,
        or Parquet is to be compressed by gzip, or `path` is no path.
    DataError
        If `matrix` is no response matrix.
    StorageError
        If the operating system refuses to write.
    """
    check_matrix(matrix)
    path = as_path("path", path)
    chosen = _format(path) if format is None else format
    if chosen not in FORMATS:
        raise PlanError(f"unknown format {chosen!r}, expected one of {', '.join(FORMATS)}")
    layout, _, kind = chosen.rpartition("-") if chosen != "py-irt" else ("py-irt", "", "jsonl")
    if layout != "long":
        refuse_counts(matrix, chosen, "write a long table (long-csv, --to long-csv), or ")
    if kind == "parquet":
        if path.suffix == ".gz":
            raise PlanError(f"{path}: Parquet compresses itself; leave out .gz")
        with atomic_path(path) as temporary:
            pq.write_table(_wide_arrow(matrix) if layout == "wide" else _long_arrow(matrix), temporary)
        return chosen
    with _text_stream(path) as stream:
        if kind == "jsonl":
            stream.writelines(pyirt_lines(matrix))
        else:
            rows = wide_rows(matrix) if layout == "wide" else long_rows(matrix)
            _write_delimited(stream, rows, "\t" if kind == "tsv" else ",", _quoting(matrix))
    return chosen


def _format(path: Path) -> str:
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if suffix.lower() not in _BY_SUFFIX:
        raise PlanError(
            f"{path}: the suffix {suffix!r} does not tell the format; name one of {', '.join(FORMATS)}"
        )
    return _BY_SUFFIX[suffix.lower()]


@contextmanager
def _text_stream(path: Path) -> Iterator[TextIO]:
    """UTF-8 stream that keeps line ends, compressed if the name says so (without a time stamp)."""
    with atomic_path(path) as temporary, temporary.open("wb") as raw:
        packed = path.suffix.lower() == ".gz"
        binary = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw
        with io.TextIOWrapper(binary, encoding="utf-8", newline="") as stream:
            yield stream


def _quoting(matrix: ResponseMatrix) -> Literal[0, 1]:
    # the csv module before Python 3.13 leaves a lone carriage return unquoted
    returns = any("\r" in name for names in (matrix.subjects.index, matrix.items.index) for name in names)
    return csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL


def _write_delimited(
    stream: TextIO, rows: Iterable[list[str]], delimiter: str, quoting: Literal[0, 1]
) -> None:
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writerows([escape_formula(cell) for cell in row] for row in rows)


def _wide_arrow(matrix: ResponseMatrix) -> pa.Table:
    columns = [pa.array(matrix.subjects.index, pa.string()), *map(_arrow, matrix.responses.T)]
    return pa.Table.from_arrays(columns, names=["subject", *matrix.items.index])


def _long_arrow(matrix: ResponseMatrix) -> pa.Table:
    table = long_columns(matrix)
    kinds = {"subject": pa.string(), "item": pa.string(), "passes": pa.int64(), "trials": pa.int64()}
    columns = [
        pa.array(values, kinds[name]) if name in kinds else _arrow(values) for name, values in table.items()
    ]
    return pa.Table.from_arrays(columns, names=list(table))


def _arrow(responses: NDArray[np.float64]) -> pa.Array:
    missing = np.isnan(responses)
    return pa.array(np.where(missing, 0, responses).astype(np.int8), mask=missing)
