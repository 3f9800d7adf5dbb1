"""Logs of other tools become bundles that load, audit, and say what they could not fill."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from irtaudit.errors import DataError
from irtaudit.protocol.adapters.convert import convert, read_bundles
from irtaudit.protocol.adapters.draft import Filling
from irtaudit.protocol.adapters.scores import read_scores
from irtaudit.protocol.audit import audit_protocol
from irtaudit.protocol.bundle import RunBundle
from irtaudit.protocol.judges.rules import rules_judge
from irtaudit.protocol.load import find_bundles, load_bundle
from irtaudit.protocol.models import ScoreRecord, Spec, Withheld
from irtaudit.protocol.write import ExistsError

LOGS = Path(__file__).parent / "inspect_logs"
RUNS = {
    "scout_websearch-addition-problem.eval": 1,
    "log_formats.eval": 1,
    "log_formats.json": 1,
    "log_tool_call_error.json": 1,
    "mmlu-summary-choices.eval": 1,
    "popularity.eval": 10,
    "security-guide.json": 3,
}


def bundles(path: Path, **how: Any) -> list[RunBundle]:
    return [bundle for _, bundle in read_bundles(path, **how)]


@pytest.mark.parametrize("name", RUNS)
def test_real_inspect_logs_convert_and_audit(name: str, tmp_path: Path) -> None:
    done = convert(LOGS / name, tmp_path / "out").done
    assert len(done) == RUNS[name]
    assert {one.format for one in done} == {"inspect"}
    audit = audit_protocol(find_bundles([tmp_path / "out"]), rules_judge())
    assert len(audit.traces) == RUNS[name]
    assert audit.refused == ()
    assert all(trace.n_events >= 1 and trace.header.unfilled for trace in audit.traces)


def test_both_inspect_formats_give_the_same_run() -> None:
    (zipped,), (plain,) = bundles(LOGS / "log_formats.eval"), bundles(LOGS / "log_formats.json")
    for key in ("message", "submit"):
        texts = [[e.text for e in one.events if e.kind == key] for one in (zipped, plain)]
        assert texts[0]
        assert texts[0] == texts[1] or key == "submit"  # two runs of one task: the model's words may differ
    assert zipped.spec.intended_task == plain.spec.intended_task
    assert zipped.manifest.benchmark == plain.manifest.benchmark == "popularity"


def test_an_inspect_sample_keeps_target_score_and_explanation() -> None:
    first, *_ = bundles(LOGS / "security-guide.json")
    assert first.spec.withheld == (
        Withheld(id="target", strings=("use parameterized queries and prepared statements",)),
    )
    assert (first.score.score, first.score.max, first.score.passed) == (1.0, 1.0, True)
    assert first.events[-1].actor == "grader"
    assert "parameterized queries" in first.events[-1].text
    assert first.contents["A/answer.txt"].decode() == first.events[-2].text
    assert first.manifest.model == "openai/gpt-4o-mini"
    assert set(first.manifest.unfilled) == {"intended_capability", "allowed", "validity_check", "comparison"}
    (graded,) = bundles(LOGS / "mmlu-summary-choices.eval")
    assert (graded.score.score, graded.score.passed) == (0.0, False)


def test_a_tool_using_log_keeps_calls_and_failures() -> None:
    (bundle,) = bundles(LOGS / "log_tool_call_error.json")
    assert [event.kind for event in bundle.events] == ["error"] * 11
    assert [event.call_id for event in bundle.events][:2] == ["bash_1", "bash_2"]
    assert "timeout: " in bundle.events[1].text
    assert bundle.score.score is None
    assert {"score", "artifact", "scoring_rule"} <= set(bundle.manifest.unfilled)


def inspect_log(path: Path, messages: list[dict[str, Any]], **sample: Any) -> Path:
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": [{"id": "s", "epoch": 2, "input": "q", "target": "", "messages": messages, **sample}],
    }
    path.write_text(json.dumps(log))
    return path


def test_inspect_calls_reasoning_and_attachments_are_put_in_order(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "attachment://long"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "think"}, {"type": "text", "text": "look"}],
            "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"command": "cat a"}}],
        },
        {"role": "tool", "content": "result", "tool_call_id": "c1", "function": "bash"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c2", "function": "submit", "arguments": {"answer": "4"}}],
        },
    ]
    scores = {"accuracy": {"value": 0.25}, "other": {"value": "C"}}
    (bundle,) = bundles(
        inspect_log(tmp_path / "l.json", messages, attachments={"long": "the question"}, scores=scores)
    )
    told = [(event.actor, event.kind) for event in bundle.events]
    assert told == [
        ("env", "message"),
        ("user", "message"),
        ("agent", "message"),
        ("agent", "tool_call"),
        ("tool", "tool_result"),
        ("agent", "submit"),
        ("grader", "message"),
        ("grader", "message"),
    ]
    assert bundle.events[1].text == "the question"
    assert bundle.events[3].args == {"command": "cat a"}
    assert bundle.score.components == {"accuracy": 0.25, "other": "C"}
    assert (bundle.score.score, bundle.score.max) == (0.25, None)
    assert bundle.manifest.run_id == "l/s/2"


def test_hostile_inspect_logs_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "bomb.eval"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        archive.writestr("samples/1_epoch_1.json", b" " * 300_000_000)
    with pytest.raises(DataError, match="more than is read"):
        bundles(place)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.json", '{"eval": {}}')
    with pytest.raises(DataError, match=r"irtaudit\[inspect\]|samples|readable"):
        bundles(place)
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("other.txt", "x")
    with pytest.raises(DataError, match=r"no header\.json"):
        bundles(place)


ATIF = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s-1",
    "agent": {"name": "harness", "version": "1", "model_name": "model-x"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "rules"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "task"}, {"type": "image"}]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "looking",
            "reasoning_content": "hm",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "git log --all"}}
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": "4e1b9d2 fix"},
                    {"subagent_trajectory_ref": [{}]},
                ]
            },
        },
        {"step_id": 4, "source": "agent", "message": "done"},
    ],
}


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.4", "1.5", "ATIF-v1.7"])
def test_atif_trajectories(version: str, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({**ATIF, "schema_version": version}))
    ((kind, bundle),) = read_bundles(path, Filling(benchmark="b"))
    assert kind == "atif"
    assert [event.kind for event in bundle.events] == [
        *("message", "message", "reasoning", "message", "tool_call", "tool_result", "tool_result", "submit"),
    ]
    assert bundle.events[1].text == "task\n[image left out]"
    assert bundle.events[6].text == "[delegated to a subagent]"
    manifest = bundle.manifest
    assert (manifest.run_id, manifest.model, manifest.agent, manifest.benchmark) == (
        "s-1",
        "model-x",
        "harness",
        "b",
    )
    assert {"score", "withheld", "task_id"} <= set(manifest.unfilled)
    assert bundle.contents["A/answer.txt"] == b"done"
    audit = audit_protocol([bundle], rules_judge())
    assert [one.candidate.rules for one in audit.findings] == [("git_history@1",)]


def test_atif_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({**ATIF, "schema_version": "ATIF-v2.0"}))
    with pytest.raises(DataError, match=r"versions 1\.0 to 1\.7"):
        bundles(path)


def test_swe_agent_trajectories(tmp_path: Path) -> None:
    path = tmp_path / "acme__widgets-12.traj"
    steps = [
        {"thought": "look", "action": "ls -F\n", "observation": "src/", "response": "look\nls -F"},
        {"response": "words without an action", "action": "", "observation": ""},
        {"thought": "done", "action": "submit\n", "observation": "diff"},
    ]
    told = {
        "trajectory": steps,
        "history": [{"role": "system", "content": "x"}, {"role": "user", "content": "repair it"}],
        "info": {"submission": "diff --git a/x b/x\n+\udcff", "exit_status": "submitted"},
    }
    path.write_text(json.dumps(told))
    ((kind, bundle),) = read_bundles(path)
    assert kind == "swe-agent"
    assert [event.kind for event in bundle.events] == [
        *(
            "message",
            "reasoning",
            "tool_call",
            "tool_result",
            "reasoning",
            "tool_result",
            "reasoning",
            "submit",
        ),
        "tool_result",
    ]
    assert bundle.manifest.task_id == "acme__widgets-12"
    assert bundle.contents["A/patch.diff"].startswith(b"diff --git")
    assert {"score", "model", "benchmark"} <= set(bundle.manifest.unfilled)


def test_openai_messages_one_conversation_a_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    messages = [
        {"role": "user", "content": "2+2?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "calc", "arguments": '{"x": "2+2"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "4"},
        {"role": "assistant", "content": "It is 4."},
    ]
    first = {
        "messages": messages,
        "id": "a",
        "task_id": "sum",
        "score": 1,
        "max": 1,
        "passed": True,
        "target": "4",
    }
    path.write_text("\n".join(json.dumps(one) for one in (first, {"messages": messages})) + "\n\n")
    one, other = bundles(path, filling=Filling(benchmark="b", model="m"))
    assert [event.kind for event in one.events] == ["message", "tool_call", "tool_result", "submit"]
    assert one.events[1].args == {"x": "2+2"}
    assert (one.manifest.run_id, other.manifest.run_id) == ("a", "runs-2")
    assert (one.score.score, one.score.passed, other.score.score) == (1.0, True, None)
    assert one.spec.withheld[0].strings == ("4",)
    assert one.contents["A/answer.txt"] == b"It is 4."


def test_openai_messages_one_message_a_line(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "hi"}\n{"role": "assistant", "content": "ho"}\n')
    (bundle,) = bundles(path)
    assert [event.text for event in bundle.events] == ["hi", "ho"]
    assert bundle.manifest.run_id == "chat"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{}", "none of the logs"),
        ("a.txt", "hello", "not JSON"),
        ("a.jsonl", '{"messages": []}\n{"x": 1}\n', "line 2"),
        ("a.jsonl", '{"messages": []}\n{', "line 2"),
        ("a.json", "[" * 200_000, "nested too deeply"),
        ("a.json", '{"version": 2, "eval": {}, "samples": []}', "no samples"),
        ("a.traj", '{"trajectory": [1]}', "step 1"),
        ("a.json", '{"schema_version": "ATIF-v1.4", "steps": [[]]}', "step 1"),
    ],
)
def test_what_is_no_log_is_refused_in_one_sentence(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        bundles(tmp_path / name)


def test_a_specification_fills_what_the_log_leaves_out() -> None:
    spec = Spec(intended_capability="c", allowed=("x",), withheld=(Withheld(id="w", paths=("/w",)),))
    first, *_ = bundles(LOGS / "security-guide.json", filling=Filling(spec=spec, cohort_sampling="random"))
    assert [one.id for one in first.spec.withheld] == ["w", "target"]
    assert set(first.manifest.unfilled) == {"validity_check", "comparison"}
    assert first.manifest.cohort_sampling == "random"
    assert first.spec.intended_task


def test_odd_names_give_safe_files_that_do_not_collide(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    names = ["../../etc/passwd", "a/b", "a-b", "a b", "ä", "x" * 500, "\x00\n"]
    path.write_text(
        "\n".join(json.dumps({"id": name, "messages": [{"role": "user", "content": "q"}]}) for name in names)
    )
    done = convert(path, tmp_path / "out").done
    assert len({one.path for one in done}) == len(names)
    assert all(one.path.parent == tmp_path / "out" and len(one.path.name) < 120 for one in done)
    assert load_bundle(done[0].path).manifest.run_id == "../../etc/passwd"


def chat(path: Path, *lines: dict[str, Any]) -> Path:
    """JSON lines, each a conversation in which the model says where it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = [{"role": "assistant", "content": f"{path} {number}"} for number in range(len(lines))]
    rows = [{"messages": [words], **line} for words, line in zip(said, lines, strict=True)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def traj(path: Path, *actions: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"trajectory": [{"action": one, "observation": ""} for one in actions]}))
    return path


