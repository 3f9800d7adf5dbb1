"""ATIF ``trajectory.json`` (Agent Trajectory Interchange Format, 1.0 to 1.7), as Harbor writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irtaudit.errors import DataError
from irtaudit.protocol.adapters.draft import Draft, EventList, mapping, sequence, text_of

_VERSION = re.compile(r"^(?:ATIF-)?v?1\.([0-7])$", re.IGNORECASE)


def looks_like(path: Path, first: Any) -> bool:  # noqa: ARG001 - all adapters are asked alike
    """Whether a JSON value is a trajectory of this format."""
    return isinstance(first, dict) and "schema_version" in first and isinstance(first.get("steps"), list)


def read_draft(path: Path, value: dict[str, Any]) -> Draft:
    """The run in a trajectory. It holds no task, score or artifact: those stay unfilled.

    Raises
    ------
    DataError
        If the version is not one of 1.0 to 1.7, or a step is malformed.
    """
    version = str(value["schema_version"])
    if not _VERSION.match(version):
        raise DataError(f"{path}: ATIF version {version[:40]!r}; versions 1.0 to 1.7 are read")
    events = EventList()
    for number, step in enumerate(value["steps"], 1):
        if not isinstance(step, dict):
            raise DataError(f"{path}: step {number} is not a JSON object")
        _add_step(events, step, is_last=number == len(value["steps"]))
    agent = mapping(value.get("agent"))
    steps = [step for step in value["steps"] if step.get("source") == "agent"]
    answer = text_of(steps[-1].get("message")) if steps else ""
    return Draft(
        events=events.found,
        run_id=_id(value.get("session_id") or value.get("trajectory_id") or None),
        model=agent.get("model_name"),
        agent=agent.get("name"),
        task=next((text_of(s.get("message")) for s in value["steps"] if s.get("source") == "user"), None),
        answer=answer or None,
    )


def _add_step(events: EventList, step: dict[str, Any], *, is_last: bool) -> None:
    source, text = step.get("source"), text_of(step.get("message"))
    if source == "agent":
        if isinstance(step.get("reasoning_content"), str):
            events.add("agent", "reasoning", step["reasoning_content"])
        calls = [call for call in sequence(step.get("tool_calls")) if isinstance(call, dict)]
        if text.strip():
            events.add("agent", "submit" if is_last and not calls else "message", text)
        for call in calls:
            name = str(call.get("function_name") or "tool")
            events.call(name, call.get("arguments"), _id(call.get("tool_call_id")))
    else:
        events.add("user" if source == "user" else "env", "message", text)
    for call_id, content in _results(step):
        events.add("tool" if source == "agent" else "env", "tool_result", content, call_id=call_id)


def _results(step: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
    for result in sequence(mapping(step.get("observation")).get("results")):
        if isinstance(result, dict):
            delegated = result.get("subagent_trajectory_ref")
            text = text_of(result.get("content"))
            yield (
                _id(result.get("source_call_id")),
                text or ("[delegated to a subagent]" if delegated else ""),
            )


def _id(value: Any) -> str | None:
    return str(value) if value is not None else None
