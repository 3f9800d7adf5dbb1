from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from panel_simulation import plan_for

from irtaudit.data.panel import ScorePanel
from irtaudit.errors import DataError, PlanError
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.read import demo, read_codes, read_item_responses, read_planned_panel
from irtaudit.plan import make_plan, plan_sha256

TEXT = """model,maker,mmlu,asr,notes
m1,Acme,70.5,0.2,fine
m2,Acme,,0.4,
m3,Boole,55,NA,late
"""
PLAN = plan_for(
    {
        "mmlu": {"role": "anchor", "scale": [0, 100], "label": "MMLU"},
        "asr": {"role": "benchmark", "higher_is": "worse", "scale": [0, 1], "construct": "injection"},
    },
    organization="maker",
)


def read(folder: Path, text: str, plan: PanelPlan = PLAN, name: str = "scores.csv") -> ScorePanel:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_planned_panel(path, plan)


def test_scores_roles_and_organizations(tmp_path: Path) -> None:
    panel = read(tmp_path, TEXT)
    assert panel.scores.index.tolist() == ["m1", "m2", "m3"]
    assert panel.scores["mmlu"].tolist()[::2] == [70.5, 55.0]
    assert math.isnan(panel.scores.loc["m2", "mmlu"])
    assert panel.organizations is not None
    assert panel.organizations.tolist() == ["Acme", "Acme", "Boole"]
    assert panel.of("anchor") == ["mmlu"]
    assert panel.label("mmlu") == "MMLU"
    assert panel.columns.loc["asr", ["construct", "flipped", "low", "high"]].tolist() == [
        "injection",
        True,
        0,
        1,
    ]


def test_a_score_where_higher_is_worse_is_turned_round(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).scores["asr"].tolist()[:2] == pytest.approx([0.8, 0.6])
    loose = plan_for({"asr": {"role": "benchmark", "higher_is": "worse"}})
    assert read(tmp_path, TEXT, loose).scores["asr"].tolist()[:2] == [-0.2, -0.4]


@pytest.mark.parametrize("kind", ["csv", "tsv", "semicolon", "parquet", "gzip"])
def test_every_kind_of_table_gives_the_same_panel(tmp_path: Path, kind: str) -> None:
    expected = read(tmp_path, TEXT)
    path = tmp_path / f"other.{kind}"
    if kind == "parquet":
        pd.read_csv(tmp_path / "scores.csv").to_parquet(path)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(TEXT.encode()))
    else:
        sign = {"csv": ",", "tsv": "\t", "semicolon": ";"}[kind]
        path.write_text("\ufeff" + TEXT.replace(",", sign).replace("\n", "\r\n"), encoding="utf-8")
    found = read_planned_panel(path, PLAN)
    pd.testing.assert_frame_equal(found.scores, expected.scores)
    assert found.sha256 == expected.sha256


def test_the_hash_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    head, *rows = TEXT.splitlines()
    moved = read(tmp_path, "\n".join([head, *rows[::-1]]) + "\n", name="moved.csv")
    assert moved.sha256 == read(tmp_path, TEXT).sha256
    assert read(tmp_path, TEXT.replace("0.4", "0.41")).sha256 != moved.sha256
    assert read(tmp_path, TEXT.replace("m2,Acme", "m2,Boole")).sha256 != moved.sha256


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.2", "20%", "line 2 (model 'm1'), column 'asr': found '20%', expected a number"),
        ("0.2", "20%", "write the number without the sign"),
        ("70.5", "seventy", "column 'mmlu': found 'seventy', expected a number, or nothing"),
        ("70.5", "inf", "found 'inf', expected a number"),
        ("70.5", "1e999", "found '1e999', expected a number"),
        ("0.2", "20", "found 20, outside the scale 0 to 1 that the plan gives (1 of 2 scores are)"),
        ("m3", "m1", "model 'm1' has two rows (line 2 and line 4)"),
        ("m3", " ", "line 4: the model has no name"),
        ("m2,Acme", "m2,", "line 3: model 'm2' has no organization in column 'maker'"),
        ("asr", "attack", "has no column named 'asr'; its columns are 'model', 'maker', 'mmlu'"),
        ("notes", "mmlu", "has 2 columns named 'mmlu'"),
        ("maker", "firm", "has no column named 'maker'"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, TEXT.replace(old, new, 1))
    assert said in str(caught.value)


