from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_simulation import panel_of, plan_for
from scipy import stats

from irtaudit.panel.estimands import (
    Association,
    Difference,
    MedianCorrelation,
    capability,
    columns_in,
    evaluate,
    label,
    point,
    sample,
    split_testable,
    untestable,
)
from irtaudit.panel.plan import CAPABILITY
from irtaudit.stats.bootstrap import unit_draws

PLAN = plan_for({"mmlu": "anchor", "gpqa": "anchor", "a": "benchmark", "b": "benchmark", "out": "criterion"})
RNG = np.random.default_rng(0)
SCORES = {name: RNG.normal(size=15) for name in PLAN.columns}
PANEL = panel_of(SCORES, PLAN)
ESTIMANDS = [
    Association("a", "b"),
    Association("a", "out", given_capability=True),
    Association(CAPABILITY, "a"),
    Difference(Association(CAPABILITY, "a"), Association(CAPABILITY, "out")),
    MedianCorrelation((Association("a", "b"), Association("a", "out"), Association("b", "out"))),
]


def slowly(frame: pd.DataFrame, estimand: object) -> float:
    """The estimand of the rows of a frame, step by step with scipy."""
    if isinstance(estimand, Difference):
        return slowly(frame, estimand.second) - slowly(frame, estimand.first)
    if isinstance(estimand, MedianCorrelation):
        return float(np.median([abs(slowly(frame, part)) for part in estimand.parts]))
    assert isinstance(estimand, Association)
    anchors = frame[["mmlu", "gpqa"]]
    composite = ((anchors - anchors.mean()) / anchors.std()).mean(axis=1).round(12)
    x, y = (composite if name == CAPABILITY else frame[name] for name in (estimand.x, estimand.y))
    if not estimand.given_capability:
        return float(stats.spearmanr(x, y).statistic)
    rx, ry, rc = (stats.rankdata(v) for v in (x, y, composite))
    left = []
    for r in (rx, ry):
        line = stats.linregress(rc, r)
        left.append(r - line.intercept - line.slope * rc)
    return float(stats.pearsonr(*left).statistic)


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: label(PANEL, e))
def test_resamples_equal_the_slow_way_row_by_row(estimand: object) -> None:
    given_sample = sample(PANEL, estimand)
    counts = unit_draws(15, 60, np.random.default_rng(1))
    fast = evaluate(given_sample, estimand, counts)
    slow = [slowly(PANEL.scores.loc[np.repeat(PANEL.scores.index, c.astype(int))], estimand) for c in counts]
    assert fast == pytest.approx(np.array(slow), abs=1e-9)
    assert point(given_sample, estimand) == pytest.approx(slowly(PANEL.scores, estimand), abs=1e-9)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_only_the_order_of_a_score_counts(seed: int) -> None:
    scores = {name: np.random.default_rng([seed, i]).normal(size=9) for i, name in enumerate(PLAN.columns)}
    stretched = {**scores, "a": np.exp(scores["a"]), "out": 100 * scores["out"] - 3}
    for estimand in ESTIMANDS:
        one, other = (point(sample(panel_of(s, PLAN), estimand), estimand) for s in (scores, stretched))
        assert one == pytest.approx(other, abs=1e-9)


@settings(max_examples=20)
@given(order=st.permutations(range(15)))
def test_the_order_of_the_models_does_not_matter(order: list[int]) -> None:
    moved = panel_of({name: values[order] for name, values in SCORES.items()}, PLAN)
    for estimand in ESTIMANDS:
        assert point(sample(moved, estimand), estimand) == pytest.approx(
            point(sample(PANEL, estimand), estimand), abs=1e-9
        )


def test_turning_a_score_round_turns_its_correlations() -> None:
    turned = panel_of({**SCORES, "a": -SCORES["a"]}, PLAN)
    for estimand in ESTIMANDS[:3]:
        assert point(sample(turned, estimand), estimand) == pytest.approx(
            -point(sample(PANEL, estimand), estimand)
        )


def test_the_composite_is_the_mean_of_standardized_anchors() -> None:
    z = [stats.zscore(SCORES[name]) for name in ("mmlu", "gpqa")]
    assert capability(PANEL).to_numpy() == pytest.approx(np.mean(z, axis=0))


def test_a_model_without_an_anchor_has_no_capability() -> None:
    scores = {**SCORES, "mmlu": np.where(np.arange(15) == 3, np.nan, SCORES["mmlu"])}
    panel = panel_of(scores, PLAN)
    assert "model_03" not in capability(panel).index
    assert sample(panel, Association(CAPABILITY, "a")).n == 14
    assert sample(panel, Association("a", "b")).n == 15


def test_which_columns_are_needed() -> None:
    assert columns_in(PANEL, ESTIMANDS[1]) == ["a", "out", "mmlu", "gpqa"]
    assert columns_in(PANEL, ESTIMANDS[0]) == ["a", "b"]


def test_names() -> None:
    assert label(PANEL, ESTIMANDS[1]) == "a ~ out | capability"
    assert label(PANEL, ESTIMANDS[3]) == "(capability ~ out) - (capability ~ a)"
    assert label(PANEL, ESTIMANDS[4]) == "median |rho| between benchmarks"


def test_reasons_why_not() -> None:
    few = panel_of({name: values[:4] for name, values in SCORES.items()}, PLAN)
    assert untestable(few, ESTIMANDS[0]) == "4 models have both scores, at least 5 are needed"
    assert untestable(few, ESTIMANDS[1]) == "4 models have all scores, at least 6 are needed"
    flat = panel_of({**SCORES, "b": np.ones(15)}, PLAN)
    assert untestable(flat, ESTIMANDS[0]) == "b is the same for all 15 models"
    same = panel_of({**SCORES, "a": SCORES["gpqa"], "mmlu": SCORES["gpqa"]}, PLAN)
    assert untestable(same, ESTIMANDS[1]) == "one of the columns follows from the others"
    bare = plan_for({"a": "benchmark", "b": "benchmark"})
    assert untestable(panel_of({"a": SCORES["a"], "b": SCORES["b"]}, bare), ESTIMANDS[2]) == (
        "the panel has no capability anchor"
    )
    assert untestable(PANEL, MedianCorrelation(())) == "there is no pair of benchmarks of distinct constructs"
    kept, lost = split_testable(flat, "between", [ESTIMANDS[0], ESTIMANDS[2]])
    assert kept == [ESTIMANDS[2]]
    assert [(one.part, one.what) for one in lost] == [("between", "a ~ b")]
