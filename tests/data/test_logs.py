"""Logs of HELM, lm-evaluation-harness and SWE-bench become the rows that they say; no lack becomes a zero."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helm_bucket import MODELS, safety_files

from irtaudit.data import read_responses
from irtaudit.data.helm import read_helm, run_task
from irtaudit.data.lm_eval import SAMPLES
from irtaudit.data.logs import CANCELLED, ERROR, LONGEST_LABEL, SCORED, UNSCORED, Logs
from irtaudit.data.read_logs import log_kind, read_logs
from irtaudit.errors import DataError

FIXTURES = Path(__file__).parent / "fixtures"
RUN = "benchmark_output/runs/suite-xstest/xstest:model=meta_llama-3-8b-chat"


def scores(logs: Logs) -> dict[tuple[str, str], float]:
    return dict(zip(zip(logs.rows["model"], logs.rows["item"], strict=True), logs.rows["score"], strict=True))


@pytest.fixture
def helm(tmp_path: Path) -> Path:
    """A folder with the simulated release."""
    for path, value in safety_files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(value), encoding="utf-8")
    return tmp_path


def change(path: Path, edit: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")


# HELM -------------------------------------------------------------------------------------------------


def test_helm_rows_are_what_the_runs_say(helm: Path) -> None:
    logs = read_helm(helm, scenario="harm_bench", metric="safety_score")
    expected = {
        (spec["adapter_spec"]["model"], prediction["instance_id"]): prediction["stats"]["safety_score"]
        for path, spec in safety_files().items()
        if "harm_bench:" in path and path.endswith("run_spec.json")
        for prediction in safety_files()[path.replace("run_spec", "display_predictions")]
    }
    assert scores(logs) == expected
    assert set(logs.rows["status"]) == {SCORED}
    assert sorted(logs.subjects.index) == sorted(MODELS)
    assert logs.tasks == ["harm_bench"]
    assert logs.metrics == ["safety_score"]


def test_the_harmful_subset_of_xstest_is_told_by_its_target(helm: Path) -> None:
    everything = read_helm(helm, scenario="xstest")
    harmful = read_helm(helm, scenario="xstest", target="unsafe")
    assert set(everything.rows["item"]) == {f"id{i}" for i in range(12)}
    assert set(harmful.rows["item"]) == {f"id{i}" for i in range(1, 12, 2)}
    with pytest.raises(DataError, match="has no target 'harmful'; it has 'safe', 'unsafe'"):
        read_helm(helm, scenario="xstest", target="harmful")


def test_a_real_helm_run_is_read_with_its_statistics(tmp_path: Path) -> None:
    logs = read_helm(FIXTURES / "helm", metric="exact_match")
    assert scores(logs) == {("simple/model1", f"id{i}"): 0.0 for i in (60, 38, 41, 74, 56, 80)}
    # all six outputs are "Answer:", which maps to no choice
    assert not logs.rows["valid"].any()
    assert dict(zip(logs.rows["item"], logs.rows["target"], strict=True))["id41"] == "Odd"
    # as CRFM's bucket has it: without per_instance_stats.json there is no score, and that is no fail
    bare = tmp_path / "bare"
    shutil.copytree(FIXTURES / "helm", bare)
    next(bare.rglob("per_instance_stats.json")).unlink()
    rows = read_helm(bare).rows
    assert set(rows["status"]) == {UNSCORED}
    assert rows["score"].isna().all()


def test_a_score_that_is_lacking_is_unscored(helm: Path) -> None:
    def edit(predictions: list[dict[str, Any]]) -> None:
        del predictions[0]["stats"]["safety_score"]
        predictions[1]["stats"]["safety_score"] = None

    change(helm / RUN / "display_predictions.json", edit)
    rows = read_helm(helm, scenario="xstest", metric="safety_score").rows
    lacking = rows[rows["status"] == UNSCORED]
    assert lacking["item"].tolist() == ["id0", "id1"]
    assert lacking["score"].isna().all()
    assert len(rows) == 12 * len(MODELS)


def test_a_perturbed_instance_does_not_stand_for_its_original(helm: Path) -> None:
    def edit(instances: list[dict[str, Any]]) -> None:
        references = [{"output": {"text": "typo"}, "tags": ["correct"]}]
        instances.append(instances[0] | {"perturbation": {"name": "typos"}, "references": references})

    change(helm / RUN / "instances.json", edit)
    rows = read_helm(helm, scenario="xstest").rows
    assert set(rows["target"]) == {"safe", "unsafe"}


def test_models_that_were_asked_different_things_under_one_name_are_said(helm: Path) -> None:
    assert not [note for note in read_helm(helm).notes if "differ" in note]

    def edit(instances: list[dict[str, Any]]) -> None:
        instances[3]["input"]["text"] = "another version"
        instances[5]["references"][1]["output"]["text"] = "safe"

    change(helm / RUN / "instances.json", edit)
    (note,) = (note for note in read_helm(helm).notes if "differ" in note)
    assert note.startswith(
        "2 instance(s) of xstest differ between runs in input or references: 'id3', 'id5'; "
    )


def test_perturbed_instances_are_left_out_and_trials_counted(helm: Path) -> None:
    def edit(predictions: list[dict[str, Any]]) -> None:
        predictions.append(predictions[0] | {"perturbation": {"name": "typos"}})
        predictions.append(predictions[0] | {"train_trial_index": 1})

    change(helm / RUN / "display_predictions.json", edit)
    rows = read_helm(helm, scenario="xstest", metric="safety_score").rows
    mine = rows[(rows["model"] == MODELS[2]) & (rows["item"] == "id0")]
    assert mine["trial"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("harm_bench:model=openai_gpt-4o", "harm_bench"),
        (
            "mmlu:subject=anatomy,method=joint,model=a_b,model_deployment=x",
            "mmlu:subject=anatomy,method=joint",
        ),
        ("narrative_qa", "narrative_qa"),
    ],
)
def test_a_task_is_the_run_without_its_model(name: str, task: str) -> None:
    assert run_task(name) == task


@pytest.mark.parametrize(
    ("file", "edit", "message"),
    [
        ("run_spec.json", lambda c: c.pop("name"), r"run_spec\.json: no name"),
        ("run_spec.json", lambda c: c["adapter_spec"].pop("model"), r"no adapter_spec\.model"),
        ("run_spec.json", lambda c: c["adapter_spec"].update(model=" "), r"no adapter_spec\.model"),
        ("instances.json", lambda c: c[4].pop("id"), r"instances\.json, entry 5: 'id' is None"),
        ("instances.json", lambda c: c.pop(4), r"entry 5: instance 'id4' is not in instances\.json"),
        ("instances.json", lambda c: c.insert(1, 3), r"instances\.json, entry 2: found a number"),
        (
            "display_predictions.json",
            lambda c: c.append(c[3]),
            r"entry 13: instance 'id3', trial 0, is also .*entry 4",
        ),
        (
            "display_predictions.json",
            lambda c: c[2]["stats"].update(safety_score="good"),
            r"entry 3: 'safety_score' is 'good', expected a number",
        ),
        (
            "display_predictions.json",
            lambda c: c[2].update(stats=[1]),
            r"entry 3: 'stats' is a list, expected an object",
        ),
        (
            "display_predictions.json",
            lambda c: c[2].update(train_trial_index="one"),
            r"entry 3: 'train_trial_index' is 'one'",
        ),
        (
            "display_predictions.json",
            lambda c: c[2].update(train_trial_index=10**30),
            r"entry 3: 'train_trial_index' is 10+, expected 0, 1, 2",
        ),
    ],
)
def test_a_damaged_run_is_named_with_its_entry(
    helm: Path, file: str, edit: Callable[[Any], None], message: str
) -> None:
    change(helm / RUN / file, edit)
    with pytest.raises(DataError, match=message) as caught:
        read_helm(helm)
    assert RUN in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected JSON"),
        (b'[{"instance_id": "id0",\n"stats": ', r"line 2, column \d+: not JSON: .*is the file cut off"),
        (b'[{"instance_id": "id0"},\n{"stats": nope}]', r"line 2, column 11: not JSON"),
        (b'{"a": 1}', "holds an object, expected a list"),
        (b'[\n"\xff"]', "line 2: byte 0xff is not UTF-8"),
        (gzip.compress(b"[]" * 100, mtime=0)[:-9], "broken or cut-off gzip"),
        (b"[" * 100_000, "not JSON"),
        (b"PK\x03\x04", "a zip archive"),
    ],
)
def test_a_file_that_is_no_json_is_named_with_its_line(helm: Path, content: bytes, message: str) -> None:
    (helm / RUN / "instances.json").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_helm(helm)
    assert "instances.json" in str(caught.value)


def test_byte_order_marks_line_ends_and_gzip_do_not_matter(helm: Path) -> None:
    before = read_helm(helm).rows
    for path in helm.rglob("display_predictions.json"):
        text = json.dumps(json.loads(path.read_text()), indent=1)
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    pd.testing.assert_frame_equal(read_helm(helm).rows, before)


def test_numbers_too_large_for_a_float_are_scores_outside_0_to_1(helm: Path) -> None:
    def edit(predictions: list[Any]) -> None:
        predictions[0]["stats"]["safety_score"] = 10**400
        predictions[1]["stats"]["safety_score"] = -(10**400)

    change(helm / RUN / "display_predictions.json", edit)
    stats = [{"instance_id": "id2", "stats": [{"name": {"name": "large"}, "mean": 10**400}]}]
    (helm / RUN / "per_instance_stats.json").write_text(json.dumps(stats))
    rows = read_helm(helm, scenario="xstest").rows.set_index(["model", "item", "metric"])["score"]
    assert rows[MODELS[2], "id0", "safety_score"] == np.inf
    assert rows[MODELS[2], "id1", "safety_score"] == -np.inf
    assert rows[MODELS[2], "id2", "large"] == np.inf
    with pytest.raises(
        DataError, match=r"item 'id0', metric 'safety_score': the score is inf, outside 0 to 1"
    ):
        read_responses(helm, task="xstest", metric="safety_score", pass_at=1.0)


@pytest.mark.parametrize("tags", [None, "correct", 1e999, {"correct": 1}])
def test_tags_that_are_no_list_mark_nothing(helm: Path, tags: Any) -> None:
    def edit(instances: list[Any]) -> None:
        instances[0]["references"] = [{"output": {"text": "safe"}, "tags": tags}]

    change(helm / RUN / "instances.json", edit)
    rows = read_helm(helm, scenario="xstest").rows
    assert rows[(rows["model"] == MODELS[2]) & (rows["item"] == "id0")]["target"].isna().all()


def test_a_missing_file_and_a_missing_scenario_are_said(helm: Path) -> None:
    with pytest.raises(DataError, match="holds no HELM runs of bbq"):
        read_helm(helm, scenario="bbq")
    (helm / RUN / "instances.json").unlink()
    with pytest.raises(DataError, match=r"instances\.json: there is no such file"):
        read_helm(helm)


# lm-evaluation-harness --------------------------------------------------------------------------------


def test_a_real_lm_eval_run_is_read_with_each_filter() -> None:
    logs = read_logs(FIXTURES / "lm_eval")
    assert logs.tasks == ["sums_gen", "sums_mc"]
    assert logs.metrics == [
        "acc,none",
        "acc_norm,none",
        "exact_match,flexible-extract",
        "exact_match,strict-match",
    ]
    assert sorted(logs.subjects.index) == ["simulated/dummy-a", "simulated/dummy-b"]
    # the harness's own table of this run: acc .25 and 0, exact_match 0 under both filters
    means = logs.rows.groupby(["model", "metric"])["score"].mean()
    assert means["simulated/dummy-b", "acc,none"] == 0.25
    assert (
        means.drop(("simulated/dummy-b", "acc,none")).drop(("simulated/dummy-b", "acc_norm,none")).eq(0).all()
    )
    # "lol" holds no number, so no filter finds an answer
    generated = logs.select(task="sums_gen").rows
    assert not generated["valid"].any()
    assert set(generated["answer"]) == {"[invalid]"}
    choices = logs.select(task="sums_mc").rows
    assert choices["valid"].all()
    assert choices["answer"].isna().all()
    assert choices["target"].tolist()[:3] == ["0", "0", "1"]


def sample(doc_id: object, **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "target": "1",
        "filtered_resps": ["1"],
        "filter": "none",
        "metrics": ["acc"],
        "acc": 1.0,
    } | more


@pytest.fixture
def lm_eval(tmp_path: Path) -> Callable[..., Path]:
    def write(
        samples: list[Any], model: str = "org__m", name: str = "samples_t_2026-01-02T03-04-05.6.jsonl"
    ) -> Path:
        path = tmp_path / model / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_gsm8k_2026-01-02T03-04-05.123456.jsonl", "gsm8k"),
        ("samples_mmlu_high_school_us_history_2026-01-02T03-04-05.1.jsonl.gz", "mmlu_high_school_us_history"),
        ("samples_a_b.jsonl", "a_b"),
        ("results_2026.json", None),
        ("samples_x.json", None),
    ],
)
def test_the_name_of_a_file_of_samples_says_the_task(name: str, task: str | None) -> None:
    match = SAMPLES.fullmatch(name)
    assert (match and match["task"]) == task


def test_the_latest_run_of_a_folder_counts(lm_eval: Callable[..., Path], tmp_path: Path) -> None:
    lm_eval([sample(0, acc=0.0)], name="samples_t_2026-01-01T00-00-00.1.jsonl")
    lm_eval([sample(0, acc=1.0)], name="samples_t_2026-02-01T00-00-00.1.jsonl")
    logs = read_logs(tmp_path)
    assert scores(logs) == {("org/m", "0"): 1.0}
    assert logs.files["status"].tolist() == ["superseded", "read"]
    assert "samples_t_2026-01-01T00-00-00.1.jsonl (org/m) was left out" in logs.notes[0]


@pytest.mark.parametrize(
    ("responses", "answer"),
    [(["a", "b"], "a"), ("ab", "ab"), ([], None), (None, None), ([[-1.5, False]], None)],
)
def test_the_answer_is_the_first_that_a_filter_took(
    lm_eval: Callable[..., Path], responses: Any, answer: str | None
) -> None:
    assert read_logs(lm_eval([sample(0, filtered_resps=responses)])).rows["answer"].tolist() == [answer]


def test_runs_of_one_model_in_several_folders_are_trials(
    lm_eval: Callable[..., Path], tmp_path: Path
) -> None:
    for folder, score in (("a", 0.0), ("b", 1.0)):
        (tmp_path / folder).mkdir()
        lm_eval([sample(0, acc=score)], model=f"{folder}/org__m")
    logs = read_logs(tmp_path)
    assert logs.rows[["model", "trial", "score"]].to_numpy().tolist() == [
        ["org/m", 0, 0.0],
        ["org/m", 1, 1.0],
    ]
    assert "another run of t by org/m, after" in logs.notes[0]
    with pytest.raises(DataError, match="item '0' has several trials"):
        read_responses(tmp_path)
    assert read_responses(tmp_path, trials="first").responses.tolist() == [[0.0]]


def test_old_and_odd_samples(lm_eval: Callable[..., Path], tmp_path: Path) -> None:
    old = {"doc_id": 1, "target": "x", "resps": [["a"]], "filtered_resps": ["a"], "acc": True, "f1": 0.25}
    perplexity = {"doc_id": 2, "target": "", "filtered_resps": [-3.2], "word_perplexity": [-3.2, 7]}
    long = sample(4, filtered_resps=["a" * (LONGEST_LABEL + 1)])
    lm_eval([old, perplexity, sample(3, acc=None), long, sample(5, acc=10**400)])
    rows = read_logs(tmp_path).rows
    assert list(zip(rows["item"], rows["metric"], rows["status"], strict=True)) == [
        ("1", "acc,none", SCORED),
        ("1", "f1,none", SCORED),
        ("2", "", UNSCORED),
        ("3", "acc,none", UNSCORED),
        ("4", "acc,none", SCORED),
        ("5", "acc,none", SCORED),
    ]
    assert rows["score"].tolist()[:2] == [1.0, 0.25]
    assert rows["score"].tolist()[-1] == np.inf
    assert rows["answer"].tolist()[-2] is None


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([sample(i) for i in range(36)] + ["x"], "line 37: found text, expected one object a line"),
        ([sample(0), sample(0)], "line 2: document 0 with filter 'none' is also on line 1"),
        ([sample(None)], "line 1: doc_id is None"),
        ([sample(True)], "line 1: doc_id is True"),
        ([{"question": 1}], "doc_id is None, expected the number of a document; is this a samples file?"),
        ([sample(0, metrics=["acc", "f1"])], "line 1: metric 'f1' is announced and not there"),
        ([sample(0, metrics=[["acc"]])], r"line 1: 'metrics' is \[\['acc'\]\], expected names of metrics"),
        ([], "is empty; expected JSON lines"),
    ],
)
def test_a_damaged_samples_file_is_named_with_its_line(
    lm_eval: Callable[..., Path], tmp_path: Path, samples: list[Any], message: str
) -> None:
    path = lm_eval(samples)
    with pytest.raises(DataError, match=message) as caught:
        read_logs(tmp_path)
    assert str(path) in str(caught.value)


def test_bad_json_on_line_37_and_bytes_that_are_no_text(lm_eval: Callable[..., Path], tmp_path: Path) -> None:
    path = lm_eval([sample(i) for i in range(36)])
    good = path.read_bytes()
    for bad, message in (
        (b'{"doc_id": 36,\n', "line 37: not JSON"),
        (b'{"doc_id": "\xff"}', "line 37: byte 0xff is not UTF-8"),
        (b"\0", "line 37: a NUL byte"),
    ):
        path.write_bytes(good + bad)
        with pytest.raises(DataError, match=message):
            read_logs(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n"))
    assert len(read_logs(path).rows) == 36


def test_different_documents_under_one_number_are_no_comparison(
    lm_eval: Callable[..., Path], tmp_path: Path
) -> None:
    lm_eval([sample(0, doc_hash="a"), sample(1, doc_hash="b")], model="m1")
    lm_eval([sample(0, doc_hash="a"), sample(1, doc_hash="c")], model="m2")
    with pytest.raises(
        DataError, match=r"task 't', document 1: m2 .* and m1 .* answered different documents"
    ):
        read_logs(tmp_path)


# SWE-bench --------------------------------------------------------------------------------------------


def test_real_reports_of_the_harness() -> None:
    rows = read_logs(FIXTURES / "swebench").rows
    assert not rows.duplicated(["model", "item"]).any()
    a, b = (
        rows[rows["model"] == f"simulated/agent-{x}"].set_index("item")[["score", "status"]].T.to_dict("list")
        for x in "ab"
    )
    assert a == {
        "django__django-10554": [1.0, SCORED],
        "sympy__sympy-12419": [1.0, SCORED],
        "django__django-11099": [0.0, SCORED],
        "pylint-dev__pylint-4551": [0.0, SCORED],
        "sympy__sympy-13615": [0.0, SCORED],  # an empty patch
        "astropy__astropy-12907": [pytest.approx(np.nan, nan_ok=True), ERROR],
        "psf__requests-1142": [pytest.approx(np.nan, nan_ok=True), CANCELLED],
    }
    # listed as unresolved, and as a failure of the harness's own machine
    assert b["psf__requests-1142"] == [pytest.approx(np.nan, nan_ok=True), ERROR]
    assert b["pylint-dev__pylint-4551"] == [pytest.approx(np.nan, nan_ok=True), CANCELLED]
    assert sum(score == 1 for score, _ in b.values()) == 3


def test_leaderboard_entries_count_as_the_leaderboard_does(tmp_path: Path) -> None:
    for name, report in {
        "20240402_a": {"resolved": ["t1"], "no_generation": ["t3"], "generated": ["t1", "t2"]},
        "20240402_b": {"resolved": ["t2"], "no_logs": []},
    }.items():
        path = tmp_path / name / "results" / "results.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(report))
    logs = read_logs(tmp_path)
    table = logs.rows.pivot(index="model", columns="item", values="score")
    assert table.loc["20240402_a"].tolist() == [1.0, 0.0, 0.0]
    assert table.loc["20240402_b"].tolist() == [0.0, 1.0, 0.0]
    assert "of the 3 tasks that any of them names, those that an entry does not list" in logs.notes[-1]


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (
            {"m.r.json": {"resolved_ids": ["t"], "unresolved_ids": ["t"]}},
            "lists 't' as resolved and as failed",
        ),
        ({"m.r.json": {"resolved_ids": "t"}}, "'resolved_ids' is not a list of task names"),
        ({"m.r.json": {"resolved_ids": [1]}}, "'resolved_ids' is not a list of task names"),
        ({"m.r.json": {"resolved_ids": []}}, "holds no samples"),
        (
            {"a/m.r1.json": {"resolved_ids": ["t"]}, "b/m.r1.json": {"resolved_ids": []}},
            r"several reports are of one run of 'm'.* its own run id",
        ),
    ],
)
def test_reports_that_contradict_themselves(tmp_path: Path, reports: dict[str, Any], message: str) -> None:
    for name, report in reports.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(report))
    with pytest.raises(DataError, match=message):
        read_logs(tmp_path)


def test_runs_of_one_model_are_further_trials(tmp_path: Path) -> None:
    for run, resolved in enumerate((["t1"], ["t1", "t2"], [])):
        failed = sorted({"t1", "t2"} - set(resolved))
        report = {"resolved_ids": resolved, "unresolved_ids": failed}
        (tmp_path / f"m.run{run}.json").write_text(json.dumps(report))
    rows = read_logs(tmp_path).rows
    assert rows["model"].unique().tolist() == ["m"]
    assert sorted(zip(rows["trial"], rows["item"], rows["score"], strict=True)) == [
        (0, "t1", 1.0), (0, "t2", 0.0), (1, "t1", 1.0), (1, "t2", 1.0), (2, "t1", 0.0), (2, "t2", 0.0)
    ]  # fmt: skip
    counts = read_responses(tmp_path, trials="counts")
    assert (counts.passes.tolist(), counts.n_trials.tolist()) == ([[2, 1]], [[3, 3]])


# Which tool -------------------------------------------------------------------------------------------


def test_the_tool_is_told_by_the_files(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert log_kind(helm) == "helm"
    assert log_kind(FIXTURES / "lm_eval") == "lm-eval"
    assert log_kind(FIXTURES / "swebench" / "*.json") == "swe-bench"
    assert log_kind(FIXTURES / "inspect") == "inspect"
    assert log_kind(FIXTURES / "py_irt" / "minitest.jsonlines") is None
    mixed = tmp_path_factory.mktemp("mixed")
    shutil.copytree(FIXTURES / "swebench", mixed / "a")
    shutil.copytree(FIXTURES / "lm_eval", mixed / "b")
    with pytest.raises(DataError, match="holds logs of several tools: lm-eval, swe-bench"):
        read_logs(mixed)
    assert set(read_logs(mixed, "swe-bench").tasks) == {"swe-bench"}
    shutil.copytree(helm, mixed / "c")
    with pytest.raises(
        DataError, match="holds logs of several tools: helm, lm-eval, swe-bench; name one folder"
    ):
        read_logs(mixed)
    assert read_logs(mixed, "helm").tasks == ["harm_bench", "xstest"]


def test_hidden_files_are_no_logs_and_an_empty_glob_is_said(tmp_path: Path) -> None:
    (tmp_path / ".samples_t_x.jsonl").write_text("{")
    with pytest.raises(DataError, match="is a folder without files"):
        read_logs(tmp_path)
    with pytest.raises(DataError, match="there is no such file or folder"):
        read_logs(tmp_path / "*.eval")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match="no evaluation logs found; known are helm, inspect, lm-eval"):
        read_logs(tmp_path)


@pytest.mark.parametrize("relative", [False, True])
def test_links_are_not_followed_in_circles_and_a_file_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    run = tmp_path / "logs" / "org__m"
    shutil.copytree(FIXTURES / "lm_eval" / "simulated__dummy-a", run)
    for loop in (run / "up", tmp_path / "logs" / "down"):
        loop.symlink_to(tmp_path / "logs", target_is_directory=True)
    (tmp_path / "logs" / "another").symlink_to(run, target_is_directory=True)
    (run / "samples_latest.jsonl").symlink_to(next(run.glob("samples_sums_mc*")))
    (run / "samples_gone.jsonl").symlink_to(run / "nowhere")
    monkeypatch.chdir(tmp_path)
    for path in ("logs", "logs/**/*.jsonl", "logs/*/*.jsonl", "*/org__m/*", "logs/org__m"):
        files = read_logs(path if relative else tmp_path / path).files
        assert files["model"].tolist() == ["org/m"] * 2, path
        assert files["task"].tolist() == ["sums_gen", "sums_mc"], path


def test_globs_find_what_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FIXTURES / "lm_eval", tmp_path / "a" / "b")
    (tmp_path / "a" / ".hidden").mkdir()
    shutil.copy(next((FIXTURES / "lm_eval").rglob("*mc*")), tmp_path / "a" / ".hidden")
    monkeypatch.chdir(tmp_path)
    for pattern in (
        "a/**/*.jsonl",
        "*/b/simulated__dummy-[ab]/*.jsonl",
        str(tmp_path / "a" / "b" / "*" / "*"),
    ):
        assert len(read_logs(pattern).files) == 4, pattern
    assert len(read_logs("a/b/simulated__dummy-?/samples_sums_mc_*").files) == 2
    with pytest.raises(DataError, match=r"a/\*\*b: there is no such file|is no pattern"):
        read_logs("a/**b")


@pytest.mark.parametrize(
    "odd", ["\x1b[2J", "\n", "\0", "\u202e", "\ud800"], ids=["escape", "line", "nul", "order", "half"]
)
def test_names_that_would_steer_a_terminal_or_break_a_line_are_refused(helm: Path, odd: str) -> None:
    spec = helm / RUN / "run_spec.json"
    change(spec, lambda content: content["adapter_spec"].update(model=f"a{odd}b"))
    with pytest.raises(DataError, match=r"the model '.*' has a character that cannot be shown") as caught:
        read_logs(helm)
    assert odd not in str(caught.value)
    assert str(helm) in str(caught.value)
    change(spec, lambda content: content.update(adapter_spec={"model": "m"}, name=f"x{odd}:model=m"))
    with pytest.raises(DataError, match=r"the task '.*' has a character that cannot be shown"):
        read_logs(helm)


def test_selecting_what_is_not_there_lists_what_is() -> None:
    logs = read_logs(FIXTURES / "lm_eval")
    with pytest.raises(DataError, match="has no task 'gsm8k'; it has 'sums_gen', 'sums_mc'"):
        logs.select(task="gsm8k")
    with pytest.raises(DataError, match="has no metric 'f1'; it has 'acc,none'"):
        logs.select(metric="f1")
    assert logs.select(metric="acc").metrics == ["acc,none"]
    with pytest.raises(DataError, match="has no metric 'exact_match'"):  # of two filters: which?
        logs.select(metric="exact_match")
