from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from panel_simulation import panel_of, plan_for
from sklearn import metrics as sk

from irtaudit.panel.metrics import decimals, metric_validity
from irtaudit.stats.classification import METRICS
from irtaudit.stats.proportions import wilson

COUNTED = plan_for(
    {
        "judge": {
            "role": "benchmark",
            "metric": "f1",
            "counts": {"tp": "tp", "fp": "fp", "fn": "fn", "tn": "tn"},
            "scale": [0, 1],
        },
        "other": "benchmark",
    }
)
TP, FP, FN, TN = np.array([45, 30, 10]), np.array([5, 2, 1]), np.array([5, 20, 40]), np.array([45, 48, 49])
F1 = 2 * TP / (2 * TP + FP + FN)
PANEL = panel_of(
    {"judge": F1, "other": [1.0, 2.0, 3.0]}, COUNTED, details={"tp": TP, "fp": FP, "fn": FN, "tn": TN}
)


def test_metrics_from_counts_with_intervals() -> None:
    found = metric_validity(PANEL, COUNTED)
    assert len(found.metrics) == 3 * len(METRICS)
    truth = np.array([1] * 50 + [0] * 50)
    called = np.array([1] * 30 + [0] * 20 + [1] * 2 + [0] * 48)
    second = found.metrics[found.metrics["model"] == "model_01"].set_index("metric")
    assert second.loc["mcc", "value"] == pytest.approx(sk.matthews_corrcoef(truth, called))
    assert second.loc["recall", ["low", "high"]].tolist() == pytest.approx(list(map(float, wilson(30, 50))))
    assert second.loc["recall", "interval"] == "Wilson"
    assert second.loc["f1", "low"] < second.loc["f1", "value"] < second.loc["f1", "high"]
    assert second.loc["f1", "interval"] == "bootstrap over items, 400 draws"


def test_who_beats_a_policy_that_never_looks() -> None:
    against = metric_validity(PANEL, COUNTED).against
    f1 = against[against["metric"] == "f1"].set_index("model")
    assert f1["constant"].tolist() == pytest.approx([2 / 3] * 3)
    assert f1["policy"].unique().tolist() == ["always positive"]
    assert f1["beats"].tolist() == ["yes", "not settled", "no"]
    assert f1["difference"].to_numpy() == pytest.approx(F1 - 2 / 3)
    balanced = against[against["metric"] == "balanced_accuracy"]
    assert balanced["constant"].eq(0.5).all()
    assert balanced["beats"].tolist() == ["yes", "yes", "yes"]


def test_the_interval_of_the_difference_covers() -> None:
    """One model with recall .7 and specificity .8 on 120 items, half positive: 400 data sets."""
    rng = np.random.default_rng(0)
    truth = 2 * 0.35 / (0.35 + 0.1 + 0.5) - 2 / 3
    drawn = rng.multinomial(120, [0.35, 0.1, 0.15, 0.4], size=400)
    plan = plan_for({"judge": COUNTED.columns["judge"].model_dump(by_alias=True)})
    counts = dict(zip(("tp", "fp", "fn", "tn"), drawn.T, strict=True))
    panel = panel_of({"judge": rng.random(400)}, plan, details=counts)
    found = metric_validity(panel, plan).against
    f1 = found[found["metric"] == "f1"]
    covered = ((f1["low"] <= truth) & (truth <= f1["high"])).mean()
    assert covered == pytest.approx(0.95, abs=3 * 0.011 + 0.01)  # MC error; .01 for the bootstrap's own


@pytest.mark.parametrize(
    ("metric", "constant", "policy"),
    [("specificity", 1.0, "always negative"), ("recall", 1.0, "always positive")],
)
def test_one_sided_scores_are_compared_without_knowing_the_labels(
    metric: str, constant: float, policy: str
) -> None:
    plan = plan_for({"a": {"role": "benchmark", "metric": metric}})
    found = metric_validity(panel_of({"a": [0.2, 0.9, np.nan]}, plan), plan)
    assert found.against[["score", "constant", "policy", "beats"]].values.tolist() == [
        [0.2, constant, policy, "no"],
        [0.9, constant, policy, "no"],
    ]
    assert not found.not_tested


