"""Words on their way into a page, a drawing or a download: nothing invisible, nothing that acts as code."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
from markupsafe import Markup, escape

# Control characters, lone surrogates and overrides of the writing direction: no name needs them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
# Breaks that would leave a sign alone: before a per cent sign, within "p = .03".
_BOUND = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] ?[\d.])|(?<=\bp [=<]) (?=[\d.])")
_MINUS = re.compile(r"(?<=[ (])-(?=\d)")
_LONG = re.compile(r"\w{21,}")  # names longer than fit on a line beside anything
_FORMULA = re.compile(r"[=+\-@\t\r\n]")


def printable(text: object) -> str:
    """The text with every character that cannot stand in HTML or SVG shown as a replacement mark."""
    return _UNPRINTABLE.sub("\ufffd", str(text))


def typeset(text: object) -> str:
    """The printable text with true minus signs, and "5 %" and "p = .03" kept on one line each."""
    return _BOUND.sub("\N{NO-BREAK SPACE}", _MINUS.sub("\N{MINUS SIGN}", printable(text)))


def prose(text: object) -> Markup:
    """The typeset text as markup, in which a long name may break after each of its underscores."""
    return Markup(_LONG.sub(lambda name: re.sub(r"\B_\B", "_<wbr>", name[0]), escape(typeset(text))))


def csv_text(frame: pd.DataFrame) -> str:
    """The frame as CSV that a spreadsheet reads as data.

    Text that begins with ``= + - @``, a tab or a line break, which a spreadsheet would run as a formula,
    gets a leading apostrophe; numbers stay as they are. A named index is written, an unnamed one is not.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    str
        Lines end in a line feed.
    """
    flat = with_index(frame)
    safe = pd.DataFrame({i: _mapped(flat.iloc[:, i], _inert) for i in range(flat.shape[1])}, index=flat.index)
    return safe.to_csv(
        index=False, header=[str(_inert(str(name))) for name in flat.columns], lineterminator="\n"
    )


def with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a named index as its first columns, and an unnamed one dropped."""
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index(drop=not named)


def _mapped(column: pd.Series, change: Callable[[object], object]) -> pd.Series:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    return column.astype(object).map(change, na_action="ignore")


def _inert(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return "'" + text if _FORMULA.match(text) else text
