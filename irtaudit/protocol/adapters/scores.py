"""Scores that a log does not hold: from a table with a row per run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from irtaudit.data.files import read_content
from irtaudit.data.tables import Table, parse_text_table
from irtaudit.errors import DataError
from irtaudit.protocol.models import ScoreRecord

_YES_NO: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "1", "yes", "pass"), True),
    **dict.fromkeys(("false", "0", "no", "fail"), False),
    "": None,
}


def read_scores(path: str | Path) -> dict[str, ScoreRecord]:
    """Score records by run from a CSV file.

    Columns ``run_id`` and ``score`` or ``passed``, and where they were recorded ``max`` and
    ``validity_check``; others are ignored. An empty cell says that nothing was recorded.

    Raises
    ------
    DataError
        If the columns are missing, a cell is not a number (or not true or false), or a run is there twice.
    """
    table = parse_text_table(read_content(path), Path(path))
    if "run_id" not in table.names or not {"score", "passed"} & set(table.names):
        raise DataError(f"{path}: columns {', '.join(table.names)}; expected run_id, and score or passed")
    found: dict[str, ScoreRecord] = {}
    for row, run in enumerate(table.texts(table.names.index("run_id"))):
        if run in found:
            raise DataError(f"{table.place(row)}: run {run[:60]!r} is there twice")
        found[run] = ScoreRecord(
            score=_number(table, "score", row),
            max=_number(table, "max", row),
            passed=_flag(table, "passed", row),
            validity_check=_flag(table, "validity_check", row),
        )
    return found


def _cell(table: Table, name: str, row: int) -> str:
    return str(table.texts(table.names.index(name))[row]).strip() if name in table.names else ""


def _number(table: Table, name: str, row: int) -> float | None:
    cell = _cell(table, name, row)
    try:
        number = float(cell or "nan")
    except ValueError:
        number = math.inf
    if math.isinf(number) or (math.isnan(number) and cell):
        raise DataError(f"{table.place(row)}: {name} {cell[:40]!r} is not a number")
    return None if math.isnan(number) else number


def _flag(table: Table, name: str, row: int) -> bool | None:
    cell = _cell(table, name, row)
    if cell.lower() not in _YES_NO:
        raise DataError(f"{table.place(row)}: {name} {cell[:40]!r} is neither true nor false")
    return _YES_NO[cell.lower()]
