"""lm-evaluation-harness: `samples_<task>_<date>.jsonl`, as ``--log_samples`` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from irtaudit.data.cells import shown
from irtaudit.data.files import MAX_BYTES
from irtaudit.data.json_files import as_float, read_json_lines
from irtaudit.data.logs import SCORED, UNSCORED, Answer, Collector, LogFile, Logs, label
from irtaudit.errors import DataError

SAMPLES = re.compile(r"samples_(?P<task>.+?)(_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl(\.gz)?")
"""Name of a file of samples."""

NO_ANSWER = "[invalid]"
"""What lm-evaluation-harness puts where a filter finds no answer."""

_NO_METRICS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task_name", "system_instruction", "chat_template"),
    )
)


def is_lm_eval_file(path: Path) -> bool:
    """Is this the name of a file of samples?"""
    return SAMPLES.fullmatch(path.name) is not None


def read_lm_eval(paths: list[Path], source: str, max_bytes: int = MAX_BYTES) -> Logs:
    """Samples of lm-evaluation-harness as rows: one per model, task, document and metric of a filter.

    The model is the folder's name, `__` read as `/`, as the harness writes it. A metric is called as in the
    harness's tables: ``exact_match,strict-match``. Of several runs of a task in one folder the latest counts;
    the others are listed as "superseded". Runs in several folders of one name are further trials. A metric
    that is not one number (perplexities, say) is left out.

    Parameters
    ----------
    paths : list of Path
        Files of samples.
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
        If a line is no sample, a document is given twice under one filter, models answered different
        documents under one number, or there are no samples.
    """
    found = Collector(source)
    documents: dict[tuple[str, str], tuple[str, str]] = {}
    runs: dict[tuple[str, str], list[Path]] = {}
    for path, superseded in _latest(paths):
        model, task = path.parent.resolve().name.replace("__", "/"), _task(path)
        if superseded:
            found.files.append(
                LogFile(str(path), model, task, "superseded", 0, "a later run is in the same folder")
            )
            found.notes.append(
                f"{path.name} ({model}) was left out: a later run of {task} is in the same folder"
            )
            continue
        rows = list(_rows(path, model, task, documents, max_bytes))
        same = runs.setdefault((model, task), [])
        if same:
            found.notes.append(f"{path}: another run of {task} by {model}, after {same[0]}: a further trial")
        found.answers += [row._replace(trial=len(same)) for row in rows]
        same.append(path)
        found.subjects.setdefault(model, {})
        found.files.append(LogFile(str(path), model, task, "read", len(rows), "" if rows else "no samples"))
    return found.logs()


def _task(path: Path) -> str:
    match = SAMPLES.fullmatch(path.name)
    return match["task"] if match else path.stem


def _latest(paths: list[Path]) -> Iterator[tuple[Path, bool]]:
    """Each file and whether a later run of its task lies beside it."""
    last: dict[tuple[Path, str], str] = {}
    for path in paths:
        key = (path.parent, _task(path))
        last[key] = max(last.get(key, ""), path.name)
    for path in paths:
        yield path, path.name != last[path.parent, _task(path)]


def _rows(
    path: Path, model: str, task: str, documents: dict[tuple[str, str], tuple[str, str]], max_bytes: int
) -> Iterator[Answer]:
    lines: dict[tuple[str, str], int] = {}
    for number, sample in read_json_lines(path, max_bytes):
        place = f"{path}, line {number}"
        item, pipe = _item(sample, place), str(sample.get("filter", "none"))
        first = lines.setdefault((item, pipe), number)
        if first != number:
            raise DataError(
                f"{place}: document {item} with filter {pipe!r} is also on line {first}; keep one"
            )
        _refuse_other_document(documents, task, item, sample, f"{model} ({path.name})")
        yield from _answers(sample, model, task, item, pipe, place)


def _item(sample: dict[str, Any], place: str) -> str:
    item = sample.get("doc_id")
    if isinstance(item, bool) or not isinstance(item, int | str) or str(item).strip() == "":
        raise DataError(
            f"{place}: doc_id is {item!r}, expected the number of a document; is this a samples file?"
        )
    return str(item)


def _refuse_other_document(
    documents: dict[tuple[str, str], tuple[str, str]], task: str, item: str, sample: dict[str, Any], who: str
) -> None:
    digest = sample.get("doc_hash")
    if not isinstance(digest, str):
        return
    known, other = documents.setdefault((task, item), (digest, who))
    if known != digest:
        raise DataError(
            f"task {task!r}, document {item}: {who} and {other} answered different documents under this "
            "number (doc_hash differs); compare runs on one version of the data"
        )


def _answers(
    sample: dict[str, Any], model: str, task: str, item: str, pipe: str, place: str
) -> Iterator[Answer]:
    answer, target = _filtered(sample.get("filtered_resps")), label(str(sample.get("target", "")))
    metrics = _metrics(sample, place)
    for name, score in metrics.items():
        status = UNSCORED if np.isnan(score) else SCORED
        valid = answer != NO_ANSWER
        yield Answer(model, task, item, 0, f"{name},{pipe}", score, status, valid, label(answer), target)
    if not metrics:
        yield Answer(model, task, item, 0, "", np.nan, UNSCORED, answer != NO_ANSWER, label(answer), target)


def _metrics(sample: dict[str, Any], place: str) -> dict[str, float]:
    """Metrics that are one number, or null; older files do not list which keys are metrics."""
    listed = sample.get("metrics")
    names = listed if isinstance(listed, list) else [key for key in sample if key not in _NO_METRICS]
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{place}: 'metrics' is {shown(names)}, expected names of metrics")
    lacking = [name for name in names if name not in sample]
    if lacking:
        raise DataError(f"{place}: metric {lacking[0]!r} is announced and not there")
    values = {name: sample[name] for name in names}
    words = [name for name in values if isinstance(listed, list) and isinstance(values[name], str)]
    if words:
        raise DataError(f"{place}: metric {words[0]!r} is {shown(values[words[0]])}, expected a number")
    return {
        name: np.nan if value is None else as_float(value)
        for name, value in values.items()
        if value is None or isinstance(value, bool | int | float)
    }


def _filtered(responses: Any) -> object:
    """The answer that a filter took from the output; log-likelihoods of choices are none."""
    return responses[0] if isinstance(responses, list) and responses else responses
