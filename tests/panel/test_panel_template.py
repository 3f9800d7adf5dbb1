from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from irtaudit.errors import DataError
from irtaudit.panel.plan import PanelPlan, Resampling, Thresholds
from irtaudit.panel.read import read_planned_panel
from irtaudit.panel.template import plan_template
from irtaudit.plan import make_plan

COUNTED = "judge_tp,judge_fp,judge_fn,judge_tn,judge_valid,judge_n"
TEXT = f"""model,developer,mmlu_pro,attack_success,judge,{COUNTED},notes,flat
m1,Acme,70.5,0.2,0.81,8,1,2,9,0.99,20,ok,1
m2,Acme,60.5,0.4,0.5,4,2,6,8,0.85,20,,1
m3,Boole,55.5,0.1,0.9,9,1,1,9,1.0,20,late,1
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def template(path: Path) -> tuple[PanelPlan, tuple[str, ...]]:
    text, notes = plan_template(path)
    return make_plan(tomllib.loads(text), PanelPlan), notes


def test_the_template_is_a_valid_plan_for_its_table(table: Path) -> None:
    plan, _ = template(table)
    panel = read_planned_panel(table, plan)
    assert panel.scores.shape == (3, 3)
    assert plan.model == "model"
    assert plan.organization == "developer"


def test_roles_orientation_and_scale_are_guessed_from_names_and_numbers(table: Path) -> None:
    plan, _ = template(table)
    assert {name: c.role for name, c in plan.columns.items()} == {
        "mmlu_pro": "anchor",
        "attack_success": "benchmark",
        "judge": "benchmark",
    }
    assert {name: c.higher_is for name, c in plan.columns.items()}["attack_success"] == "worse"
    assert plan.columns["mmlu_pro"].scale == (0, 100)
    assert plan.columns["judge"].scale == (0, 1)


def test_counts_valid_shares_and_items_are_recognised(table: Path) -> None:
    judge = template(table)[0].columns["judge"]
    assert judge.counts is not None
    assert judge.counts.model_dump() == {p: f"judge_{p}" for p in ("tp", "fp", "fn", "tn")}
    assert (judge.valid, judge.items) == ("judge_valid", "judge_n")


def test_what_is_left_out_is_named(table: Path) -> None:
    text, notes = plan_template(table)
    assert notes == (
        "left out 'notes': found 'ok', expected a number, or nothing where it was not measured",
        "left out 'flat': the same for every model that has one",
    )
    assert "#   notes: found 'ok'" in text


def test_the_rules_written_are_the_defaults(table: Path) -> None:
    plan, _ = template(table)
    assert plan.thresholds == Thresholds()
    assert plan.resampling == Resampling()
    assert plan.multiplicity.method == "holm"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    path = tmp_path / 'a"b\\c.csv'
    path.write_text('model,"evil""]\n[x]",=1+1\nm1,0.1,3\nm2,0.2,4\n', encoding="utf-8")
    plan, _ = template(path)
    assert set(plan.columns) == {'evil"]\n[x]', "=1+1"}
    assert read_planned_panel(path, plan).n_models == 2


def test_a_table_whose_columns_are_all_anchors_by_name_has_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("model,mmlu,gpqa\nm1,1,2\nm2,2,1\n", encoding="utf-8")
    assert {c.role for c in template(path)[0].columns.values()} == {"benchmark"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,a\nm1,x\nm2,y\n", "no column holds numbers that differ between models ('a': found 'x'"),
        ("model,a\nm1,1\nm2,1\n", "'a': the same for every model that has one"),
        ("model,a\nm1,\nm2,\n", "'a': empty"),
        ("model,a\nm1,1\nm1,2\n", "model 'm1' has two rows"),
    ],
)
def test_a_table_without_scores_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        plan_template(path)
    assert said in str(caught.value)


def test_names_that_look_alike_keep_labels_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("model,a_b,a b,c ~ d\nm1,1,2,3\nm2,2,3,4\n", encoding="utf-8")
    columns = template(path)[0].columns
    assert [column.label for column in columns.values()] == ["a_b", "a b", "c - d"]


def test_a_table_of_items_is_no_panel_of_scores(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    names = [f"item_{i}" for i in range(1_001)]
    rows = [["model", *names], ["m1", *"1" * 1_001], ["m2", *"0" * 1_001]]
    path.write_text("\n".join(",".join(row) for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"has 1,002 columns, expected a column per benchmark, 1000 at most"):
        plan_template(path)
