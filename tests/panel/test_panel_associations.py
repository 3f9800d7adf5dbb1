from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import normal_columns, panel_of, plan_for, spearman_of
from scipy import stats

from irtaudit.panel.associations import associations, conventions, planned, redundancy, sensitivity
from irtaudit.panel.estimands import capability
from irtaudit.panel.plan import CAPABILITY
from irtaudit.stats.correlation import partial_conventions
from irtaudit.stats.multiplicity import adjusted

ROLES = {
    "mmlu": "anchor",
    "gpqa": "anchor",
    "a": "benchmark",
    "b": "benchmark",
    "c": {"role": "benchmark", "construct": "a"},
    "task": "criterion",
}
PLAN = plan_for(ROLES)


def simulated(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=n) for name in ROLES}


def test_every_planned_correlation_has_a_row() -> None:
    table, lost = associations(panel_of(simulated(20), PLAN), PLAN)
    assert not lost
    assert table["kind"].value_counts().to_dict() == {
        "capability": 4,
        "between": 6,
        "criterion": 6,
        "anchors": 1,
    }
    assert table.loc[table["given"] == CAPABILITY, "p_method"].unique().tolist() == ["asymptotic t, 17 df"]
    assert table["p_permutation"].isna().tolist() == (table["given"] == CAPABILITY).tolist()
    assert (
        not table[["rho", "low", "high", "low_joint", "high_joint", "p", "power", "n_needed"]]
        .isna()
        .any()
        .any()
    )


def test_p_and_its_correction_by_family() -> None:
    scores = simulated(20)
    table, _ = associations(panel_of(scores, PLAN), PLAN)
    between = table[table["kind"] == "between"]
    assert between["p_adjusted"].to_numpy() == pytest.approx(adjusted(between["p"]))
    first = between.iloc[0]
    assert first["p"] == pytest.approx(stats.spearmanr(scores["a"], scores["b"]).pvalue, abs=1e-9)
    criterion = table[table["kind"] == "criterion"]
    assert criterion.loc[criterion["given"] == "", "p_adjusted"].isna().all()
    partial = criterion[criterion["given"] == CAPABILITY]
    assert partial["p_adjusted"].to_numpy() == pytest.approx(adjusted(partial["p"]))


def test_families_can_be_joined() -> None:
    plan = plan_for(ROLES, multiplicity={"families": {"all": ["between", "capability"]}})
    table, _ = associations(panel_of(simulated(20), plan), plan)
    joined = table[table["family"] == "all"]
    assert set(joined["kind"]) == {"between", "capability"}
    assert joined["p_adjusted"].to_numpy() == pytest.approx(adjusted(joined["p"]))


def test_joint_intervals_are_wider() -> None:
    table, _ = associations(panel_of(simulated(20), PLAN), PLAN)
    several = table[table["kind"] == "between"]
    assert (several["low_joint"] < several["low"]).all()
    assert (several["high_joint"] > several["high"]).all()
    alone = table[table["kind"] == "anchors"]
    assert alone["low_joint"].tolist() == alone["low"].tolist()


def test_small_panels_get_exact_permutation_p() -> None:
    table, _ = associations(panel_of(simulated(8), PLAN), PLAN)
    methods = table.loc[table["given"] == "", "p_permutation_method"].unique().tolist()
    assert methods == ["exact, all 40,320 permutations"]


def test_what_is_missing_is_said_and_not_tabled() -> None:
    scores = simulated(20)
    scores["b"][4:] = np.nan
    table, lost = associations(panel_of(scores, PLAN), PLAN)
    assert not table[["x", "y"]].isin(["b"]).any().any()
    assert {one.reason for one in lost} == {
        "4 models have both scores, at least 5 are needed",
        "4 models have all scores, at least 5 are needed",
        "4 models have all scores, at least 6 are needed",
    }


