"""Logs into bundles: the format is told from the content, the bundle is written, what is missing is named."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from irtaudit.data.files import decode_text, read_content
from irtaudit.errors import DataError
from irtaudit.protocol.adapters import atif, inspect_log, openai_messages, swe_agent
from irtaudit.protocol.adapters.draft import Draft, Filling, filled, name_of
from irtaudit.protocol.bundle import TRAJECTORY, RunBundle
from irtaudit.protocol.files import LIMITS
from irtaudit.protocol.load import load_bundle
from irtaudit.protocol.write import ExistsError, write_bundle

Format = Literal["inspect", "atif", "swe-agent", "openai"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS = (".eval", ".json", ".traj", ".jsonl")


Key = tuple[Path, int]
"""A run: its log, and its number in it from 0 on."""


@dataclass(frozen=True)
class Converted:
    """One run that was converted: where it lies, from which format, and what its source did not say."""

    run_id: str
    path: Path
    format: Format
    n_events: int
    unfilled: tuple[str, ...]


@dataclass(frozen=True)
class Conversion:
    """What came of a log, or of a folder of them.

    Attributes
    ----------
    done : tuple of Converted
    left_out : tuple of str
        What was not converted, and why: files that are no logs, runs that are there already.
    apart : tuple of str
        Names of runs that have the path of their log in them, because several runs had one name.
    """

    done: tuple[Converted, ...]
    left_out: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Log:
    """A log after its first reading: what its runs are called (None: nothing), and where in it they stand."""

    format: Format
    runs: tuple[tuple[str | None, str], ...]


def find_logs(place: str | Path) -> list[Path]:
    """The log at a place: a file itself, or in a folder every file that is named like one, at any depth.

    Raises
    ------
    DataError
        If a folder holds none.
    """
    path = Path(place)
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.rglob("*") if one.suffix in ENDINGS and one.is_file())
    if not found:
        raise DataError(f"{path} holds no log; expected files ending in {', '.join(ENDINGS)}")
    return found


def convert(
    source: str | Path, target: str | Path, filling: Filling | None = None, format: Format | None = None
) -> Conversion:
    """Write the runs in a log, or in the logs of a folder, as bundles.

    A run has the name that its log gives it, or that of the log. Where several runs would have one name, each
    has the path of its log in front, whatever the order: none takes the place of another. A sample that
    stands in several Inspect logs, as after a retry, is one run, that of the first.

    Parameters
    ----------
    source : path
        An Inspect AI log, an ATIF trajectory, a SWE-agent ``.traj`` file, OpenAI-style JSON lines, or a
        folder of such. Logs are read twice, for their names and for their content.
    target : path
        A folder that receives one bundle (a zip file) per run; made when missing.
    filling : Filling, optional
        What to write where the log is silent.
    format : str, optional
        Told from the content unless given.

    Returns
    -------
    Conversion
        Of at least one run.

    Raises
    ------
    DataError
        If no file is a whole log of one of these formats.
    StorageError
        If a bundle cannot be written; :class:`irtaudit.protocol.write.ExistsError` if the runs are all there
        already, or another run is there under the name of one of these.
    """
    logs, left_out = _listed(source, format)
    claims, copies = _claims(logs, Path(source))
    names = _distinct(claims)
    done: list[Converted] = []
    for path, log in logs.items():
        new, there = _write(path, log.format, names, Path(target), filling or Filling())
        done += new
        if there:
            left_out.append(f"{path}: {_count(len(there), 'run')} already in {target} ({there[0].name})")
        if copies[path]:
            left_out.append(f"{path}: {_count(copies[path], 'sample')} that an earlier log holds too")
    if not done:
        raise ExistsError(f"{'; '.join(left_out)}. Remove what is there, or name another folder")
    apart = {names[key] for key, wanted in claims.items() if names[key] != wanted[0]}
    return Conversion(tuple(done), tuple(left_out), tuple(one.run_id for one in done if one.run_id in apart))


def read_bundles(
    source: str | Path, filling: Filling | None = None, format: Format | None = None
) -> Iterator[tuple[Format, RunBundle]]:
    """Runs in one log as bundles in memory, with the format they were read from; see :func:`convert`."""
    path = Path(source)
    kind, drafts = _read(path, format)
    for draft in drafts:
        yield kind, filled(draft, filling or Filling(), name_of(draft.run_id or f"{path.stem}{draft.place}"))


def _listed(source: str | Path, format: Format | None) -> tuple[dict[Path, _Log], list[str]]:
    """The logs that can be read, and what is wrong with the others; a fault of a single file is raised."""
    logs: dict[Path, _Log] = {}
    left_out: list[str] = []
    for path in find_logs(source):
        try:
            kind, drafts = _read(path, format)
            logs[path] = _Log(kind, tuple((draft.run_id, draft.place) for draft in drafts))
        except DataError as error:
            if not Path(source).is_dir():
                raise
            left_out.append(str(error))
    if not logs:
        raise DataError(f"{source}: none of its {len(left_out)} files could be converted: {left_out[0]}")
    return logs, left_out


def _claims(logs: Mapping[Path, _Log], root: Path) -> tuple[dict[Key, tuple[str, ...]], Counter[Path]]:
    """What each run could be called, and for how many samples of a log an earlier one holds them too."""
    claims: dict[Key, tuple[str, ...]] = {}
    copies, seen = Counter[Path](), set[str]()
    for path, log in logs.items():
        for number, (stated, place) in enumerate(log.runs):
            sample = stated if log.format == "inspect" else None
            if sample in seen:
                copies[path] += 1
                continue
            claims[path, number] = _possible_names(path, root, number, stated, place)
            seen |= {sample} if sample else set()
    return claims, copies


def _possible_names(path: Path, root: Path, number: int, stated: str | None, place: str) -> tuple[str, ...]:
    """What a run may be called, the shortest first; the last is nobody else's."""
    inside = path.relative_to(root) if path != root else Path(path.name)
    digest = hashlib.sha256(f"{inside}#{number}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    behind = f"/{stated}" if stated else place
    names = (
        stated or f"{path.stem}{place}",
        f"{inside.with_suffix('').as_posix()}{behind}",
        f"{inside.as_posix()}{behind}",
        f"{path.stem[:200]}-{digest}",
    )
    return tuple(name_of(name) for name in names)


def _distinct(claims: Mapping[Key, Sequence[str]]) -> dict[Key, str]:
    """For each run the first of its names that no other run could have as well."""
    names: dict[Key, str] = {}
    for options in zip(*claims.values(), strict=True):
        taken, counts = set(names.values()), Counter[str]()
        wanted = {key: name for key, name in zip(claims, options, strict=True) if key not in names}
        counts.update(wanted.values())
        names |= {key: name for key, name in wanted.items() if counts[name] == 1 and name not in taken}
    return names


def _write(
    log: Path, format: Format, names: Mapping[Key, str], target: Path, filling: Filling
) -> tuple[list[Converted], list[Path]]:
    """The runs of a log that were written, and the files of those that were there."""
    done, there = [], []
    for number, draft in enumerate(_read(log, format)[1]):
        if (log, number) not in names:
            continue
        bundle = filled(draft, filling, names[log, number])
        manifest, path = bundle.manifest, target / f"{_file_name(names[log, number])}.zip"
        if path.exists():
            _refuse_another_run(path, bundle, log)
            there.append(path)
        else:
            write_bundle(bundle, path)
            done.append(Converted(manifest.run_id, path, format, len(bundle.events), manifest.unfilled))
    return done, there


def _refuse_another_run(path: Path, bundle: RunBundle, log: Path) -> None:
    try:
        same = load_bundle(path).manifest.files[TRAJECTORY] == bundle.manifest.files[TRAJECTORY]
    except DataError:
        same = False
    if not same:
        raise ExistsError(
            f"{path} exists already, and is not the run {bundle.manifest.run_id!r} of {log}; name another "
            "folder for the bundles"
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _read(path: Path, format: Format | None) -> tuple[Format, Iterator[Draft]]:
    value = None if zipfile.is_zipfile(path) else _first_value(path)
    kind = format or _told(path, value)
    return kind, _drafts(kind, path, value)


def _told(path: Path, value: Any) -> Format:
    formats: dict[Format, Any] = {
        "inspect": inspect_log,
        "atif": atif,
        "swe-agent": swe_agent,
        "openai": openai_messages,
    }
    for name, adapter in formats.items():
        if adapter.looks_like(path, value):
            return name
    raise DataError(
        f"{path} is none of the logs that are read: Inspect AI (.eval, .json), ATIF (.json), SWE-agent "
        "(.traj), OpenAI-style messages (.jsonl)"
    )


def _drafts(kind: Format, path: Path, value: Any) -> Iterator[Draft]:
    if kind == "openai":
        yield from openai_messages.read_drafts(path)
    elif kind == "inspect":
        yield from inspect_log.read_drafts(path, value)
    elif not isinstance(value, dict):
        raise DataError(f"{path} is not a JSON object, as {kind} needs")
    else:
        yield (atif if kind == "atif" else swe_agent).read_draft(path, value)


def _first_value(path: Path) -> Any:
    """The JSON value of a file, or of its first line where it has one on each."""
    text = decode_text(read_content(path, LIMITS.total_bytes), path)
    head = next((line for line in text.split("\n") if line.strip()), "")
    for part in (text, head):
        try:
            return json.loads(part)
        except ValueError:
            continue
        except RecursionError:
            raise DataError(f"{path}: nested too deeply") from None
    raise DataError(f"{path} is not JSON, JSON lines or an .eval file")


def _file_name(run_id: str) -> str:
    """A file name for a run: its words, and a digest where words alone could collide."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", run_id).strip("-.")[:80]
    if words == run_id:
        return words
    return f"{words or 'run'}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"