def test_shares_and_percentages_in_one_column_are_doubted(tmp_path: Path) -> None:
    loose = plan_for({"asr": "benchmark"})
    (note,) = read(tmp_path, TEXT.replace("0.4", "40"), loose).notes
    assert note.startswith("Column 'asr' holds 1 numbers below 1 and 1 above")
    assert read(tmp_path, TEXT, loose).notes == ()


def test_a_first_column_of_another_name_holds_the_models(tmp_path: Path) -> None:
    panel = read(tmp_path, TEXT.replace("model", "LLM under test"))
    assert panel.scores.index[0] == "m1"
    named = plan_for({"mmlu": "anchor", "asr": "benchmark"}, model="notes")
    assert read(tmp_path, TEXT.replace(",\n", ",none\n"), named).scores.index[0] == "fine"


def test_numbers_behind_the_scores_stay_as_they_are(tmp_path: Path) -> None:
    plan = plan_for({"asr": {"role": "benchmark", "higher_is": "worse", "valid": "mmlu"}})
    assert read(tmp_path, TEXT, plan).details["mmlu"].tolist()[0] == 70.5


def test_item_responses_and_codes_lie_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("model,q1,q2\nm1,0.9,0\nm2,0.2,1\n", encoding="utf-8")
    (tmp_path / "coders.csv").write_text("column,c1,c2\nasr,harm,harm\nmmlu,NA,skill\n", encoding="utf-8")
    plan = plan_for(
        {"asr": {"role": "benchmark", "responses": "items.csv", "pass_at": 0.5}},
        coding={"file": "coders.csv"},
    )
    assert read_item_responses(plan, tmp_path)["asr"].responses.tolist() == [[1, 0], [0, 1]]
    codes = read_codes(plan, tmp_path)
    assert codes is not None
    assert codes.loc["asr"].tolist() == ["harm", "harm"]
    assert codes.loc["mmlu"].isna().tolist() == [True, False]
    ordered = plan_for({"asr": "benchmark"}, coding={"file": "coders.csv", "level": "ordinal"})
    with pytest.raises(PlanError, match="coder 'c1': found 'harm'; codes of level 'ordinal' must be numbers"):
        read_codes(ordered, tmp_path)
    assert read_codes(plan_for({"asr": "benchmark"}), tmp_path) is None


def test_a_panel_from_numbers_at_hand_is_the_one_a_file_gives(tmp_path: Path) -> None:
    expected = read(tmp_path, TEXT)
    raw = pd.read_csv(tmp_path / "scores.csv", index_col="model")
    found = ScorePanel.from_frame(raw, PLAN.columns, organizations=raw["maker"])
    pd.testing.assert_frame_equal(found.scores, expected.scores, check_index_type=False)
    pd.testing.assert_frame_equal(found.columns, expected.columns)
    assert found.sha256 == expected.sha256
    with pytest.raises(DataError, match="no column 'asr'"):
        ScorePanel.from_frame(raw.drop(columns="asr"), PLAN.columns)
    with pytest.raises(DataError, match="model 'm1' has two rows"):
        ScorePanel.from_frame(raw.loc[["m1", "m1"]], PLAN.columns)
    with pytest.raises(DataError, match="model 'm1', column 'asr': found 20, outside the scale 0 to 1"):
        ScorePanel.from_frame(raw.assign(asr=20), PLAN.columns)


