"""What all adapters share: events numbered in order, and a bundle that names what could not be filled."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irtaudit.protocol.bundle import RunBundle, make_bundle
from irtaudit.protocol.models import Actor, Event, Header, Kind, ScoreRecord, Spec, Withheld
from irtaudit.protocol.models import Sampling as Sampling
from irtaudit.protocol.taxonomy import ProtocolKind

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCORING_TOOL = re.compile(r"^(?:submit|finish|final_answer|complete_task)$", re.IGNORECASE)


@dataclass(frozen=True)
class Filling:
    """What a user says about runs whose logs do not: used where a log is silent.

    Attributes
    ----------
    benchmark, model, agent : str or None
    protocol_kind : str
    cohort_sampling : str
    spec : Spec or None
        Laid under what the log says of the task.
    scores : mapping of str to ScoreRecord
        By run_id, for runs whose logs hold no score.
    """

    benchmark: str | None = None
    model: str | None = None
    agent: str | None = None
    protocol_kind: ProtocolKind = "container"
    cohort_sampling: Sampling = "census"
    spec: Spec | None = None
    scores: Mapping[str, ScoreRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """A run as an adapter found it; None is what the log does not say.

    `place` is where in its log the run stands, to be put behind the log's name where it has no name of its
    own; "" where the log holds one run.
    """

    events: Sequence[Event]
    run_id: str | None = None
    place: str = ""
    task_id: str | None = None
    benchmark: str | None = None
    model: str | None = None
    agent: str | None = None
    task: str | None = None
    answer: str | None = None
    artifact: Mapping[str, bytes] = field(default_factory=dict)
    targets: Sequence[str] = ()
    scoring_rule: str | None = None
    score: ScoreRecord | None = None


def filled(draft: Draft, filling: Filling, run_id: str) -> RunBundle:
    """The bundle of a draft under a name, with what was missing named in its manifest."""
    spec = _spec(draft, filling)
    recorded = draft.score or filling.scores.get(run_id) or ScoreRecord(score=None)
    artifact = dict(draft.artifact)
    if not artifact and draft.answer is not None:
        artifact = {"answer.txt": clean(draft.answer).encode()}
    named = {
        "benchmark": draft.benchmark or filling.benchmark,
        "task_id": draft.task_id,
        "model": draft.model or filling.model,
        "agent": draft.agent or filling.agent,
        "intended_capability": spec.intended_capability,
        "intended_task": spec.intended_task,
        "allowed": spec.allowed,
        "withheld": spec.withheld,
        "scoring_rule": spec.scoring_rule,
        "artifact": artifact,
        "score": recorded.passed if recorded.score is None else recorded.score,
        "validity_check": recorded.validity_check,
    }
    unfilled = [name for name, value in named.items() if value is None or value in ((), {})]
    header = Header(
        run_id=run_id,
        benchmark=name_of(named["benchmark"] or "unknown"),
        task_id=name_of(draft.task_id or draft.run_id or run_id),
        model=name_of(named["model"] or "unknown"),
        agent=name_of(named["agent"]) if named["agent"] else None,
        protocol_kind=filling.protocol_kind,
        cohort_sampling=filling.cohort_sampling,
        unfilled=(*unfilled, "comparison"),
    )
    return make_bundle(header, spec=spec, events=draft.events, score=recorded, artifact=artifact)


def _spec(draft: Draft, filling: Filling) -> Spec:
    given = filling.spec or Spec()
    targets = tuple(clean(target) for target in draft.targets if target.strip())
    return given.model_copy(
        update={
            "intended_task": given.intended_task or (clean(draft.task) if draft.task else None),
            "scoring_rule": given.scoring_rule or draft.scoring_rule,
            "withheld": (*given.withheld, *((Withheld(id="target", strings=targets),) if targets else ())),
        }
    )


class EventList:
    """Events as they are found, numbered in order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, actor: Actor, kind: Kind, text: str = "", **more: Any) -> None:
        """Append one event; empty messages are left out."""
        if text.strip() or more or kind in ("tool_result", "submit"):
            told: dict[str, Any] = {k: clean(v) if isinstance(v, str) else v for k, v in more.items()}
            self._events.append(Event(i=len(self._events), actor=actor, kind=kind, text=clean(text), **told))

    def call(self, tool: str, arguments: Any, call_id: str | None = None) -> None:
        """Append a tool call, or a submission where the tool is one that submits."""
        args = (
            arguments
            if isinstance(arguments, dict)
            else {}
            if arguments in (None, "")
            else {"input": arguments}
        )
        kind: Kind = "submit" if _SCORING_TOOL.match(tool) else "tool_call"
        self.add("agent", kind, tool=tool, args=clean_json(args), call_id=call_id)

    @property
    def found(self) -> tuple[Event, ...]:
        """The events so far."""
        return tuple(self._events)


def clean(text: str) -> str:
    """Text without lone surrogates, which UTF-8 cannot hold."""
    return _SURROGATE.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """The value with clean texts; nesting deeper than a bundle may have becomes text."""
    return _cleaned(value, 60)


def _cleaned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict | list) and depth == 0:
        return "[nested too deeply]"
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(one, depth - 1) for key, one in value.items()}
    return [_cleaned(one, depth - 1) for one in value] if isinstance(value, list) else value


def name_of(text: object) -> str:
    """A name that a manifest may hold."""
    return clean(_CONTROL.sub(" ", str(text))).strip()[:300] or "unnamed"


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def finite(value: Any) -> float | None:
    """The value if it is a finite number, else None."""
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def text_of(content: Any) -> str:
    """The words of a message whose content is text, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_part(part) for part in content)))
    return ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    for key in ("text", "reasoning", "refusal", "content"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return f"[{part.get('type', 'part')} left out]"
