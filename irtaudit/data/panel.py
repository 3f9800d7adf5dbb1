"""The score panel: what each of several models scored on each of several benchmarks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.columns import SUBJECT, find
from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.tables import MISSING, Table, parse_table
from irtaudit.errors import DataError

Role = Literal["anchor", "benchmark", "criterion"]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SMALLEST, _LARGEST = 1e-100, 1e100
_NO_ORGANIZATION = "leave the organization column out, or give every model one"


class ColumnUse(Protocol):
    """What the reader asks of the description of a score column."""

    @property
    def role(self) -> Role:
        """A capability anchor, an audited benchmark or a held-out criterion."""

    @property
    def label(self) -> str:
        """Name in sentences; empty: the column's."""

    @property
    def construct_name(self) -> str:
        """What it is meant to measure; empty: something of its own."""

    @property
    def higher_is(self) -> Literal["better", "worse"]:
        """Which way the numbers in the file point."""

    @property
    def scale(self) -> tuple[float, float] | None:
        """Lowest and highest possible number in the file."""


@dataclass(frozen=True, eq=False)
class ScorePanel:
    """Scores of models on benchmarks; every column points the same way: higher is better, or safer.

    Attributes
    ----------
    scores : DataFrame
        Index: model names (unique text, `index.name` "model"). Columns: float64 scores; NaN: not measured.
    columns : DataFrame
        Index: the columns of `scores`. ``role`` ("anchor", "benchmark", "criterion"), ``label`` (name in
        sentences), ``construct``, ``flipped`` (whether the file had it the other way round), ``low, high``
        (ends of the scale; NaN: not declared).
    organizations : Series or None
        Organization of each model; None when unknown.
    details : DataFrame
        Numbers behind the scores by model, as they stand in the file: counts, shares of valid outputs.
    source : str or None
    notes : tuple of str
        What a reader of the report should know about how the scores were read.
    """

    scores: pd.DataFrame
    columns: pd.DataFrame
    organizations: pd.Series | None
    details: pd.DataFrame
    source: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def from_frame(
        cls,
        scores: pd.DataFrame,
        columns: Mapping[str, ColumnUse],
        *,
        organizations: pd.Series | None = None,
        details: pd.DataFrame | None = None,
        source: str | None = None,
    ) -> ScorePanel:
        """A panel from numbers as they stand; columns that are not described are ignored.

        Parameters
        ----------
        scores : DataFrame
            Index: model names, each once. A column where higher is worse is turned round: x becomes low +
            high - x on its scale, -x without one.
        columns : mapping of str to ColumnUse
            What each column is, such as the `columns` of a panel plan.
        organizations : Series, optional
            By model.
        details : DataFrame, optional
            Numbers behind the scores, by model.
        source : str, optional

        Raises
        ------
        DataError
            If a described column is missing, a model is named twice, or a score is infinite, lies outside
            its scale or is too large or small to compute with.
        """
        _refuse_frame(scores, columns)
        raw = scores[list(columns)].astype(float).rename_axis("model")
        for name, use in columns.items():
            _refuse_outside(raw[name], use.scale, lambda row: f"model {raw.index[row]!r}")
            _refuse_extreme(raw[name])
        return cls(
            scores=pd.DataFrame({name: _oriented(raw[name], use) for name, use in columns.items()}),
            columns=pd.DataFrame.from_dict({n: _described(n, use) for n, use in columns.items()}, "index"),
            organizations=organizations,
            details=pd.DataFrame(index=raw.index) if details is None else details,
            source=source,
            notes=tuple(note for name, use in columns.items() for note in _scale_notes(raw[name], use.scale)),
        )

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.scores)

    @cached_property
    def sha256(self) -> str:
        """Hash over names, organizations and numbers; the order of rows and columns does not matter."""
        table = pd.concat([self.scores, self.details], axis=1).sort_index().sort_index(axis=1)
        groups = None if self.organizations is None else self.organizations.sort_index().tolist()
        names = json.dumps([table.index.tolist(), table.columns.tolist(), groups], ensure_ascii=False)
        cells = np.ascontiguousarray(table.to_numpy(dtype="<f8"))
        return hashlib.sha256(names.encode() + np.where(np.isnan(cells), np.nan, cells).tobytes()).hexdigest()

    def of(self, role: Role) -> list[str]:
        """Names of the columns that play a role, in order."""
        return self.columns.index[self.columns["role"] == role].tolist()

    def label(self, column: str) -> str:
        """What sentences call a column."""
        return str(self.columns["label"].get(column, column))

    def with_scores(self, scores: pd.DataFrame) -> ScorePanel:
        """The same panel with other numbers, or fewer columns."""
        return replace(self, scores=scores, columns=self.columns.loc[scores.columns])


