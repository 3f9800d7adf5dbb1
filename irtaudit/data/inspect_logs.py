"""Inspect AI logs (`.eval` and `.json`), by Inspect's own reader: the extra ``irtaudit[inspect]``."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from irtaudit.data.cells import shown
from irtaudit.data.files import MAX_BYTES
from irtaudit.data.json_files import as_float
from irtaudit.data.logs import (
    CANCELLED,
    ERROR,
    MOST_TRIALS,
    SCORED,
    UNSCORED,
    Answer,
    Collector,
    LogFile,
    Logs,
    label,
)
from irtaudit.data.responses import listed
from irtaudit.errors import DataError, PlanError, StorageError

INSTALL = "pip install 'irtaudit[inspect]'"
VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
"""What Inspect's letters and words count, as in its own `value_to_float`."""

_RETRIED = "a later log is a retry or a copy of the same run"
_ARCHIVE_DAMAGE = (EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
_DAMAGE = (ValueError, KeyError, TypeError, AssertionError, AttributeError, *_ARCHIVE_DAMAGE)
"""What Inspect's reader raises on logs that are not as it expects."""


def is_inspect_log(path: Path) -> bool:
    """Does a file look like an Inspect log: an archive with its start record, or JSON with its keys?"""
    if path.suffix == ".eval":
        return True
    if path.suffix != ".json":
        return False
    with path.open("rb") as stream:
        head = stream.read(2048)
    return b'"eval"' in head and b'"status"' in head and b'"version"' in head


def read_inspect(paths: list[Path], source: str, max_bytes: int = MAX_BYTES) -> Logs:
    """Inspect logs as rows: one per model, task, sample, epoch and scorer.

    A log that was cancelled or broke off gives the samples that it finished; the others it was to run have
    status "cancelled" or "error". A sample without a score is "unscored", one that broke off "error": neither
    is a fail. Letters count as Inspect counts them (C 1, P .5, I and N 0; N, no answer, is not `valid`). A
    score of several values has a metric for each: ``scorer.value``. Of the logs of one run (retries, copies)
    the latest counts; separate runs of a task are further trials, like epochs.

    Parameters
    ----------
    paths : list of Path
        Log files.
    source : str
        What the user named, for messages.
    max_bytes : int
        Refuse logs whose summaries are longer.

    Returns
    -------
    Logs

    Raises
    ------
    PlanError
        If Inspect AI is not installed.
    DataError
        If a file is no Inspect log or is damaged, or there are no samples.
    """
    try:
        reader = import_module("inspect_ai.log")
    except ImportError:
        raise PlanError(
            f"{source}: Inspect's logs are read by Inspect itself, install it: {INSTALL}"
        ) from None
    found, offsets = Collector(source), dict[tuple[str, str], int]()
    headers = {path: _header(reader, path, max_bytes) for path in paths}
    for path, log, superseded in _runs(headers):
        model, task = str(log.eval.model), str(log.eval.task)
        if superseded:
            found.files.append(LogFile(str(path), model, task, "superseded", 0, _RETRIED))
            found.notes.append(f"{path.name} ({model}, {task}) was left out: {_RETRIED}")
            continue
        offset = offsets.get((model, task), 0)
        last = _collect(found, path, log, _read(reader.read_eval_log_sample_summaries, path), offset)
        offsets[model, task] = last + 1
    return found.logs()


def _header(reader: Any, path: Path, max_bytes: int) -> Any:
    _refuse_too_large(path, max_bytes)
    return _read(reader.read_eval_log, path, header_only=True)


def _read(read: Callable[..., Any], path: Path, **options: Any) -> Any:
    try:
        return read(str(path), **options)
    except _DAMAGE as error:
        raise DataError(f"{path} is not an Inspect log, or is damaged: {_said(error)}") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error


def _runs(headers: Mapping[Path, Any]) -> Iterator[tuple[Path, Any, bool]]:
    """Each log, oldest first, and whether a later one is a retry, or a copy, of the same run."""
    order = sorted(headers, key=lambda path: (str(headers[path].eval.created), str(path)))
    latest = {_run(headers[path]): path for path in order}
    for path in order:
        yield path, headers[path], latest[_run(headers[path])] != path


def _run(log: Any) -> tuple[str, str, str]:
    return str(log.eval.task_id), str(log.eval.model), str(log.eval.task)


def _refuse_too_large(path: Path, max_bytes: int) -> None:
    """Inspect unpacks without limits, so what is to be unpacked is looked at before."""
    try:
        size = _unpacked_size(path, max_bytes) if path.suffix == ".eval" else path.stat().st_size
    except _ARCHIVE_DAMAGE as error:
        raise DataError(
            f"{path} is not an Inspect log, or is cut off: not a whole zip archive ({error})"
        ) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    if size > max_bytes:
        raise DataError(f"{path} unpacks to more than {max_bytes:,} bytes; raise the limit (--max-bytes)")


def _unpacked_size(path: Path, most: int) -> int:
    """Bytes of all parts but the samples, which are not read; counted only until they are more than `most`.

    Parts are unpacked here, because an archive may lie about their sizes; its own words are tried first.
    """
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.infolist() if not part.filename.startswith("samples/")]
        size = sum(part.file_size for part in parts)
        if size > most:
            return size
        size = 0
        for part in parts:
            part.file_size = 2**62  # zipfile would stop where the archive says that the part ends
            with archive.open(part) as stream:
                while size <= most and (piece := stream.read(2**20)):
                    size += len(piece)
        return size


