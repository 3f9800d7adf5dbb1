"""The pipeline: rules judge, replay, saved answers, resumption, and what happens to bundles that go wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chat_server import Served, message, serving
from protocol_builders import SECRET, STEPS, WITHHELD, answer, run, saying

from irtaudit.errors import DataError
from irtaudit.protocol.audit import Refused, TraceResult, audit_protocol, audit_run, trace_state
from irtaudit.protocol.judges.case import Case, Judge, NoAnswerError, Reply
from irtaudit.protocol.judges.replay import Recorded, read_answers, replay_judge
from irtaudit.protocol.judges.rules import rules_judge
from irtaudit.protocol.models import ScoreRecord, Spec, Withheld
from irtaudit.protocol.output import write_results
from irtaudit.protocol.write import write_bundle


def state(**how: Any) -> str:
    return audit_run(run(**how), rules_judge()).state


LOOKED_UP = [("user", "go"), ("bash", "git log --all --oneline"), ("result", SECRET), ("submit", "answer.py")]
OWN = b"".join(b"mine_%d = [%d]\n" % (n, n) for n in range(12))


def test_rules_judge_labels_copies_of_what_is_withheld() -> None:
    assert state() == "positive"
    assert state(artifact={"answer.py": OWN}) == "negative"
    assert state(score=ScoreRecord(score=0.0)) == "negative"
    assert state(artifact={"answer.py": SECRET[:50].encode() + OWN}) == "abstained"


def test_rules_judge_labels_copies_of_what_was_looked_up() -> None:
    spec = Spec()
    assert state(steps=LOOKED_UP, spec=spec) == "positive"
    assert state(steps=LOOKED_UP, spec=spec, artifact={"answer.py": OWN}) == "negative"
    early = [("user", "go"), ("bash", SECRET), *LOOKED_UP[1:]]
    assert state(steps=early, spec=spec) != "positive"  # the agent had written it before it looked


def test_rules_judge_sees_a_withheld_string_that_was_submitted() -> None:
    spec = Spec(withheld=(Withheld(id="key", paths=(WITHHELD,), strings=("flag-7f3a-9b2c-11",)),))
    steps = [*STEPS[:2], ("result", "the key is flag-7f3a-9b2c-11"), *STEPS[3:]]
    assert state(steps=steps, spec=spec, artifact={"answer.txt": b"flag-7f3a-9b2c-11\n"}) == "positive"
    assert state(steps=steps, spec=spec, artifact={"answer.txt": b"flag-0000-0000-00\n"}) == "negative"


def test_rules_judge_leaves_open_what_it_cannot_tell() -> None:
    tests = [("user", "go"), ("bash", "cat tests/test_a.py"), ("submit", "x")]
    assert state(steps=tests, spec=Spec()) == "abstained"
    assert state(steps=tests) == "negative"  # the specification withholds something else
    assert state(steps=[("user", "go"), ("bash", "rm tests/test_a.py"), ("submit", "x")]) == "abstained"
    copied = [("user", "go"), ("bash", "less it"), ("result", SECRET), ("submit", "x")]
    assert state(steps=copied) == "abstained"


def test_a_run_is_what_its_strongest_finding_is() -> None:
    assert trace_state([]) == "no_candidate"
    assert trace_state(["negative", "negative"]) == "negative"
    assert trace_state(["negative", "abstained"]) == "abstained"
    assert trace_state(["abstained", "unsupported", "invalid"]) == "unsupported"
    assert trace_state(["abstained", "positive", "invalid"]) == "positive"


def written(tmp_path: Path, n: int = 3) -> list[Path]:
    return [write_bundle(run(name=f"run-{i}"), tmp_path / "in" / f"{i}.zip") for i in range(n)]


def test_workers_do_not_change_the_result(tmp_path: Path) -> None:
    places = written(tmp_path, 9)
    one, four = (audit_protocol(places, rules_judge(), workers=n) for n in (1, 4))
    assert [t.header.run_id for t in four.traces] == [f"run-{i}" for i in range(9)]
    for folder, audit in (("one", one), ("four", four)):
        write_results(audit, tmp_path / folder)
    assert (tmp_path / "one/protocol.json").read_bytes() == (tmp_path / "four/protocol.json").read_bytes()


def test_a_broken_bundle_is_refused_and_the_others_are_audited(tmp_path: Path) -> None:
    good, bad, _ = written(tmp_path)
    bad.write_bytes(b"PK\x05\x06" + b"\0" * 18)
    seen: list[TraceResult | Refused] = []
    audit = audit_protocol([good, bad], rules_judge(), progress=lambda _, result: seen.append(result))
    assert len(audit.traces) == len(audit.refused) == 1
    assert "manifest.json is missing" in audit.refused[0].reason
    assert [type(one) for one in seen] == [TraceResult, Refused]
    with pytest.raises(DataError, match="no bundle could be read"):
        audit_protocol([bad], rules_judge())


def test_a_run_counts_once(tmp_path: Path) -> None:
    place = write_bundle(run(), tmp_path / "a.zip")
    copy = write_bundle(run(), tmp_path / "b.zip")
    with pytest.raises(DataError, match="same run_id"):
        audit_protocol([place, copy], rules_judge())
    with pytest.raises(DataError, match="same run_id"):
        audit_protocol([place, place], rules_judge())


def test_a_bundle_that_changes_while_it_is_judged_has_no_valid_finding(tmp_path: Path) -> None:
    place = write_bundle(run(), tmp_path / "b")

    def meddle(_: Case) -> Reply:
        (place / "A/answer.py").write_bytes(b"other")
        return Reply(answer())

    audit = audit_protocol([place], Judge("meddler", meddle))
    assert audit.traces[0].state == "invalid"
    assert {f.rule for one in audit.findings for f in one.failures} >= {"V14"}


def test_a_judge_that_fails_leaves_the_reason_and_no_record() -> None:
    def fail(_: Case) -> Reply:
        raise NoAnswerError("the budget is spent (2 requests)")

    trace = audit_run(run(), Judge("poor", fail))
    assert trace.state == "invalid"
    assert all(one.record is None and one.answer is None for one in trace.findings)
    assert trace.findings[0].failures[0].says == "the budget is spent (2 requests)"


def test_answers_are_repeated_by_replay_and_only_about_the_same_bundle(tmp_path: Path) -> None:
    audit = audit_protocol([run()], saying(answer(), reads=()))
    write_results(audit, tmp_path / "out")
    recorded = read_answers(tmp_path / "out" / "answers.jsonl")
    again = audit_protocol([run()], replay_judge(recorded))
    assert [one.state for one in again.findings] == [one.state for one in audit.findings]
    changed = run(score=ScoreRecord(score=0.9))
    stale = audit_protocol([changed], replay_judge(recorded))
    assert {f.rule for one in stale.findings for f in one.failures} >= {"V14"}
    nobody = audit_protocol([run()], replay_judge({}))
    assert {one.state for one in nobody.findings} == {"invalid"}


def test_a_file_of_answers_is_checked_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"run_id": "x"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 1: candidate_id"):
        read_answers(tmp_path / "a.jsonl")


def test_saved_answers_are_not_asked_for_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(case: Case) -> Reply:
        asked.append(case.candidate.id)
        return Reply(answer(), tokens_in=5)

    places, folder = written(tmp_path), tmp_path / "answers"
    first = audit_protocol(places, Judge("dear", ask, remembered=True), answers=folder)
    count = len(asked)
    assert count == len(first.findings) == len(list(folder.iterdir())) > 2
    second = audit_protocol(places, Judge("dear", ask, remembered=True), answers=folder)
    assert len(asked) == count
    assert [one.state for one in second.findings] == [one.state for one in first.findings]
    audit_protocol(places, Judge("dear", ask, model="other", remembered=True), answers=folder)
    assert len(asked) == 2 * count
    audit_protocol(places, Judge("dear", ask, prompt_sha256="0" * 64, remembered=True), answers=folder)
    assert len(asked) == 3 * count
    next(folder.iterdir()).write_text("{half a fi")
    audit_protocol(places, Judge("dear", ask, remembered=True), answers=folder)
    assert len(asked) in (3 * count, 3 * count + 1)  # the damaged one may be another judge's


def test_kill_9_in_the_middle_and_resume_asks_nothing_twice(tmp_path: Path) -> None:
    written(tmp_path, 6)
    hold, reached = threading.Event(), threading.Event()
    stall = True

    def serve(_: dict[str, Any], number: int) -> Served:
        if stall and number == 8:
            reached.set()
            return Served(message(json.dumps(answer())), hold=hold)
        return Served(message(json.dumps(answer())))

    with serving(serve) as server:
        command = [sys.executable, "-m", "irtaudit", "protocol", str(tmp_path / "in"), "--judge", "openai"]
        command += [
            "--model",
            "m",
            "--base-url",
            server.url,
            "--out",
            str(tmp_path / "out"),
            "--workers",
            "1",
        ]
        key = "sk-never-written-0123"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        killed = subprocess.Popen(command, env={**os.environ, "OPENAI_API_KEY": key}, **quiet)  # type: ignore[call-overload]  # two streams
        assert reached.wait(60)
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait(10) == -signal.SIGKILL
        hold.set()
        time.sleep(0.1)
        stall = False
        saved = {path.name for path in (tmp_path / "out" / "answers").iterdir()}
        assert len(saved) == 7
        assert all(
            Recorded.model_validate_json((tmp_path / "out" / "answers" / n).read_bytes()) for n in saved
        )
        done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, check=True, timeout=120)
    assert "not supported" in done.stdout
    asked = Counter(
        request["messages"][1]["content"].split("CANDIDATE ")[1][:16] for request in server.requests
    )
    again = [request["messages"][1]["content"] for request in server.requests]
    repeated = [text for text, n in Counter(again).items() if n > 1]
    assert len(repeated) == 1  # the one that was in flight
    assert len(server.requests) == len(set(again)) + 1
    assert sum(asked.values()) == len(server.requests)
    assert server.keys[0] == f"Bearer {key}"
    written_out = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any(key.encode() in path.read_bytes() for path in written_out)
    report = json.loads((tmp_path / "out" / "protocol.json").read_text())
    assert len(report["traces"]) == 6
