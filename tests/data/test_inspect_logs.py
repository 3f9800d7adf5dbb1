"""Real Inspect logs: by Inspect's own reader where it is installed, by a stand-in everywhere."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from irtaudit.data import inspect_logs, read_responses
from irtaudit.data.logs import CANCELLED, ERROR, SCORED, UNSCORED
from irtaudit.data.read_logs import read_logs
from irtaudit.errors import DataError, PlanError

FIXTURES = Path(__file__).parent / "fixtures" / "inspect"
INSTALLED = find_spec("inspect_ai") is not None


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value), object_hook=lambda fields: SimpleNamespace(**fields))


def _content(path: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.endswith(".json"):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return content, content.get("samples", [])
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json")), json.loads(archive.read("summaries.json"))


def _header(path: str, header_only: bool) -> Any:
    assert header_only
    content, _ = _content(path)
    content["eval"]["config"].setdefault("epochs", None)
    content["eval"]["dataset"].setdefault("sample_ids", None)
    return _plain(
        {"error": None} | {key: content[key] for key in ("status", "eval", "error") if key in content}
    )


def _summaries(path: str) -> list[Any]:
    samples = []
    for sample in _content(path)[1]:
        scores = {
            name: SimpleNamespace(value=score["value"], answer=score.get("answer"))
            for name, score in (sample.get("scores") or {}).items()
        }
        fields = {key: sample.get(key) for key in ("id", "epoch", "target", "error")}
        samples.append(SimpleNamespace(**fields, scores=scores))
    return samples


@pytest.fixture(params=["stand-in", "inspect_ai"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both readers, so that the stand-in is held to what Inspect itself reads."""
    if request.param == "stand-in":
        module = ModuleType("inspect_ai.log")
        module.__dict__.update(read_eval_log=_header, read_eval_log_sample_summaries=_summaries)
        monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
        monkeypatch.setitem(sys.modules, "inspect_ai.log", module)
    elif not INSTALLED:
        pytest.skip("Inspect AI, an extra, is not installed here; the stand-in is tested")
    return str(request.param)


Reader = pytest.mark.usefixtures("reader")


def rows_of(*names: str) -> pd.DataFrame:
    return read_logs(FIXTURES / names[0] if len(names) == 1 else FIXTURES).rows


@Reader
@pytest.mark.parametrize(
    ("name", "model", "task", "metric", "scores"),
    [
        ("2025-05-12T20-28-26-04-00_security-guide.json", "openai/gpt-4o-mini", "security_guide",
         "model_graded_fact", {"1": 1.0, "2": 1.0, "3": 1.0}),
        ("2025-05-12T20-28-13-04-00_popularity.json", "openai/gpt-4o-mini", "popularity", "match",
         {"1": 1.0, "2": 1.0, "3": 0.0}),
        ("log_formats.eval", "ollama/llama3.1", "popularity", "match", {"1": 0.0}),
        ("log_formats.json", "ollama/llama3.1", "popularity", "match", {"1": 0.0}),
        ("mmlu-summary-choices.eval", "openai/gpt-4o", "inspect_evals/mmlu_0_shot", "choice", {"1": 0.0}),
        ("scout_websearch-addition-problem.eval", "anthropic/claude-sonnet-4-5",
         "websearch_addition_problem", "match", {"1": 1.0}),
    ],
)  # fmt: skip
def test_real_logs(name: str, model: str, task: str, metric: str, scores: dict[str, float]) -> None:
    logs = read_logs(FIXTURES / name)
    assert dict(zip(logs.rows["item"], logs.rows["score"], strict=True)) == scores
    assert set(logs.rows["status"]) == {SCORED}
    assert (logs.tasks, logs.metrics, logs.subjects.index.tolist()) == ([task], [metric], [model])


@Reader
def test_a_finished_log_without_scores_is_unscored_and_said() -> None:
    name = "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval"
    logs = read_logs(FIXTURES / name)
    assert len(logs.rows) == 10
    assert set(logs.rows["status"]) == {UNSCORED}
    assert logs.rows["score"].isna().all()
    assert "10 sample(s) have no score" in logs.notes[0]


@Reader
def test_a_cancelled_log_keeps_what_it_finished_and_says_so() -> None:
    logs = read_logs(FIXTURES / "2025-05-12T20-28-13-04-00_popularity.json")
    assert logs.files["status"].tolist() == ["cancelled"]
    assert "the run is marked 'cancelled'" in logs.notes[0]
    assert logs.rows[["answer", "target"]].to_numpy().tolist() == [
        ["Yes", " Yes"],
        ["No", " No"],
        ["No", " Yes"],
    ]


@Reader
def test_a_folder_of_logs_and_a_copy_of_a_run() -> None:
    logs = read_logs(FIXTURES)
    assert logs.files["status"].value_counts().to_dict() == {"read": 6, "cancelled": 1, "superseded": 1}
    assert any(
        "log_formats.eval" in note and "a retry or a copy of the same run" in note for note in logs.notes
    )
    assert not logs.rows.duplicated(["model", "task", "item", "trial", "metric"]).any()
    assert set(read_logs(FIXTURES / "*.eval").files["file"].str[-5:]) == {".eval"}


