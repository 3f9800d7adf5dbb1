from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from panel_simulation import normal_columns, panel_of, plan_for, spearman_of

from irtaudit.panel.audit import audit_panel
from irtaudit.panel.comparison import compare_panels, matched_subsets
from irtaudit.panel.evidence import second_panel_claim
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.screen import screen_panel
from irtaudit.stats.multiplicity import adjusted

ROLES = {"mmlu": "anchor", "a": "benchmark", "b": "benchmark"}
PLAN = plan_for(ROLES)


def draw(n: int, r: float, seed: int) -> dict[str, np.ndarray]:
    correlation = np.array([[1, r, 0], [r, 1, 0], [0, 0, 1.0]])
    return dict(zip(ROLES, normal_columns(n, correlation, np.random.default_rng(seed)).T, strict=True))


def joined(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([first[name], second[name]]) for name in ROLES}


def test_a_panel_within_another_is_recognised() -> None:
    small = draw(12, 0.0, 0)
    large = joined(small, draw(18, 0.0, 1))
    found = compare_panels(panel_of(small, PLAN), panel_of(large, PLAN), PLAN).changes
    assert found["design"].unique().tolist() == ["nested"]
    assert found["shared_models"].eq(12).all()
    assert (found["n_first"].iloc[0], found["n_second"].iloc[0]) == (12, 30)
    assert found["change"].to_numpy() == pytest.approx(found["rho_second"] - found["rho_first"])
    assert found["p_adjusted"].to_numpy() == pytest.approx(adjusted(found["p"]))


def test_the_same_panel_twice_changes_nothing_in_any_draw() -> None:
    panel = panel_of(draw(15, 0.5, 2), PLAN)
    found = compare_panels(panel, panel, PLAN).changes
    assert found[["change", "low", "high"]].to_numpy() == pytest.approx(0.0)
    assert found["p"].eq(1).all()


def test_what_panels_share_narrows_the_interval_of_the_change() -> None:
    small = draw(25, 0.5, 3)
    large = joined(small, draw(5, 0.5, 4))
    other = {name: values.copy() for name, values in large.items()}
    names = [f"other_{i}" for i in range(30)]
    nested = compare_panels(panel_of(small, PLAN), panel_of(large, PLAN), PLAN).changes.iloc[0]
    apart = compare_panels(panel_of(small, PLAN), panel_of(other, PLAN, names=names), PLAN).changes.iloc[0]
    assert apart["design"] == "independent"
    assert nested["high"] - nested["low"] < 0.6 * (apart["high"] - apart["low"])


def test_a_planted_change_is_found() -> None:
    small = draw(150, -0.6, 5)
    large = joined(small, draw(250, 0.6, 6))
    row = compare_panels(panel_of(small, PLAN), panel_of(large, PLAN), PLAN).changes.iloc[0]
    assert (row["x"], row["y"]) == (CAPABILITY, "a")
    assert row["rho_first"] == pytest.approx(spearman_of(-0.6), abs=4 * 0.07)
    assert row["low"] > 0
    assert row["p"] == pytest.approx(2 / 401)


def test_intervals_of_the_change_cover_when_nothing_changes() -> None:
    """Nested panels of 15 in 30 from one population, truth 0: 150 pairs."""
    plan = plan_for({"a": "benchmark", "b": "benchmark"}, resampling={"bootstrap": 300})
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(150):
        a, b = normal_columns(30, np.array([[1, 0.4], [0.4, 1]]), rng).T
        small, large = panel_of({"a": a[:15], "b": b[:15]}, plan), panel_of({"a": a, "b": b}, plan)
        row = compare_panels(small, large, plan).changes.iloc[0]
        covered += row["low"] <= 0 <= row["high"]
    assert covered / 150 >= 0.92 - 2 * np.sqrt(0.92 * 0.08 / 150)