def _said(error: BaseException) -> str:
    """What an error, and the one behind it, say, on one line."""
    behind = f" ({_said(error.__cause__)})" if error.__cause__ else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}{behind}"


def _collect(found: Collector, path: Path, log: Any, samples: list[Any], offset: int) -> int:
    """Put the rows of one log into `found`, its trials counted from `offset`; return the last trial."""
    model, task = str(log.eval.model), str(log.eval.task)
    _refuse_unnamed(path, model, samples)
    metrics = list(dict.fromkeys(metric for sample in samples for metric, *_ in _scores(sample.scores or {})))
    lacking = _not_run(log, samples)
    status = CANCELLED if log.status in ("cancelled", "started") else ERROR
    rows = [row for sample in samples for row in _rows(model, task, sample, metrics)]
    rows += [
        Answer(model, task, item, trial, metric, np.nan, status)
        for item, trial in lacking
        for metric in metrics or [""]
    ]
    found.answers += [row._replace(trial=row.trial + offset) for row in rows]
    found.subjects.setdefault(model, {})
    read = "read" if log.status == "success" else str(log.status)
    reason = _reason(log, samples, lacking)
    found.files.append(LogFile(str(path), model, task, read, len(rows), reason))
    if reason:
        found.notes.append(f"{path.name} ({model}, {task}): {reason}")
    return max((row.trial for row in rows), default=-1) + offset


def _refuse_unnamed(path: Path, model: str, samples: list[Any]) -> None:
    if not model.strip():
        raise DataError(f"{path} names no model")
    seen: set[tuple[str, int]] = set()
    for sample in samples:
        key = str(sample.id), int(sample.epoch)
        if not key[0].strip():
            raise DataError(f"{path}: a sample has no id")
        if not 0 < key[1] <= MOST_TRIALS:
            raise DataError(f"{path}: sample {key[0]!r} has the epoch {shown(key[1])}, expected 1, 2, ...")
        if key in seen:
            raise DataError(f"{path}: sample {key[0]!r}, epoch {key[1]}, is in it twice")
        seen.add(key)


def _rows(model: str, task: str, sample: Any, metrics: list[str]) -> Iterator[Answer]:
    """One row per metric of the log, whether this sample has it or not."""
    item, trial = str(sample.id), int(sample.epoch) - 1
    target = label(sample.target if isinstance(sample.target, str) else "".join(sample.target[:1]))
    scores = {metric: (value, valid, answer) for metric, value, valid, answer in _scores(sample.scores or {})}
    for metric in metrics or [""]:
        value, valid, answer = scores.get(metric, (np.nan, True, None))
        status = SCORED if not np.isnan(value) else ERROR if sample.error else UNSCORED
        yield Answer(model, task, item, trial, metric, value, status, valid, answer, target)


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, float, bool, str | None]]:
    """Metric, value, validity and answer of each value of each scorer."""
    for scorer, score in scores.items():
        parts = score.value if isinstance(score.value, dict) else {"": score.value}
        for part, value in parts.items():
            name = f"{scorer}.{part}" if part else scorer
            yield name, _number(value), value != "N", label(score.answer)


def _number(value: Any) -> float:
    """A score as a number; NaN for what is none."""
    if isinstance(value, bool | int | float):
        return as_float(value)
    text = value.strip() if isinstance(value, str) else ""
    if text in VALUES or text.lower() in VALUES:
        return VALUES.get(text, VALUES.get(text.lower(), np.nan))
    try:
        return float(text)
    except ValueError:
        return np.nan


def _not_run(log: Any, samples: list[Any]) -> list[tuple[str, int]]:
    """Sample and trial of everything the log was to run and did not, as far as it says what that was."""
    epochs = log.eval.config.epochs or 1
    ran = {(str(sample.id), int(sample.epoch) - 1) for sample in samples}
    asked = [(str(item), trial) for item in log.eval.dataset.sample_ids or [] for trial in range(epochs)]
    return [cell for cell in asked if cell not in ran]


def _reason(log: Any, samples: list[Any], lacking: list[tuple[str, int]]) -> str:
    said = []
    if log.status != "success":
        error = f": {log.error.message.strip().splitlines()[0][:200]}" if log.error else ""
        said.append(f"the run is marked {log.status!r}{error}")
    if lacking:
        said.append(
            f"{len(lacking)} sample(s) never ran: {listed(dict.fromkeys(item for item, _ in lacking))}"
        )
    broken = [str(sample.id) for sample in samples if sample.error]
    if broken:
        said.append(f"{len(broken)} sample(s) broke off: {listed(broken)}")
    bare = [str(sample.id) for sample in samples if not sample.scores and not sample.error]
    if bare:
        said.append(f"{len(bare)} sample(s) have no score: {listed(bare)}")
    return "; ".join(said)
