"""The judge behind Inspect AI: with Inspect AI itself where it is installed, with a stand-in everywhere."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from protocol_builders import answer, case

from irtaudit.errors import PlanError
from irtaudit.protocol.judges.budget import Budget, Limit
from irtaudit.protocol.judges.case import NoAnswerError
from irtaudit.protocol.judges.inspect import inspect_judge


@dataclass
class Message:
    content: str = ""
    tool_calls: Any = None
    tool_call_id: str = ""
    function: str = ""
    role: str = ""

    @property
    def text(self) -> str:
        return self.content


@dataclass
class Model:
    """Says what it is told to, and keeps what it was asked."""

    outputs: list[Any]
    asked: list[tuple[list[Message], list[Any]]] = field(default_factory=list)

    async def generate(self, input: list[Message], tools: list[Any], config: Any) -> Any:  # noqa: ARG002
        self.asked.append((input, tools))
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output

    def __str__(self) -> str:
        return "stand-in/model"


def output(text: str = "", calls: list[Any] | None = None) -> Any:
    message = Message(content=text, tool_calls=calls)
    usage = SimpleNamespace(input_tokens=7, output_tokens=3)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=usage, error=None)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    api, tools, root = ModuleType("inspect_ai.model"), ModuleType("inspect_ai.tool"), ModuleType("inspect_ai")
    for role in ("System", "User", "Assistant", "Tool"):
        made = lambda role=role, **more: Message(role=role.lower(), **more)  # noqa: E731 - four of a kind
        setattr(api, f"ChatMessage{role}", made)
    api.GenerateConfig = SimpleNamespace  # type: ignore[attr-defined]  # a module made by hand
    tools.ToolCall = tools.ToolInfo = tools.ToolParams = SimpleNamespace  # type: ignore[attr-defined]  # likewise
    for module in (root, api, tools):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("stand_in")
def test_a_conversation_through_the_stand_in() -> None:
    wanted = SimpleNamespace(
        id="c", function="read_file", arguments={"path": "A/answer.py", "start": 1, "end": 2}
    )
    model = Model([output(calls=[wanted]), output(json.dumps(answer()))])
    budget = Budget()
    judge = inspect_judge(model, budget=budget)
    reply = judge.ask(case())
    assert json.loads(str(reply.said)) == answer()
    assert [read.refused for read in reply.reads] == [""]
    assert [[m.role for m in asked] for asked, _ in model.asked] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
    ]
    assert model.asked[0][1][0].name == "read_file"
    assert budget.summary() == {"requests": 2, "tokens_in": 14, "tokens_out": 6, "cost": None}
    assert (judge.model, judge.remembered) == ("stand-in/model", True)


@pytest.mark.usefixtures("stand_in")
def test_failures_are_no_answer() -> None:
    with pytest.raises(NoAnswerError, match="RuntimeError: rate limited"):
        inspect_judge(Model([RuntimeError("rate limited")])).ask(case())
    with pytest.raises(NoAnswerError, match="budget is spent"):
        inspect_judge(Model([output()]), budget=Budget(Limit(tokens=0))).ask(case())
    nothing = SimpleNamespace(choices=[], usage=None, error="refused")
    with pytest.raises(NoAnswerError, match="refused"):
        inspect_judge(Model([nothing])).ask(case())


def test_without_inspect_ai_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(PlanError, match=r"pip install 'irtaudit\[inspect\]'"):
        inspect_judge("openai/gpt-5")


def test_with_inspect_ai_itself() -> None:
    """Inspect's own mock model reads a file and answers."""
    api = pytest.importorskip("inspect_ai.model", reason="the extra irtaudit[inspect] is not installed")
    tool_call = api.ModelOutput.for_tool_call(
        "mockllm/model", "read_file", {"path": "A/answer.py", "start": 1, "end": 2}
    )
    final = api.ModelOutput.from_content("mockllm/model", json.dumps(answer()))
    for one in (tool_call, final):
        # else the mock downloads a tokeniser to count with
        one.usage = api.ModelUsage(input_tokens=7, output_tokens=3)
    model = api.get_model("mockllm/model", custom_outputs=[tool_call, final])
    reply = inspect_judge(model).ask(case())
    assert json.loads(str(reply.said)) == answer()
    assert [read.refused for read in reply.reads] == [""]
    with pytest.raises(PlanError, match="cannot use model"):
        inspect_judge("nosuchprovider/model")
