"""JSON files and JSON lines, with errors that name the file and the line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irtaudit.data.files import MAX_BYTES, decode_text, read_content
from irtaudit.errors import DataError

JSON_KIND = "JSON (UTF-8, possibly gzip)"


def read_json(path: str | Path, max_bytes: int = MAX_BYTES) -> Any:
    """What a JSON file holds.

    Raises
    ------
    DataError
        If it cannot be read as JSON; the message names the line.
    StorageError
        If the operating system refuses to read it.
    """
    return parse_json(read_content(path, max_bytes, JSON_KIND), path)


def parse_json(content: bytes, path: str | Path) -> Any:
    """What the bytes of a JSON file hold; `path` is for messages."""
    text = decode_text(content, path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = " (is the file cut off?)" if error.pos >= len(text.rstrip()) else ""
        raise DataError(
            f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}{cut}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None


def read_json_list(path: Path, max_bytes: int = MAX_BYTES) -> list[dict[str, Any]]:
    """The objects in a JSON file that holds a list of them."""
    content = read_json(path, max_bytes)
    if not isinstance(content, list):
        raise DataError(f"{path} holds {kind_of(content)}, expected a list of objects")
    for number, entry in enumerate(content, start=1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}, entry {number}: found {kind_of(entry)}, expected an object")
    return content


def read_json_object(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file that holds one."""
    content = read_json(path, max_bytes)
    if not isinstance(content, dict):
        raise DataError(f"{path} holds {kind_of(content)}, expected an object")
    return content


def read_json_lines(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of each line of a JSON lines file; blank lines are passed over."""
    text = decode_text(read_content(path, max_bytes, "JSON lines (UTF-8, possibly gzip)"), path)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _line_object(line, f"{path}, line {number}")


def _line_object(line: str, place: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON ({error}); expected one object a line") from None
    if not isinstance(content, dict):
        raise DataError(f"{place}: found {kind_of(content)}, expected one object a line")
    return content


def as_float(value: float) -> float:
    """A JSON number as float; infinite where it is a whole number too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def kind_of(value: object) -> str:
    """What a JSON value is, for a message."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