def test_runs_of_one_name_are_all_written_under_the_paths_of_their_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for place in ("gpt/task-1.traj", "claude/task-1.traj", "claude/task-2.traj"):
        traj(logs / place)  # empty runs: alike in every byte, and still three of them
    chat(logs / "a.jsonl", {"id": "x"}, {"id": "y"}, {"id": "x"}, {})
    chat(logs / "b.jsonl", {"id": "x"}, {"id": "z"})
    chat(logs / "task-2.jsonl", {})
    found = convert(logs, tmp_path / "out")
    names = [one.run_id for one in found.done]
    apart = {"gpt/task-1", "claude/task-1", "claude/task-2", "b/x"}
    assert set(names) > apart | {"y", "z", "a-4"}
    assert len(names) == len(set(names)) == 10
    assert set(found.apart) > apart
    assert not {"x", "task-1", "task-2", "y", "a-4"} & set(found.apart)
    assert found.left_out == ()
    audit = audit_protocol(find_bundles([tmp_path / "out"]), rules_judge())
    assert {trace.header.run_id for trace in audit.traces} == set(names)
    words = {
        trace.header.run_id: load_bundle(trace.source).contents.get("A/answer.txt") for trace in audit.traces
    }
    assert words["b/x"] == f"{logs / 'b.jsonl'} 0".encode()
    tasks = {trace.header.run_id: trace.header.task_id for trace in audit.traces}
    assert tasks["gpt/task-1"] == tasks["claude/task-1"] == "task-1"


