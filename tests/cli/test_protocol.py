"""``irtaudit protocol``, ``bundles convert`` and ``judge calibrate`` as a user types them."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from irtaudit import cli
from irtaudit.data.describe import describe
from irtaudit.protocol.bundle import RunBundle, make_bundle
from irtaudit.protocol.load import read_spec
from irtaudit.protocol.models import Comparison, Event, Header, ScoreRecord, Spec
from irtaudit.protocol.simulate import clean_run
from irtaudit.protocol.write import write_bundle

LOGS = Path(__file__).parents[1] / "protocol" / "inspect_logs"


def irtaudit(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments], prog_name="irtaudit")
    return int(ended.value.code or 0)


def test_the_demo_says_what_it_found_and_writes_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert irtaudit("protocol", "--demo", "--out", tmp_path) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1] == "The scores show the intended capability: not supported"
    assert "7 of 9 runs" in told[2]
    assert told[-1].strip() == str(tmp_path / "report.html")
    summary = json.loads((tmp_path / "protocol.json").read_text())
    assert summary["verdict"]["word"] == "not supported"
    assert dict(describe(tmp_path).facts) == {
        "verdict": "not supported",
        "claim": "The scores show the intended capability",
        "command": summary["command"],
    }
    assert summary["command"].startswith("irtaudit ")
    assert len(summary["traces"]) == 9
    names = {path.name for path in tmp_path.iterdir()}
    assert {
        "report.html",
        "traces.csv",
        "findings.csv",
        "evidence.csv",
        "answers.jsonl",
        "states.csv",
    } <= names


def test_the_report_leads_from_the_table_to_every_quoted_line(tmp_path: Path) -> None:
    irtaudit("protocol", "--demo", "--quiet", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text()
    named = r'<th scope="row"><a href="#(fold-[\d-]+)">(?:<span class="long">)?([^<]+)<'
    targets = dict(re.findall(named, page))
    assert set(targets.values()) >= {
        *("demo-repair", "demo-bandit", "demo-reading"),  # rows of the incidence table
        *("upstream-history", "readable-gold", "empty-artifact", "seed-brute-force", "topological-order"),
        *("state-across-rounds", "warm-up-cache", "read-but-unused"),
    }
    text = unescape(page)
    for line in (tmp_path / "findings.jsonl").read_text().splitlines():
        record = json.loads(line)
        for link in record["answer"]["evidence"].values():
            assert all(pointer["quote"] in text for pointer in link)
    assert all(f'id="{target}"' in page for target in targets)
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S*", "", page)


def test_demo_with_rules_is_triage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert irtaudit("protocol", "--demo", "--judge", "rules", "--json", "--out", tmp_path) == 0
    summary = json.loads(capsys.readouterr().out)
    states = {trace["run_id"]: trace["state"] for trace in summary["traces"]}
    assert sorted(states.values()) == ["abstained"] * 4 + ["negative", "no_candidate"] + ["positive"] * 3
    assert "triage" in (tmp_path / "report.html").read_text()


def test_quiet_prints_the_verdict_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert irtaudit("protocol", "--demo", "--quiet", "--reading", "x = y", "--out", tmp_path) == 0
    assert capsys.readouterr().out == "x = y: not supported\n"


def test_an_inspect_log_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LOGS / "scout_websearch-addition-problem.eval"
    assert irtaudit("bundles", "convert", log, tmp_path / "bundles") == 0
    told = capsys.readouterr().out
    assert "1 bundle from inspect, 3 events" in told
    assert "not in the log: allowed, comparison" in told
    assert irtaudit("protocol", tmp_path / "bundles", "--out", tmp_path / "out") == 0
    assert "inconclusive" in capsys.readouterr().out
    assert "Their sources did not say" in (tmp_path / "out" / "report.html").read_text()
    assert irtaudit("bundles", "convert", log, tmp_path / "bundles") == 3
    assert "already in" in capsys.readouterr().err


def test_a_folder_of_logs_converts_and_what_cannot_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs" / "deep"
    logs.mkdir(parents=True)
    shutil.copy(LOGS / "log_formats.eval", logs / "a.eval")
    shutil.copy(LOGS / "security-guide.json", tmp_path / "logs" / "b.json")
    (logs / "broken.json").write_text('{"version": 2')
    (logs / "notes.txt").write_text("no log")
    assert irtaudit("bundles", "convert", tmp_path / "logs", tmp_path / "out") == 0
    told = capsys.readouterr()
    assert "4 bundles from inspect" in told.out
    assert told.err.count("left out") == 1
    assert "broken.json" in told.err
    shutil.copy(LOGS / "mmlu-summary-choices.eval", logs / "c.eval")
    assert irtaudit("bundles", "convert", tmp_path / "logs", tmp_path / "out") == 0
    told = capsys.readouterr()
    assert "1 bundle from inspect" in told.out
    assert told.err.count("already in") == 2
    assert irtaudit("bundles", "convert", logs / "broken.json", tmp_path / "out") == 2
    assert irtaudit("bundles", "convert", tmp_path / "out", tmp_path / "other") == 2
    assert "holds no log" in capsys.readouterr().err


def test_logs_of_one_name_in_two_folders_both_become_bundles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a", "b"):
        (tmp_path / "logs" / folder).mkdir(parents=True)
        (tmp_path / "logs" / folder / "run.traj").write_text('{"trajectory": []}')
    assert irtaudit("bundles", "convert", tmp_path / "logs", tmp_path / "out") == 0
    told = capsys.readouterr()
    assert "2 bundles from swe-agent" in told.out
    assert "named by their logs' paths, as several had one name: 'a/run', 'b/run'" in told.out
    assert told.err == ""
    assert irtaudit("protocol", tmp_path / "out", "--out", tmp_path / "report", "--quiet") == 0
    one_by_one = ("bundles", "convert", tmp_path / "logs" / "a" / "run.traj", tmp_path / "single")
    assert irtaudit(*one_by_one) == 0
    (tmp_path / "logs" / "b" / "run.traj").write_text('{"trajectory": [{"observation": "x"}]}')
    assert irtaudit(*one_by_one[:2], tmp_path / "logs" / "b" / "run.traj", tmp_path / "single") == 3
    assert "name another folder" in capsys.readouterr().err


def test_scores_of_a_log_without_any_come_from_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = {"trajectory": [{"action": "submit\n", "observation": ""}], "info": {"submission": ""}}
    (tmp_path / "task-1.traj").write_text(json.dumps(log))
    assert irtaudit("bundles", "convert", tmp_path / "task-1.traj", tmp_path / "bare") == 0
    assert irtaudit("protocol", tmp_path / "bare", "--out", tmp_path / "a") == 0
    assert "No run has a recorded score" in capsys.readouterr().out
    assert "1 run is without a recorded score" in (tmp_path / "a" / "report.html").read_text()
    scores = tmp_path / "scores.csv"
    scores.write_text("run_id,score,max,passed,validity_check\ntask-1,0.5,1,yes,\nother,1,1,,\n")
    convert = ("bundles", "convert", tmp_path / "task-1.traj", tmp_path / "scored", "--scores", scores)
    assert irtaudit(*convert) == 0
    assert "scores of no run here: 1" in capsys.readouterr().out
    assert irtaudit("protocol", tmp_path / "scored", "--out", tmp_path / "b") == 0
    assert "1 of 1 runs earned" in capsys.readouterr().out  # an empty patch with credit
    trace = json.loads((tmp_path / "b" / "protocol.json").read_text())["traces"][0]
    assert (trace["score"], trace["exposures"]) == (0.5, "invalid_scoring_path")


def test_the_specification_in_the_help_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert irtaudit("bundles", "convert", "--help") == 0
    told = capsys.readouterr().out
    shown = dedent(told[told.index("      intended_capability") : told.index("Options:")])
    (tmp_path / "spec.yaml").write_text(shown)
    assert read_spec(tmp_path / "spec.yaml").model_fields_set == set(Spec.model_fields)


def test_tables_of_an_earlier_run_do_not_stay(tmp_path: Path) -> None:
    assert irtaudit("protocol", "--demo", "--quiet", "--out", tmp_path / "out", "--probe", 1) == 0
    assert (tmp_path / "out" / "recall_probe.csv").exists()
    assert irtaudit("protocol", "--demo", "--quiet", "--out", tmp_path / "out") == 0
    assert not (tmp_path / "out" / "recall_probe.csv").exists()


def test_without_clean_runs_there_is_no_probe_and_still_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bundle(hostile("x"), tmp_path / "in" / "a.zip")
    assert irtaudit("protocol", tmp_path / "in", "--out", tmp_path / "out", "--probe", 2) == 0
    assert "no probe" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").exists()


def test_labels_are_read_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bundle(hostile("x"), tmp_path / "in" / "a.zip")
    (tmp_path / "labels.csv").write_text("run_id,label\nx,perhaps\n")
    nobody = ("--judge", "openai", "--model", "m", "--base-url", "http://127.0.0.1:1")
    given = ("protocol", tmp_path / "in", "--out", tmp_path / "out", "--labels", tmp_path / "labels.csv")
    assert irtaudit(*given, *nobody) == 2
    told = capsys.readouterr()
    assert "'perhaps' is none of" in told.err
    assert told.out == ""


def test_calibration_and_probe_are_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    for n in range(4):
        write_bundle(clean_run(rng, f"clean-{n}"), tmp_path / "in" / f"clean-{n}.zip")
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,label\nclean-0,negative\nclean-1,positive\nclean-2,ambiguous\n")
    out = tmp_path / "out"
    assert irtaudit("protocol", tmp_path / "in", "--out", out, "--probe", 3, "--labels", labels) == 0
    page = unescape((out / "report.html").read_text())
    assert "Of 21 planted cases the rules find 21" in page
    assert "does not beat" in page
    assert {"recall_probe.csv", "calibration.csv"} <= {path.name for path in out.iterdir()}
    capsys.readouterr()
    assert irtaudit("judge", "calibrate", out, labels) == 0
    told = capsys.readouterr().out
    assert told.startswith("tp 0, fp 0, fn 1, tn 1, undecided 0, ambiguous 1, unlabelled 1\n")
    assert irtaudit("judge", "calibrate", out, labels, "--json", "--out", tmp_path / "tables") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["fn"] == 1
    assert (tmp_path / "tables" / "calibration.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give BUNDLES to audit, or --demo"),
        (["--demo", "x"], "not both"),
        (["nowhere"], "no bundle here"),
        (["x", "--judge", "replay"], "needs --answers"),
        (["x", "--judge", "openai"], "needs --model"),
        (["--demo", "--judge", "openai", "--model", "m"], "set OPENAI_API_KEY"),
        (["--demo", "--max-cost", "1"], "needs --price-in"),
        (["--demo", "--labels", "nowhere.csv"], "no such file"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert irtaudit("protocol", *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} \u202egnp.exe =cmd()"


def hostile(name: str) -> RunBundle:
    """A run in which every text tries to be more than text."""
    return make_bundle(
        Header(
            run_id=name,
            benchmark=HOSTILE,
            task_id=HOSTILE,
            model=HOSTILE,
            agent=HOSTILE,
            protocol_kind="live",
            cohort_sampling="census",
        ),
        spec=Spec(intended_capability=HOSTILE, intended_task=HOSTILE),
        events=[
            Event(
                i=0,
                actor="agent",
                kind="tool_call",
                tool=HOSTILE,
                args={"command": f"git log --all {HOSTILE}"},
            ),
            Event(i=1, actor="agent", kind="submit", text=HOSTILE),
        ],
        artifact={"x.txt": b""},
        score=ScoreRecord(score=1.0, max=1.0, validity_check=False),
    )


@pytest.mark.filterwarnings("error")
def test_long_and_odd_names_fit_beside_the_drawings(tmp_path: Path) -> None:
    for n in range(2):
        made = hostile(f"{HOSTILE} $\\frac{{$ {'long ' * 30} {n}")
        compared = Comparison(
            kind="ablation", s_intended=0.1, same_task=True, same_scorer=True, same_scale=True, provenance="x"
        )
        parts = {"spec": made.spec, "events": made.events, "score": made.score, "comparison": compared}
        header = Header(**made.manifest.model_dump(include=set(Header.model_fields)))
        bundle = make_bundle(header, artifact={"x.txt": b""}, **parts)  # type: ignore[arg-type]  # as named
        write_bundle(bundle, tmp_path / "in" / f"{n}.zip")
    assert irtaudit("protocol", tmp_path / "in", "--out", tmp_path / "out", "--quiet") == 0
    drawings = re.findall(r"(?s)<svg.*?</svg>", (tmp_path / "out" / "report.html").read_text())
    assert len(drawings) >= 3
    assert not any("\u202e" in drawing for drawing in drawings)


def test_hostile_text_stays_text_everywhere(tmp_path: Path) -> None:
    write_bundle(hostile(HOSTILE), tmp_path / "in" / "a.zip")
    assert irtaudit("protocol", tmp_path / "in", "--out", tmp_path / "out", "--quiet") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "{{ 7*7 }}" in page
    assert " 49 " not in page
    rows = (tmp_path / "out" / "traces.csv").read_text()
    assert not re.search(r"(?m)(^|,)\"?[=+@]", rows)
