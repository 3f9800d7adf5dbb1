"""What a file or folder is, what is in it, and what to do with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data import columns
from irtaudit.data.cells import fractional, scores, unreadable
from irtaudit.data.files import MAX_BYTES, decode_text, read_content
from irtaudit.data.json_files import read_json_object
from irtaudit.data.log_matrix import responses_from_logs
from irtaudit.data.logs import SCORED, Logs
from irtaudit.data.read import is_json, log_kind_of, read_responses, table_layout
from irtaudit.data.read_logs import read_logs
from irtaudit.data.responses import ResponseMatrix, listed
from irtaudit.data.screen import missingness_warnings
from irtaudit.data.tables import ParquetTable, Table, parse_table
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError

SATURATED = 0.9
"""A subject that passes more than this share of its items leaves little to be learned."""

FLAGS = {
    "layout": "--from",
    "subject_column": "--subject-column",
    "item_column": "--item-column",
    "response_column": "--response-column",
    "pass_at": "--pass-at",
    "trials": "--trials",
    "task": "--task",
    "metric": "--metric",
    "target": "--target",
    "unscored": "--unscored",
    "incomplete": "--incomplete",
    "models": "--model-table",
    "max_bytes": "--max-bytes",
}
_TOOLS = {
    "helm": "HELM",
    "inspect": "Inspect AI",
    "lm-eval": "lm-evaluation-harness",
    "swe-bench": "SWE-bench",
}
_COMPARISON = {"model", "family", "structure", "dims", "log_loss", "train_log_lik"}
"""Columns of a table that compares item response models, as `irtaudit check-table` takes it."""
_FOLDERS = {"audit.json": "audit", "panel.json": "panel audit", "protocol.json": "protocol audit"}


@dataclass(frozen=True, eq=False)
class Description:
    """What `describe` found.

    Attributes
    ----------
    path : str
    kind : str
        What it is, in words.
    facts : mapping of str to object
        Numbers and names by what they are, in the order to be read.
    matrix : ResponseMatrix or None
        The responses, if there are any, with every open question answered by an example.
    undecided : mapping of str to str
        Option of `read_responses` that must say how the data is meant -> why.
    notes : tuple of str
        What should be known before anything is made of it.
    next : str
        The command to run next.
    """

    path: str
    kind: str
    facts: Mapping[str, Any]
    next: str
    matrix: ResponseMatrix | None = None
    undecided: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def describe(path: str | Path, **options: Any) -> Description:
    """Say what a file or folder is, what is in it, and what to run next.

    Scores that need a cut-off, repeated trials that need a rule and the like are no error here: they are
    listed, and the numbers hold for an example of an answer.

    Parameters
    ----------
    path : path
    **options
        Of `read_responses`.

    Returns
    -------
    Description

    Raises
    ------
    DataError, PlanError, StorageError
        If it is damaged, or no kind of file that is known.
    """
    place = Path(path)
    max_bytes = options.get("max_bytes", MAX_BYTES)
    for name, kind in _FOLDERS.items():
        if (place / name).is_file():
            return _of_folder(place, name, kind)
    if place.suffix == ".safetensors":
        return Description(str(path), "a saved fit", {}, _command("export", path, {"out": "fit"}))
    tool = log_kind_of(path, options.get("layout"))
    if tool is not None:
        return _of_logs(path, _TOOLS[tool], read_logs(path, tool, max_bytes=max_bytes), options)
    content = read_content(place, max_bytes)
    if options.get("layout") == "py-irt" or is_json(content):
        lines = sum(bool(line.strip()) for line in decode_text(content, place).split("\n"))
        return _of_responses(path, "py-irt's JSON lines", {"lines": lines}, options)
    table = parse_table(content, place, max_bytes)
    if options.get("layout") is None and set(table.names) >= _COMPARISON:
        return _of_comparison(path, table)
    try:
        return _of_table(path, table, options)
    except DataError as error:
        return _of_other_table(path, table, error)


def _command(name: str, path: str | Path, options: Mapping[str, Any]) -> str:
    words = ["irtaudit", name, str(path)]
    for option, value in options.items():
        words += [FLAGS.get(option, f"--{option}"), str(value)]
    return shlex.join(words)


def _of_folder(folder: Path, name: str, kind: str) -> Description:
    content = read_json_object(folder / name)
    verdict = content.get("verdict")
    facts = {
        "verdict": verdict.get("reading") or verdict.get("word") if isinstance(verdict, dict) else None,
        "claim": verdict.get("claim") if isinstance(verdict, dict) else None,
        "command": content.get("command"),
    }
    said = {name: value for name, value in facts.items() if value}
    report = f"open {shlex.quote(str(folder / 'report.html'))}"
    following = _command("export", folder, {"out": "exported"}) if name == "audit.json" else report
    return Description(str(folder), f"the folder of a finished {kind}", said, following)


# Logs -------------------------------------------------------------------------------------------------


def _of_logs(path: str | Path, tool: str, logs: Logs, options: Mapping[str, Any]) -> Description:
    samples = logs.rows.drop_duplicates(["model", "task", "item", "trial"])
    counts = samples["status"].value_counts()
    if tool == _TOOLS["inspect"]:
        runs = f"irtaudit bundles convert {shlex.quote(str(path))} bundles, then irtaudit protocol bundles"
        logs = replace(logs, notes=(*logs.notes, f"For how the scores were earned: {runs}"))
    facts: dict[str, Any] = {
        "files": len(logs.files),
        "models": logs.rows["model"].nunique(),
        "samples": ", ".join(f"{count:,} {status}" for status, count in counts.items()),
        "tasks": _tasks(logs),
    }
    chosen, undecided = dict(options), {}
    if len(logs.tasks) > 1 and not options.get("task"):
        largest = logs.rows.groupby("task")["model"].nunique().sort_values(kind="stable").index[-1]
        chosen["task"] = str(largest)
        undecided["task"] = f"{len(logs.tasks)} tasks; without --task their items are taken together"
    part = logs.select(task=chosen.get("task"), target=chosen.get("target"))
    if not (part.rows["status"] == SCORED).any():
        return Description(str(path), f"logs of {tool}", facts, _convert(path), notes=logs.notes)
    return _of_responses(path, f"logs of {tool}", facts, chosen, undecided, part)


def _tasks(logs: Logs) -> str:
    rows = logs.rows
    said = []
    for task, own in rows.groupby("task"):
        metrics = listed(sorted(set(own["metric"]) - {""}), 8) or "nothing scored"
        said.append(f"{task} ({own['model'].nunique()} models, {own['item'].nunique()} items; {metrics})")
    return "; ".join(said)


def _convert(path: str | Path) -> str:
    return f"no sample has a score; score the logs first, then irtaudit describe {shlex.quote(str(path))}"


# Tables -----------------------------------------------------------------------------------------------


def _of_table(path: str | Path, table: Table, options: Mapping[str, Any]) -> Description:
    named = {name: options.get(name) for name in ("subject_column", "item_column", "response_column")}
    undecided = {}
    chosen = dict(options)
    try:
        layout = options.get("layout") or table_layout(table, **named)
    except UndecidedError as error:
        undecided[error.option], layout = str(error), str(error.example)
        chosen[error.option] = error.example
    kind = "Parquet" if isinstance(table, ParquetTable) else "text"
    facts: dict[str, Any] = {"rows": table.n_rows, "columns": len(table.names)}
    if layout == "long":
        counted = columns.counted(table) if named["response_column"] is None else None
        for role in (columns.SUBJECT, columns.ITEM, *(() if counted else (columns.RESPONSE,))):
            facts[f"{role} column"] = table.names[columns.find(table, role, named[f"{role}_column"])]
        if counted:
            facts["columns of passes and trials"] = ", ".join(table.names[column] for column in counted)
    return _of_responses(path, f"a {layout} table ({kind})", facts, chosen, undecided)


def _of_comparison(path: str | Path, table: Table) -> Description:
    facts = {
        "models": listed(table.texts(table.names.index("model")), 20),
        "columns": listed(table.names, 20),
    }
    kind = "a table that compares item response models"
    return Description(str(path), kind, facts, _command("check-table", path, {}))


def _of_other_table(path: str | Path, table: Table, error: DataError) -> Description:
    """A table that holds no responses; perhaps scores, for a panel audit."""
    numeric = [j for j in range(1, len(table.names)) if _is_numeric(table, j)]
    names = table.texts(0)
    facts = {"rows": table.n_rows, "columns": listed(table.names, 20), "columns of numbers": len(numeric)}
    values = [scores(table.values(j)) for j in numeric]
    graded = [value for value in values if (fractional(value) | unreadable(value)).any()]
    if len(graded) < 2 or len(set(names)) < len(names):
        raise error  # numbers that are all 0 and 1 are responses, in a table that is not as it should be
    return Description(
        str(path),
        "a table of scores, as a panel audit takes it",
        facts,
        f"irtaudit plan init {shlex.quote(str(path))} --kind panel",
        notes=(f"It holds no responses: {error}",),
    )


def _is_numeric(table: Table, column: int) -> bool:
    texts = pd.Series(table.texts(column), dtype=object).str.strip()
    numbers = pd.to_numeric(texts.where(texts != ""), errors="coerce")
    return bool(numbers.notna().any() and (numbers.notna() == (texts != "")).all())


# Responses --------------------------------------------------------------------------------------------


def _of_responses(
    path: str | Path,
    kind: str,
    facts: Mapping[str, Any],
    options: Mapping[str, Any],
    undecided: Mapping[str, str] | None = None,
    logs: Logs | None = None,
) -> Description:
    chosen, open_questions = dict(options), dict(undecided or {})
    while True:
        try:
            matrix = _read(path, chosen, logs)
            break
        except UndecidedError as error:
            if error.option in open_questions:
                raise
            open_questions[error.option] = str(error)
            chosen[error.option] = error.example
    needed = {name: chosen[name] for name in FLAGS if name in chosen and chosen[name] is not None}
    return Description(
        str(path),
        kind,
        {**facts, **_facts(matrix), **_repeats(matrix, kind, chosen, open_questions)},
        _command("audit", path, needed),
        matrix,
        open_questions,
        (*matrix.notes, *missingness_warnings(matrix)),
    )


def _read(path: str | Path, options: Mapping[str, Any], logs: Logs | None) -> ResponseMatrix:
    if logs is None or options.get("subjects") or options.get("items"):
        return read_responses(path, **options)
    kept = ("metric", "pass_at", "trials", "unscored", "max_bytes")
    return responses_from_logs(logs, **{name: options[name] for name in kept if name in options})


def _facts(matrix: ResponseMatrix) -> dict[str, Any]:
    seen = matrix.observed
    passed, count = matrix.totals(axis=0)
    constant = (count > 0) & ((passed == 0) | (passed == count))
    by_subject, trials = matrix.totals(axis=1)
    rates = by_subject[trials > 0] / trials[trials > 0]
    missing = int(seen.size - seen.sum())
    high = int((rates > SATURATED).sum())
    facts: dict[str, Any] = {
        "subjects": matrix.n_subjects,
        "items": matrix.n_items,
        "responses": f"{int(seen.sum()):,} of {seen.size:,} cells, {missing:,} missing",
    }
    if matrix.trials is not None:
        each = matrix.trials[seen]
        facts["trials"] = f"{each.sum():,}, {each.min()} to {each.max()} a cell"
    if len(rates):
        facts |= {
            "pass rate": f"{passed.sum() / count.sum():.1%}, subjects {rates.min():.1%} to {rates.max():.1%}",
            "saturation": f"{high} of {len(rates)} subjects pass more than {SATURATED:.0%}",
        }
    lacking = seen.any(axis=1) & ~seen[:, count > 0].all(axis=1)
    if lacking.any():
        facts["subjects that lack items"] = _some(matrix.subjects.index[np.flatnonzero(lacking)])
    facts["constant items"] = _some(matrix.items.index[np.flatnonzero(constant)])
    for axis, table, empty in (
        ("subject", matrix.subjects, ~seen.any(axis=1)),
        ("item", matrix.items, count == 0),
    ):
        if empty.any():
            facts[f"{axis}s without responses"] = _some(table.index[np.flatnonzero(empty)])
        if len(table.columns):
            facts[f"{axis} covariates"] = ", ".join(map(str, table.columns))
    return facts


def _repeats(
    matrix: ResponseMatrix, kind: str, options: Mapping[str, Any], undecided: Mapping[str, str]
) -> dict[str, str]:
    """What is there twice: cells, where a file can say a cell twice, and whole rows of responses."""
    facts: dict[str, str] = {}
    if "trials" in undecided:
        facts["repeated cells"] = "some, see below"
    elif options.get("trials"):
        facts["repeated cells"] = f"counted by the rule {options['trials']!r}"
    elif kind.startswith(("a long table", "logs")):
        facts["repeated cells"] = "none"
    answered = np.flatnonzero(matrix.observed.any(axis=1))
    items = np.arange(matrix.n_items)
    rows = [matrix.cell_bytes(np.array([row]), items) for row in answered]
    alike = matrix.subjects.index[answered[pd.Series(rows, dtype=object).duplicated().to_numpy()]]
    if len(alike):
        facts["subjects that answered as another did"] = _some(alike)
    return facts


def _some(names: pd.Index) -> str:
    return f"{len(names)} ({listed(names)})" if len(names) else "none"