@Reader
def test_separate_runs_of_a_task_are_trials(edited: Callable[..., Path]) -> None:
    edited("a.json")
    folder = edited("b.json", task_id="another", created="2026-01-01T00:00:00+00:00").parent
    rows = read_logs(folder).rows
    assert rows.groupby("item")["trial"].apply(list).to_dict() == {"1": [0, 1], "2": [0, 1], "3": [0, 1]}
    matrix = read_responses(folder, trials="first")
    assert matrix.responses.tolist() == [[1, 1, 0]]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """Write the real popularity log with changes."""
    source = json.loads((FIXTURES / "2025-05-12T20-28-13-04-00_popularity.json").read_text(encoding="utf-8"))

    def write(name: str, change: Callable[[dict[str, Any]], None] | None = None, **fields: Any) -> Path:
        content = json.loads(json.dumps(source))
        content["eval"] |= fields
        if change:
            change(content)
        path = tmp_path / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


@Reader
def test_epochs_are_trials(edited: Callable[..., Path]) -> None:
    def change(content: dict[str, Any]) -> None:
        content["eval"]["config"]["epochs"] = 2
        content["samples"] += [
            sample | {"epoch": 2} for sample in json.loads(json.dumps(content["samples"][:2]))
        ]
        content["samples"][3]["scores"]["match"]["value"] = "I"

    rows = read_logs(edited("x.json", change)).rows
    cells = rows.set_index(["item", "trial"])[["score", "status"]].T.to_dict("list")
    assert cells["1", 0] == [1.0, SCORED]
    assert cells["1", 1] == [0.0, SCORED]
    assert cells["3", 1] == [pytest.approx(float("nan"), nan_ok=True), CANCELLED]  # asked for, never ran


@Reader
def test_samples_that_broke_off_are_errors_not_fails(edited: Callable[..., Path]) -> None:
    def change(content: dict[str, Any]) -> None:
        content["status"] = "error"
        samples = content.pop("samples")  # Inspect writes the error before the samples
        content["error"] = {"message": "out of credit\nmore", "traceback": "", "traceback_ansi": ""}
        content["samples"] = samples
        content["samples"][1] |= {
            "scores": {},
            "error": {"message": "boom", "traceback": "", "traceback_ansi": ""},
        }
        del content["samples"][2]

    logs = read_logs(edited("x.json", change))
    assert logs.rows["status"].tolist() == [SCORED, ERROR, ERROR]
    assert (
        "the run is marked 'error': out of credit; 1 sample(s) never ran: '3'; 1 sample(s) broke off"
        in logs.notes[0]
    )
    assert read_responses(edited("x.json", change)).observed.tolist() == [[True, False, False]]


def _again(content: dict[str, Any], **fields: Any) -> None:
    content["samples"].append(json.loads(json.dumps(content["samples"][0])) | fields)


