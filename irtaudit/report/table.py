"""A data frame on its way into the page: headings, cells in readable digits, and its download."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.report.text import csv_text, printable, with_index

NOT_DEFINED = "–"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, the full number it is sorted by ("": not a number), and "most", "least" or ""."""

    text: str
    sort_key: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Column:
    """Heading of a column, the line that explains it, and whether it holds numbers."""

    name: str
    note: str
    numeric: bool


@dataclass(frozen=True)
class TableView:
    """A table as the page shows it; the first cell of each row heads the row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    download: str


def view(
    frame: pd.DataFrame, notes: Mapping[str, str], formats: Mapping[str, str], extremes: Collection[str] = ()
) -> TableView:
    """The frame as the page shows it.

    Parameters
    ----------
    frame : DataFrame
        A named index becomes the first columns.
    notes, formats : mapping of str to str
        Explanation and format specification by column.
    extremes : collection of str
        Columns whose largest and smallest numbers are marked, ties as printed with them.
    """
    flat = with_index(frame)
    names = [str(name) for name in flat.columns]
    series = [flat.iloc[:, i] for i in range(flat.shape[1])]
    cells = [_cells(column, formats.get(name)) for name, column in zip(names, series, strict=True)]
    cells = [
        _marked(column) if name in extremes else column for name, column in zip(names, cells, strict=True)
    ]
    encoded = base64.b64encode(csv_text(frame).encode("utf-8")).decode("ascii")
    return TableView(
        columns=tuple(
            Column(printable(name).replace("_", " "), notes.get(name, ""), _is_number(column))
            for name, column in zip(names, series, strict=True)
        ),
        rows=tuple(zip(*cells, strict=True)),
        download=f"data:text/csv;charset=utf-8;base64,{encoded}",
    )


def file_name(wanted: str, fallback: str) -> str:
    """A safe name for a downloaded CSV file."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", wanted.removesuffix(".csv") or fallback.lower()).strip("._")[:60]
    return f"{stem or 'table'}.csv"


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _cells(column: pd.Series, spec: str | None) -> list[Cell]:
    if not _is_number(column):
        return [Cell(_words(value)) for value in column.astype(object)]
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    show = _number_format(numbers) if spec is None else lambda number: format(number, spec)
    return [_number_cell(number, show) for number in numbers.tolist()]


def _marked(cells: list[Cell]) -> list[Cell]:
    """The cells with the texts of the largest and the smallest number marked, unless they look the same."""
    numbers = sorted((float(cell.sort_key), cell.text) for cell in cells if cell.sort_key)
    if not numbers or numbers[0][1] == numbers[-1][1]:
        return cells
    marks = {numbers[0][1]: "least", numbers[-1][1]: "most"}
    return [replace(cell, mark=marks.get(cell.text, "")) for cell in cells]


def _words(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return NOT_DEFINED if pd.api.types.is_scalar(value) and pd.isna(value) else printable(value)


def _number_cell(number: float, show: Callable[[float], str]) -> Cell:
    if math.isnan(number):
        return Cell(NOT_DEFINED)
    if math.isinf(number):
        return Cell("∞", "Infinity") if number > 0 else Cell("\N{MINUS SIGN}∞", "-Infinity")
    return Cell(show(number).replace("-", "\N{MINUS SIGN}"), repr(number))


def _number_format(numbers: np.ndarray) -> Callable[[float], str]:
    """One number of decimals for a column: about three significant digits of its largest value."""
    sizes = np.abs(numbers[np.isfinite(numbers)])
    largest = float(sizes.max(initial=0.0))
    if (sizes == np.round(sizes)).all():
        return lambda number: f"{number:,.0f}"
    if largest < 1e-4:
        return lambda number: f"{number:.2e}"
    decimals = 3 if 0.1 <= largest < 10 else min(max(2 - math.floor(math.log10(largest)), 1), 6)
    return lambda number: _rounded(number, decimals)


def _rounded(number: float, decimals: int) -> str:
    """Fixed decimals; what would round to zero without being zero says that it is smaller."""
    unit = 10.0**-decimals
    if number != 0 and abs(number) < unit / 2:
        return f"<{unit:.{decimals}f}" if number > 0 else f">-{unit:.{decimals}f}"
    return f"{number:,.{decimals}f}"
