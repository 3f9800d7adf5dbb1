"""A rule: a function that finds cues, with an exposure, a version and one line on what it sees."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from irtaudit.protocol.bundle import RunBundle
from irtaudit.protocol.models import Kind
from irtaudit.protocol.pointers import Pointer
from irtaudit.protocol.taxonomy import ExposureName

CALLS: frozenset[Kind] = frozenset({"tool_call"})
WORDS: frozenset[Kind] = frozenset({"tool_call", "message", "reasoning", "submit"})

_SHORTEST_STRING = 8  # a withheld "42" would be seen everywhere


@dataclass(frozen=True)
class Names:
    """What a run's specification and manifest give rules to look for, in lower case."""

    withheld_paths: tuple[str, ...]
    withheld_strings: tuple[str, ...]
    identifiers: tuple[str, ...]


def names_of(bundle: RunBundle) -> Names:
    """The names in a bundle that its events may mention."""
    spec, manifest = bundle.spec, bundle.manifest
    ids = {manifest.task_id, *re.split(r"[/\s:]+|__", manifest.task_id), manifest.benchmark}
    return Names(
        withheld_paths=_lowered(path.strip("/") for one in spec.withheld for path in one.paths),
        withheld_strings=_lowered(
            text for one in spec.withheld for text in one.strings if len(text) >= _SHORTEST_STRING
        ),
        identifiers=_lowered(name for name in ids if len(name) >= 6),
    )


def _lowered(names: Iterator[str] | Any) -> tuple[str, ...]:
    return tuple(sorted({name.lower() for name in names if name.strip()}))


Found = re.Match[str] | str | None
EventRule = Callable[[str, Names], Found]
RunRule = Callable[[RunBundle], "Iterator[Hit]"]


@dataclass(frozen=True)
class Rule:
    """A rule as it is applied and reported.

    Attributes
    ----------
    id, version
        Name and version; they are written into every candidate.
    exposure : str
        The exposure it may betray.
    says : str
        What it sees, in one line.
    kinds : frozenset of str
        Kinds of events it is shown; empty for a rule that is shown the run.
    needles : tuple of str
        Lower-case words of which the event must hold one; empty: it is shown every event.
    on_event, on_run : callable
        One of the two: text and names to a match (or the words that matched) or None; bundle to hits.
    """

    id: str
    version: int
    exposure: ExposureName
    says: str
    kinds: frozenset[Kind] = frozenset()
    needles: tuple[str, ...] = ()
    on_event: EventRule | None = None
    on_run: RunRule | None = None

    @property
    def label(self) -> str:
        """Name and version as one word: "git_history@1"."""
        return f"{self.id}@{self.version}"


@dataclass(frozen=True)
class Hit:
    """What a rule of a whole run found: events `start` to `end` (-1: none), and pointers of its own."""

    start: int
    end: int
    pointers: tuple[Pointer, ...]


def event_rule(
    exposure: ExposureName, *, version: int = 1, kinds: frozenset[Kind] = CALLS, needles: tuple[str, ...] = ()
) -> Callable[[EventRule], Rule]:
    """Make a rule of a function that is shown the text of an event and the names of the run."""

    def make(function: EventRule) -> Rule:
        return Rule(_name(function), version, exposure, _line(function), kinds, needles, on_event=function)

    return make


def run_rule(exposure: ExposureName, *, version: int = 1) -> Callable[[RunRule], Rule]:
    """Make a rule of a function that is shown the whole run and yields hits."""

    def make(function: RunRule) -> Rule:
        return Rule(_name(function), version, exposure, _line(function), on_run=function)

    return make


def _name(function: Callable[..., Any]) -> str:
    return function.__name__


def _line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").split("\n")[0]


def pattern(*parts: str) -> re.Pattern[str]:
    """Case-insensitive pattern of alternatives."""
    return re.compile("|".join(parts), re.IGNORECASE)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, as needles."""
    return tuple(text.split())
