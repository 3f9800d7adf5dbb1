"""Tables as they stand in a file, before anyone knows what the columns mean."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from irtaudit.data.files import decode_text, unescape_formula
from irtaudit.errors import DataError

MISSING = frozenset({"", "na", "nan", "null"})
"""Texts that stand for a missing value, in lower case and without surrounding blanks."""

_UNNAMED = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in Parquet."""

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon"}
_ROWS_PER_BLOCK = 2**16
_MOST_LONG_COLUMNS = 32
"""A Parquet table of more columns is read at once; of others, only the columns that are asked for."""


class Table(Protocol):
    """What the readers ask of any table. Columns go by position, because names may repeat."""

    @property
    def path(self) -> Path:
        """The file, for messages."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""

    def texts(self, column: int) -> NDArray[np.object_]:
        """The cells of a column as text; missing ones are empty."""

    def coded(self, column: int) -> tuple[NDArray[np.intp] | NDArray[np.int32], NDArray[np.object_]]:
        """The distinct texts of a column, and which of them each cell is."""

    def values(self, column: int) -> NDArray[Any]:
        """The cells of a column as numbers where the file says they are (float64), else as objects."""

    def covariate(self, column: int) -> pd.Series:
        """The cells of a column with the type they have in the file. Missing is NaN."""

    def place(self, row: int) -> str:
        """Where a row stands in the file, for messages."""


@dataclass(frozen=True, eq=False)
class TextTable:
    """A table in delimited text: every cell is text. `lines` says where each row begins in the file."""

    path: Path
    names: tuple[str, ...]
    cells: NDArray[np.object_]
    lines: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""
        return len(self.cells)

    def texts(self, column: int) -> NDArray[np.object_]:
        """The cells of a column, without the apostrophe that guards formulas."""
        texts = self.cells[:, column].copy()
        texts[:] = [unescape_formula(text) if text[:1] == "'" else text for text in texts]
        return texts

    def coded(self, column: int) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
        """The distinct texts of a column, and which of them each cell is."""
        return pd.factorize(self.texts(column))

    def values(self, column: int) -> NDArray[Any]:
        """The cells of a column, as they stand."""
        return self.cells[:, column]

    def covariate(self, column: int) -> pd.Series:
        """The cells of a column as text; NaN where they say missing."""
        texts = pd.Series(self.texts(column), dtype=object)
        return texts.mask(texts.str.strip().str.lower().isin(MISSING), np.nan)

    def place(self, row: int) -> str:
        """The line that the row begins on."""
        return f"line {self.lines[row]}"


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """A table in a Parquet file: every column has a type, and texts are held once each.

    ``order`` says which column of the file each of the table's is.
    """

    path: Path
    names: tuple[str, ...]
    file: pq.ParquetFile
    order: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.file.metadata.num_rows)

    def texts(self, column: int) -> NDArray[np.object_]:
        """The cells of a column as text."""
        codes, names = self.coded(column)
        return names[codes]

    def coded(self, column: int) -> tuple[NDArray[np.int32], NDArray[np.object_]]:
        """The distinct texts of a column, and which of them each cell is."""
        cells = _encoded(self._column(column))
        texts = ["" if cell is None else str(cell) for cell in cells.dictionary.to_pylist()]
        codes = cells.indices.fill_null(len(texts)).to_numpy()
        used = np.bincount(codes, minlength=len(texts) + 1) > 0  # a dictionary may hold what no cell says
        distinct, names = pd.factorize(np.array([*texts, ""], dtype=object)[used])
        new_code = np.zeros(len(used), dtype=np.int32)
        new_code[used] = distinct
        return new_code[codes], names

    def values(self, column: int) -> NDArray[Any]:
        """Numbers and booleans as float64, NaN where null; all else as text, None where null."""
        cells = self._column(column)
        if pa.types.is_boolean(cells.type):
            cells = cells.cast(pa.int8())
        if (
            pa.types.is_null(cells.type)
            or pa.types.is_integer(cells.type)
            or pa.types.is_floating(cells.type)
        ):
            return np.asarray(cells.to_numpy(), dtype=np.float64)
        encoded = _encoded(cells)
        names = [None if cell is None else str(cell) for cell in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(names)).to_numpy()
        texts: NDArray[np.object_] = np.array([*names, None], dtype=object)[codes]
        return texts

    def covariate(self, column: int) -> pd.Series:
        """The cells of a column with the file's type."""
        cells = self._column(column)
        if pa.types.is_dictionary(cells.type) or pa.types.is_large_string(cells.type):
            cells = cells.cast(pa.string())
        return pd.Series(cells.to_pandas()).reset_index(drop=True)

    def place(self, row: int) -> str:
        """The row, counted from 1."""
        return f"row {row + 1}"

    def _column(self, column: int) -> pa.ChunkedArray:
        """A column; of a long table with unmistakable names only this one is read."""
        if len(self.names) > _MOST_LONG_COLUMNS or not _distinct(self.names):
            return self._whole.column(self.order[column])
        return self._read([self.names[column]]).column(0)

    @cached_property
    def _whole(self) -> pa.Table:
        return self._read(None)

    def _read(self, columns: list[str] | None) -> pa.Table:
        try:
            return self.file.read(columns)
        except (pa.ArrowException, OSError) as error:
            raise _broken(self.path, error) from error


def _distinct(names: tuple[str, ...]) -> bool:
    """May columns be asked for by name? Arrow takes a dot for a path."""
    return len(set(names)) == len(names) and not any("." in name for name in names)


