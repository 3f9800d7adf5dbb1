from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import panel_of, plan_for
from scipy import stats

from irtaudit.panel.organizations import organization_differences, within_organizations
from irtaudit.stats.multiplicity import adjusted

ROLES = {"mmlu": "anchor", "a": "benchmark", "b": "benchmark"}
PLAN = plan_for(ROLES)
MAKERS = np.repeat(["W", "X", "Y"], [6, 5, 2])
RNG = np.random.default_rng(0)
SCORES = {name: RNG.normal(size=13) for name in ROLES}


def test_correlations_inside_organizations_with_exact_p() -> None:
    table, means, lost = within_organizations(panel_of(SCORES, PLAN, MAKERS), PLAN)
    assert not lost
    mine = table[table["y"] == "a"].set_index("organization")
    assert mine.index.tolist() == ["W", "X"]
    rho = {g: stats.spearmanr(*(SCORES[c][g == MAKERS] for c in ("mmlu", "a"))).statistic for g in "WX"}
    assert mine["rho"].to_dict() == pytest.approx(rho)
    assert mine["p_method"].tolist() == ["exact, all 720 permutations", "exact, all 120 permutations"]
    mean = means.set_index("y").loc["a"]
    assert mean["mean"] == pytest.approx(np.mean(list(rho.values())))
    assert mean["n_weighted_mean"] == pytest.approx((6 * rho["W"] + 5 * rho["X"]) / 11)
    assert mean["pooled"] == pytest.approx(stats.spearmanr(SCORES["mmlu"], SCORES["a"]).statistic)


def test_simpsons_paradox_shows() -> None:
    """Inside each maker the score falls with capability, over all makers it rises."""
    ability = np.concatenate([np.arange(5.0), 20 + np.arange(5.0)])
    score = np.concatenate([np.arange(5.0)[::-1], 20 + np.arange(5.0)[::-1]])
    panel = panel_of({"mmlu": ability, "a": score, "b": score**2 + ability}, PLAN, ["W"] * 5 + ["X"] * 5)
    mean = within_organizations(panel, PLAN)[1].set_index("y").loc["a"]
    assert (mean["mean"], mean["organizations"]) == (pytest.approx(-1.0), 2)
    assert mean["pooled"] > 0.4


def test_differences_are_those_of_kruskal_on_rank_residuals() -> None:
    table, residuals, lost = organization_differences(panel_of(SCORES, PLAN, MAKERS), PLAN)
    assert not lost
    kept = MAKERS != "Y"
    rx, ry = (stats.rankdata(SCORES[c][kept]) for c in ("mmlu", "a"))
    line = stats.linregress(rx, ry)
    left = ry - line.intercept - line.slope * rx
    mine = residuals[residuals["y"] == "a"]
    assert mine["residual_rank"].to_numpy() == pytest.approx(left)
    h = stats.kruskal(*(left[MAKERS[kept] == g] for g in "WX")).statistic
    row = table.set_index("y").loc["a"]
    assert row["h"] == pytest.approx(h, abs=1e-9)
    assert row["epsilon_squared_df_adjusted"] == pytest.approx((h - 1) / 9)
    assert row["epsilon_squared_unadjusted"] == pytest.approx(h / 10)
    assert table["p_adjusted"].to_numpy() == pytest.approx(adjusted(table["p"]))


def test_a_planted_difference_beyond_capability_is_found() -> None:
    rng = np.random.default_rng(1)
    makers = np.repeat(["W", "X", "Y", "Z"], 8)
    ability = rng.normal(size=32)
    shift = np.repeat([0.0, 2.0, -2.0, 0.5], 8)
    scores = {
        "mmlu": ability,
        "a": ability + shift + 0.5 * rng.normal(size=32),
        "b": ability + rng.normal(size=32),
    }
    table = organization_differences(panel_of(scores, PLAN, makers), PLAN)[0].set_index("y")
    assert table.loc["a", "p_adjusted"] < 0.05
    assert table.loc["b", "p_adjusted"] > 0.05


def test_the_test_keeps_its_size_when_makers_differ_in_capability() -> None:
    """Makers differ by 1 SD in capability, the score depends on capability alone: 400 panels."""
    rng = np.random.default_rng(2)
    plan = plan_for({"mmlu": "anchor", "a": "benchmark"}, resampling={"permutations": 199})
    makers = np.repeat(["W", "X", "Y"], 7)
    rejected = 0
    for _ in range(400):
        ability = rng.normal(size=21) + np.repeat([-1.0, 0.0, 1.0], 7)
        scores = {"mmlu": ability, "a": ability + rng.normal(size=21)}
        rejected += organization_differences(panel_of(scores, plan, makers), plan)[0]["p"].iloc[0] <= 0.05
    assert rejected / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("makers", [None, ["W"] * 13, [f"m{i}" for i in range(13)]])
def test_what_organizations_cannot_answer_is_said(makers: list[str] | None) -> None:
    panel = panel_of(SCORES, PLAN, makers)
    table, _, lost = organization_differences(panel, PLAN)
    assert table.empty
    assert lost
    within, means, lost = within_organizations(panel, PLAN)
    if makers and makers[0] == makers[1]:
        assert within["n"].tolist() == [13, 13]
    else:
        assert within.empty
        assert means.empty
        assert lost


def test_a_flat_score_inside_an_organization_is_named() -> None:
    scores = {**SCORES, "a": np.where(MAKERS == "W", 0.5, SCORES["a"])}
    _, _, lost = within_organizations(panel_of(scores, PLAN, MAKERS), PLAN)
    assert [(one.what, one.reason) for one in lost] == [("a inside W", "all 6 models have the same score")]
