"""SWE-agent ``.traj`` files: thought, action and observation a step; the submission is the patch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irtaudit.errors import DataError
from irtaudit.protocol.adapters.draft import Draft, EventList, clean_json, mapping, sequence, text_of


def looks_like(path: Path, first: Any) -> bool:
    """Whether a JSON value is such a file."""
    return isinstance(first, dict) and isinstance(first.get("trajectory"), list) and path.suffix == ".traj"


def read_draft(path: Path, value: dict[str, Any]) -> Draft:
    """The run in a ``.traj`` file. Whether the tests passed is kept elsewhere: the score stays unfilled.

    Raises
    ------
    DataError
        If a step is malformed.
    """
    events = EventList()
    history = [one for one in sequence(value.get("history")) if isinstance(one, dict)]
    task = next((text_of(one.get("content")) for one in history if one.get("role") == "user"), None)
    if task:
        events.add("user", "message", task)
    for number, step in enumerate(value["trajectory"], 1):
        if not isinstance(step, dict):
            raise DataError(f"{path}: step {number} is not a JSON object")
        _add_step(events, step)
    patch = mapping(value.get("info")).get("submission")
    return Draft(
        events=events.found,
        task_id=path.stem,
        agent="SWE-agent",
        task=task,
        artifact={"patch.diff": patch.encode("utf-8", "replace")} if isinstance(patch, str) else {},
    )


def _add_step(events: EventList, step: dict[str, Any]) -> None:
    thought = step.get("thought") or (step.get("response") if not step.get("action") else "")
    if isinstance(thought, str):
        events.add("agent", "reasoning", thought)
    action = step.get("action")
    if isinstance(action, str) and action.strip():
        submits = action.split()[0] in ("submit", "exit_forfeit")
        args = clean_json({"command": action.rstrip("\n")})
        events.add("agent", "submit" if submits else "tool_call", tool="shell", args=args)
    if isinstance(step.get("observation"), str):
        events.add("tool", "tool_result", step["observation"])
