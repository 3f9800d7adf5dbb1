"""describe says which runs a file or folder holds, and the command that it names works."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from protocol_builders import run as made_up

from irtaudit.cli import main
from irtaudit.data import ResponseMatrix, write_responses
from irtaudit.data.bundled import files
from irtaudit.data.describe import _of_logs
from irtaudit.data.read_logs import read_logs
from irtaudit.errors import DataError
from irtaudit.protocol.describe import describe_runs
from irtaudit.protocol.write import write_bundle

LOGS = Path(__file__).parent / "inspect_logs"
MESSAGES = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
ATIF = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s",
    "agent": {"name": "a", "model_name": "m-1"},
    "steps": [{"source": "user", "message": "hi"}, {"source": "agent", "message": "ho"}],
}
TRAJECTORY = {"trajectory": [{"action": "ls", "observation": "x"}], "info": {"submission": "diff"}}
CHAT = {"messages": MESSAGES, "id": "a", "model": "m-2", "score": 1}
KINDS = {
    "run.json": (json.dumps(ATIF, indent=1), "ATIF trajectories"),
    "run.traj": (json.dumps(TRAJECTORY), "SWE-agent trajectories"),
    "chat.jsonl": (f"{json.dumps(CHAT)}\n", "conversations in OpenAI-style JSON lines"),
    "lines.jsonl": (
        "".join(f"{json.dumps(m)}\n" for m in MESSAGES),
        "conversations in OpenAI-style JSON lines",
    ),
}


def irtaudit(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def described(*words: object) -> str:
    result = irtaudit("describe", *words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", KINDS)
def test_a_log_is_recognised_and_the_next_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content, kind = KINDS[name]
    Path(name).write_text(content)
    told = described(name)
    assert told.startswith(f"{name}: {kind}\n")
    following = told.partition("Next: ")[2].strip()
    assert following == f"irtaudit bundles convert {name} bundles"
    assert "note: Then: irtaudit protocol bundles" in told
    assert irtaudit(*shlex.split(following)[1:]).exit_code == 0
    bundles = described("bundles")
    assert bundles.startswith("bundles: retained runs (bundles)\n")
    assert bundles.endswith("Next: irtaudit protocol bundles\n")
    assert irtaudit("protocol", "bundles", "--quiet").exit_code == 0


def test_what_is_told_of_a_folder_can_be_recounted(tmp_path: Path) -> None:
    for name, (content, _) in KINDS.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "settings.json").write_text('{"temperature": 1}')
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "cut.traj").write_text('{"trajectory": [')
    found = describe_runs(tmp_path)
    assert found is not None
    assert found.facts["runs"] == 4
    assert found.facts["events"] == 8
    assert found.facts["models"] == "'m-2', 'unknown', 'm-1'"
    assert found.facts["scores"] == "1 of 4 runs have one"
    assert "score (3)" in found.facts["not said"]
    assert any("1 cannot be read, such as: " in note and "cut.traj" in note for note in found.notes)
    assert any(note.startswith("3 without a score") for note in found.notes)
    assert found.next == f"irtaudit bundles convert {tmp_path} bundles"


def test_bundles_are_counted_and_broken_ones_named(tmp_path: Path) -> None:
    demo = describe_runs(str(files("irtaudit.protocol") / "demo"))
    assert demo is not None
    assert (demo.facts["runs"], demo.facts["not said"]) == (9, "nothing")
    write_bundle(made_up(name="one"), tmp_path / "in" / "one")
    write_bundle(made_up(name="two", unfilled=("score",)), tmp_path / "in" / "two.zip")
    (tmp_path / "in" / "cut.zip").write_bytes((tmp_path / "in" / "two.zip").read_bytes()[:-40])
    found = describe_runs(tmp_path / "in")
    assert found is not None
    assert (found.facts["runs"], found.facts["events"]) == (2, 10)
    assert any("cut.zip" in note for note in found.notes)
    single = describe_runs(tmp_path / "in" / "one")
    assert single is not None
    assert single.next == f"irtaudit protocol {tmp_path / 'in' / 'one'}"


def test_inspect_logs_are_told_as_runs_where_inspect_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("irtaudit.protocol.describe.find_spec", lambda _: None)
    found = describe_runs(LOGS)
    assert found is not None
    assert (found.kind, found.facts["runs"]) == ("logs of Inspect AI", 18)
    assert any("irtaudit[inspect]" in note for note in found.notes)
    monkeypatch.setattr("irtaudit.protocol.describe.find_spec", lambda _: "there")
    assert describe_runs(LOGS) is None  # its responses are described, and a note says that it holds runs
    logs = read_logs(Path(__file__).parents[1] / "data" / "fixtures" / "swebench")
    assert any("bundles convert" in note for note in _of_logs("x", "Inspect AI", logs, {}).notes)
    assert not any("bundles convert" in note for note in _of_logs("x", "SWE-bench", logs, {}).notes)


def test_responses_and_logs_of_responses_are_not_taken_for_runs(tmp_path: Path) -> None:
    fixtures = Path(__file__).parents[1] / "data" / "fixtures"
    for name in ("lm_eval", "helm", "swebench"):
        assert describe_runs(fixtures / name) is None
    matrix = ResponseMatrix.from_array([[1, 0], [0, 1]], items=["role", "messages"])
    for format in ("wide-csv", "py-irt", "wide-parquet"):
        write_responses(matrix, tmp_path / f"{format}.jsonl", format)
        assert describe_runs(tmp_path / f"{format}.jsonl") is None
    (tmp_path / "samples_x.jsonl").write_text(
        json.dumps({"doc_id": 0, "arguments": {"messages": MESSAGES}, "filtered_resps": ["1"], "acc": 1.0})
    )
    assert describe_runs(tmp_path / "samples_x.jsonl") is None
    assert irtaudit("protocol", "--demo", "--quiet", "--out", tmp_path / "done").exit_code == 0
    assert "the folder of a finished protocol audit" in described(tmp_path / "done")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", json.dumps(ATIF)[:-30], "is not JSON"),
        ("a.json", json.dumps(ATIF | {"schema_version": "ATIF-v9.0"}), "ATIF version"),
        ("a.json", json.dumps(ATIF | {"steps": [[]]}), "step 1 is not a JSON object"),
        ("a.json", '{"schema_version": "ATIF-v1.5", "steps": ' + "[" * 100_000, "nested too deeply"),
        ("a.traj", json.dumps(TRAJECTORY)[:-5], "is not JSON"),
        ("a.traj", '{"x": 1}', "none of the logs"),
        ("a.jsonl", f"{json.dumps(CHAT)}\n{{", "line 2: not JSON"),
        ("a.jsonl", '{"messages": []}\n{"x": 1}\n', "line 2: no list of messages"),
        ("a.zip", "PK\x03\x04 cut off", "neither a folder nor a zip file"),
        ("a.eval", "PK\x03\x04 cut off", "a.eval"),
        ("a.zip", "", "neither a folder nor a zip file"),
    ],
    ids=[
        *(
            "cut ATIF",
            "ATIF of another version",
            "a step that is none",
            "deep ATIF",
            "cut traj",
            "other traj",
        ),
        *("cut chat", "chat and something else", "cut bundle", "cut Inspect log", "empty bundle"),
    ],
)
def test_what_is_cut_off_or_hostile_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, said: str
) -> None:
    monkeypatch.setattr("irtaudit.protocol.describe.find_spec", lambda _: None)
    (tmp_path / name).write_text(content)
    refused = irtaudit("describe", tmp_path / name)
    assert refused.exit_code == 2
    assert said in refused.output
    assert "Traceback" not in refused.output
    with pytest.raises(DataError):
        describe_runs(tmp_path / name)


def test_a_bundle_with_a_changed_file_or_a_way_out_is_refused(tmp_path: Path) -> None:
    place = write_bundle(made_up(), tmp_path / "run")
    score = place / "R" / "score.json"
    score.write_text('{"score": 0}')
    refused = irtaudit("describe", place)
    assert refused.exit_code == 2
    assert "is not the file its manifest lists" in refused.output
    score.unlink()
    score.symlink_to("/etc/passwd")
    assert "links are never followed" in irtaudit("describe", place).output
    shutil.rmtree(place)
    place.mkdir()
    os.mkfifo(place / "x.zip")
    assert irtaudit("describe", place).exit_code == 2  # a pipe is not waited for