@Reader
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_again, "x.json: sample '1', epoch 1, is in it twice"),
        (lambda content: _again(content, id="1"), "x.json: sample '1', epoch 1, is in it twice"),
        (lambda content: _again(content, id=" "), "x.json: a sample has no id"),
        (lambda content: content["eval"].update(model=""), "x.json names no model"),
    ],
)
def test_samples_that_cannot_be_told_apart_are_refused(
    edited: Callable[..., Path], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_logs(edited("x.json", change))


@pytest.mark.skipif(not INSTALLED, reason="asks Inspect AI, an extra, which is not installed here")
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda content: content.replace(b"Yes", b"Y\xe8s", 1),
            "UTF-?8|utf-8",
        ),
        (lambda content: content.replace(b'"version": 2', b'"version": 99', 1), "version"),
        (lambda content: content.replace(b'"status": "cancelled"', b'"status": "odd"', 1), "AssertionError"),
        (lambda content: b"\xef\xbb\xbf" + content, "expected value at line 1 column 1"),
        (
            lambda content: content.replace(b'"value": "C"', b'"value": null', 1),
            r"samples\.0\.scores\.match\.value",
        ),
    ],
)
def test_what_inspect_says_of_the_damage_is_passed_on(
    tmp_path: Path, edit: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(edit((FIXTURES / "2025-05-12T20-28-13-04-00_popularity.json").read_bytes()))
    with pytest.raises(DataError, match=message) as caught:
        read_logs(path)
    assert str(caught.value).startswith(f"{path} is not an Inspect log, or is damaged")
    assert "\n" not in str(caught.value)


@Reader
@pytest.mark.parametrize("epoch", [0, -1, 10**30])
def test_an_epoch_that_cannot_be_is_refused(edited: Callable[..., Path], epoch: int) -> None:
    path = edited("x.json", lambda content: content["samples"][1].update(epoch=epoch))
    with pytest.raises(DataError, match=rf"x\.json: sample '2' has the epoch {epoch}, expected 1, 2"):
        read_logs(path)


@Reader
@pytest.mark.parametrize(
    ("value", "score", "valid"),
    [
        ("C", 1.0, True),
        ("I", 0.0, True),
        ("P", 0.5, True),
        ("N", 0.0, False),
        (True, 1.0, True),
        ("yes", 1.0, True),
        ("False", 0.0, True),
        (0.3, 0.3, True),
        ("0.3", 0.3, True),
        (7, 7.0, True),
        pytest.param(10**400, float("inf"), True, id="large"),
        ("a long story", None, True),
        ([1, 0], None, True),
    ],
)
def test_values_count_as_inspect_counts_them(
    edited: Callable[..., Path], value: Any, score: float | None, valid: bool
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["samples"][0]["scores"]["match"]["value"] = value

    row = read_logs(edited("x.json", change)).rows.iloc[0]
    assert row["status"] == (UNSCORED if score is None else SCORED)
    assert row["score"] == pytest.approx(float("nan") if score is None else score, nan_ok=True)
    assert bool(row["valid"]) is valid


@Reader
def test_a_score_of_several_values_has_a_metric_each(edited: Callable[..., Path]) -> None:
    def change(content: dict[str, Any]) -> None:
        content["samples"][0]["scores"]["match"]["value"] = {"safe": 1, "helpful": 0.5}

    rows = read_logs(edited("x.json", change)).rows
    assert rows[rows["item"] == "1"].set_index("metric")["score"].dropna().to_dict() == {
        "match.safe": 1.0,
        "match.helpful": 0.5,
    }


@pytest.mark.skipif(not INSTALLED, reason="asks Inspect AI, an extra, which is not installed here")
def test_letters_are_those_of_inspect_itself() -> None:
    from inspect_ai.scorer import value_to_float

    count = value_to_float()
    assert {letter: count(letter) for letter in inspect_logs.VALUES} == inspect_logs.VALUES


@Reader
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.eval", b"", "not a whole zip archive"),
        ("x.eval", b"PK\x03\x04 and no more", "not a whole zip archive"),
        ("x.json", b'{"version": 2, "status": "success", "eval": {', "is not an Inspect log, or is damaged"),
        ("x.json", b'{"version": 2, "status": "success", "eval": 3}', "is not an Inspect log, or is damaged"),
    ],
)
def test_damage_is_one_error_that_names_the_file(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_logs(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@Reader
def test_a_cut_off_archive_and_one_without_its_parts(tmp_path: Path) -> None:
    whole = (FIXTURES / "log_formats.eval").read_bytes()
    (tmp_path / "x.eval").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"x\.eval is not an Inspect log, or is cut off"):
        read_logs(tmp_path)
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(DataError, match=r"x\.eval is not an Inspect log, or is damaged"):
        read_logs(tmp_path)


@Reader
def test_what_would_unpack_to_too_much_is_refused_unread(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "log_formats.eval", tmp_path)
    with zipfile.ZipFile(tmp_path / "log_formats.eval", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/more.json", b" " * 10_000_000)
    with pytest.raises(DataError, match="unpacks to more than 5,000,000 bytes"):
        read_logs(tmp_path, max_bytes=5_000_000)


def test_an_archive_that_lies_about_its_sizes_is_refused_unread(tmp_path: Path) -> None:
    """Inspect's reader believes no size and unpacks to the end, so that this one would fill the memory."""
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(FIXTURES / "log_formats.eval") as whole, zipfile.ZipFile(path, "w") as archive:
        for name in whole.namelist():
            content = b"[" + b" " * 10_000_000 + b"]" if name == "summaries.json" else whole.read(name)
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    said, lie = ((n).to_bytes(4, "little") for n in (10_000_002, 2))
    content = path.read_bytes()
    assert content.count(said) == 2  # before the part, and in the archive's list
    path.write_bytes(content.replace(said, lie))

    def unread(*_: Any, **__: Any) -> None:
        raise AssertionError("read")

    module = ModuleType("inspect_ai.log")
    module.__dict__.update(read_eval_log=unread, read_eval_log_sample_summaries=unread)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
        patch.setitem(sys.modules, "inspect_ai.log", module)
        with pytest.raises(DataError, match=r"x\.eval unpacks to more than 5,000,000 bytes"):
            read_logs(path, max_bytes=5_000_000)
        path.write_bytes(content[:-200].replace(b"PK\x01\x02", b"PK\x01\x03") + content[-200:])
        with pytest.raises(DataError, match=r"x\.eval is not an Inspect log, or is cut off"):
            read_logs(path)


@Reader
def test_names_that_lead_out_of_the_archive_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "x.eval"
    path.parent.mkdir()
    shutil.copy(FIXTURES / "log_formats.eval", path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../escaped.json", "[]")
        archive.writestr(str(tmp_path / "absolute.json"), "[]")
    assert len(read_logs(path).rows) == 1
    assert [one.name for one in tmp_path.rglob("*")] == ["logs", "x.eval"]


def test_without_inspect_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(PlanError, match=r"pip install 'irtaudit\[inspect\]'"):
        read_logs(FIXTURES)
