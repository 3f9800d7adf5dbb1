from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import panel_of, plan_for

from irtaudit.errors import DataError
from irtaudit.panel.screen import as_wrong, regraded, repeated_models, screen_panel

PLAN = plan_for(
    {
        "mmlu": "anchor",
        "a": {"role": "benchmark", "valid": "a_valid", "scale": [0, 1]},
        "b": {"role": "benchmark", "regrade": "b2"},
    }
)
SCORES = {"mmlu": [1.0, 2, 3, 4], "a": [0.5, 0.6, 0.7, 0.8], "b": [0.1, 0.2, 0.3, 0.4]}
DETAILS = {"a_valid": [0.95, 0.9, 0.79, np.nan], "b2": [0.4, 0.3, 0.2, 0.1]}
PANEL = panel_of(SCORES, PLAN, details=DETAILS)


def test_a_model_below_the_share_of_valid_outputs_is_left_out_visibly() -> None:
    found = screen_panel(PANEL, PLAN)
    assert found.panel.scores["a"].isna().tolist() == [False, False, True, False]
    (row,) = found.excluded.to_dict("records")
    assert (row["column"], row["model"], row["value"]) == ("a", "model_02", 0.79)
    assert row["reason"] == "79% of the outputs could be parsed, the rule asks for 90%"
    assert PANEL.scores["a"].notna().all()


def test_the_threshold_is_the_plans() -> None:
    strict = plan_for(
        {name: column.model_dump(by_alias=True) for name, column in PLAN.columns.items()},
        thresholds={"valid_output": 0.95},
    )
    assert screen_panel(PANEL, strict).excluded["model"].tolist() == ["model_01", "model_02"]


def test_unparseable_outputs_as_wrong_pull_a_score_to_the_bottom() -> None:
    found = as_wrong(PANEL, PLAN).scores["a"]
    assert found.tolist() == pytest.approx([0.5 * 0.95, 0.6 * 0.9, 0.7 * 0.79, 0.8])


def test_a_model_without_any_valid_output_is_at_the_bottom() -> None:
    silent = panel_of(
        {**SCORES, "a": [np.nan, 0.6, 0.7, 0.8]}, PLAN, details=DETAILS | {"a_valid": [0, 1, 1, 1]}
    )
    assert as_wrong(silent, PLAN).scores["a"].tolist() == pytest.approx([0.0, 0.6, 0.7, 0.8])


def test_the_second_grader_replaces_the_first() -> None:
    assert regraded(PANEL, PLAN, "b").scores["b"].tolist() == DETAILS["b2"]
    turned = plan_for({"b": {"role": "benchmark", "regrade": "b2", "higher_is": "worse", "scale": [0, 1]}})
    panel = panel_of({"b": [0.9, 0.8]}, turned, details={"b2": [0.4, 0.3]})
    assert regraded(panel, turned, "b").scores["b"].tolist() == pytest.approx([0.6, 0.7])


def test_columns_without_differences_are_left_out_with_a_reason() -> None:
    scores = {**SCORES, "a": [0.5] * 4, "b": [np.nan] * 4}
    found = screen_panel(panel_of(scores, PLAN, details=DETAILS | {"a_valid": [1.0] * 4}), PLAN)
    assert found.panel.scores.columns.tolist() == ["mmlu"]
    assert found.excluded["reason"].tolist() == [
        "the same score, 0.5, for all 4 models that have one",
        "no model has a score",
    ]


def test_models_with_identical_scores_are_named() -> None:
    scores = {"mmlu": [1, 2, 1, 9], "a": [np.nan, 0.2, np.nan, 0.9], "b": [3, 2, 3, 1]}
    (warning,) = repeated_models(panel_of(scores, PLAN))
    assert warning.startswith("'model_00', 'model_02' have the same score in every column")
    assert repeated_models(PANEL) == []


def test_one_score_alone_does_not_make_a_duplicate() -> None:
    scores = {"mmlu": [1.0, 1.0, 2.0, 3.0], "a": [np.nan] * 4, "b": [np.nan] * 4}
    assert repeated_models(panel_of(scores, PLAN)) == []


DETAILED = {
    "a": {
        "role": "benchmark",
        "valid": "a_valid",
        "items": "a_n",
        "regrade": "a2",
        "scale": [0, 1],
        "positives": 3,
        "negatives": 4,
        "published": {"f1": "a_f1", "specificity": "a_sp"},
    }
}


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("a_valid", 95, "found 95, expected a share, 0 to 1 (1 of 4 lie outside); is it a percentage?"),
        ("a_valid", -0.5, "found -0.5, expected a share"),
        ("a_n", -3, "found -3, expected a number of items, 0 to 1e+09"),
        ("a2", 1.5, "found 1.5, expected a score on its scale, 0 to 1"),
        ("a_f1", 70.2, "found 70.2, expected a share"),
        ("a_sp", 97, "found 97, expected a share"),
    ],
)
def test_a_number_behind_the_scores_that_cannot_be_is_refused(column: str, value: float, said: str) -> None:
    plan = plan_for(DETAILED)
    fine = {"a_valid": 1.0, "a_n": 7.0, "a2": 0.5, "a_f1": 0.7, "a_sp": 0.9}
    details = {name: np.full(4, number) for name, number in fine.items()}
    screen_panel(panel_of({"a": SCORES["a"]}, plan, details=details), plan)
    details[column][2] = value
    with pytest.raises(DataError) as caught:
        screen_panel(panel_of({"a": SCORES["a"]}, plan, details=details), plan)
    assert str(caught.value).startswith(f"model 'model_02', column '{column}': {said}")
