"""Bundles from disk: found, read within limits, checked against their manifest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.events import AliasEvent

from irtaudit.data.files import read_content
from irtaudit.errors import DataError
from irtaudit.protocol.bundle import COMPARISON, SCORE, SPEC, TRAJECTORY, RunBundle, file_record
from irtaudit.protocol.files import LIMITS, MANIFEST, Limits, Read, checked_path, opened
from irtaudit.protocol.models import Comparison, Event, Manifest, ScoreRecord, Spec

Model = TypeVar("Model", bound=BaseModel)


def load_bundle(path: str | Path, limits: Limits = LIMITS) -> RunBundle:
    """Read one retained bundle; nothing in it is executed, and no path or link leads outside.

    Parameters
    ----------
    path : path
        A folder or a zip file with a ``manifest.json``.
    limits : Limits
        Refuse more files, bytes or events than these.

    Returns
    -------
    RunBundle

    Raises
    ------
    DataError
        If the bundle is not what its manifest says, breaks a limit, or a part of it is malformed; the
        message names the file and line.
    """
    place = Path(path)
    with opened(place, limits) as read:
        manifest = _parsed(Manifest, read(MANIFEST, limits.manifest_bytes), f"{place}: {MANIFEST}")
        contents = _contents(read, manifest, place, limits)
    return _assembled(manifest, contents, place, limits)


def find_bundles(places: Iterable[str | Path]) -> list[Path]:
    """Bundles at the given places: each a bundle itself, or a folder that holds bundles directly.

    Returns
    -------
    list of Path
        In the order of the places, sorted within each. A link is among them when it leads to a bundle, and
        is refused when it is read.

    Raises
    ------
    DataError
        If a place holds none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        inside = [place] if _is_bundle(place) else _bundles_in(place)
        if not inside:
            raise DataError(
                f"{place}: no bundle here; expected a folder with {MANIFEST}, a zip file with one, or "
                "a folder of such. `irtaudit bundles convert` makes bundles from logs."
            )
        found += inside
    return found


def read_spec(path: str | Path) -> Spec:
    """A specification from a YAML file of its own.

    Raises
    ------
    DataError
        If the file is missing or malformed.
    """
    return _validated(Spec, _yaml(read_content(path, LIMITS.spec_bytes), str(path), LIMITS), str(path))


def _is_bundle(place: Path) -> bool:
    return (place / MANIFEST).is_file() or (place.suffix == ".zip" and place.is_file())


def _bundles_in(place: Path) -> list[Path]:
    return sorted(child for child in place.iterdir() if _is_bundle(child)) if place.is_dir() else []


def _contents(read: Read, manifest: Manifest, place: Path, limits: Limits) -> dict[str, bytes]:
    if len(manifest.files) > limits.files:
        raise DataError(f"{place}: {len(manifest.files):,} files, more than the {limits.files:,} allowed")
    if sum(record.bytes for record in manifest.files.values()) > limits.total_bytes:
        raise DataError(f"{place}: more than the {limits.total_bytes:,} bytes a bundle may have")
    contents = {}
    for path, record in manifest.files.items():
        if record.bytes > limits.file_bytes:
            raise DataError(f"{place}: {path} is larger than the {limits.file_bytes:,} bytes allowed")
        contents[checked_path(path, place)] = content = read(path, record.bytes)
        found = file_record(path, content)
        if (found.sha256, found.bytes) != (record.sha256, record.bytes):
            raise DataError(
                f"{place}: {path} is not the file its manifest lists: sha256 {found.sha256[:12]}… and "
                f"{found.bytes:,} bytes, expected {record.sha256[:12]}… and {record.bytes:,} bytes"
            )
    return contents


def _assembled(manifest: Manifest, contents: dict[str, bytes], place: Path, limits: Limits) -> RunBundle:
    for path in (SPEC, TRAJECTORY, SCORE):
        if path not in contents:
            raise DataError(f"{place}: the manifest does not list {path}, which every bundle needs")
    spec = _validated(Spec, _yaml(contents[SPEC], f"{place}: {SPEC}", limits), f"{place}: {SPEC}")
    score = _parsed(ScoreRecord, contents[SCORE], f"{place}: {SCORE}")
    if score.log is not None and score.log not in contents:
        raise DataError(f"{place}: {SCORE} names the log {score.log!r}, which the manifest does not list")
    compared = COMPARISON in contents
    return RunBundle(
        manifest=manifest,
        spec=spec,
        events=_events(contents[TRAJECTORY], f"{place}: {TRAJECTORY}", limits),
        score=score,
        comparison=_parsed(Comparison, contents[COMPARISON], f"{place}: {COMPARISON}") if compared else None,
        contents=contents,
        source=str(place),
    )


def _events(content: bytes, where: str, limits: Limits) -> tuple[Event, ...]:
    rows = content.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    if len(rows) > limits.events:
        raise DataError(f"{where}: {len(rows):,} events, more than the {limits.events:,} allowed")
    events = []
    for number, row in enumerate(rows):
        event = _parsed(Event, row, f"{where}, line {number + 1}")
        if event.i != number:
            raise DataError(
                f"{where}, line {number + 1}: i is {event.i}, expected {number}: events count from 0"
            )
        events.append(event)
    return tuple(events)


def _parsed(model: type[Model], content: bytes, where: str) -> Model:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise DataError(f"{where}: {complaint(error)}") from None


def _validated(model: type[Model], value: Any, where: str) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise DataError(f"{where}: {complaint(error)}") from None


def complaint(error: ValidationError) -> str:
    """The first problems of a validation error as one line: where, what, and the value found."""
    said = []
    for problem in error.errors(include_url=False)[:3]:
        where = ".".join(map(str, problem["loc"]))[:200]
        found = json.dumps(problem["input"], default=str, ensure_ascii=False)[:60]
        said.append(f"{where or 'content'}: {problem['msg']} (found {found})")
    return _shown("; ".join(said))


def _shown(text: str) -> str:
    """The text with what a terminal would act on, or cannot show, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _NoAliases(yaml.SafeLoader):
    """Safe YAML without aliases, which can name one value a billion times, and without dates."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(AliasEvent):  # type: ignore[no-untyped-call]  # PyYAML is untyped
            raise yaml.YAMLError("aliases (*name) are not accepted")
        return super().compose_node(parent, index)  # type: ignore[no-untyped-call]  # PyYAML is untyped


_NoAliases.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if not tag.endswith(":timestamp")]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml(content: bytes, where: str, limits: Limits) -> Any:
    if len(content) > limits.spec_bytes:
        raise DataError(f"{where} is larger than the {limits.spec_bytes:,} bytes allowed")
    try:
        return yaml.load(content, _NoAliases) or {}  # type: ignore[no-untyped-call]  # PyYAML is untyped
    except RecursionError:
        raise DataError(f"{where}: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise DataError(f"{where} is not YAML: {' '.join(str(error).split())[:300]}") from None
