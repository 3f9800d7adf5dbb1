"""Asking a language model about a case: fixed prompt, reads, one repair; the same for every provider."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from irtaudit.protocol.answers import parse_answer
from irtaudit.protocol.bundle import SCORE, SPEC, TRAJECTORY, RunBundle, event_text
from irtaudit.protocol.judges.case import (
    MAX_CALLS,
    MAX_READS,
    Case,
    NoAnswerError,
    Read,
    Reply,
    Span,
    last_submits,
    read_file,
    shown_spans,
    utf8,
)

MAX_EVENT = 4_000  # characters of one event that are shown
MAX_CASE = 120_000  # characters of one case

READ_TOOL: Mapping[str, Any] = {
    "name": "read_file",
    "description": "Lines start to end (from 1, both included, at most 200) of a file in the manifest.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "A path exactly as the manifest lists it."},
            "start": {"type": "integer", "description": "First line, from 1."},
            "end": {"type": "integer", "description": "Last line, included."},
        },
        "required": ["path", "start", "end"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class ToolCall:
    """A request of the model: identifier, name, and arguments as it wrote them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Turn:
    """One message: role "system", "user", "assistant" or "tool"."""

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class Completion:
    """What a provider answered: text or tool calls, and what it counted."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0


Complete = Callable[[Sequence[Turn], bool], Completion]
"""From the turns so far, and whether the tool may be called, to the next completion."""


@cache
def prompt() -> str:
    """The fixed prompt."""
    return (files("irtaudit.protocol.judges") / "prompt.md").read_text(encoding="utf-8")


@cache
def prompt_sha256() -> str:
    """Digest of the fixed prompt and the tool's description."""
    return hashlib.sha256((prompt() + json.dumps(READ_TOOL, sort_keys=True)).encode()).hexdigest()


def converse(case: Case, complete: Complete) -> Reply:
    """Ask about a case: reads are answered, an answer out of schema may be repaired once.

    Raises
    ------
    NoAnswerError
        From `complete`, or when the model goes on calling tools.
    """
    turns = [Turn("system", prompt()), Turn("user", case_text(case))]
    reads: list[Read] = []
    spent = [0, 0, 0]
    repaired = False
    for _ in range(MAX_READS + 4):
        done = _as_utf8(complete(turns, len(reads) < MAX_READS))
        spent = [spent[0] + done.tokens_in, spent[1] + done.tokens_out, spent[2] + 1]
        turns.append(Turn("assistant", done.text, done.calls))
        if len(reads) + len(done.calls) > MAX_CALLS:
            break
        if done.calls:
            for call in done.calls:
                read = _answered(case.bundle, call, len(reads))
                reads.append(read)
                turns.append(Turn("tool", _told(read, case), call_id=call.id))
            continue
        answer, wrong = parse_answer(done.text)
        if answer is None and not repaired:
            repaired = True
            turns.append(Turn("user", f"This is not a valid answer: {wrong}. Give the JSON object alone."))
            continue
        return Reply(done.text, tuple(reads), "", None, *spent)
    raise NoAnswerError("the model went on calling tools and gave no answer")


def _as_utf8(done: Completion) -> Completion:
    """The completion without lone surrogates: JSON may hold them, requests and files may not."""
    calls = tuple(ToolCall(utf8(call.id), utf8(call.name), utf8(call.arguments)) for call in done.calls)
    return Completion(utf8(done.text), calls, done.tokens_in, done.tokens_out)


def _answered(bundle: RunBundle, call: ToolCall, already: int) -> Read:
    if call.name != READ_TOOL["name"]:
        return Read(call.name[:80], 0, 0, "", refused="there is no such tool; only read_file")
    try:
        asked = json.loads(call.arguments)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        return Read("", 0, 0, "", refused="the arguments are not a JSON object")
    return read_file(bundle, asked.get("path"), asked.get("start"), asked.get("end"), already)


def _told(read: Read, case: Case) -> str:
    if read.refused:
        return f"refused: {read.refused}"
    return _fenced(read.text[: MAX_CASE // 4], case)


def case_text(case: Case) -> str:
    """What the model is shown, the bundle's own words between markers it cannot foresee."""
    bundle, candidate = case.bundle, case.candidate
    listed = "\n".join(
        f"{path} ({record.lines} lines)" if record.lines is not None else f"{path} (not text)"
        for path, record in list(bundle.manifest.files.items())[:200]
    )
    parts = [
        f"CANDIDATE {candidate.id}, cues of {candidate.exposure}, by {', '.join(candidate.rules)}.",
        "The cues are where to look, not a label.",
        _titled("Manifest", listed, case),
        _titled(SPEC, _lines(bundle, SPEC), case),
        _titled(SCORE, _lines(bundle, SCORE), case),
        _titled("What the cues saw", _seen(case), case),
        *(_titled(*one, case) for one in _shown_parts(case)),
    ]
    return "\n\n".join(parts)[:MAX_CASE]


def _seen(case: Case) -> str:
    return "\n".join(f"{p.path} {p.unit} {p.start}: {p.quote[:400]}" for p in case.candidate.pointers)


def _shown_parts(case: Case) -> list[tuple[str, str]]:
    bundle, window = case.bundle, case.candidate.window
    numbers = sorted({*(range(window[0], window[1] + 1) if window else ()), *last_submits(bundle)})
    spans = [span for span in shown_spans(case) if span.path.startswith("A/")]
    return [
        (f"{TRAJECTORY}, events", "\n\n".join(_event(bundle, i) for i in numbers)),
        *(
            (f"Artifact, lines {span.start} to {span.end}", f"{span.path}\n{_numbered(bundle, span)}")
            for span in spans
        ),
    ]


def _event(bundle: RunBundle, i: int) -> str:
    event = bundle.events[i]
    text = event_text(event)
    more = f"\n[{len(text) - MAX_EVENT} more characters]" if len(text) > MAX_EVENT else ""
    return f"[event {i}] {event.actor} {event.kind}\n{text[:MAX_EVENT]}{more}"


def _numbered(bundle: RunBundle, span: Span) -> str:
    lines = (bundle.lines(span.path) or ())[span.start - 1 : span.end]
    return "\n".join(f"{n}: {line[:1_000]}" for n, line in enumerate(lines, span.start))


def _lines(bundle: RunBundle, path: str) -> str:
    return "\n".join(bundle.lines(path) or ())[: MAX_CASE // 4]


def _titled(title: str, text: str, case: Case) -> str:
    return f"{title}\n{_fenced(text, case)}"


def _fenced(text: str, case: Case) -> str:
    """The text between markers that depend on the digest of the bundle, so that no bundle can hold them."""
    mark = hashlib.sha256(f"{case.bundle.sha256}:{case.candidate.id}".encode()).hexdigest()[:16]
    return f"BEGIN UNTRUSTED {mark}\n{text}\nEND UNTRUSTED {mark}"