def _encoded(cells: pa.ChunkedArray) -> pa.DictionaryArray:
    """The cells as one array of codes into their distinct values (nested ones: into their texts)."""
    try:
        encoded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    except pa.ArrowNotImplementedError:
        encoded = pa.chunked_array([pa.array([None if c is None else str(c) for c in cells.to_pylist()])])
        encoded = encoded.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    return encoded if isinstance(encoded, pa.DictionaryArray) else encoded.chunk(0)


def _broken(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is a broken or cut-off Parquet file: {str(error).splitlines()[0]}")


def parse_table(content: bytes, path: str | Path, max_bytes: int) -> Table:
    """The table in the bytes of a CSV, TSV or Parquet file.

    Raises
    ------
    DataError
        If it is no such table, is cut off, has no rows, or has rows of different lengths.
    """
    path = Path(path)
    table = (
        _parse_parquet(content, path, max_bytes)
        if content.startswith(b"PAR1")
        else parse_text_table(content, path)
    )
    if table.n_rows == 0:
        raise DataError(f"{path} has a header ({len(table.names)} columns) but no rows")
    return table


def frame_table(frame: pd.DataFrame, max_bytes: int) -> Table:
    """The table in a DataFrame, as it would be in the Parquet file that pandas writes of it.

    Raises
    ------
    DataError
        If Parquet cannot hold it: a column of several types, two columns of one name; or it has no rows.
    """
    stream = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pandas(frame), stream)
    except (pa.ArrowException, ValueError, TypeError) as error:
        said = " ".join(str(part) for part in error.args).split("\n")[0]
        raise DataError(
            f"the DataFrame cannot be read, it may hold a column of several types: {said}"
        ) from None
    return parse_table(stream.getvalue(), "DataFrame", max_bytes)


def _parse_parquet(content: bytes, path: Path, max_bytes: int) -> ParquetTable:
    try:
        schema = pq.ParquetFile(pa.BufferReader(content)).schema_arrow
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    rows, columns = file.metadata.num_rows, file.metadata.num_columns
    if rows * (columns if columns > _MOST_LONG_COLUMNS else 1) * 8 > max_bytes:
        raise DataError(
            f"{path} holds {rows:,} rows x {columns:,} columns, more than fit in {max_bytes:,} bytes; if "
            "that is what you expect, raise the limit (max_bytes=, --max-bytes)"
        )
    order, names = _index_first(schema), schema.names  # Arrow makes the list of names anew at each call
    return ParquetTable(path, tuple(names[position] for position in order), file, order)


def _index_first(schema: pa.Schema) -> tuple[int, ...]:
    """Positions of the columns, those of the index that pandas wrote first, as in its CSV.

    An index without a name that holds numbers is left out where a column of text comes first: rows of a
    larger table that were kept have their numbers there.
    """
    names = schema.names
    try:
        said = (schema.pandas_metadata or {}).get("index_columns", [])
        index = [names.index(name) for name in said if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError):
        index = []  # no pandas wrote this
    others = sorted(set(range(len(names))) - set(index))
    numbers = [i for i in index if _UNNAMED.fullmatch(names[i]) and pa.types.is_integer(schema.field(i).type)]
    left_out = set(numbers if others and pa.types.is_string(schema.field(others[0]).type) else [])
    return tuple(position for position in (*index, *others) if position not in left_out)


def parse_text_table(content: bytes, path: Path) -> TextTable:
    """The table in delimited text; commas, tabs and semicolons are told apart by what makes a table."""
    decode_text(content, path)  # says which line is not UTF-8; the records below stream through the bytes
    records = _records(content, _delimiter(content, path), path)
    _, header = next(records)
    cells, lines = [np.empty((0, len(header)), dtype=object)], [np.empty(0, dtype=np.intp)]
    while block := list(islice(records, _ROWS_PER_BLOCK)):
        _refuse_ragged(block, len(header), path)
        cells.append(np.array([record for _, record in block], dtype=object))
        lines.append(np.array([line for line, _ in block]))
    names = tuple(unescape_formula(name) for name in header)
    return TextTable(path, names, np.concatenate(cells), np.concatenate(lines))


def _records(content: bytes, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line on which it begins and fields of each record that is not blank."""
    stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    begins = 1
    try:
        for record in reader:
            if record:
                yield begins, record
            begins = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {begins}: not readable as {_DELIMITERS[delimiter]}-separated values ({error})"
        ) from None


def _refuse_ragged(block: list[tuple[int, list[str]]], width: int, path: Path) -> None:
    for line, record in block:
        if len(record) != width:
            raise DataError(f"{path}, line {line}: {len(record)} fields where the header has {width}")


def _delimiter(content: bytes, path: Path) -> str:
    """The delimiter that makes the first records equally long, two fields or more; the suffix breaks ties."""
    usual = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else ","
    widths = {delimiter: _first_widths(content, delimiter, path) for delimiter in _DELIMITERS}
    tables = [delimiter for delimiter, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    tables = tables or [delimiter for delimiter, found in widths.items() if found and found[0] > 1]
    if len(tables) == 1 or usual in tables:
        return tables[0] if len(tables) == 1 else usual
    if tables:
        kinds = " and ".join(_DELIMITERS[delimiter] for delimiter in tables)
        raise DataError(
            f"{path} can be read with {kinds} as separator; save it with commas as .csv or tabs as .tsv"
        )
    raise DataError(
        f"{path} is not a table: with comma, tab or semicolon as separator its first line has fewer than "
        "two columns"
    )


def _first_widths(content: bytes, delimiter: str, path: Path) -> list[int]:
    """Fields of the first records; 0 where the next one cannot be read."""
    widths = []
    try:
        for _, record in islice(_records(content, delimiter, path), 5):
            widths.append(len(record))
    except DataError:
        widths.append(0)
    return widths
