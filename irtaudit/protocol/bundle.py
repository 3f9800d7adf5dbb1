"""A retained bundle in memory: the run, its files, and the text that pointers point into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml
from pydantic import BaseModel

from irtaudit.protocol.models import (
    Comparison,
    Event,
    FileRecord,
    Header,
    Manifest,
    Role,
    ScoreRecord,
    Spec,
    plain,
)

SPEC, TRAJECTORY, SCORE, COMPARISON = (
    "B/spec.yaml",
    "T/trajectory.jsonl",
    "R/score.json",
    "C/comparison.json",
)
_ROLES: Mapping[str, Role] = {
    SPEC: "specification",
    TRAJECTORY: "trajectory",
    SCORE: "score",
    COMPARISON: "comparison",
}


@dataclass(frozen=True, eq=False)
class RunBundle:
    """D = (B, T, A, R, C): one run with everything that was kept of it.

    Attributes
    ----------
    manifest : Manifest
    spec : Spec
        B, the benchmark's specification.
    events : tuple of Event
        T, the trajectory; event i is ``events[i]``.
    score : ScoreRecord
        R, the grader's record.
    comparison : Comparison or None
        C, a score without the exposure.
    contents : mapping of str to bytes
        Every file of the manifest by path; those under ``A/`` are the submitted artifact.
    source : str
        Where it was read from; "" when it was made in memory.
    """

    manifest: Manifest
    spec: Spec
    events: tuple[Event, ...]
    score: ScoreRecord
    comparison: Comparison | None
    contents: Mapping[str, bytes]
    source: str = ""

    @cached_property
    def sha256(self) -> str:
        """Digest of the manifest with the digests of all files in it."""
        return hashlib.sha256(canonical_json(self.manifest).encode()).hexdigest()

    @cached_property
    def artifact(self) -> Mapping[str, bytes]:
        """Files of the submitted artifact by path, in order."""
        return {path: content for path, content in sorted(self.contents.items()) if path.startswith("A/")}

    @property
    def artifact_is_empty(self) -> bool:
        """Whether the artifact holds nothing but white space."""
        return not any(content.strip() for content in self.artifact.values())

    @property
    def no_credit_score(self) -> float | None:
        """Score of a submission that earns nothing, where it is known."""
        stated = self.spec.no_credit_score
        return 0.0 if stated is None and self.spec.direction == "higher" else stated

    @property
    def credited(self) -> bool:
        """Whether the grader gave more than a submission without merit would get."""
        score, nothing = self.score.score, self.no_credit_score
        if score is None or nothing is None:
            return self.score.passed is True
        return score > nothing if self.spec.direction == "higher" else score < nothing

    @cached_property
    def _texts(self) -> dict[str, tuple[str, ...] | None]:
        return {}

    def lines(self, path: str) -> tuple[str, ...] | None:
        """Lines of a file, CRLF read as LF; None when it is not UTF-8 text.

        Raises
        ------
        KeyError
            When the manifest does not list the path.
        """
        if path not in self._texts:
            self._texts[path] = _lines(self.contents[path])
        return self._texts[path]


def _lines(content: bytes) -> tuple[str, ...] | None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return tuple(text.replace("\r\n", "\n").removesuffix("\n").split("\n")) if text else ()


def event_text(event: Event) -> str:
    """What an event says, as judges and readers see it and quotes are looked up in: one entry a line."""
    parts = [f"tool: {event.tool}"] if event.tool else []
    if event.path:
        parts.append(f"path: {event.path}")
    for key, value in (event.args or {}).items():
        if isinstance(value, str):
            parts.append(f"{key}: {value}")
        else:
            parts += _leaves(key, value)
    if event.exit_code is not None:
        parts.append(f"exit_code: {event.exit_code}")
    if event.text:
        parts.append(event.text)
    return "\n".join(parts)


def _leaves(key: str, value: Any) -> list[str]:
    """``a.b: value`` for every leaf, without recursion: arguments may be nested deeply."""
    found, waiting = [], [(key, value)]
    while waiting:
        name, node = waiting.pop()
        if isinstance(node, dict | list) and node:
            pairs = node.items() if isinstance(node, dict) else enumerate(node)
            waiting += [(f"{name}.{inner}", child) for inner, child in reversed(list(pairs))]
        else:
            found.append(f"{name}: {node if isinstance(node, str) else json.dumps(node, ensure_ascii=False)}")
    return found


def canonical_json(value: BaseModel | Mapping[str, Any]) -> str:
    """JSON that is the same for the same values."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def make_bundle(
    header: Header,
    *,
    spec: Spec,
    events: Sequence[Event],
    score: ScoreRecord,
    artifact: Mapping[str, bytes] | None = None,
    comparison: Comparison | None = None,
    logs: Mapping[str, bytes] | None = None,
) -> RunBundle:
    """Bundle made of its parts, with the manifest that belongs to them.

    Parameters
    ----------
    header : Header
        Which run this is.
    spec, events, score, comparison
        B, T, R and C.
    artifact, logs : mapping of str to bytes
        Files of the artifact and of the grader by name, without the leading ``A/`` or ``R/``.

    Returns
    -------
    RunBundle
        Not yet on disk: :func:`irtaudit.protocol.write.write_bundle` writes it.
    """
    contents = {
        SPEC: _yaml(plain(spec)).encode(),
        TRAJECTORY: "".join(f"{json.dumps(plain(e), ensure_ascii=False)}\n" for e in events).encode(),
        SCORE: _pretty(score),
        **{f"A/{name}": content for name, content in (artifact or {}).items()},
        **{f"R/{name}": content for name, content in (logs or {}).items()},
        **({COMPARISON: _pretty(comparison)} if comparison else {}),
    }
    files = {path: file_record(path, content) for path, content in sorted(contents.items())}
    manifest = Manifest(schema_version=1, files=files, **header.model_dump(include=set(Header.model_fields)))
    return RunBundle(manifest, spec, tuple(events), score, comparison, contents)


def file_record(path: str, content: bytes) -> FileRecord:
    """The manifest's entry for a file."""
    lines = _lines(content)
    return FileRecord(
        role=_ROLES.get(path, "artifact" if path.startswith("A/") else "log"),
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        lines=None if lines is None else len(lines),
    )


def _yaml(data: Mapping[str, Any]) -> str:
    dumped: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)  # type: ignore[no-untyped-call]  # PyYAML is untyped
    return dumped


def _pretty(model: BaseModel) -> bytes:
    return (json.dumps(model.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n").encode()
