"""SWE-bench reports: which tasks a submission resolved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from irtaudit.data.files import MAX_BYTES
from irtaudit.data.json_files import read_json_object
from irtaudit.data.logs import CANCELLED, ERROR, SCORED, Answer, Collector, LogFile, Logs
from irtaudit.data.responses import listed
from irtaudit.errors import DataError

TASK, METRIC = "swe-bench", "resolved"
_FAILED = ("unresolved_ids", "empty_patch_ids")
_BOARD_LISTS = (
    "no_generation",
    "generated",
    "with_logs",
    "no_logs",
    "install_fail",
    "reset_failed",
    "applied",
)


def is_swebench_report(path: Path) -> bool:
    """Does a JSON file look like a report of the harness or of the leaderboard?"""
    if path.suffix != ".json":
        return False
    with path.open("rb") as stream:
        content = stream.read(2**24)
    return b'"resolved_ids"' in content or (path.name == "results.json" and b'"resolved"' in content)


def read_swebench(paths: list[Path], source: str, max_bytes: int = MAX_BYTES) -> Logs:
    """SWE-bench reports as rows: one per submission, run and task. Runs of one model are further trials.

    A report of the harness (`<model>.<run id>.json` with ``resolved_ids``, ...): resolved tasks score 1,
    unresolved ones and empty patches 0; a task whose evaluation broke off, or that the harness lists under
    ``infra_failure_ids``, has status "error", one that was not submitted "cancelled". A leaderboard entry
    (`<submission>/results/results.json` with ``resolved``): every task that any entry names counts, and
    scores 0 where it is not listed as resolved, as the leaderboard counts.

    Parameters
    ----------
    paths : list of Path
        Reports.
    source : str
        What the user named, for messages.
    max_bytes : int
        Refuse files that are longer once decompressed.

    Returns
    -------
    Logs

    Raises
    ------
    DataError
        If a report contradicts itself, a list is none, two reports are of one run, or there are no tasks.
    """
    reports = {path: read_json_object(path, max_bytes) for path in paths}
    names = _names(paths, reports)
    board = {
        path: _board_tasks(report, path) for path, report in reports.items() if "resolved_ids" not in report
    }
    everything = sorted(set().union(*board.values())) if board else []
    found, runs = Collector(source), Counter[str]()
    for path, report in reports.items():
        rows = (
            _board_rows(names[path], report, everything)
            if path in board
            else _report_rows(names[path], report, path)
        )
        found.answers += [row._replace(trial=runs[names[path]]) for row in rows]
        runs[names[path]] += 1
        found.subjects.setdefault(names[path], {})
        found.files.append(LogFile(str(path), names[path], TASK, "read", len(rows), _reason(rows)))
        if _reason(rows):
            found.notes.append(f"{names[path]}: {_reason(rows)}")
    if board:
        found.notes.append(
            f"{len(board)} leaderboard entries: of the {len(everything)} tasks that any of them names, those "
            "that an entry does not list as resolved count as failed"
        )
    return found.logs()


def _names(paths: list[Path], reports: dict[Path, dict[str, Any]]) -> dict[Path, str]:
    """Submission of each report: the leaderboard's folder, or the file's name before the run id."""
    names = {path: _name(path, "resolved_ids" in reports[path]) for path in paths}
    known: dict[tuple[str, str], Path] = {}
    for path, name in names.items():
        run = path.name if "resolved_ids" in reports[path] else ""
        other = known.setdefault((name, run), path)
        if other != path:
            raise DataError(
                f"several reports are of one run of {name!r}: {listed([str(other), str(path)])}; keep one, "
                "or give the other its own run id (<model>.<run id>.json)"
            )
    return names


def _name(path: Path, harness: bool) -> str:
    if harness:
        stem = path.stem
        return (stem.rpartition(".")[0] or stem).replace("__", "/")
    folder = path.resolve().parent
    return folder.parent.name if folder.name == "results" else folder.name


def _ids(report: dict[str, Any], key: str, path: Path) -> list[str]:
    ids = report.get(key, [])
    if not isinstance(ids, list) or not all(isinstance(name, str) and name.strip() for name in ids):
        raise DataError(f"{path}: {key!r} is not a list of task names")
    return ids


def _report_rows(model: str, report: dict[str, Any], path: Path) -> list[Answer]:
    resolved = _ids(report, "resolved_ids", path)
    failed = [name for key in _FAILED for name in _ids(report, key, path)]
    both = sorted(set(resolved) & set(failed))
    if both:
        raise DataError(f"{path} lists {listed(both)} as resolved and as failed")
    unjudged = dict.fromkeys([*_ids(report, "error_ids", path), *_ids(report, "infra_failure_ids", path)])
    settled = {**dict.fromkeys(failed, 0.0), **dict.fromkeys(resolved, 1.0)}
    settled = {name: score for name, score in settled.items() if name not in unjudged}
    asked = [*_ids(report, "submitted_ids", path), *_ids(report, "incomplete_ids", path)]
    absent = dict.fromkeys(name for name in asked if name not in settled and name not in unjudged)
    return [
        *(Answer(model, TASK, item, 0, METRIC, score) for item, score in settled.items()),
        *(Answer(model, TASK, item, 0, METRIC, np.nan, ERROR) for item in unjudged),
        *(Answer(model, TASK, item, 0, METRIC, np.nan, CANCELLED) for item in absent),
    ]


def _board_tasks(report: dict[str, Any], path: Path) -> set[str]:
    return {name for key in ("resolved", *_BOARD_LISTS) for name in _ids(report, key, path)}


def _board_rows(model: str, report: dict[str, Any], everything: list[str]) -> list[Answer]:
    resolved = set(report.get("resolved", []))
    return [Answer(model, TASK, item, 0, METRIC, float(item in resolved)) for item in everything]


def _reason(rows: list[Answer]) -> str:
    counts = {ERROR: "evaluations broke off", CANCELLED: "tasks were not submitted or not finished"}
    seen = {status: sum(row.status == status for row in rows) for status in (ERROR, CANCELLED, SCORED)}
    return "; ".join(f"{seen[status]} {said}" for status, said in counts.items() if seen[status])