def test_published_f1_against_the_closed_form() -> None:
    plan = plan_for(
        {"a": {"role": "benchmark", "metric": "f1", "positives": 301, "negatives": 270, "scale": [0, 100]}}
    )
    found = metric_validity(panel_of({"a": [30.0, 70.2, 57.0]}, plan), plan).against
    assert found["constant"].tolist() == pytest.approx([2 * 301 / (571 + 301)] * 3)
    assert found["beats"].tolist() == ["no", "yes", "no"]
    assert found["n"].eq(571).all()


def test_counts_are_recovered_or_the_reason_is_given() -> None:
    plan = plan_for(
        {
            "a": {
                "role": "benchmark",
                "metric": "specificity",
                "positives": 301,
                "negatives": 270,
                "published": {"f1": "f1", "specificity": "a"},
            }
        }
    )
    panel = panel_of(
        {"a": [0.97, 0.50, 0.10]}, plan, details={"f1": [0.702, 0.9, np.nan], "a": [0.97, 0.50, 0.10]}
    )
    found = metric_validity(panel, plan)
    assert found.counts[["model", "tp", "fp", "fn", "tn"]].values.tolist() == [["model_00", 167, 8, 134, 262]]
    (lost,) = found.not_tested
    assert lost.what == "counts of model_01 on a"
    assert lost.reason == "no counts fit F1 0.9 and specificity 0.5 with 301 + 270 items"


def test_counts_that_are_no_counts() -> None:
    details = {"tp": TP + 0.5, "fp": FP, "fn": -FN, "tn": TN}
    found = metric_validity(panel_of({"judge": F1, "other": F1}, COUNTED, details=details), COUNTED)
    assert found.counts.empty
    assert {one.reason for one in found.not_tested} >= {"counts are no whole numbers of items"}


def test_a_benchmark_whose_metric_is_unknown_says_so() -> None:
    found = metric_validity(PANEL, COUNTED)
    assert [one.what for one in found.not_tested] == ["other against policies that never look"]
    no_labels = plan_for({"a": {"role": "benchmark", "metric": "accuracy"}})
    (lost,) = metric_validity(panel_of({"a": [0.1, 0.2]}, no_labels), no_labels).not_tested
    assert lost.reason == "the share of positives is not known"


def test_decimals_of_printed_values() -> None:
    assert decimals(pd.Series([0.4, 0.97, np.nan])) == 2
    assert decimals(pd.Series([1.0, 3.0])) == 1
    assert decimals(pd.Series([], dtype=float)) == 0


@pytest.mark.parametrize("zero", [[True, False, False], [True, True, True]])
def test_a_model_without_a_counted_item_is_named(zero: list[bool]) -> None:
    details = {n: np.where(zero, 0, v) for n, v in {"tp": TP, "fp": FP, "fn": FN, "tn": TN}.items()}
    found = metric_validity(panel_of({"judge": F1, "other": [1, 2, 3]}, COUNTED, details=details), COUNTED)
    assert found.counts["model"].tolist() == [f"model_{i:02d}" for i in range(3) if not zero[i]]
    assert found.not_tested[0][1:] == ("judge of model_00", "no item is counted")


@pytest.mark.parametrize("wrong", [-4, 4.5, 1e12, 1e25])
def test_counts_that_are_no_whole_numbers_are_named(wrong: float) -> None:
    details = {"tp": np.array([wrong, *TP[1:]]), "fp": FP, "fn": FN, "tn": TN}
    found = metric_validity(panel_of({"judge": F1, "other": [1, 2, 3]}, COUNTED, details=details), COUNTED)
    assert found.counts["model"].tolist() == ["model_01", "model_02"]
    assert found.not_tested[0].reason == "counts are no whole numbers of items"
