"""What the package itself knows about models and items: developers, access, HarmBench's categories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd

from irtaudit.data.files import read_content
from irtaudit.data.responses import listed
from irtaudit.data.tables import parse_table
from irtaudit.errors import DataError

UNKNOWN = "unknown"
_LIMIT = 2**24


def model_table() -> AbstractContextManager[Path]:
    """Path of the packaged table of models, as a context: ``model`` (may hold *), ``developer, access``."""
    return as_file(files("irtaudit.data") / "known_models" / "models.csv")


def describe_models(names: Sequence[str] | pd.Index, table: str | Path | None = None) -> pd.DataFrame:
    """Developer and access of AI models.

    Parameters
    ----------
    names : sequence of str
        Names of models, such as "openai/gpt-4o-2024-05-13".
    table : path, optional
        A table (CSV, TSV, Parquet) with the columns ``model, developer, access`` and any others; ``model``
        may hold ``*``, upper and lower case are one, and the first row that fits counts. Default: the
        packaged one.

    Returns
    -------
    DataFrame indexed by model
        The columns of the table but ``model``; "unknown" where no row fits.

    Raises
    ------
    DataError
        If the table cannot be read or lacks a column.
    """
    if table is None:
        with model_table() as packaged:
            return describe_models(names, packaged)
    found = parse_table(read_content(table, _LIMIT), table, _LIMIT)
    rows = pd.DataFrame({name: found.texts(position) for position, name in enumerate(found.names)})
    lacking = [name for name in ("model", "developer", "access") if name not in rows]
    if lacking:
        raise DataError(
            f"{table} has no column {lacking[0]!r}; a table of models has model, developer, access"
        )
    patterns = [_pattern(text) for text in rows.pop("model")]
    index = pd.Index(names, name="model", dtype=object)
    fitting = [_first_fitting(name, patterns) for name in index]
    unknown = [UNKNOWN] * len(rows.columns)
    described = [unknown if row is None else rows.iloc[row].to_list() for row in fitting]
    return pd.DataFrame(described, index=index, columns=rows.columns, dtype=object)


def unknown_models(described: pd.DataFrame) -> list[str]:
    """Say which models no row fitted, for the notes of a matrix."""
    names = described.index[(described == UNKNOWN).all(axis=1)]
    if not len(names):
        return []
    return [
        f"{len(names)} of {len(described)} models are in no row of the table of models: {listed(names)}; "
        "give one of your own (models=, --model-table)"
    ]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text.strip()).replace(r"\*", ".*"), re.IGNORECASE)


def _first_fitting(name: str, patterns: list[re.Pattern[str]]) -> int | None:
    return next((row for row, pattern in enumerate(patterns) if pattern.fullmatch(name)), None)


def harmbench_items() -> pd.DataFrame:
    """Categories of HarmBench's 400 behaviours.

    Returns
    -------
    DataFrame indexed by item (BehaviorID)
        ``functional``: standard, contextual, copyright; ``semantic``: seven domains; ``tags``. MIT licence.
    """
    with as_file(files("irtaudit.data") / "harmbench" / "items.csv") as path:
        table = parse_table(read_content(path), path, _LIMIT)
    columns = {name: table.texts(position) for position, name in enumerate(table.names)}
    return pd.DataFrame(columns).set_index("item")