def read_panel(
    path: str | Path,
    columns: Mapping[str, ColumnUse],
    *,
    model: str | None = None,
    organization: str | None = None,
    details: Iterable[str] = (),
    max_bytes: int = MAX_BYTES,
) -> ScorePanel:
    """The score panel in a CSV, TSV or Parquet table with a row per model.

    Parameters
    ----------
    path : path
    columns : mapping of str to ColumnUse
        The score columns to read, by name in the file. Others are ignored. A column where higher is worse is
        turned round: x becomes low + high - x on its scale, -x without one.
    model : str, optional
        Column of the names; by default the one recognised, or the first.
    organization : str, optional
        Column of the organizations.
    details : iterable of str
        Further columns of numbers to keep as they are.
    max_bytes : int
        Refuse files that unpack to more.

    Returns
    -------
    ScorePanel

    Raises
    ------
    DataError
        If a column is missing or given twice, a model has no name, no organization or two rows, or a cell is
        no number or lies outside the declared scale.
    """
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    names = model_names(table, model)
    raw = pd.DataFrame({name: numbers(table, name, names) for name in columns}, index=names)
    for name, use in columns.items():
        _refuse_outside(
            raw[name],
            use.scale,
            lambda row: f"{table.path}, {table.place(row)} (model {names[row]!r})",
        )
    return ScorePanel.from_frame(
        raw,
        columns,
        organizations=None if organization is None else _organizations(table, organization, names),
        details=pd.DataFrame({name: numbers(table, name, names) for name in details}, index=names),
        source=str(path),
    )


def model_names(table: Table, column: str | None = None) -> pd.Index:
    """Names of the models of a table, one per row.

    Parameters
    ----------
    table : Table
    column : str, optional
        By default the column recognised as the subject, or else the first.

    Raises
    ------
    DataError
        If a name is empty or given twice.
    """
    position = find(table, SUBJECT, column) if column is not None else name_column(table)
    names = [str(name).strip() for name in table.texts(position)]
    for row, name in enumerate(names):
        if not name:
            raise DataError(f"{table.path}, {table.place(row)}: the model has no name")
        if (first := names.index(name)) < row:
            raise DataError(
                f"{table.path}: model {name!r} has two rows ({table.place(first)} and {table.place(row)}); "
                "keep one, or name the variants apart"
            )
    return pd.Index(names, name="model", dtype=object)


def name_column(table: Table) -> int:
    """Position of the only column recognised as the models' names, or 0."""
    try:
        return find(table, SUBJECT, None)
    except DataError:
        return 0


def numbers(table: Table, column: str, names: pd.Index) -> NDArray[np.float64]:
    """The numbers of a column; NaN where a cell is empty, NA, NaN or null.

    Raises
    ------
    DataError
        If there is not exactly one such column, or a cell is no finite number.
    """
    position = find(table, "score", column)
    values = [_number(value) for value in table.values(position)]
    for row, value in enumerate(values):
        if value is None:
            found = table.texts(position)[row]
            advice = "; write the number without the sign" if str(found).strip().endswith("%") else ""
            raise DataError(
                f"{table.path}, {table.place(row)} (model {names[row]!r}), column {column!r}: found "
                f"{found!r}, expected a number, or nothing where it was not measured{advice}"
            )
    return np.array(values, dtype=float)


