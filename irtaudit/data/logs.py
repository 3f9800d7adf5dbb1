"""What evaluation logs say, whichever tool wrote them: who answered what, and how it was scored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.responses import listed
from irtaudit.errors import DataError

SCORED, UNSCORED, ERROR, CANCELLED = "scored", "unscored", "error", "cancelled"
MOST_TRIALS = 2**31
"""Trials of an item are numbered below this."""

LONGEST_LABEL = 200
"""Answers longer than this are free text, not labels, and are left out of the rows."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would steer a terminal, break a line of a message, or cannot be written as UTF-8."""


class Answer(NamedTuple):
    """One score of one answer: a row of `Logs.rows`."""

    model: str
    task: str
    item: str
    trial: int
    metric: str
    score: float
    status: str = SCORED
    valid: bool = True
    answer: str | None = None
    target: str | None = None


class LogFile(NamedTuple):
    """What became of one log file: a row of `Logs.files`."""

    file: str
    model: str
    task: str
    status: str
    samples: int
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Logs:
    """Evaluation logs, read.

    Attributes
    ----------
    rows : DataFrame
        One row per model, task, item, trial and metric, in the order of the files: ``model, task, item``
        (text), ``trial`` (0, 1, ... of the same item), ``metric`` (text; "" where nothing was scored),
        ``score`` (float; NaN unless scored), ``status``: "scored"; "unscored", the sample ran and has no
        score; "error", it broke off; "cancelled", the run ended before it. ``valid`` (False where the log
        says that no answer could be taken from the output), ``answer, target`` (labels, None where the log
        has none or they are longer than `LONGEST_LABEL` characters).
    files : DataFrame
        One row per log file: ``file, model, task, status`` ("read", "cancelled", "error", "superseded", ...),
        ``samples`` (rows it gave), ``reason``.
    items : DataFrame
        What is known about items: index (task, item).
    subjects : DataFrame
        What is known about models: index model.
    source : str
    notes : tuple of str
        What a reader of a report should know about how the logs were read.
    """

    rows: pd.DataFrame
    files: pd.DataFrame
    items: pd.DataFrame
    subjects: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, sorted."""
        return sorted(self.rows["task"].unique())

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics, sorted."""
        return sorted(name for name in self.rows["metric"].unique() if name)

    def select(
        self, *, task: str | Sequence[str] | None = None, metric: str | None = None, target: str | None = None
    ) -> Logs:
        """Keep some tasks, one metric, or the items with one target.

        Rows without any score (``metric`` "") are kept with every metric: they are part of what was asked.

        Raises
        ------
        DataError
            If there is no such task, metric or target; the message lists what there is.
        """
        rows = self.rows
        if task is not None:
            rows = _matching(rows, "task", [task] if isinstance(task, str) else list(task), self.source)
        if metric is not None:
            rows = _matching(rows, "metric", [_full_name(metric, rows), ""], self.source, needed=1)
        if target is not None:
            rows = _matching(rows, "target", [target], self.source)
        return replace(self, rows=rows.reset_index(drop=True))


@dataclass
class Collector:
    """Where a reader puts what it finds; `logs` makes the frames."""

    source: str
    answers: list[Answer] = field(default_factory=list)
    files: list[LogFile] = field(default_factory=list)
    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def logs(self) -> Logs:
        """Everything found, as frames.

        Raises
        ------
        DataError
            If there is nothing at all, or the name of a model, task or metric would steer a terminal.
        """
        if not self.answers:
            reasons = [f"{file.file}: {file.reason or file.status}" for file in self.files]
            raise DataError(f"{self.source} holds no samples ({listed(reasons, 3) or 'no log files'})")
        for kind in ("model", "task", "metric"):
            _refuse_unprintable({getattr(answer, kind) for answer in self.answers}, kind, self.source)
        columns = dict(zip(Answer._fields, map(list, zip(*self.answers, strict=True)), strict=True))
        return Logs(
            rows=_frame(columns),
            files=pd.DataFrame(self.files, columns=list(LogFile._fields)),
            items=_described(self.items, ["task", "item"]),
            subjects=_described(self.subjects, ["model"]),
            source=self.source,
            notes=tuple(self.notes),
        )


def _refuse_unprintable(names: Iterable[str], kind: str, source: str) -> None:
    odd = sorted(name for name in names if _UNPRINTABLE.search(name))
    if odd:
        raise DataError(f"{source}: the {kind} {odd[0]!a} has a character that cannot be shown; rename it")


def label(text: object) -> str | None:
    """A label for `Logs.rows`: short text as it is, None for anything else."""
    return text if isinstance(text, str) and 0 < len(text) <= LONGEST_LABEL else None


def _frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """Text columns hold every distinct text once, so that millions of rows stay small."""
    kinds = {"trial": np.int64, "score": np.float64, "valid": np.bool_}
    pool: dict[str, str] = {}
    data: dict[str, Any] = {}
    for name, values in columns.items():
        if name in kinds:
            data[name] = np.array(values, dtype=kinds[name])
        else:
            shared = [value if value is None else pool.setdefault(value, value) for value in values]
            data[name] = pd.Series(shared, dtype=object)
    return pd.DataFrame(data)


def _described(known: dict[Any, dict[str, Any]], names: list[str]) -> pd.DataFrame:
    keys = [key if isinstance(key, tuple) else (key,) for key in known]
    index = (
        pd.MultiIndex.from_tuples(keys, names=names)
        if len(names) > 1
        else pd.Index([key for (key,) in keys], name=names[0], dtype=object)
    )
    return pd.DataFrame(list(known.values()), index=index if known else None, dtype=object)


def _full_name(metric: str, rows: pd.DataFrame) -> str:
    """The metric of that name, or the only one that begins with it before a comma (`acc` for `acc,none`)."""
    names = rows["metric"].unique()
    longer = [name for name in names if name.partition(",")[0] == metric]
    return longer[0] if metric not in names and len(longer) == 1 else metric


def _matching(
    rows: pd.DataFrame, column: str, wanted: Iterable[str], source: str, needed: int | None = None
) -> pd.DataFrame:
    names = list(wanted)
    there = set(rows[column].dropna().unique()) - {""}
    lacking = [name for name in names[:needed] if name not in there]
    if lacking:
        found = listed(sorted(there), 20) or "none"
        raise DataError(f"{source} has no {column} {listed(lacking)}; it has {found}")
    return rows[rows[column].isin(names)]
