"""HELM runs: folders of `run_spec.json`, `instances.json` and `display_predictions.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irtaudit.data.cells import shown
from irtaudit.data.files import MAX_BYTES, as_path
from irtaudit.data.json_files import as_float, kind_of, read_json_list, read_json_object
from irtaudit.data.logs import MOST_TRIALS, SCORED, UNSCORED, Answer, Collector, LogFile, Logs, label
from irtaudit.data.responses import listed
from irtaudit.errors import DataError

RUN_FILES = ("run_spec.json", "instances.json", "display_predictions.json")
_CHOICES = "multiple_choice_joint"
_CORRECT = "correct"


def find_runs(folder: Path) -> list[Path]:
    """Folders of runs below `folder`, sorted."""
    return sorted(path.parent for path in folder.rglob("run_spec.json"))


def run_task(name: str) -> str:
    """The scenario of a run and its arguments, without the model: `harm_bench`, `mmlu:subject=anatomy`."""
    scenario, _, arguments = name.partition(":")
    kept = [
        one for one in arguments.split(",") if one and not one.startswith(("model=", "model_deployment="))
    ]
    return scenario + (":" + ",".join(kept) if kept else "")


def read_helm(
    folder: str | Path,
    *,
    scenario: str | Sequence[str] | None = None,
    metric: str | None = None,
    target: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Logs:
    """Runs of HELM as rows: one per model, task, instance and metric.

    Metrics are those of ``display_predictions.json`` and, where it lies beside, ``per_instance_stats.json``.
    Perturbed instances are left out. ``target`` of a row is the text of the only reference tagged correct;
    ``valid`` is False where a multiple-choice output could not be mapped to a choice.

    Parameters
    ----------
    folder : path
        Any folder above the runs.
    scenario : str or sequence of str, optional
        Scenarios to read, arguments or not: "harm_bench", "mmlu", "mmlu:subject=anatomy".
    metric : str, optional
        The only metric to keep, "safety_score" for HELM Safety.
    target : str, optional
        Keep the items with this target: "unsafe" is XSTest's harmful subset.
    max_bytes : int
        Refuse files that are longer once decompressed.

    Returns
    -------
    Logs
        ``items``: ``target, reference`` (text of the first reference); ``subjects`` are named as HELM names
        them, such as "anthropic/claude-3-haiku-20240307".

    Raises
    ------
    DataError
        If there are no runs, a file is missing or damaged, an instance is unknown, given twice or has a score
        that is no number, or a model has two runs of one task.
    """
    folder, wanted = as_path("folder", folder), [scenario] if isinstance(scenario, str) else scenario
    found, runs = Collector(str(folder)), dict[tuple[str, str], Path]()
    asked, differing = dict[tuple[str, str], bytes](), dict[str, dict[str, None]]()
    for run in find_runs(folder):
        spec = read_json_object(run / "run_spec.json", max_bytes)
        task, model = _task_and_model(spec, run)
        if wanted is not None and not any(is_of(task, one) for one in wanted):
            continue
        if (task, model) in runs:
            raise DataError(f"{model} has two runs of {task}: {runs[task, model]} and {run}; keep one")
        runs[task, model] = run
        for item, digest in _collect(found, run, spec, task, model, max_bytes).items():
            if asked.setdefault((task, item), digest) != digest:
                differing.setdefault(task, {})[item] = None
    if not runs:
        which = "" if wanted is None else f" of {', '.join(wanted)}"
        raise DataError(f"{folder} holds no HELM runs{which}: no folder below it has a fitting run_spec.json")
    found.notes += [
        f"{len(items)} instance(s) of {task} differ between runs in input or references: {listed(items)}; "
        "compare runs on one version of the data"
        for task, items in differing.items()
    ]
    logs = found.logs()
    return logs.select(metric=metric, target=target)


def is_of(task: str, wanted: str) -> bool:
    """Is this task the scenario `wanted`, arguments or not?"""
    return task == wanted or task.partition(":")[0] == wanted


def _task_and_model(spec: dict[str, Any], run: Path) -> tuple[str, str]:
    name, adapter = spec.get("name"), spec.get("adapter_spec")
    model = adapter.get("model") if isinstance(adapter, dict) else None
    if not isinstance(name, str) or not isinstance(model, str) or not name or not model.strip():
        raise DataError(f"{run / 'run_spec.json'}: no name, or no adapter_spec.model; is this a HELM run?")
    return run_task(name), model


def _collect(
    found: Collector, run: Path, spec: dict[str, Any], task: str, model: str, max_bytes: int
) -> dict[str, bytes]:
    """Put the rows of a run into `found`; return a digest of what was asked by instance."""
    instances = _instances(run / "instances.json", max_bytes)
    predictions = _predictions(run / "display_predictions.json", instances, max_bytes)
    more = _per_instance_stats(run / "per_instance_stats.json", max_bytes)
    scores = {key: more.get(key, {}) | _scores(*found) for key, found in predictions.items()}
    metrics = list(dict.fromkeys(name for row in scores.values() for name in row)) or [""]
    choices = spec["adapter_spec"].get("method") == _CHOICES
    rows = []
    for (item, trial), (entry, _) in predictions.items():
        mapped, target = label(entry.get("mapped_output")), _target(instances[item])
        for name in metrics:
            score = scores[item, trial].get(name, np.nan)
            status = UNSCORED if np.isnan(score) else SCORED
            valid = not choices or mapped is not None
            rows.append(Answer(model, task, item, trial, name, score, status, valid, mapped, target))
        found.items.setdefault((task, item), {"target": target, "reference": _reference(instances[item])})
    found.answers += rows
    found.subjects.setdefault(model, {})
    absent = len(instances) - len({item for item, _ in predictions})
    reason = f"{absent} instance(s) have no prediction" if absent else ""
    found.files.append(LogFile(str(run), model, task, "read", len(rows), reason))
    return {item: _digest(instance) for item, instance in instances.items()}


def _digest(instance: dict[str, Any]) -> bytes:
    asked = [instance.get("input"), instance.get("references")]
    return hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=8).digest()


def _instances(path: Path, max_bytes: int) -> dict[str, dict[str, Any]]:
    """Instances by id; perturbed ones, which have the id of their original, left out."""
    instances: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    for number, entry in enumerate(read_json_list(path, max_bytes), start=1):
        name = _text(entry, "id", f"{path}, entry {number}")
        if entry.get("perturbation"):
            continue
        if name in instances:
            raise DataError(
                f"{path}, entry {number}: instance {name!r} is also entry {places[name]}; keep one"
            )
        instances[name], places[name] = entry, number
    return instances


def _predictions(
    path: Path, instances: dict[str, dict[str, Any]], max_bytes: int
) -> dict[tuple[str, int], tuple[dict[str, Any], str]]:
    """Entry and its place, by instance and trial; those of perturbed instances left out."""
    predictions: dict[tuple[str, int], tuple[dict[str, Any], str]] = {}
    for number, entry in enumerate(read_json_list(path, max_bytes), start=1):
        place = f"{path}, entry {number}"
        key = _key(entry, place)
        if entry.get("perturbation"):
            continue
        if key[0] not in instances:
            raise DataError(f"{place}: instance {key[0]!r} is not in instances.json")
        if key in predictions:
            raise DataError(
                f"{place}: instance {key[0]!r}, trial {key[1]}, is also {predictions[key][1]}; keep one"
            )
        predictions[key] = (entry, place)
    return predictions


def _key(entry: dict[str, Any], place: str) -> tuple[str, int]:
    trial = entry.get("train_trial_index", 0)
    if isinstance(trial, bool) or not isinstance(trial, int) or not 0 <= trial < MOST_TRIALS:
        raise DataError(f"{place}: 'train_trial_index' is {shown(trial)}, expected 0, 1, 2, ...")
    return _text(entry, "instance_id", place), trial


def _text(entry: dict[str, Any], key: str, place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{place}: {key!r} is {value!r}, expected text")
    return value


def _scores(entry: dict[str, Any], place: str) -> dict[str, float]:
    stats = entry.get("stats", {})
    if not isinstance(stats, dict):
        raise DataError(f"{place}: 'stats' is {kind_of(stats)}, expected an object of scores")
    for name, value in stats.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise DataError(f"{place}: {name!r} is {value!r}, expected a number")
    return {name: np.nan if value is None else as_float(value) for name, value in stats.items()}


def _per_instance_stats(path: Path, max_bytes: int) -> dict[tuple[str, int], dict[str, float]]:
    """Mean of every statistic by instance and trial, where the run has that file."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for number, entry in enumerate(read_json_list(path, max_bytes) if path.exists() else [], start=1):
        place = f"{path}, entry {number}"
        if not entry.get("perturbation"):
            found.setdefault(_key(entry, place), {}).update(_means(entry.get("stats"), place))
    return found


def _means(stats: Any, place: str) -> Iterator[tuple[str, float]]:
    if not isinstance(stats, list):
        raise DataError(f"{place}: 'stats' is {kind_of(stats)}, expected a list")
    for stat in stats:
        try:
            name, mean = stat["name"]["name"], stat.get("mean")
        except (TypeError, KeyError):
            raise DataError(f"{place}: a statistic has no name") from None
        if isinstance(mean, int | float):
            yield str(name), as_float(mean)


def _references(instance: dict[str, Any]) -> list[dict[str, Any]]:
    references = instance.get("references")
    return [one for one in references if isinstance(one, dict)] if isinstance(references, list) else []


def _output(reference: dict[str, Any]) -> str | None:
    output = reference.get("output")
    return label(output.get("text")) if isinstance(output, dict) else None


def _target(instance: dict[str, Any]) -> str | None:
    correct = [one for one in _references(instance) if _CORRECT in _tags(one)]
    return _output(correct[0]) if len(correct) == 1 else None


def _tags(reference: dict[str, Any]) -> list[Any]:
    tags = reference.get("tags")
    return tags if isinstance(tags, list) else []


def _reference(instance: dict[str, Any]) -> str | None:
    references = _references(instance)
    return _output(references[0]) if references else None
