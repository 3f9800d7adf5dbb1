"""The cards of eigenvalues, fit and reliability say what the numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.eigenvalues import EigenvalueNull
from irtaudit.dimensionality.loadings import agreement_table
from irtaudit.dimensionality.present_structure import (
    CHECK_NAMES,
    COLUMNS,
    TERMS,
    _paint_scree,
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
from irtaudit.report.figures import style
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
    told = {
        "the first 2 lie above their cut-offs": [6.0, 4.5, 2.0, 2.5],
        "the first eigenvalue lies above its cut-off": [6.0, 3.5, 4.0, 2.5],
        "no eigenvalue lies above its cut-off": [4.0, 4.5, 2.0, 2.5],
    }
    for words, observed in told.items():
        paper = EigenvalueNull("paper", np.array(observed), draws, None, 0)
        card = structure_evidence(replace(one, nulls={**one.nulls, "paper": paper}))[0]
        assert words in card.text


def test_pairs_that_cannot_be_judged_are_named(one: Structure) -> None:
    items = len(one.checks.items)
    every = items * (items - 1) // 2
    some = replace(one, checks=replace(one.checks, n_pairs=45, n_dependent=1))
    card = _by_title(structure_evidence(some))["Local dependence and fit"]
    assert f"in 1 of 45 pairs of items that the panel can judge (of {every:,}) the items depend" in card.claim
    assert "A pair can be judged where" in card.text
    whole = replace(one, checks=replace(one.checks, n_pairs=every, n_dependent=0))
    card = _by_title(structure_evidence(whole))["Local dependence and fit"]
    assert f"in none of {every:,} pairs of items the items depend" in card.claim
    assert "can be judged" not in card.text


def test_one_item_that_does_not_fit_is_one(one: Structure) -> None:
    items = one.checks.items.assign(flag=[True] + [False] * (len(one.checks.items) - 1))
    claim = structure_tables(replace(one, checks=replace(one.checks, items=items)))[0].claim
    assert claim.startswith(f"1 of {len(items)} items does not follow the response curve")


K = np.arange(10)
SCREES = {
    "steep": ([13.0, 10, 9, 5.5, 5, 4.9, 4.5, 3.9, 3.7, 3.6], 8 * 0.94**K, True),
    "mixed": (7 - 0.3 * K, 7 - 0.3 * K + 0.2 * (-1.0) ** K, False),
    "flat": (5 - 0.05 * K, 5.1 - 0.05 * K, False),
    "crossing": (40 * 0.7**K, 6 * 0.95**K, True),
    "two": ([5.0, 4.0], [4.5, 4.2], False),
}


@pytest.mark.parametrize("name", SCREES)
def test_labels_of_a_scree_cover_neither_line_nor_dots(name: str) -> None:
    observed, cutoffs, log = SCREES[name]
    null = EigenvalueNull("x", np.array(observed), np.tile(np.array(cutoffs, dtype=float), (99, 1)), None, 0)
    with style():
        canvas = Canvas(figsize=(3.7, 2.4), layout="constrained")
        axes = canvas.add_subplot()
        _paint_scree(axes, null, "Eigenvalue", log)
        canvas.draw_without_rendering()
    along = np.linspace(1, len(observed), 200)
    line = np.column_stack([along, np.interp(along, np.arange(1, len(observed) + 1), cutoffs)])
    dots = np.column_stack([np.arange(1, len(observed) + 1), observed])
    points = axes.transData.transform(np.vstack([line, dots]))
    labels = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert set(labels) == {"observed", "random panels, 95 %"}
    # A dot has a radius of 3.5 pixels.
    assert {text: box.padded(3.5).count_contains(points) for text, box in labels.items()} == {
        "observed": 0,
        "random panels, 95 %": 0,
    }
    assert all(box.x1 <= canvas.bbox.x1 for box in labels.values())


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


def _rotated(restarts: list[list[list[float]]], worse: Sequence[int] = ()) -> tuple[RotatedLoadings, ...]:
    """Loadings whose restart 0 is selected, with the congruences of the others; some fit clearly worse."""
    dims = ["dim1", "dim2"]
    loadings = pd.DataFrame(restarts[0], index=pd.Index(["x", "y", "z"], name="item"), columns=dims)
    rows = [
        (number, dim, value, 0.05 if number in worse else 0.002)
        for number, other in enumerate(restarts[1:], start=1)
        for dim, value in zip(dims, congruence(np.array(other), np.array(restarts[0])), strict=True)
    ]
    found = pd.DataFrame(rows, columns=["restart", "dim", "congruence", "shortfall"])
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
    assert "only 2 of 3 restarts find the 2 dimensions of the selected one: do not interpret" in card.claim
    lonely = replace(one, rotated=_rotated([SAME, OTHER]))
    card = _by_title(structure_evidence(lonely))["Loadings of exploratory models"]
    assert "no other of 2 restarts finds the 2 dimensions of the selected one: do not interpret" in card.claim
    assert "do not interpret them" in _by_title(structure_tables(torn))["Loadings"].claim
    assert torn.tables["congruence"]["restart"].tolist() == [1, 1, 2, 2] * 2
    assert torn.tables["loadings"].columns.tolist() == ["model", "criterion", "item", "dim1", "dim2"]
    assert torn.tables["rotated_correlations"]["correlation"].tolist() == [0.3]
    assert torn.summary["restarts_of_loadings"]["agree"].tolist() == [2]
    alone = replace(one, rotated=_rotated([SAME]))
    card = _by_title(structure_evidence(alone))["Loadings of exploratory models"]
    assert "one restart, so nothing tells" in card.claim
    assert not card.figures


def _loadings_claim(one: Structure, restarts: list[list[list[float]]], worse: Sequence[int] = ()) -> str:
    sections = structure_evidence(replace(one, rotated=_rotated(restarts, worse)))
    return _by_title(sections)["Loadings of exploratory models"].claim.removeprefix(
        "2 free dimensions, 2PL: "
    )


def test_a_start_that_fits_less_well_has_no_say(one: Structure) -> None:
    assert _loadings_claim(one, [SAME, SAME, OTHER], worse=[2]) == (
        "2 restarts agree (congruence at least 1.00); 1 more ends at a clearly lower likelihood and does not "
        "count."
    )
    assert _loadings_claim(one, [SAME, SAME, OTHER, OTHER], worse=[2, 3]).endswith(
        "2 more end at a clearly lower likelihood and do not count."
    )
    assert _loadings_claim(one, [SAME, SAME, SAME], worse=[1, 2]) == (
        "none of 2 other restarts fits as well, so do not interpret its loadings."
    )


def test_one_odd_restart_of_ten_is_told_and_vetoes_nothing(one: Structure) -> None:
    ten = _loadings_claim(one, [SAME] * 9 + [OTHER])
    assert ten == "9 of 10 restarts agree; 1 finds other dimensions with a likelihood as high."
    assert "18 of 20 restarts agree; 2 find other" in _loadings_claim(one, [SAME] * 18 + [OTHER] * 2)
    for share in ([SAME] * 8 + [OTHER], [SAME] * 17 + [OTHER] * 3):
        assert "do not interpret" in _loadings_claim(one, share)
    table = agreement_table(_rotated([SAME] * 9 + [OTHER] * 3, worse=[10, 11]))
    assert table[["restarts", "as_good", "agree", "settled"]].to_numpy().tolist() == [[12, 10, 9, True]]


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