def _number(value: Any) -> float | None:
    """The number in a cell, NaN for a missing one, None for anything else."""
    if value is None or isinstance(value, float | np.floating):
        return None if value is not None and np.isinf(value) else float("nan" if value is None else value)
    text = str(value).strip()
    if text.lower() in MISSING:
        return float("nan")
    return float(text) if _NUMBER.fullmatch(text) and np.isfinite(float(text)) else None


def _organizations(table: Table, column: str, names: pd.Index) -> pd.Series:
    texts = [str(text).strip() for text in table.texts(find(table, "organization", column))]
    for row, text in enumerate(texts):
        if text.lower() in MISSING:
            raise DataError(
                f"{table.path}, {table.place(row)}: model {names[row]!r} has no organization in column "
                f"{column!r}; {_NO_ORGANIZATION}"
            )
    return pd.Series(texts, index=names, name="organization", dtype=object)


def _refuse_frame(scores: pd.DataFrame, columns: Mapping[str, ColumnUse]) -> None:
    missing = [name for name in columns if name not in scores]
    if missing:
        raise DataError(f"the table has no column {missing[0]!r}; its columns are {list(scores.columns)}")
    if scores.index.duplicated().any():
        raise DataError(f"model {scores.index[scores.index.duplicated()][0]!r} has two rows; keep one")


def _refuse_outside(
    values: pd.Series, scale: tuple[float, float] | None, place: Callable[[int], str]
) -> None:
    if scale is None:
        return
    outside = np.flatnonzero((values < scale[0]) | (values > scale[1]))
    if len(outside):
        row = int(outside[0])
        raise DataError(
            f"{place(row)}, column {values.name!r}: found {values.iloc[row]:g}, outside the scale "
            f"{scale[0]:g} to {scale[1]:g} that the plan gives ({len(outside)} of {values.notna().sum()} "
            "scores are); are shares and percentages mixed?"
        )


def _refuse_extreme(values: pd.Series) -> None:
    """Squares of such numbers leave the range of floating point."""
    size = values.dropna().abs()
    if size.empty or size.max() == 0 or _SMALLEST < size.max() < _LARGEST:
        return
    raise DataError(
        f"model {size.idxmax()!r}, column {values.name!r}: found {size.max():g} as the largest number in "
        f"size, expected a number between {_SMALLEST:g} and {_LARGEST:g}; rescale the column"
    )


def _scale_notes(values: pd.Series, scale: tuple[float, float] | None) -> list[str]:
    """Say where a column without a declared scale looks like shares and percentages together."""
    seen = values.dropna()
    shares, beyond = ((seen > 0) & (seen < 1)).sum(), (seen > 1.5).sum()
    if scale is not None or not shares or not beyond or seen.min() < 0:
        return []
    return [
        f"Column {values.name!r} holds {shares} numbers below 1 and {beyond} above: shares and percentages "
        "together would spoil its order. Declare its scale in the plan to have this checked."
    ]


def _oriented(values: pd.Series, use: ColumnUse) -> pd.Series:
    if use.higher_is == "better":
        return values
    return (use.scale[0] + use.scale[1] if use.scale else 0.0) - values


def _described(name: str, use: ColumnUse) -> dict[str, Any]:
    low, high = use.scale or (np.nan, np.nan)
    return {
        "role": use.role,
        "label": use.label or name,
        "construct": use.construct_name or name,
        "flipped": use.higher_is == "worse",
        "low": low,
        "high": high,
    }


def bundled_panel(name: str) -> AbstractContextManager[Path]:
    """Path of a file of the bundled panel, as a context: Table 1 of a validity audit of agent-safety scores.

    Parameters
    ----------
    name : str
        "panel.csv" (18 models) or "plan.toml".
    """
    return as_file(files("irtaudit.data") / "agent_safety_panel" / name)
