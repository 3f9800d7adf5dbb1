"""Reading and writing files with care: whole or not at all, no bombs, no formulas."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pandas as pd

from irtaudit.errors import DataError, PlanError, StorageError, check_kind

MAX_BYTES = 2**30
"""Most bytes a file may hold once decompressed, unless the caller says otherwise: 1 GiB."""

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r\n]")

_KNOWN_BINARY = {
    b"PK\x03\x04": "a zip archive (as .npz, .xlsx and .eval files are)",
    b"PK\x05\x06": "an empty zip archive",
    b"\x93NUMPY": "a NumPy .npy array",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"ARROW1": "an Arrow IPC (Feather) file",
    b"\x1f\x8b": "compressed by gzip twice",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"\x28\xb5\x2f\xfd": "zstandard-compressed",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
TABLE_KINDS = "CSV, TSV or JSON lines (UTF-8, possibly gzip) or Parquet"


def as_path(what: str, path: object) -> Path:
    """The path of a file or folder.

    Parameters
    ----------
    what : str
        Name of the argument, for the message.
    path : str or os.PathLike

    Raises
    ------
    PlanError
        If it is something else, or no name that a file can have.
    """
    check_kind(what, path, (str, os.PathLike), "the path of a file or folder")
    if "\0" in (name := os.fspath(cast("str", path))):
        raise PlanError(f"{what} is {name!r}, which holds a NUL character; no file has such a name")
    return Path(name)


def read_content(path: str | Path, max_bytes: int = MAX_BYTES, expected: str = TABLE_KINDS) -> bytes:
    """The bytes of a file, decompressed if they are gzip, whatever the file is called.

    Parameters
    ----------
    path : path
    max_bytes : int
        Most bytes that are read, and that may come out of a compressed file.
    expected : str
        What the file should be, for messages.

    Raises
    ------
    DataError
        If the file is missing, a folder, empty, a broken gzip stream, more than `max_bytes` long once
        decompressed, or of a kind no reader of ours reads (zip, pickle, UTF-16 text, ...).
    PlanError
        If `path` is no path.
    StorageError
        If the operating system refuses to read it.
    """
    path = as_path("path", path)
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            content = _unpacked(stream, path, max_bytes) if packed else stream.read(max_bytes + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, expected a file") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > max_bytes:
        raise DataError(
            f"{path} holds more than {max_bytes:,} bytes{' once decompressed' if packed else ''}; "
            "if that is what you expect, raise the limit (max_bytes=, --max-bytes)"
        )
    _refuse_foreign(content, path, expected)
    return content


def _unpacked(stream: io.BufferedReader, path: Path, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=stream) as unpacked:
            return unpacked.read(max_bytes + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a broken or cut-off gzip file: {error}") from error


def _refuse_foreign(content: bytes, path: Path, expected: str) -> None:
    advice = f"expected {expected}"
    if not content.strip():
        raise DataError(f"{path} is empty; {advice}")
    if _PICKLE.match(content):
        raise DataError(f"{path} is a Python pickle, which can run code and is never read; {advice}")
    for magic, kind in _KNOWN_BINARY.items():
        if content.startswith(magic):
            raise DataError(f"{path} is {kind}; {advice}")


def decode_text(content: bytes, path: str | Path) -> str:
    """UTF-8 text without its byte order mark; a DataError names the line that is not UTF-8 or holds a NUL."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as "
            "UTF-8"
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        raise DataError(
            f"{path}, line {text.count(chr(10), 0, nul) + 1}: a NUL byte; this is a binary file, not text"
        )
    return text


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path; when the block ends well the file there replaces `path`, else it vanishes.

    Raises
    ------
    StorageError
        If the folder is missing, or the operating system refuses to write there.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        if target.exists() and not target.is_file():
            raise StorageError(f"{path} exists and is not a regular file; choose another name")
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def make_folder(folder: str | Path) -> None:
    """Make a folder and those above it, where they are missing.

    Raises
    ------
    StorageError
        When the operating system refuses.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder} cannot be made: {error.strerror or error}") from error


def atomic_write(path: str | Path, content: str | bytes) -> None:
    """Write text (UTF-8, line ends as given) or bytes so that `path` holds all of it or is left as it was."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def escape_formula(value: Any) -> Any:
    """Keep text from becoming a formula in a spreadsheet; anything but text is returned as it is.

    Text that begins with = + - @ tab or a line end gets a leading apostrophe, which spreadsheets do not
    show. Text that already has apostrophes before such a character gets one more, so that
    `unescape_formula` is exact.
    """
    return "'" + value if isinstance(value, str) and _FORMULA.match(value) else value


def unescape_formula(text: str) -> str:
    """The text that `escape_formula` was given."""
    return text[1:] if _ESCAPED.match(text) else text


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a report table as CSV: UTF-8, no index, text and column names safe for spreadsheets, atomically.

    Missing values become empty cells; floats keep every digit.
    """
    safe = frame.set_axis([escape_formula(name) for name in frame.columns], axis=1)
    for position, dtype in enumerate(frame.dtypes):
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype)):
            safe.isetitem(position, frame.iloc[:, position].astype(object).map(escape_formula).to_numpy())
    text = safe.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # the csv module before Python 3.13 leaves a lone carriage return unquoted
        text = safe.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    atomic_write(path, text)
