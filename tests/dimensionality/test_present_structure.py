"""The cards of eigenvalues, fit and reliability say what the numbers say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.eigenvalues import EigenvalueNull
from irtaudit.dimensionality.present_structure import (
    CHECK_NAMES,
    COLUMNS,
    TERMS,
    present_saturation,
    structure_evidence,
    structure_limits,
    structure_tables,
)
from irtaudit.dimensionality.saturation import saturation
from irtaudit.dimensionality.structure import Structure, describe_structure
from irtaudit.irt.fit import fit_all
from irtaudit.irt.loadings import RotatedLoadings
from irtaudit.irt.spec import ModelSpec
from irtaudit.report.page import render_report
from irtaudit.report.section import Section
from irtaudit.stats.rotation import congruence

FAST = {"n_restarts": 1, "preset": "quick", "workers": 1}


def _structure(correlation: float, family: str = "2pl") -> Structure:
    matrix = panel(0, 60, 40, correlation=correlation)
    labels = ["a", "b"] * (matrix.n_items // 2) + ["a"] * (matrix.n_items % 2)
    specs = [ModelSpec.unidimensional(family), ModelSpec.confirmatory("2pl", labels, name="kind")]
    full = fit_all(matrix, specs, **FAST)
    return describe_structure(matrix, full, specs[0].name, n_draws=99, n_panels=39, seed=3, workers=1)


@pytest.fixture(scope="module")
def two() -> Structure:
    return _structure(0.1)


@pytest.fixture(scope="module")
def one() -> Structure:
    return _structure(1.0)


def _by_title(sections: list[Section]) -> dict[str, Section]:
    return {section.title: section for section in sections}


def test_a_structure_holds_every_null_and_every_table(two: Structure) -> None:
    assert list(two.nulls) == ["permuted", "redrawn", "margins", "paper", "one_factor", "residual"]
    assert set(two.tables) == {
        "eigenvalues",
        "reliability",
        "information",
        "predictive_checks",
        "local_dependence",
        "item_fit",
        "person_fit",
    }
    assert two.tables["eigenvalues"]["null"].nunique() == 6
    assert two.tables["reliability"]["factor"].tolist() == ["ability", "a", "b"]
    assert all(
        set(table.columns) <= set(COLUMNS) | {"theta", "information", "se"} for table in two.tables.values()
    )


def test_the_cards_follow_the_numbers(one: Structure, two: Structure) -> None:
    cards, single = _by_title(structure_evidence(two)), _by_title(structure_evidence(one))
    assert f"{two.nulls['permuted'].observed[0]:.1f}" in cards["Eigenvalues"].claim
    assert "measure something together" in cards["Eigenvalues"].claim
    assert "not all that the items share" in cards["More than one dimension?"].claim
    assert "no trace of a second dimension" in single["More than one dimension?"].claim
    assert f"(p = {two.checks.residual.p:.3f})" in cards["More than one dimension?"].claim
    assert "39 panels simulated" in cards["More than one dimension?"].how
    assert "descriptive and no test" in cards["More than one dimension?"].text
    assert CHECK_NAMES["log_odds_ratio_sd"] in cards["Would the fitted model produce such data?"].claim
    worst = two.reliability.sort_values("reliability").iloc[0]
    assert f"{worst['factor']} ({worst['items']} items)" in cards["Reliability"].claim
    assert len(cards["Local dependence and fit"].table) == len(two.checks.pairs)
    assert all(card.table is None or set(card.table.columns) <= set(card.columns) for card in cards.values())


def test_nothing_in_common_reads_so(one: Structure) -> None:
    flat = one.nulls["permuted"]
    below = EigenvalueNull("permuted", flat.draws.mean(axis=0), flat.draws, 1, 3)
    card = structure_evidence(replace(one, nulls={**one.nulls, "permuted": below}))[0]
    assert "nothing that items share stands out" in card.claim


def test_the_papers_count_stops_at_the_first_eigenvalue_below(one: Structure) -> None:
    draws = np.tile([5.0, 4.0, 3.0, 2.0], (99, 1))
    paper = EigenvalueNull("paper", np.array([6.0, 4.5, 2.0, 2.5]), draws, None, 0)
    card = structure_evidence(replace(one, nulls={**one.nulls, "paper": paper}))[0]
    assert "the first 2 eigenvalues" in card.text


def test_only_a_silent_test_gets_the_warning(one: Structure, two: Structure) -> None:
    assert structure_limits(two) == []
    assert [section.place for section in structure_limits(one)] == ["limit"]


def test_tables_name_how_many_do_not_fit(two: Structure) -> None:
    items, subjects = structure_tables(two)
    assert items.claim.startswith(f"{int(two.checks.items['flag'].sum())} of {len(two.checks.items)} items")
    assert subjects.table["lz"].is_monotonic_increasing
    assert (items.file, subjects.file) == ("item_fit.csv", "person_fit.csv")


def test_without_a_one_dimensional_fit_only_the_nulls_are_shown() -> None:
    bare = describe_structure(panel(1), {}, None, n_draws=9)
    assert [section.title for section in structure_evidence(bare)] == ["Eigenvalues"]
    assert structure_tables(bare) == structure_limits(bare) == []
    assert list(bare.nulls) == ["permuted", "redrawn", "margins", "paper"]
    assert len(bare.predictive) == 0


def test_a_1pl_is_checked_as_a_2pl_and_others_as_they_are() -> None:
    assert _structure(1.0, "1pl").checks.model == "unidimensional_2pl"
    assert _structure(1.0, "3pl").checks.model == "unidimensional_3pl"


def test_the_page_renders_with_its_words(two: Structure) -> None:
    sections = [*structure_evidence(two), *structure_tables(two)]
    page = render_report(sections, title="Simulated panel", glossary=TERMS)
    for title in ("Eigenvalues", "Reliability", "Fit of models"):
        assert title in page
    assert "random panels, 95 %" in page


def _rotated(restarts: list[list[list[float]]]) -> tuple[RotatedLoadings, ...]:
    """Loadings whose restart 0 is selected, with the congruences of the others."""
    dims = ["dim1", "dim2"]
    loadings = pd.DataFrame(restarts[0], index=pd.Index(["x", "y", "z"], name="item"), columns=dims)
    rows = [
        (number, dim, value)
        for number, other in enumerate(restarts[1:], start=1)
        for dim, value in zip(dims, congruence(np.array(other), np.array(restarts[0])), strict=True)
    ]
    found = pd.DataFrame(rows, columns=["restart", "dim", "congruence"])
    r = pd.DataFrame([[1, 0.3], [0.3, 1]], index=dims, columns=dims)
    return tuple(
        RotatedLoadings("exploratory_2d_2pl", loadings, r, found, criterion)
        for criterion in ("varimax", "oblimin")
    )


SAME = [[0.9, 0.0], [0.8, 0.1], [0.0, 0.7]]
OTHER = [[0.9, 0.7], [0.0, 0.1], [0.8, 0.0]]


def test_restarts_that_agree_or_not_are_said_and_counted(one: Structure) -> None:
    agreeing = replace(one, rotated=_rotated([SAME, SAME, SAME]))
    card = _by_title(structure_evidence(agreeing))["Loadings of exploratory models"]
    assert card.claim == "2 free dimensions, 2PL: 3 restarts agree (congruence at least 1.00)."
    table = _by_title(structure_tables(agreeing))["Loadings"]
    assert "correlate 0.30." in table.claim
    assert "not interpret" not in table.claim
    torn = replace(one, rotated=_rotated([SAME, SAME, OTHER]))
    card = _by_title(structure_evidence(torn))["Loadings of exploratory models"]
    assert "3 restarts do not agree, 2 of them find the same 2 dimensions: do not interpret" in card.claim
    lonely = replace(one, rotated=_rotated([SAME, OTHER]))
    card = _by_title(structure_evidence(lonely))["Loadings of exploratory models"]
    assert "no other than the selected one finds the same 2 dimensions" in card.claim
    assert "do not interpret them" in _by_title(structure_tables(torn))["Loadings"].claim
    assert torn.tables["congruence"]["restart"].tolist() == [1, 1, 2, 2] * 2
    assert torn.tables["loadings"].columns.tolist() == ["model", "criterion", "item", "dim1", "dim2"]
    assert torn.tables["rotated_correlations"]["correlation"].tolist() == [0.3]
    assert torn.summary["restarts_of_loadings"]["agree"].tolist() == [2]
    alone = replace(one, rotated=_rotated([SAME]))
    card = _by_title(structure_evidence(alone))["Loadings of exploratory models"]
    assert "one restart, so nothing tells" in card.claim
    assert not card.figures


def test_an_exploratory_fit_is_rotated_both_ways() -> None:
    matrix = panel(0, 60, 40, correlation=0.1)
    spec = ModelSpec.exploratory("2pl", 2)
    fits = fit_all(matrix, [spec], n_restarts=3, preset="quick", workers=1)
    found = describe_structure(matrix, {}, None, exploratory=fits, n_draws=9)
    assert [one.criterion for one in found.rotated] == ["varimax", "oblimin"]
    assert len(found.tables["loadings"]) == 2 * matrix.n_items
    assert [section.title for section in structure_evidence(found)][-1] == "Loadings of exploratory models"


def test_the_saturation_card_counts_and_names() -> None:
    rng = np.random.default_rng(0)
    panels = {
        name: ResponseMatrix.from_array((rng.random((60, 80)) < rate).astype(float))
        for name, rate in {"easy": 0.95, "open": 0.6}.items()
    }
    card = present_saturation(saturation(panels))[0]
    assert card.claim.startswith("1 of 2 data sets is saturated: easy.")
    table = pd.DataFrame(card.table)
    none = present_saturation(saturation({"open": panels["open"]}))[0]
    assert none.claim == "The data set is not saturated."
    assert present_saturation(saturation({"easy": panels["easy"]}))[0].claim.startswith("The data set is sat")
    assert table["reading"].tolist() == ["saturated", "open"]
