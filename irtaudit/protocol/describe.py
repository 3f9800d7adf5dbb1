"""What retained runs a file or folder holds, and what to do with them."""

from __future__ import annotations

import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from irtaudit.data.describe import Description
from irtaudit.data.inspect_logs import INSTALL, is_inspect_log
from irtaudit.data.read_logs import log_kind
from irtaudit.data.responses import listed
from irtaudit.errors import DataError
from irtaudit.protocol.adapters.convert import ENDINGS, find_logs, read_bundles
from irtaudit.protocol.bundle import RunBundle
from irtaudit.protocol.files import BROKEN_ZIP, MANIFEST, PARTS
from irtaudit.protocol.load import find_bundles, load_bundle

FORMATS = {
    "bundle": "retained runs (bundles)",
    "inspect": "logs of Inspect AI",
    "atif": "ATIF trajectories",
    "swe-agent": "SWE-agent trajectories",
    "openai": "conversations in OpenAI-style JSON lines",
}
_BEGINS = {
    ".json": re.compile(rb'\s*\{[\s\S]*"schema_version"\s*:\s*"(ATIF|v?1\.)'),
    ".traj": re.compile(rb"\s*\{"),
    ".jsonl": re.compile(rb'\s*\{[^\n]*("messages"\s*:\s*\[|"role"\s*:\s*")'),
}
"""How a log of runs begins, whole or cut off, by the ending of its name."""
_HEAD = 2**16


@dataclass(frozen=True)
class _Run:
    """What is told of a run."""

    format: str
    benchmark: str
    model: str
    events: int
    score: float | None
    passed: bool | None
    unfilled: tuple[str, ...]


def describe_runs(path: str | Path) -> Description | None:
    """Say which runs a file or folder holds, and which command takes them.

    Parameters
    ----------
    path : path
        Retained bundles (a folder, a zip file, a folder of such), or logs that ``irtaudit bundles convert``
        reads.

    Returns
    -------
    Description or None
        None where there are none; nor for evaluation logs of which :func:`irtaudit.data.describe.describe`
        reads the responses, as it does Inspect's where Inspect AI is installed.

    Raises
    ------
    DataError
        If there are runs and none of them can be read: the first one's fault.
    StorageError
        If the operating system refuses to read them.
    """
    place = Path(path)
    if not place.exists():
        return None
    if _holds_bundles(place):
        return _of_bundles(place)
    kind = log_kind(place)
    if kind == "inspect" and find_spec("inspect_ai") is None:
        alone = f"Only the runs are told here: responses in Inspect's logs are read with {INSTALL}"
        return _of_logs(place, is_inspect_log, (alone,))
    return _of_logs(place, _is_log_of_runs) if kind is None else None


def _holds_bundles(place: Path) -> bool:
    if not place.is_dir():
        return place.suffix == ".zip" and place.is_file()  # a broken one is told as such
    return any(_is_bundle(one) for one in (place, *place.iterdir()))


def _is_bundle(place: Path) -> bool:
    """Whether a folder, or a whole zip file, is made like a bundle; other tools write manifests too."""
    if place.is_dir():
        return (place / MANIFEST).is_file() and any((place / part).is_dir() for part in PARTS)
    if place.suffix != ".zip" or not place.is_file():
        return False
    try:
        with zipfile.ZipFile(place) as archive:
            return any(name.rpartition("/")[2] == MANIFEST for name in archive.namelist())
    except BROKEN_ZIP:
        return False


def _is_log_of_runs(path: Path) -> bool:
    if path.suffix not in _BEGINS:
        return False
    with path.open("rb") as stream:
        return bool(_BEGINS[path.suffix].match(stream.read(_HEAD).removeprefix(b"\xef\xbb\xbf")))


def _of_bundles(place: Path) -> Description:
    runs, faults = _told(find_bundles([place]), lambda one: [("bundle", load_bundle(one))])
    return _described(place, runs, faults, f"irtaudit protocol {shlex.quote(str(place))}")


def _of_logs(place: Path, is_one: Callable[[Path], bool], notes: tuple[str, ...] = ()) -> Description | None:
    files = find_logs(place) if place.is_dir() and _has_logs(place) else [place] * place.is_file()
    logs = [file for file in files if is_one(file)]
    if not logs:
        return None
    runs, faults = _told(logs, read_bundles)
    convert = f"irtaudit bundles convert {shlex.quote(str(place))} bundles"
    without = sum(run.score is None and run.passed is None for run in runs)
    if without:
        notes += (f"{without:,} without a score: `bundles convert --scores` takes them from a table",)
    notes += ("Then: irtaudit protocol bundles",)
    return _described(place, runs, faults, convert, notes)


def _has_logs(folder: Path) -> bool:
    return any(file.suffix in ENDINGS and file.is_file() for file in folder.rglob("*"))


def _told(
    places: Iterable[Path], read: Callable[[Path], Iterable[tuple[str, RunBundle]]]
) -> tuple[list[_Run], list[DataError]]:
    """The runs at the places, one bundle in memory at a time, and what is wrong with the others."""
    runs: list[_Run] = []
    faults: list[DataError] = []
    for place in places:
        try:
            runs += list(_summaries(read(place)))  # all of a log or nothing, as `bundles convert` does
        except DataError as error:
            faults.append(error)
    return runs, faults


def _summaries(bundles: Iterable[tuple[str, RunBundle]]) -> Iterator[_Run]:
    for format, bundle in bundles:
        said, score = bundle.manifest, bundle.score
        counted = (len(bundle.events), score.score, score.passed, said.unfilled)
        yield _Run(format, said.benchmark, said.model, *counted)


def _described(
    place: Path, runs: list[_Run], faults: list[DataError], following: str, notes: tuple[str, ...] = ()
) -> Description:
    if not runs:
        raise faults[0]
    formats = Counter(run.format for run in runs)
    unread = (f"{len(faults):,} cannot be read, such as: {faults[0]}",) if faults else ()
    return Description(
        str(place),
        " and ".join(FORMATS[format] for format in formats),
        _facts(runs),
        following,
        notes=(*unread, *notes),
    )


def _facts(runs: list[_Run]) -> dict[str, Any]:
    scored = sum(run.score is not None or run.passed is not None for run in runs)
    silent = Counter(name for run in runs for name in run.unfilled)
    return {
        "runs": len(runs),
        "events": sum(run.events for run in runs),
        "benchmarks": listed(dict.fromkeys(run.benchmark for run in runs)),
        "models": listed(dict.fromkeys(run.model for run in runs)),
        "scores": f"{scored:,} of {len(runs):,} runs have one",
        "not said": ", ".join(f"{name} ({count})" for name, count in silent.items()) or "nothing",
    }
