from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import normal_columns, panel_of, plan_for

from irtaudit.panel.associations import Redundancy, associations, redundancy
from irtaudit.panel.audit import PanelAudit
from irtaudit.panel.controls import controls, decide, doubts
from irtaudit.panel.structure import structure, structure_columns
from irtaudit.stats.components import principal_components

ROLES = {
    "mmlu": "anchor",
    "gpqa": "anchor",
    "a": {"role": "benchmark", "construct": "injection"},
    "b": {"role": "benchmark", "construct": "injection"},
    "c": "benchmark",
}
PLAN = plan_for(ROLES, resampling={"horn": 1000, "negative_control": 1000})


def one_factor(n: int, loading: float, seed: int = 0) -> dict[str, np.ndarray]:
    correlation = np.full((5, 5), loading**2)
    np.fill_diagonal(correlation, 1)
    columns = normal_columns(n, correlation, np.random.default_rng(seed))
    return dict(zip(ROLES, columns.T, strict=True))


def states(panel: object, plan: object = PLAN) -> dict[str, str]:
    found, _ = structure(panel, plan)
    table = controls(panel, plan, found)
    return dict(zip(table["control"], table["state"], strict=True))


def test_a_common_factor_is_found_and_passes_the_controls() -> None:
    panel = panel_of(one_factor(60, 0.85), PLAN)
    found, lost = structure(panel, PLAN)
    assert not lost
    assert found.retained == {"Pearson": {"mean": 1, "q95": 1}, "Spearman": {"mean": 1, "q95": 1}}
    assert found.share("Pearson") > 0.6
    assert (found.loadings["sign_kept"] == 60).all()
    assert states(panel) == {"positive": "pass", "negative": "pass", "convergent": "pass"}
    assert found.composite_agreement > 0.99


def test_unrelated_columns_have_no_factor() -> None:
    rng = np.random.default_rng(1)
    kept = []
    for _ in range(60):
        panel = panel_of({name: rng.normal(size=20) for name in ROLES}, PLAN)
        kept.append(structure(panel, PLAN)[0].retained["Pearson"]["q95"])
    # 5 % of panels keep one component by chance: SD of the share .028
    assert np.mean(np.array(kept) > 0) == pytest.approx(0.05, abs=3 * 0.028)


def test_the_negative_control_is_a_share_not_one_permutation(table1: PanelAudit) -> None:
    row = table1.controls.set_index("control").loc["negative"]
    assert row["state"] == "pass"
    assert row["value"] == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 2000) + 0.01)


def test_an_anchor_the_wrong_way_round_fails_and_is_named() -> None:
    scores = one_factor(60, 0.85)
    panel = panel_of({**scores, "gpqa": -scores["gpqa"]}, PLAN)
    assert states(panel)["positive"] == "fail"
    table, _ = associations(panel, PLAN)
    first, second = doubts(panel, PLAN, table, controls(panel, PLAN, structure(panel, PLAN)[0]))
    assert first.startswith("The anchors mmlu and gpqa order the models in opposite ways (rho −0.")
    assert second.startswith("The positive control fails")
    good = panel_of(scores, PLAN)
    tested = controls(good, PLAN, structure(good, PLAN)[0])
    assert doubts(good, PLAN, associations(good, PLAN)[0], tested) == []


@pytest.mark.parametrize(("n", "flip", "state"), [(60, 1, "pass"), (60, -1, "fail"), (9, 1, "inconclusive")])
def test_the_convergent_control(n: int, flip: int, state: str) -> None:
    scores = one_factor(60, 0.9)
    scores["b"] = flip * scores["b"]
    scores["b"][n:] = np.nan
    panel = panel_of(scores, PLAN)
    table = controls(panel, PLAN, structure(panel, PLAN)[0]).set_index("control")
    assert table.loc["convergent", "state"] == state
    assert table.loc["convergent", "n"] == n
    assert ("wrong way" in table.loc["convergent", "detail"]) == (flip < 0)


def test_columns_that_few_models_have_stay_out_of_the_components() -> None:
    scores = one_factor(30, 0.8)
    scores["c"][9:] = np.nan
    panel = panel_of(scores, PLAN)
    assert structure_columns(panel, PLAN) == ["mmlu", "gpqa", "a", "b"]
    assert structure(panel, PLAN)[0].n == 30
    chosen = plan_for(ROLES, structure=["a", "b", "c"])
    assert structure_columns(panel, chosen) == ["a", "b", "c"]


def test_too_little_for_components_is_said() -> None:
    small = panel_of(one_factor(8, 0.8), PLAN)
    _, (lost,) = structure(small, PLAN)
    assert lost.reason == "0 column(s) have scores of at least 10 models, three are needed"
    assert states(small) == {
        "positive": "not testable",
        "negative": "not testable",
        "convergent": "inconclusive",
    }
    scores = one_factor(30, 0.8)
    scores["a"][:15] = np.nan
    scores["c"][15:] = np.nan
    _, (lost,) = structure(panel_of(scores, PLAN), PLAN)
    assert lost.reason == "0 models have all 5 columns, at least 10 are needed"


def test_loadings_are_those_of_the_components(table1: PanelAudit) -> None:
    columns = table1.structure.loadings["column"].tolist()
    found = principal_components(table1.panel.scores[columns].to_numpy())
    loads = table1.structure.loadings["pearson"].to_numpy()
    assert np.abs(loads) == pytest.approx(np.abs(found.loadings[:, 0]))
    assert table1.structure.loadings.set_index("column").loc["gpqa_diamond", "pearson"] > 0


@pytest.mark.parametrize(
    ("loading", "raw", "given", "readable"),
    [(0.85, 0.6, 0.6, True), (0.85, 0.6, 0.3, True), (0.2, 0.6, 0.3, False)],
)
def test_the_decision_rule(loading: float, raw: float, given: float, readable: bool) -> None:
    panel = panel_of(one_factor(60, loading), PLAN)
    found, _ = structure(panel, PLAN)
    decision = decide(PLAN, found, controls(panel, PLAN, found), Redundancy(raw, given, 3))
    assert decision.redundancy_drop == (raw - given >= 0.15)
    assert decision.readable == readable
    assert f"from {raw:.2f} to {given:.2f}" in decision.why


def test_neither_share_nor_drop_closes_the_structure() -> None:
    strict = plan_for(ROLES, thresholds={"first_component": 0.99})
    panel = panel_of(one_factor(60, 0.85), strict)
    found, _ = structure(panel, strict)
    headline = redundancy(associations(panel, strict)[0], panel, strict)
    decision = decide(
        strict, found, controls(panel, strict, found), headline._replace(given_capability=np.nan)
    )
    assert not decision.readable
    assert "undefined" in decision.why
