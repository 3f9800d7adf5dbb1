"""From logs to a matrix: the stated rules for metrics, scores, trials and what is lacking."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helm_bucket import MODELS, safety_files

from irtaudit.data import read_responses
from irtaudit.data.helm import read_helm
from irtaudit.data.known import harmbench_items
from irtaudit.data.log_matrix import likeliest_metric, responses_from_logs
from irtaudit.data.logs import CANCELLED, ERROR, UNSCORED, Answer, Collector, LogFile, Logs
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError, PlanError

FIXTURES = Path(__file__).parent / "fixtures"


def logs_of(*answers: Answer) -> Logs:
    found = Collector("here", answers=list(answers), files=[LogFile("f", "m", "t", "read", len(answers))])
    return found.logs()


@pytest.fixture
def helm(tmp_path: Path) -> Path:
    files = safety_files(n_items=40)
    for path, value in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(value), encoding="utf-8")
    return tmp_path


def test_helm_becomes_the_paper_s_matrix(helm: Path) -> None:
    matrix = read_responses(helm, task="harm_bench", metric="safety_score", pass_at=1.0)
    rows = read_helm(helm, scenario="harm_bench", metric="safety_score").rows
    table = rows.pivot(index="model", columns="item", values="score").sort_index(axis=0).sort_index(axis=1)
    assert matrix.subjects.index.tolist() == table.index.tolist() == sorted(MODELS)
    np.testing.assert_array_equal(matrix.responses, (table == 1.0).to_numpy(float))
    known = harmbench_items().loc[matrix.items.index]
    pd.testing.assert_series_equal(matrix.items["functional"], known["functional"])
    pd.testing.assert_series_equal(matrix.items["semantic"], known["semantic"])
    assert matrix.subjects.loc["openai/gpt-4o-2024-05-13"].tolist() == ["OpenAI", "closed_api"]
    assert any(
        "1 of 4 models are in no row of the table of models: 'new/nobody-1'; give one of your own" in n
        for n in matrix.notes
    )


def test_several_tasks_are_one_panel_with_names_of_two_parts(helm: Path) -> None:
    matrix = read_responses(helm, metric="safety_score", pass_at=1.0)
    assert matrix.n_items == 80
    assert matrix.items["task"].value_counts().to_dict() == {"harm_bench": 40, "xstest": 40}
    assert "xstest/id3" in matrix.items.index
    assert matrix.items.loc["xstest/id3", "target"] == "unsafe"
    assert matrix.items["functional"].notna().sum() == 40


def test_models_that_lack_items_are_listed_and_dropped_by_rule(helm: Path) -> None:
    path = next(helm.rglob("harm_bench:model=new_nobody-1/display_predictions.json"))
    predictions = json.loads(path.read_text())
    path.write_text(json.dumps(predictions[:-3]))
    options: dict[str, Any] = {"task": "harm_bench", "metric": "safety_score", "pass_at": 1.0}
    kept = read_responses(helm, **options)
    assert (~kept.observed).sum() == 3
    dropped = read_responses(helm, incomplete="drop", **options)
    assert dropped.subjects.index.tolist() == sorted(MODELS[:3])
    assert dropped.observed.all()
    assert "1 of 4 subjects lack items and were dropped: new/nobody-1 (3)" in dropped.notes
    with pytest.raises(PlanError, match="incomplete is 'remove', expected keep or drop"):
        read_responses(helm, incomplete="remove", **options)  # type: ignore[arg-type] # the mistake under test


def test_what_is_unclear_is_asked_with_an_example(helm: Path) -> None:
    with pytest.raises(UndecidedError, match=r"xstest has 3 metrics.*name one") as metric:
        read_responses(helm, task="xstest")
    assert (metric.value.option, metric.value.example) == ("metric", "safety_score")
    with pytest.raises(UndecidedError, match=r"found 0\.5, between 0 and 1") as cut:
        read_responses(helm, task="xstest", metric="safety_score")
    assert (cut.value.option, cut.value.example) == ("pass_at", 1.0)
    with pytest.raises(DataError, match=r"the score is 7, outside 0 to 1 \(160 such scores\)"):
        read_responses(helm, task="xstest", metric="num_output_tokens", pass_at=1.0)


@pytest.mark.parametrize(
    ("metrics", "likeliest"),
    [
        ({"acc": [0, 1.5], "zzz": [0, 1]}, "zzz"),  # a score of 1.5 is no share
        ({"acc": [-0.5, 1], "zzz": [0, 1]}, "zzz"),
        ({"acc": [1, 1], "zzz": [0, 1]}, "acc"),  # a usual name weighs more than scores that differ
        ({"yyy": [1, 1], "zzz": [0, 1]}, "zzz"),
        ({"score": [0, 1], "exact_match,none": [0, 1]}, "exact_match,none"),
        ({"b": [0, 1], "a": [0, 1]}, "a"),
    ],
)
def test_the_likeliest_metric(metrics: dict[str, list[float]], likeliest: str) -> None:
    rows = [
        Answer("m", "t", f"q{n}", 0, name, s) for name, found in metrics.items() for n, s in enumerate(found)
    ]
    assert likeliest_metric(logs_of(*rows).rows) == likeliest


def test_models_and_tasks_without_the_metric_are_said() -> None:
    logs = logs_of(
        Answer("m1", "t", "q", 0, "acc", 1.0),
        Answer("m2", "t", "q", 0, "exact_match", 1.0),
        Answer("m1", "u", "q", 0, "f1", 1.0),
    )
    matrix = responses_from_logs(logs, metric="acc")
    assert matrix.subjects.index.tolist() == ["m1"]
    assert "1 of 2 models have no score by 'acc' and were left out: 'm2'" in matrix.notes
    assert "1 of 2 tasks have no score by 'acc' and were left out: 'u'" in matrix.notes
    assert not [note for note in responses_from_logs(logs.select(task="u")).notes if "left out" in note]


def test_no_lack_becomes_a_zero_unless_it_is_said_so() -> None:
    logs = logs_of(
        Answer("m1", "t", "q1", 0, "acc", 1.0),
        Answer("m1", "t", "q2", 0, "acc", np.nan, UNSCORED),
        Answer("m2", "t", "q1", 0, "acc", np.nan, ERROR),
        Answer("m2", "t", "q2", 0, "acc", np.nan, CANCELLED),
        Answer("m3", "t", "q1", 0, "", np.nan, UNSCORED),
    )
    missing = responses_from_logs(logs)
    np.testing.assert_array_equal(missing.responses, [[1, np.nan], [np.nan, np.nan], [np.nan, np.nan]])
    assert [note for note in missing.notes if "not observed" in note] == [
        "2 sample(s) ran without a score and count as not observed",
        "1 sample(s) broke off and count as not observed",
        "1 sample(s) never ran and count as not observed",
    ]
    failed = responses_from_logs(logs, unscored="fail")
    np.testing.assert_array_equal(failed.responses, [[1, 0], [0, np.nan], [0, np.nan]])
    assert "1 sample(s) broke off and count as failed" in failed.notes
    with pytest.raises(PlanError, match="unscored is 'zero', expected missing or fail"):
        responses_from_logs(logs, unscored="zero")  # type: ignore[arg-type] # the mistake under test


def test_trials_need_a_rule_only_where_several_have_a_score() -> None:
    rerun = logs_of(
        Answer("m", "t", "q", 0, "acc", np.nan, CANCELLED),
        Answer("m", "t", "q", 1, "acc", 1.0),
        Answer("n", "t", "q", 0, "acc", 0.0),
    )
    assert responses_from_logs(rerun).responses.ravel().tolist() == [1.0, 0.0]
    rows = pd.concat([rerun.rows, rerun.rows.assign(trial=2, score=[0.0, 0.0, 0.0], status="scored")])
    several = replace(rerun, rows=rows.reset_index(drop=True))
    with pytest.raises(UndecidedError, match="item 'q' has several trials") as caught:
        responses_from_logs(several)
    assert caught.value.option == "trials"
    assert responses_from_logs(several, trials="first").responses.ravel().tolist() == [1.0, 0.0]
    reduced = responses_from_logs(several, trials="majority")
    assert reduced.responses.ravel().tolist() == [0.0, 0.0]  # one of three
    assert (
        "Repeated trials: a cell passes when more than half of its scored trials do; a tie is a fail"
        in reduced.notes
    )
    counts = responses_from_logs(several, trials="counts")
    assert counts.passes.ravel().tolist() == [1, 0]
    assert counts.n_trials.ravel().tolist() == [3, 2]  # the cancelled trial of m is none
    assert any(note.startswith("Repeated trials: a cell counts how many") for note in counts.notes)


def test_a_table_of_models_and_covariates_of_ones_own(helm: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"task": "xstest", "metric": "safety_score", "pass_at": 1.0}
    mine = tmp_path / "models.csv"
    mine.write_text("model,developer,access\n*,Everyone,open_weight\n")
    matrix = read_responses(helm, models=mine, **options)
    assert set(matrix.subjects["developer"]) == {"Everyone"}
    assert not [note for note in matrix.notes if "table of models" in note]
    items = tmp_path / "items.csv"
    items.write_text("item,topic\nid0,x\nid99,y\n")
    matrix = read_responses(helm, items=items, **options)
    assert matrix.items.columns.tolist() == ["topic"]
    assert any("39 of 40 items are not described" in note for note in matrix.notes)


def test_options_for_logs_are_refused_for_tables_and_the_other_way_round(helm: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("model,q1\na,1\n")
    with pytest.raises(DataError, match=r"is read as a table, which has no tasks.*leave out task"):
        read_responses(table, task="x")
    with pytest.raises(PlanError, match="leave out unscored"):
        read_responses(table, unscored="fail")
    with pytest.raises(DataError, match="is read as helm logs, which have no columns; leave out item_column"):
        read_responses(helm, item_column="x")
    models = tmp_path / "m.csv"
    models.write_text("model,developer,access\na,A,closed_api\n")
    assert read_responses(table, models=models).subjects.loc["a"].tolist() == ["A", "closed_api"]


def test_a_real_lm_eval_folder_is_a_matrix() -> None:
    matrix = read_responses(FIXTURES / "lm_eval", task="sums_mc", metric="acc")
    assert matrix.responses.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    assert matrix.items["target"].tolist() == ["0", "1", "2", "3"]


def test_too_large_a_matrix_is_refused_before_it_is_made() -> None:
    logs = logs_of(*(Answer(f"m{i}", "t", f"q{i}", 0, "acc", 1.0) for i in range(100)))
    with pytest.raises(DataError, match="here names 100 subjects and 100 items"):
        responses_from_logs(logs, max_bytes=79_999)