def test_matched_subsets_have_the_first_panels_composition() -> None:
    makers = np.repeat(["W", "X", "Y"], [6, 4, 1])
    counts = matched_subsets(
        makers, pd.Series({"W": 2, "X": 4, "Y": 3, "Z": 2}), 500, np.random.default_rng(8)
    )
    assert (counts[:, makers == "W"].sum(axis=1) == 2).all()
    assert (counts[:, makers == "X"] == 1).all()
    assert (counts[:, makers == "Y"] == 1).all()
    # each of the six models of W is in a third of the draws: SD .021
    assert counts[:, makers == "W"].mean(axis=0) == pytest.approx(np.full(6, 1 / 3), abs=5 * 0.021)


def test_matching_undoes_a_change_of_composition() -> None:
    """Correlation +.8 inside one maker, -.8 inside the other; the second panel has more of the latter."""

    def pool(n_w: int, n_x: int, seed: int) -> tuple[dict[str, np.ndarray], list[str]]:
        return joined(draw(n_w, 0.8, seed), draw(n_x, -0.8, seed + 1)), ["W"] * n_w + ["X"] * n_x

    first, makers = pool(40, 4, 9)
    second, others = pool(60, 200, 11)
    names = [f"new_{i}" for i in range(260)]
    found = compare_panels(panel_of(first, PLAN, makers), panel_of(second, PLAN, others, names=names), PLAN)
    change, matched = found.changes.iloc[0], found.matched.iloc[0]
    assert change["rho_second"] < 0 < change["rho_first"]
    assert (matched["n_matched"], matched["missing_models"]) == (44, 0)
    assert matched["matched_median"] == pytest.approx(change["rho_first"], abs=0.2)


def test_other_scores_of_a_shared_model_are_told() -> None:
    small = draw(10, 0.0, 12)
    moved = {name: values.copy() for name, values in small.items()}
    moved["a"][3] += 1
    found = compare_panels(panel_of(small, PLAN), panel_of(moved, PLAN), PLAN)
    assert found.notes == ("1 of 10 shared models have other scores in the second panel: 'model_03'.",)


def test_what_one_panel_lacks_is_not_compared() -> None:
    small = panel_of(draw(10, 0.0, 13), PLAN)
    short = panel_of({name: values[:4] for name, values in draw(10, 0.0, 14).items()}, PLAN)
    found = compare_panels(small, short, PLAN)
    assert found.changes.empty
    assert {one.reason.split(",")[0] for one in found.not_tested} >= {
        "in the second panel 4 models have both scores"
    }


def test_what_the_second_panel_cannot_say_is_named() -> None:
    small = draw(20, 0.5, 7)
    second = screen_panel(panel_of({**small, "a": np.full(20, 0.5)}, PLAN), PLAN).panel
    found = compare_panels(panel_of(small, PLAN), second, PLAN)
    assert found.changes["y"].tolist() == ["b"]
    assert ("capability ~ a", "in the second panel models do not differ in a") in {
        one[1:] for one in found.not_tested
    }


def test_doubts_about_the_second_panel_are_told() -> None:
    small = draw(20, 0.5, 8)
    twice = joined(small, {name: values[:6] for name, values in small.items()})
    result = audit_panel(panel_of(small, PLAN), PLAN, against=panel_of(twice, PLAN))
    assert any(
        one.startswith("Second panel: 'model_00', 'model_20' have the same score") for one in result.warnings
    )
    assert second_panel_claim(result).startswith("None of 4 correlations change between the two panels")
    bare = panel_of({name: values[:2] for name, values in small.items()}, PLAN)
    nothing = audit_panel(panel_of(small, PLAN), PLAN, against=bare)
    assert second_panel_claim(nothing) == "No correlation can be compared with the second panel."


@pytest.mark.parametrize(("more", "answered"), [(0, True), (1, False), (4, False), (5, True)])
def test_a_handful_of_other_models_gives_no_interval(more: int, answered: bool) -> None:
    large = draw(20 + more, 0.5, 9)
    small = {name: values[:20] for name, values in large.items()}
    found = compare_panels(panel_of(small, PLAN), panel_of(large, PLAN), PLAN)
    assert (len(found.changes) > 0) == answered
    if not answered:
        assert found.not_tested[0].reason.startswith(f"only {more} model")
        assert found.not_tested[0].reason.endswith("between the panels, at least 5 are needed")