def test_the_order_of_logs_does_not_choose_the_names(tmp_path: Path) -> None:
    names = []
    for first, second in (("a", "b"), ("b", "a")):
        logs = tmp_path / f"{first}{second}"
        chat(logs / f"{first}.jsonl", {"id": "x", "model": "one"})
        chat(logs / f"{second}.jsonl", {"id": "x", "model": "two"})
        done = convert(logs, tmp_path / "out" / logs.name).done
        names.append({(one.run_id, load_bundle(one.path).manifest.model) for one in done})
    assert names == [{("a/x", "one"), ("b/x", "two")}, {("b/x", "one"), ("a/x", "two")}]


def test_a_score_for_a_name_that_two_runs_have_is_given_to_neither(tmp_path: Path) -> None:
    traj(tmp_path / "logs" / "a" / "run.traj")
    traj(tmp_path / "logs" / "b" / "run.traj")
    scores = {"run": ScoreRecord(score=1.0), "b/run": ScoreRecord(score=0.5)}
    done = convert(tmp_path / "logs", tmp_path / "out", Filling(scores=scores)).done
    assert {one.run_id: load_bundle(one.path).score.score for one in done} == {"a/run": None, "b/run": 0.5}


def test_what_is_there_is_left_out_and_what_another_run_is_called_is_refused(tmp_path: Path) -> None:
    log, out = tmp_path / "logs" / "x.jsonl", tmp_path / "out"
    chat(log, {"id": "a"}, {"id": "b"})
    assert len(convert(log, out).done) == 2
    with pytest.raises(ExistsError, match=r"2 runs already in .*\(a.zip\)"):
        convert(log, out)
    (out / "a.zip").unlink()
    again = convert(tmp_path / "logs", out)  # the run behind one that is there is not lost
    assert [one.run_id for one in again.done] == ["a"]
    assert again.left_out == (f"{log}: 1 run already in {out} (b.zip)",)
    other = chat(tmp_path / "other" / "y.jsonl", {"id": "b"})
    with pytest.raises(ExistsError, match=r"is not the run 'b' of .*y\.jsonl; name another folder"):
        convert(other, out)
    (out / "b.zip").write_text("damaged")
    with pytest.raises(ExistsError, match="is not the run 'b'"):
        convert(log, out)