def test_the_median_is_over_pairs_of_distinct_constructs_with_enough_models() -> None:
    scores = simulated(20)
    panel = panel_of(scores, PLAN)
    table, _ = associations(panel, PLAN)
    rho = {pair: abs(stats.spearmanr(scores[pair[0]], scores[pair[1]]).statistic) for pair in ("ab", "bc")}
    found = redundancy(table, panel, PLAN)
    assert found.n_pairs == 2
    assert found.raw == pytest.approx(np.median(list(rho.values())))
    scores["c"][8:] = np.nan
    short = panel_of(scores, PLAN)
    assert redundancy(associations(short, PLAN)[0], short, PLAN).raw == pytest.approx(rho["ab"])


def test_capability_that_drives_two_scores_is_taken_out() -> None:
    """Two scores that share nothing but capability: raw correlation .64, partial 0."""
    rng = np.random.default_rng(3)
    n = 1500
    ability = rng.normal(size=n)
    noise = rng.normal(size=(5, n))
    scores = {
        "mmlu": ability + 0.05 * noise[0],
        "gpqa": ability + 0.05 * noise[1],
        "a": 0.8 * ability + 0.6 * noise[2],
        "b": 0.8 * ability + 0.6 * noise[3],
        "c": noise[4],
        "task": ability,
    }
    plan = plan_for(ROLES, resampling={"bootstrap": 100, "permutations": 100})
    table, _ = associations(panel_of(scores, plan), plan)
    pair = table[(table["x"] == "a") & (table["y"] == "b")].set_index("given")["rho"]
    assert pair[""] == pytest.approx(spearman_of(0.64), abs=4 / np.sqrt(n))
    assert pair[CAPABILITY] == pytest.approx(0.0, abs=4 / np.sqrt(n))


def test_conventions_stand_side_by_side() -> None:
    scores = simulated(20)
    panel = panel_of(scores, PLAN)
    table = conventions(panel)
    assert len(table) == 6
    assert table["n"].eq(20).all()
    first = table.iloc[0]
    expected = partial_conventions(scores["a"], scores["b"], capability(panel))
    assert (first["x"], first["y"]) == ("a", "b")
    assert first[list(expected._fields)].tolist() == pytest.approx(list(expected))


def test_sensitivity_lists_what_a_variant_changes() -> None:
    scores = simulated(20)
    base = panel_of(scores, PLAN)
    other = panel_of({**scores, "a": -scores["a"]}, PLAN)
    table = sensitivity(base, {"turned": other, "same": base})
    assert set(table["variant"]) == {"turned"}
    assert (table[["x", "y"]] == "a").any(axis=1).all()
    assert table["difference"].to_numpy() == pytest.approx(table["rho_variant"] - table["rho"])
    raw = table[table["given"] == ""]
    assert raw["rho_variant"].to_numpy() == pytest.approx(-raw["rho"].to_numpy())


def test_planned_pairs() -> None:
    found = planned(panel_of(simulated(6), PLAN))
    assert [(one.x, one.y) for one in found["capability"]] == [
        (CAPABILITY, y) for y in ("a", "b", "c", "task")
    ]


def test_bootstrap_intervals_cover_a_planted_correlation() -> None:
    """Paired bootstrap at n = 20: 300 panels, each with its truth at .5 (more panels: experiments)."""
    rng = np.random.default_rng(4)
    plan = plan_for({"a": "benchmark", "b": "benchmark"}, resampling={"bootstrap": 300, "permutations": 100})
    truth, covered = spearman_of(0.5), 0
    for _ in range(300):
        a, b = normal_columns(20, np.array([[1, 0.5], [0.5, 1]]), rng).T
        row = associations(panel_of({"a": a, "b": b}, plan), plan)[0].iloc[0]
        covered += row["low"] <= truth <= row["high"]
    # .95 with a Monte Carlo SD of .0126; the bar is .92 to .97
    assert 0.92 - 2 * 0.0126 <= covered / 300 <= 0.97 + 2 * 0.0126
