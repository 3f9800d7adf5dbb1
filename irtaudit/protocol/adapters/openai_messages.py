"""OpenAI-style messages: a conversation of ``role, content, tool_calls`` as events; JSON lines as bundles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from irtaudit.data.files import decode_text, read_content
from irtaudit.errors import DataError
from irtaudit.protocol.adapters.draft import Draft, EventList, finite, sequence, text_of
from irtaudit.protocol.models import ScoreRecord


def looks_like(path: Path, first: Any) -> bool:
    """Whether the first JSON value of a file is a message, or a conversation."""
    return path.suffix == ".jsonl" and isinstance(first, dict) and bool({"role", "messages"} & first.keys())


def read_drafts(path: Path) -> Iterator[Draft]:
    """Runs in a file of JSON lines: one conversation a line (``{"messages": [...]}``), or one message a line.

    A conversation may carry ``id, task_id, benchmark, model, agent, score, max, passed, target``.

    Raises
    ------
    DataError
        If a line is not JSON, or neither a message nor a conversation.
    """
    values = list(_lines(path))
    if values and all("role" in value for value in values):
        yield _draft({"messages": values}, "")
        return
    for number, value in enumerate(values, 1):
        if not isinstance(value.get("messages"), list):
            raise DataError(f"{path}, line {number}: no list of messages; expected {{'messages': [...]}}")
        yield _draft(value, "" if len(values) == 1 else f"-{number}")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(decode_text(read_content(path), path).split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: not JSON ({error})") from None
            if not isinstance(value, dict):
                raise DataError(f"{path}, line {number}: expected a JSON object")
            yield value


def _draft(value: dict[str, Any], place: str) -> Draft:
    messages = value["messages"]
    events = EventList()
    add_messages(events, messages)
    answer = last_answer(messages)
    score = finite(value.get("score"))
    target = value.get("target")
    name = value.get("id") or value.get("run_id")
    return Draft(
        events=events.found,
        run_id=str(name) if name else None,
        place=place,
        task_id=_text(value.get("task_id")),
        benchmark=_text(value.get("benchmark")),
        model=_text(value.get("model")),
        agent=_text(value.get("agent")),
        task=next((text_of(m.get("content")) for m in messages if _role(m) == "user"), None),
        answer=answer,
        targets=[str(one) for one in (target if isinstance(target, list) else [target]) if one is not None],
        score=ScoreRecord(
            score=score,
            max=finite(value.get("max")),
            passed=value["passed"] if isinstance(value.get("passed"), bool) else None,
        )
        if score is not None
        else None,
    )


def add_messages(events: EventList, messages: Sequence[Any]) -> None:
    """Append the messages of a conversation; the last words of the agent are its submission."""
    last = max((n for n, m in enumerate(messages) if _role(m) == "assistant"), default=-1)
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        text = text_of(message.get("content"))
        role = _role(message)
        if role == "assistant":
            _assistant(events, message, text, is_last=number == last)
        elif role in ("tool", "function"):
            failed = message.get("error")
            events.add(
                "tool",
                "error" if failed else "tool_result",
                f"{text}\n{_failure(failed)}".strip() if failed else text,
                call_id=_text(message.get("tool_call_id")),
                tool=_text(message.get("function") or message.get("name")),
            )
        else:
            events.add("env" if role in ("system", "developer") else "user", "message", text)


def _assistant(events: EventList, message: dict[str, Any], text: str, *, is_last: bool) -> None:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        events.add("agent", "reasoning", reasoning)
    calls = [call for call in sequence(message.get("tool_calls")) if isinstance(call, dict)]
    if text.strip():
        events.add("agent", "submit" if is_last and not calls else "message", text)
    for call in calls:
        function = call.get("function")
        if isinstance(function, dict):  # OpenAI's own form
            name, arguments = function.get("name"), function.get("arguments")
        else:  # Inspect AI's
            name, arguments = function, call.get("arguments")
        events.call(str(name or "tool"), _parsed(arguments), _text(call.get("id")))


def last_answer(messages: Sequence[Any]) -> str | None:
    """The last words of the agent; None when it said nothing."""
    said = [text_of(m.get("content")) for m in messages if _role(m) == "assistant"]
    return next((text for text in reversed(said) if text.strip()), None)


def _role(message: Any) -> str:
    return str(message.get("role", "")) if isinstance(message, dict) else ""


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _failure(error: Any) -> str:
    return f"{error.get('type', '')}: {error.get('message', '')}" if isinstance(error, dict) else str(error)


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and str(value).strip() else None