def test_a_sample_in_two_inspect_logs_is_one_run(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("first.json", "retried.json"):
        inspect_log(tmp_path / "logs" / name, [], uuid="u1")
    inspect_log(tmp_path / "logs" / "unnamed.json", [])
    (tmp_path / "logs" / "deep").mkdir()
    inspect_log(tmp_path / "logs" / "deep" / "unnamed.json", [])
    found = convert(tmp_path / "logs", tmp_path / "out")
    assert {one.run_id for one in found.done} == {"u1", "unnamed/s/2", "deep/unnamed/s/2"}
    assert found.left_out == (
        f"{tmp_path / 'logs' / 'retried.json'}: 1 sample that an earlier log holds too",
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("id,score\na,1\n", "expected run_id, and score or passed"),
        ("run_id,max\na,1\n", "expected run_id, and score or passed"),
        ("run_id,score\na,high\n", "score 'high' is not a number"),
        ("run_id,score\na,inf\n", "score 'inf' is not a number"),
        ("run_id,score\na,nan\n", "score 'nan' is not a number"),
        ("run_id,passed\na,maybe\n", "passed 'maybe' is neither true nor false"),
        ("run_id,score\na,1\na,2\n", "run 'a' is there twice"),
    ],
)
def test_a_table_of_scores_is_checked(table: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(table)
    with pytest.raises(DataError, match=re.escape(said)):
        read_scores(tmp_path / "s.csv")


def test_a_table_of_scores_says_what_was_recorded_and_the_log_wins(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("run_id,score,max,passed,validity_check\na,0.5,2,,FALSE\nb,,,pass,\n")
    scores = read_scores(tmp_path / "s.csv")
    assert scores == {
        "a": ScoreRecord(score=0.5, max=2.0, validity_check=False),
        "b": ScoreRecord(score=None, passed=True),
    }
    lines = [
        {"id": "a", "messages": []},
        {"id": "b", "messages": []},
        {"id": "a", "messages": [], "score": 1},
    ]
    (tmp_path / "c.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    silent, passed, told = bundles(tmp_path / "c.jsonl", filling=Filling(scores=scores))
    assert (silent.score, passed.score) == (scores["a"], scores["b"])
    assert not {"score", "validity_check"} & set(silent.manifest.unfilled)
    assert "score" not in passed.manifest.unfilled
    assert told.score == ScoreRecord(score=1.0)
