"""Inspect AI logs, ``.eval`` and ``.json``: one bundle for each sample and epoch.

Both are read as the zip and JSON files they are; inspect_ai itself is only asked for logs that are packed in
a way Python cannot unpack.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from irtaudit.errors import DataError
from irtaudit.protocol.adapters.draft import Draft, EventList, clean_json, finite, mapping, sequence, text_of
from irtaudit.protocol.adapters.openai_messages import add_messages, last_answer
from irtaudit.protocol.files import BROKEN_ZIP, LIMITS
from irtaudit.protocol.models import ScoreRecord

_GRADES: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # Inspect's own reading of its grades
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PREFIX = "attachment://"


def looks_like(path: Path, first: Any) -> bool:
    """Whether a JSON value, or a zip file (`first` is None), is such a log."""
    if first is None:
        return path.suffix == ".eval"
    return isinstance(first, dict) and isinstance(first.get("eval"), dict) and "version" in first


def read_drafts(path: Path, value: dict[str, Any] | None) -> Iterator[Draft]:
    """Runs in a log.

    Parameters
    ----------
    path : Path
    value : dict or None
        The content of a ``.json`` log; None for an ``.eval`` file.

    Raises
    ------
    DataError
        If the log is broken, has no samples, or is packed in a way that needs inspect_ai.
    """
    header, samples = (value, sequence(value.get("samples"))) if value is not None else _unpacked(path)
    found = False
    for sample in samples:
        if isinstance(sample, dict):
            found = True
            yield _draft(header, sample)
    if not found:
        raise DataError(f"{path}: this log holds no samples (status {header.get('status')})")


def _unpacked(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            if len(infos) > 20_000:
                raise DataError(f"{path} holds {len(infos):,} files, more than the 20,000 that are read")
            if any(info.compress_type not in _READABLE for info in infos):
                return _by_inspect(path)
            names = sorted(info.filename for info in infos)
            header = _member(archive, _header_name(names, path), path)
    except BROKEN_ZIP as error:
        raise DataError(f"{path} is no readable .eval file: {error}") from None
    return header, _members(path, [name for name in names if name.startswith("samples/")])


def _header_name(names: list[str], path: Path) -> str:
    """The header of a finished log, or the start of one that was cut off."""
    for name in ("header.json", "_journal/start.json"):
        if name in names:
            return name
    raise DataError(f"{path} has no header.json; expected an Inspect AI log")


def _members(path: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        for name in names:
            yield _member(archive, name, path)


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    """One JSON object of the archive, never more than a bundle may hold."""
    info = archive.getinfo(name)
    most = LIMITS.total_bytes
    if info.file_size > most or info.file_size > LIMITS.zip_ratio * max(info.compress_size, 2**20):
        raise DataError(f"{path}: {name} unpacks to {info.file_size:,} bytes, more than is read")
    try:
        with archive.open(info) as stream:
            value = json.loads(stream.read(most))
    except BROKEN_ZIP as error:
        raise DataError(f"{path}: {name} is broken: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: {name} is not a JSON object")
    return value


def _by_inspect(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    try:
        reader = import_module("inspect_ai.log")
    except ImportError:
        raise DataError(
            f"{path} is packed in a way that needs Inspect AI to read: pip install 'irtaudit[inspect]'"
        ) from None
    log = reader.read_eval_log(str(path), resolve_attachments=True)
    samples = (sample.model_dump(mode="json") for sample in log.samples or ())
    return log.model_dump(mode="json", exclude={"samples"}), samples


def _draft(header: dict[str, Any], sample: dict[str, Any]) -> Draft:
    evaluated = mapping(header.get("eval"))
    sample = _resolved(sample)
    messages = sequence(sample.get("messages"))
    events = EventList()
    add_messages(events, messages)
    for name, score in _scores(sample).items():
        explained = score.get("explanation")
        events.add("grader", "message", f"{name}: {score.get('value')}\n{explained or ''}".strip())
    target = sample.get("target")
    task_id = f"{evaluated.get('task', 'task')}/{sample.get('id', '?')}"
    return Draft(
        events=events.found,
        run_id=str(sample["uuid"]) if sample.get("uuid") else None,
        place=f"/{sample.get('id', '?')}/{sample.get('epoch', 1)}",
        task_id=task_id,
        benchmark=evaluated.get("task"),
        model=evaluated.get("model"),
        agent=_solver(header),
        task=_question(sample.get("input")),
        answer=text_of(mapping(sample.get("output")).get("completion")) or last_answer(messages),
        targets=[str(one) for one in (target if isinstance(target, list) else [target]) if one],
        scoring_rule=", ".join(_scores(sample)) or None,
        score=_score(sample),
    )


def _scores(sample: dict[str, Any]) -> dict[str, dict[str, Any]]:
    scores = mapping(sample.get("scores")) or ({"score": sample["score"]} if sample.get("score") else {})
    return {str(name): one for name, one in scores.items() if isinstance(one, dict)}


def _score(sample: dict[str, Any]) -> ScoreRecord | None:
    """The first score; the others are components."""
    scores = _scores(sample)
    if not scores:
        return None
    values = {name: one.get("value") for name, one in scores.items()}
    first = next(iter(values.values()))
    number = _number(first)
    graded = isinstance(first, str | bool)
    return ScoreRecord(
        score=number,
        max=1.0 if graded else None,
        passed=None if number is None or not graded else number == 1.0,
        components=clean_json(values),
    )


def _number(value: Any) -> float | None:
    if not isinstance(value, str):
        return finite(value)
    grade = _GRADES.get(value.strip().upper())
    try:
        return grade if grade is not None else finite(float(value))
    except ValueError:
        return None


def _question(asked: Any) -> str | None:
    if isinstance(asked, str):
        return asked
    if isinstance(asked, list):
        said = [text_of(one.get("content")) for one in asked if isinstance(one, dict)]
        return "\n".join(filter(None, said)) or None
    return None


def _solver(header: dict[str, Any]) -> str | None:
    steps = sequence(mapping(header.get("plan")).get("steps"))
    names = [str(step["solver"]) for step in steps if isinstance(step, dict) and "solver" in step]
    return " > ".join(names) or None


def _resolved(sample: dict[str, Any]) -> dict[str, Any]:
    """The sample's messages, input and output with attachments put back."""
    attached = sample.get("attachments")
    if not isinstance(attached, dict) or not attached:
        return sample
    parts = ("messages", "input", "output", "scores")
    return {
        key: _with_attachments(value, attached, 60) if key in parts else value
        for key, value in sample.items()
    }


def _with_attachments(value: Any, attached: dict[str, Any], depth: int) -> Any:
    if isinstance(value, str) and value.startswith(_PREFIX):
        return str(attached.get(value.removeprefix(_PREFIX), value))
    if depth and isinstance(value, dict):
        return {key: _with_attachments(one, attached, depth - 1) for key, one in value.items()}
    if depth and isinstance(value, list):
        return [_with_attachments(one, attached, depth - 1) for one in value]
    return value
