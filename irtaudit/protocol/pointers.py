"""Pointers: exact places in a bundle, with the words that stand there."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from irtaudit.protocol.bundle import TRAJECTORY, RunBundle, event_text
from irtaudit.protocol.models import Record

MAX_SPAN = 200
MAX_QUOTE = 4_000

Position = Annotated[int, Field(ge=0)] | str


class Pointer(Record):
    """A span of one file and a quote from it.

    Attributes
    ----------
    part, path : str
        B, T, A, R or C, and the path in the manifest.
    unit : str
        "event" (of the trajectory, from 0), "line" (of a text file, from 1) or "jsonptr" (RFC 6901, into a
        JSON file; `start` and `end` are then the same text).
    start, end : int or str
        First and last of the span, both included; at most 200.
    quote : str
        Words that stand there.
    sha256 : str or None
        Digest of the quote; filled in where a judge leaves it out.
    """

    model_config = ConfigDict(strict=True)

    part: Literal["B", "T", "A", "R", "C"]
    path: str
    unit: Literal["event", "line", "jsonptr"]
    start: Position
    end: Position
    quote: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUOTE)]
    sha256: str | None = None

    @property
    def is_event(self) -> bool:
        """Whether it points at events of the trajectory."""
        return self.unit == "event" and self.path == TRAJECTORY

    @property
    def numbers(self) -> tuple[int, int]:
        """First and last event or line; (0, 0) of a JSON pointer."""
        return (self.start, self.end) if isinstance(self.start, int) and isinstance(self.end, int) else (0, 0)


class SpanError(ValueError):
    """A pointer that points nowhere; says why."""


def digest(quote: str) -> str:
    """SHA-256 of a quote, as hex."""
    return hashlib.sha256(quote.encode("utf-8", "surrogatepass")).hexdigest()


def event_pointer(start: int, end: int, quote: str) -> Pointer:
    """Pointer at events of the trajectory."""
    return _pointer("T", TRAJECTORY, "event", start, end, quote)


def line_pointer(path: str, start: int, end: int, quote: str) -> Pointer:
    """Pointer at lines of a text file."""
    return _pointer(path[0], path, "line", start, end, quote)


def json_pointer(path: str, at: str, quote: str) -> Pointer:
    """Pointer at a value in a JSON file."""
    return _pointer(path[0], path, "jsonptr", at, at, quote)


def _pointer(part: Any, path: str, unit: Any, start: int | str, end: int | str, quote: str) -> Pointer:
    short = quote[:MAX_QUOTE]
    return Pointer(part=part, path=path, unit=unit, start=start, end=end, quote=short, sha256=digest(short))


def normalised(text: str) -> str:
    """Text as quotes are compared: Unicode NFC, CRLF read as LF, nothing else changed."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


def span_text(bundle: RunBundle, pointer: Pointer) -> str:
    """The text of the span that a pointer names.

    Raises
    ------
    SpanError
        If the path is not in the manifest, the unit does not suit the file, or the range is not in it.
    """
    if pointer.path not in bundle.manifest.files:
        raise SpanError(f"path {pointer.path[:80]!r} is not in the manifest")
    if not pointer.path.startswith(pointer.part + "/"):
        raise SpanError(f"part {pointer.part} does not hold {pointer.path[:80]!r}")
    if pointer.unit == "jsonptr":
        return _json_value(bundle, pointer)
    first, last = _range(pointer)
    if pointer.unit == "event":
        if pointer.path != TRAJECTORY:
            raise SpanError(f"events are in {TRAJECTORY} alone, not in {pointer.path[:80]!r}")
        _within(last, len(bundle.events) - 1, "event")
        return "\n".join(map(event_text, bundle.events[first : last + 1]))
    lines = bundle.lines(pointer.path)
    if lines is None:
        raise SpanError(f"{pointer.path[:80]!r} is not text and has no lines")
    if first < 1:
        raise SpanError("lines count from 1")
    _within(last, len(lines), "line")
    return "\n".join(lines[first - 1 : last])


def _range(pointer: Pointer) -> tuple[int, int]:
    first, last = pointer.start, pointer.end
    if not isinstance(first, int) or not isinstance(last, int):
        raise SpanError(f"start and end of unit {pointer.unit} are numbers")
    if last < first or last - first >= MAX_SPAN:
        raise SpanError(f"range {first} to {last} is not one of 1 to {MAX_SPAN}")
    return first, last


def _within(last: int, most: int, unit: str) -> None:
    if last > most:
        raise SpanError(f"{unit} {last} does not exist; the last one is {most}")


def _json_value(bundle: RunBundle, pointer: Pointer) -> str:
    if pointer.start != pointer.end or not isinstance(pointer.start, str):
        raise SpanError("start and end of a JSON pointer are the same text")
    try:
        value = json.loads(bundle.contents[pointer.path])
        for key in _keys(pointer.start):
            value = value[int(key)] if isinstance(value, list) else value[key]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise SpanError(f"{pointer.path[:80]!r} has nothing at {pointer.start[:80]!r}") from None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _keys(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise SpanError(f"JSON pointer {pointer[:80]!r} does not begin with /")
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