def test_the_bundled_panel() -> None:
    panel, plan = demo()
    assert panel.scores.shape == (18, 4)
    assert panel.scores.notna().all().all()
    assert panel.organizations is not None
    assert panel.organizations.nunique() == 8
    assert panel.scores.loc["o3-mini"].tolist() == [77.2, 0.97, 0.87, 0.77]
    assert plan.status == "pre-specified"


# the panel's own schema ---------------------------------------------------------------------------------

BASE = {
    "kind": "panel",
    "schema_version": 1,
    "columns": {"a": {"role": "benchmark"}, "b": {"role": "anchor"}},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": {"b": {"role": "anchor"}}}, "none has the role 'benchmark'"),
        ({"columns": {CAPABILITY: {"role": "benchmark"}}}, "names the composite of the anchors"),
        ({"columns": {"a": {"role": "benchmark", "scale": [1, 0]}}}, "columns.a: scale [1.0, 0.0] must go"),
        (
            {"columns": {"a": {"role": "benchmark", "published": {"f1": "x", "specificity": "y"}}}},
            "only with positives and negatives given",
        ),
        ({"columns": {"a": {"role": "benchmark", "metric": "f2"}}}, "columns.a.metric: found 'f2', expected"),
        ({"structure": ["a", "zz"]}, "structure or contrasts name zz"),
        ({"contrasts": [{"of": "a", "first": "b", "second": "q"}]}, "structure or contrasts name q"),
        ({"thresholds": {"loading": 2}}, "thresholds.loading: found 2, expected less than or equal to 1"),
        ({"resampling": {"bootstrap": 5}}, "resampling.bootstrap: found 5, expected greater than or equal"),
        (
            {"multiplicity": {"families": {"x": ["groups"], "y": ["groups"]}}},
            "groups stand(s) in two families",
        ),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(BASE | change, PanelPlan)
    assert said in str(caught.value)


def test_the_hash_sees_every_rule_and_no_order_of_columns() -> None:
    plan = make_plan(BASE, PanelPlan)
    turned = make_plan(BASE | {"columns": dict(reversed(BASE["columns"].items()))}, PanelPlan)
    assert plan_sha256(plan) == plan_sha256(turned)
    for change in ({"seed": 1}, {"thresholds": {"effect": 0.5}}, {"reading": "x"}):
        assert plan_sha256(make_plan(BASE | change, PanelPlan)) != plan_sha256(plan)


def test_default_contrasts() -> None:
    three = plan_for({"a": "benchmark", "b": "benchmark", "m": "anchor"})
    assert [(c.of, c.first, c.second) for c in three.all_contrasts()] == [(CAPABILITY, "a", "b")]
    assert plan_for({"a": "benchmark", "b": "benchmark"}).all_contrasts() == ()
    crossed = plan_for({"a": "benchmark", "m": "anchor", "x": "criterion", "y": "criterion"}).all_contrasts()
    assert [(c.of, c.given_capability) for c in crossed] == [(CAPABILITY, False), ("a", True)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"structure": ["a", "a", "b"]}, "structure: the column 'a' is given twice"),
        ({"a": {"label": "b"}}, "columns: the label 'b' is given twice"),
        ({"a": {"label": "capability"}}, "columns: the label 'capability' is given twice"),
        ({"a": {"label": "b | capability"}}, "label 'b | capability' reads like a correlation"),
        ({"a": {"label": "b ~ c"}}, "label 'b ~ c' reads like a correlation"),
        ({"a": {"scale": [0, math.inf]}}, "columns.a.scale.1: found inf"),
        ({"contrasts": [{"of": "capability", "first": "a", "second": "a"}]}, "must be three scores"),
        ({"contrasts": [{"of": "a", "first": "a", "second": "b"}]}, "must be three scores"),
    ],
)
def test_a_plan_that_means_nothing_is_refused(change: dict[str, Any], said: str) -> None:
    column = change.pop("a", {})
    with pytest.raises(PlanError) as caught:
        plan_for({"a": {"role": "benchmark", **column}, "b": "benchmark", "mmlu": "anchor"}, **change)
    assert said in str(caught.value)
