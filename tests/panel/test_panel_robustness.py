from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import normal_columns, panel_of, plan_for, spearman_of
from scipy import stats

from irtaudit.panel.estimands import Association, MedianCorrelation
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.robustness import cluster_bootstrap, clustered, contrasts, left_out

ROLES = {"mmlu": "anchor", "a": "benchmark", "b": "benchmark", "task": "criterion", "safe": "criterion"}
PLAN = plan_for(ROLES)
RNG = np.random.default_rng(0)
SCORES = {name: RNG.normal(size=16) for name in ROLES}
MAKERS = np.repeat(["W", "X", "Y", "Z"], 4)
PANEL = panel_of(SCORES, PLAN, organizations=MAKERS)


def test_default_contrasts_are_pairs_of_criteria() -> None:
    table, lost = contrasts(PANEL, PLAN)
    assert not lost
    assert table[["of", "first", "second", "given"]].values.tolist() == [
        [CAPABILITY, "task", "safe", ""],
        ["a", "task", "safe", CAPABILITY],
        ["b", "task", "safe", CAPABILITY],
    ]
    first = table.iloc[0]
    rho = [stats.spearmanr(SCORES["mmlu"], SCORES[name]).statistic for name in ("task", "safe")]
    assert (first["rho_first"], first["rho_second"]) == pytest.approx(rho)
    assert first["difference"] == pytest.approx(rho[1] - rho[0])
    assert first["p"] >= 2 / 401
    assert first["p_method"] == "paired bootstrap over models, 400 draws"


def test_a_planned_contrast_replaces_the_default_ones() -> None:
    plan = plan_for(ROLES, contrasts=[{"of": "a", "first": "b", "second": "task"}])
    table, _ = contrasts(panel_of(SCORES, plan), plan)
    assert table[["of", "first", "second", "given"]].values.tolist() == [["a", "b", "task", ""]]


def test_a_planted_crossover_is_found() -> None:
    """Capability goes with one outcome at +.7 and with the other at -.5: difference about -1.15."""
    ability, task, safe = normal_columns(
        300, np.array([[1, 0.7, -0.5], [0.7, 1, -0.35], [-0.5, -0.35, 1]]), np.random.default_rng(1)
    ).T
    plan = plan_for({**ROLES}, resampling={"bootstrap": 1000})
    scores = {**{name: np.random.default_rng(2).normal(size=300) for name in ROLES}}
    scores |= {"mmlu": ability, "task": task, "safe": safe}
    row = contrasts(panel_of(scores, plan), plan)[0].iloc[0]
    truth = spearman_of(-0.5) - spearman_of(0.7)
    assert row["difference"] == pytest.approx(truth, abs=4 * 0.09)
    assert row["low"] < truth < row["high"] < 0
    assert row["p"] == pytest.approx(2 / 1001)


def test_leaving_one_out_is_brute_force() -> None:
    one = Association("a", "b")
    table = left_out(PANEL, [one]).set_index("left_out")
    keep = np.arange(16)
    slow = [stats.spearmanr(SCORES["a"][keep != i], SCORES["b"][keep != i]).statistic for i in keep]
    by_model = table.loc["model"]
    assert (by_model["lowest"], by_model["highest"]) == pytest.approx((min(slow), max(slow)))
    assert by_model["without_lowest"] == f"model_{int(np.argmin(slow)):02d}"
    estimate = stats.spearmanr(SCORES["a"], SCORES["b"]).statistic
    assert by_model["sign_flips"] == sum(np.sign(slow) != np.sign(estimate))
    makers = [stats.spearmanr(SCORES["a"][g != MAKERS], SCORES["b"][g != MAKERS]).statistic for g in "WXYZ"]
    by_maker = table.loc["organization"]
    assert (by_maker["lowest"], by_maker["highest"]) == pytest.approx((min(makers), max(makers)))
    assert by_maker["units"] == 4


def test_a_sign_that_hangs_on_one_organization_is_named() -> None:
    a = np.concatenate([np.arange(4.0), 10 + np.arange(4.0)])
    b = np.concatenate([np.arange(4.0)[::-1], 10 + np.arange(4.0)[::-1]])
    plan = plan_for({"a": "benchmark", "b": "benchmark"})
    panel = panel_of({"a": a, "b": b}, plan, organizations=["W"] * 4 + ["X"] * 4)
    row = left_out(panel, [Association("a", "b")]).set_index("left_out").loc["organization"]
    assert row["estimate"] > 0
    assert row["flipped_by"] == "W, X"


def test_clusters_follow_the_t_rule_and_keep_inside_the_range() -> None:
    table, lost = clustered(PANEL, PLAN, [Association("a", "b"), Association(CAPABILITY, "a")])
    assert not lost
    assert table["rule"].eq("t").all()
    assert table["n_clusters"].eq(4).all()
    assert table["p_method"].eq("t, 3 df, SD of 400 draws of whole organizations").all()
    assert table["low"].ge(-1).all()
    assert table["high"].le(1).all()


def test_a_median_of_sizes_has_no_p_of_zero() -> None:
    headline = MedianCorrelation((Association("a", "b"), Association("a", "task"), Association("b", "task")))
    table, _ = clustered(PANEL, PLAN, [headline])
    assert np.isnan(table["p"].iloc[0])
    assert table["low"].iloc[0] >= 0


@pytest.mark.parametrize(
    ("organizations", "reason"),
    [
        (None, "the plan names no column of organizations"),
        (["W"] * 16, "the models come from 1 organization(s), at least 3 are needed"),
    ],
)
def test_without_organizations_the_reason_is_given(organizations: list[str] | None, reason: str) -> None:
    panel = panel_of(SCORES, PLAN, organizations=organizations)
    assert cluster_bootstrap(panel, PLAN, Association("a", "b")) == reason
    table, (lost,) = clustered(panel, PLAN, [Association("a", "b")])
    assert table.empty
    assert lost.reason == reason
    assert left_out(panel, [Association("a", "b")])["left_out"].tolist() == ["model"]


def test_cluster_intervals_cover_with_eight_organizations() -> None:
    """Models of one maker share half of their variance; truth .4; 200 panels (more: experiments)."""
    rng = np.random.default_rng(3)
    plan = plan_for({"a": "benchmark", "b": "benchmark"}, resampling={"bootstrap": 300})
    correlation = np.array([[1, 0.4], [0.4, 1]])
    makers = np.repeat(np.arange(8), 5)
    covered = 0
    for _ in range(200):
        shared = normal_columns(8, correlation, rng)[makers]
        a, b = (np.sqrt(0.5) * (shared + normal_columns(40, correlation, rng))).T
        panel = panel_of({"a": a, "b": b}, plan, organizations=makers.astype(str))
        found = cluster_bootstrap(panel, plan, Association("a", "b"))
        assert not isinstance(found, str)
        covered += found.low <= spearman_of(0.4) <= found.high
    # bar .92 to .97, Monte Carlo SD .0154
    assert 0.92 - 2 * 0.0154 <= covered / 200 <= 0.97 + 2 * 0.0154
