"""Logs into bundles: the format is told from the content, the bundle is written, what is missing is named."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from irtaudit.data.files import decode_text, read_content
from irtaudit.errors import DataError
from irtaudit.protocol.adapters import atif, inspect_log, openai_messages, swe_agent
from irtaudit.protocol.adapters.draft import Draft, Filling, filled
from irtaudit.protocol.bundle import RunBundle
from irtaudit.protocol.files import LIMITS
from irtaudit.protocol.write import write_bundle

Format = Literal["inspect", "atif", "swe-agent", "openai"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS = (".eval", ".json", ".traj", ".jsonl")


@dataclass(frozen=True)
class Converted:
    """One run that was converted: where it lies, from which format, and what its source did not say."""

    run_id: str
    path: Path
    format: Format
    n_events: int
    unfilled: tuple[str, ...]


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
) -> list[Converted]:
    """Write the runs in a log as bundles.

    Parameters
    ----------
    source : path
        An Inspect AI log, an ATIF trajectory, a SWE-agent ``.traj`` file, or OpenAI-style JSON lines.
    target : path
        A folder that receives one bundle (a zip file) per run; made when missing.
    filling : Filling, optional
        What to write where the log is silent.
    format : str, optional
        Told from the content unless given.

    Returns
    -------
    list of Converted

    Raises
    ------
    DataError
        If the format is none of these, or the log is broken.
    StorageError
        If a bundle exists already (:class:`irtaudit.protocol.write.ExistsError`) or cannot be written.
    """
    done = []
    for kind, bundle in read_bundles(source, filling, format):
        path = write_bundle(bundle, Path(target) / f"{_file_name(bundle.manifest.run_id)}.zip")
        manifest = bundle.manifest
        done.append(Converted(manifest.run_id, path, kind, len(bundle.events), manifest.unfilled))
    return done


def read_bundles(
    source: str | Path, filling: Filling | None = None, format: Format | None = None
) -> Iterator[tuple[Format, RunBundle]]:
    """Runs in a log as bundles in memory, with the format they were read from; see :func:`convert`."""
    path = Path(source)
    value = None if zipfile.is_zipfile(path) else _first_value(path)
    kind = format or _told(path, value)
    for draft in _drafts(kind, path, value):
        yield kind, filled(draft, filling or Filling())


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
