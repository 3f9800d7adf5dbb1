"""The judge behind any model that Inspect AI can call; needs the extra ``irtaudit[inspect]``."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Sequence
from importlib import import_module
from typing import Any

from irtaudit.errors import PlanError
from irtaudit.protocol.judges.budget import Budget
from irtaudit.protocol.judges.case import Judge, NoAnswerError
from irtaudit.protocol.judges.conversation import (
    READ_TOOL,
    Completion,
    ToolCall,
    Turn,
    converse,
    prompt_sha256,
)


def inspect_judge(model: Any, *, budget: Budget | None = None, timeout: float = 120.0) -> Judge:
    """The judge "inspect".

    Parameters
    ----------
    model : str or inspect_ai Model
        "openai/gpt-5", "anthropic/...", as Inspect names it; keys come from the environment, as Inspect asks.
    budget : Budget, optional
        Shared meter and limit.
    timeout : float
        Seconds that one answer may take, retries of Inspect's own included.

    Raises
    ------
    PlanError
        If inspect_ai is not installed, or does not know the model.
    """
    try:
        api, tools = import_module("inspect_ai.model"), import_module("inspect_ai.tool")
    except ImportError:
        raise PlanError("the judge inspect needs Inspect AI: pip install 'irtaudit[inspect]'") from None
    meter, loop = budget or Budget(), _running_loop()
    try:
        known = model if not isinstance(model, str) else _wait(loop, _made(api, model), timeout)
    except Exception as error:  # whatever a provider raises for an unknown model or a missing key
        raise PlanError(f"Inspect AI cannot use model {model!r}: {type(error).__name__}: {error}") from None
    tool = tools.ToolInfo(
        name=READ_TOOL["name"],
        description=READ_TOOL["description"],
        parameters=tools.ToolParams(**{k: v for k, v in READ_TOOL["parameters"].items() if k != "type"}),
    )

    def complete(turns: Sequence[Turn], may_read: bool) -> Completion:
        meter.start()
        messages = [_message(api, tools, turn) for turn in turns]
        config = api.GenerateConfig(timeout=int(timeout), max_retries=3)
        request = known.generate(input=messages, tools=[tool] if may_read else [], config=config)
        try:
            output = _wait(loop, request, timeout)
        except Exception as error:  # providers raise their own kinds; each is "no answer" here
            raise NoAnswerError(f"Inspect AI: {type(error).__name__}: {str(error)[:200]}") from None
        return _completion(output, meter)

    return Judge(
        name="inspect",
        ask=lambda case: converse(case, complete),
        model=str(known),
        prompt_sha256=prompt_sha256(),
        remembered=True,
    )


async def _made(api: Any, model: str) -> Any:
    return api.get_model(model)


def _running_loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own: Inspect's connections belong to the loop they were made in."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="inspect", daemon=True).start()
    return loop


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], timeout: float) -> Any:
    return asyncio.run_coroutine_threadsafe(work, loop).result(timeout + 5)


def _message(api: Any, tools: Any, turn: Turn) -> Any:
    if turn.role == "assistant":
        calls = [
            tools.ToolCall(id=c.id, function=c.name, arguments=_arguments(c.arguments)) for c in turn.calls
        ]
        return api.ChatMessageAssistant(content=turn.text, tool_calls=calls or None)
    if turn.role == "tool":
        return api.ChatMessageTool(content=turn.text, tool_call_id=turn.call_id, function=READ_TOOL["name"])
    return (api.ChatMessageSystem if turn.role == "system" else api.ChatMessageUser)(content=turn.text)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _completion(output: Any, meter: Budget) -> Completion:
    usage = output.usage
    tokens_in, tokens_out = (usage.input_tokens, usage.output_tokens) if usage else (0, 0)
    meter.add(tokens_in, tokens_out)
    if not output.choices:
        raise NoAnswerError(f"Inspect AI: no message ({output.error or 'no reason given'})")
    message = output.choices[0].message
    calls = tuple(
        ToolCall(call.id, call.function, json.dumps(call.arguments)) for call in message.tool_calls or ()
    )
    return Completion(message.text, calls, tokens_in, tokens_out)
