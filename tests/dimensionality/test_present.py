import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from comparison_panels import panel, restarts, rows

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.compare import assemble
from irtaudit.dimensionality.gates import Power
from irtaudit.dimensionality.present import (
    _gain,
    _heat_map,
    _nested,
    _paired,
    band_shares,
    present,
    restart_spread,
)
from irtaudit.dimensionality.tables import correlations_table
from irtaudit.dimensionality.verdict import judge
from irtaudit.irt.fit import fit
from irtaudit.irt.spec import ModelSpec
from irtaudit.report.page import render_report
from irtaudit.report.section import PLACES
from irtaudit.stats.resampling import Interval

CHALLENGERS = {"confirmatory_kind_2pl": 0.02, "exploratory_2d_2pl": -0.02}


def _by_title(sections):
    return {section.title: section for section in sections}


def _limits(sections):
    return [section.claim for section in sections if section.place == "limit"]


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(8)
    theta = rng.normal(size=(50, 1))
    cells = (rng.random((50, 24)) < 1 / (1 + np.exp(-theta - rng.normal(size=24)))).astype(float)
    names = [f"item <b>{j}</b>" for j in range(24)]
    items = pd.DataFrame({"kind": ["a"] * 20 + ["b"] * 4, "slope": 0}, index=names)
    return ResponseMatrix.from_array(cells, items=items)


@pytest.fixture(scope="module")
def full(matrix):
    specs = [ModelSpec.unidimensional("2pl"), ModelSpec.confirmatory("2pl", matrix.items["kind"])]
    return {spec.name: fit(matrix, spec, n_restarts=2, preset="quick", workers=1) for spec in specs}


def test_the_answer_carries_word_reason_and_what_would_change_it():
    comparison = panel(0.1, CHALLENGERS)
    verdict = judge(comparison)
    answer = present(comparison, verdict, claim="My score = my skill", holds_for={"Models": "81"})[0]
    assert answer.place == "answer"
    assert (answer.verdict.word, answer.verdict.reading) == ("inconclusive", "My score = my skill")
    assert answer.verdict.holds_for == {"Models": "81"}
    assert answer.claim == verdict.because
    assert verdict.what_would_change in answer.text


def test_sections_come_in_the_order_of_the_report():
    places = [PLACES.index(section.place) for section in present(panel(0.1, CHALLENGERS))]
    assert places == sorted(places)


def test_the_picture_states_the_numbers_that_carry_the_verdict():
    picture = _by_title(present(panel(0.1, CHALLENGERS)))["Held-out predictions"]
    assert "0.380" in picture.claim  # the best of all
    assert "0.400" in picture.claim  # the best single dimension
    assert "0.500" in picture.claim  # item means
    assert picture.table["log_loss"].is_monotonic_increasing
    assert "better by the margin" in picture.figures[0].svg
    assert "2 free dimensions, 2PL" in picture.figures[0].svg


def test_the_paired_card_counts_who_exceeds_the_margin():
    card = _by_title(present(panel(0.1, CHALLENGERS)))["Held-out comparison"]
    assert (
        "Of 2 richer models 1 gains clearly more than the margin of 0.0020 nats, 1 clearly less" in card.claim
    )
    assert "(better in 5 of 5 splits)" in card.claim


@pytest.mark.parametrize(
    ("gain", "told"), [(0.02, "gains clearly more than"), (-0.02, "gains clearly less than")]
)
def test_one_richer_model_is_counted_as_one(gain, told):
    card = _paired_card(panel(0.1, {"exploratory_2d_2pl": gain}))
    assert card.claim.startswith(f"The one richer model {told} the margin of 0.0020 nats.")


def _paired_card(comparison):
    (card,) = _paired(comparison, judge(comparison))
    return card


def _gain_card(comparison):
    (card,) = _gain(comparison, judge(comparison))
    return card


def test_a_loss_stands_as_a_loss_in_the_paired_card():
    card = _paired_card(panel(0.1, {"confirmatory_kind_2pl": -0.0089}))
    assert "None gains anything; the least is lost, 0.0089, with one dimension per kind" in card.claim
    nothing = _paired_card(panel(-0.01, {"confirmatory_kind_2pl": -0.0089}))
    assert "no margin for more" in nothing.claim
    assert "nan" not in nothing.claim + nothing.figures[0].svg


def test_every_interval_says_over_what_it_holds():
    paired, gain = _paired_card(panel(0.1, CHALLENGERS)), _gain_card(panel(0.1, CHALLENGERS))
    assert "for its comparison alone" in paired.caption
    assert "alone" in paired.columns["low"]
    assert "best of 2 was chosen" in gain.how
    alone = panel(0.1, CHALLENGERS).by_split.query("model != 'unidimensional_1pl'")
    card = _gain_card(assemble(alone, restarts(alone), 0.25))
    assert "chosen" not in card.how


def test_what_would_be_otherwise_fits_what_was_found():
    assert "shuffled" in _gain_card(panel(0.1, CHALLENGERS)).otherwise
    assert "shuffled" not in _gain_card(panel(-0.01)).otherwise
    wide = _gain_card(panel(0.005, gain_wobble=0.01))
    assert "cannot be told" in wide.claim
    assert "shuffled" not in wide.otherwise


def test_fits_that_stay_below_what_they_contain_are_told():
    sound = _nested(panel(0.1, CHALLENGERS))
    assert "likelihood of a model contained" not in sound.claim
    short = panel(0.1, {}, extra=[rows("exploratory_2d_2pl", "exploratory", 2, 0.4, train_log_lik=-1007.5)])
    card = _nested(short)
    assert card.claim == (
        "None of 3 models predicts worse than a model it contains by more than the splits vary. But 1 does "
        "not reach the training likelihood of a model contained, by up to 7.5 nats (2 free dimensions, 2PL, "
        "below one dimension, 2PL)."
    )
    assert card.table["finding"].tolist() == ["lower training likelihood"]
    assert any("less well than a model they contain" in claim for claim in _limits(present(short)))
    failed = panel(0.1, {}, extra=[rows("exploratory_2d_2pl", "exploratory", 2, 0.5, train_log_lik=-2000.0)])
    assert _nested(failed).claim == "1 of 3 fits failed and none overfit."


def test_a_score_counts_the_items_that_the_screen_drops(matrix, full):
    given = ResponseMatrix.from_array(
        np.hstack([matrix.responses, np.zeros((50, 8))]), subjects=matrix.subjects.index
    )
    sections = present(panel(0.1, CHALLENGERS), full=full, matrix=matrix, given=given)
    table = _by_title(sections)["Models"].table
    expected = pd.Series(given.responses.mean(axis=1), given.subjects.index).reindex(table.index)
    assert table["score"].tolist() == pytest.approx(expected.tolist())


def test_without_challengers_or_gain_no_card_pretends():
    sections = present(panel(-0.01))
    assert sections[0].verdict.word == "nothing to measure"
    assert "Held-out comparison" not in _by_title(sections)
    assert "does not improve predictions" in _by_title(sections)["Is there something to measure?"].claim


def test_restarts_are_said_to_dominate_only_where_they_do():
    comparison = panel(0.1, CHALLENGERS)
    claim = _by_title(present(comparison))["Restart agreement"].claim
    assert "log-loss of 3 restarts has an SD of 0.0002 nats" in claim
    assert "which is 2 free dimensions, 2PL, below" in claim
    assert "below the margin of 0.0020" in claim
    assert "Every restart of one dimension per kind, 2PL predicts better" in claim
    wide = assemble(comparison.by_split, restarts(comparison.by_split, spread=0.05), 0.25)
    claim = _by_title(present(wide))["Restart agreement"].claim
    assert "Every restart" not in claim
    assert "above the margin" in claim
    assert "Some richer models depend on their random start." in _limits(present(wide))
    assert "Some richer models depend on their random start." not in _limits(present(comparison))


def test_spread_of_restarts_by_hand():
    table = restart_spread(panel(0.1, CHALLENGERS)).set_index("model")
    assert table["sd"].tolist() == pytest.approx([0.0002] * 4)
    assert table.loc["exploratory_2d_2pl", ["lowest", "highest"]].tolist() == pytest.approx([-0.0002, 0.0002])


def test_limits_are_only_those_that_apply():
    sound = panel(0.1, CHALLENGERS)
    assert not any("failed" in claim or "missing" in claim for claim in _limits(present(sound)))
    extra = [rows("exploratory_3d_2pl", "exploratory", 3, 0.45, train_log_lik=-2000.0)]
    broken = panel(0.1, CHALLENGERS, extra=extra)
    assert "3 free dimensions, 2PL: failed fit." in _limits(present(broken))
    noted = replace(sound, by_split=sound.by_split.assign(note="the learned slope_scale is 0.01"))
    assert "The learned slope_scale is 0.01." in _limits(present(noted))


def test_no_evidence_is_called_no_evidence_where_nothing_exceeds_the_margin():
    silent = panel(0.1, {"confirmatory_kind_2pl": -0.02})
    assert any("not evidence for one" in claim for claim in _limits(present(silent)))
    assert not any("not evidence for one" in claim for claim in _limits(present(panel(0.1, CHALLENGERS))))
    decided = judge(silent, power=0.9)
    assert decided.word == "supported"
    assert not any("not evidence for one" in claim for claim in _limits(present(silent, decided)))


def test_the_power_is_rounded_once():
    silent = panel(0.1, {"confirmatory_kind_2pl": -0.02})
    power = Power(0.975, 40, 0.8, "confirmatory_kind_2pl")
    cards = _by_title(present(silent, judge(silent, power=power.power), power=power))
    assert "In 39 of 40 simulated panels of this size (97.5 %)" in cards["Power of the verdict"].claim
    assert "met: power 97.5 %, needed 80 %" in cards["The rule and its conditions"].facts.values()


def test_missing_cells_and_small_factors_are_limits(matrix, full):
    cells = matrix.responses.copy()
    cells[:10, :12] = np.nan
    holes = ResponseMatrix(cells, matrix.items, matrix.subjects)
    claims = _limits(present(panel(0.1, CHALLENGERS), full=full, matrix=holes))
    assert "10.0% of the responses are missing." in claims
    assert "With one dimension per kind, 1 of 2 rests on few items." in claims


def test_guessing_that_the_data_cannot_tell_is_a_limit(matrix):
    spec = ModelSpec.unidimensional("3pl")
    fits = {spec.name: fit(matrix, spec, n_restarts=1, preset="quick", workers=1)}
    claims = _limits(present(panel(0.1, CHALLENGERS), full=fits, matrix=matrix))
    assert any(claim.startswith("Guessing is not identified for") for claim in claims)


def test_factor_correlations_name_the_lowest_pair(full, matrix):
    table = correlations_table(full, matrix, workers=1)
    card = _by_title(present(panel(0.1, CHALLENGERS), full=full, correlations=table))["Factor correlations"]
    value = full["confirmatory_kind_2pl"].factor_correlations.loc["a", "b"]
    assert f"the two abilities correlate {value:.2f} (95 % interval" in card.claim
    assert "median" not in card.claim
    assert not card.figures  # one number needs no map
    assert set(card.table) <= set(card.columns)


def _pairs(*rows):
    columns = ["correlation", "population_low", "population_high", "panel_low", "panel_high"]
    names = [("a", "b"), ("a", "c"), ("b", "c")][: len(rows)]
    table = pd.DataFrame(rows, columns=columns).assign(model="confirmatory_kind_2pl", measurement_sd=0.1)
    return table.assign(factor_1=[a for a, _ in names], factor_2=[b for _, b in names])


def _correlation_card(full, *rows):
    sections = present(panel(0.1, CHALLENGERS), full=full, correlations=_pairs(*rows))
    return _by_title(sections)["Factor correlations"]


def test_an_interval_of_correlations_is_printed_with_minus_signs(full):
    card = _correlation_card(full, (0.24, -0.12, 0.54, -0.05, 0.5))
    assert "models like these \N{MINUS SIGN}0.12 to 0.54)" in card.claim
    assert card.text == ""


@pytest.mark.parametrize("end", ["population_high", "panel_high"])
def test_a_correlation_that_may_be_one_is_said_to(full, end):
    row = {"correlation": 0.97, "population_low": 0.9, "population_high": 0.996, "panel_low": 0.93}
    row = row | {"panel_high": 0.99} | {end: 1.0}
    card = _correlation_card(full, tuple(row.values()))
    assert card.text == "The upper limit is 1: the two may be the same dimension."
    low = (0.5, 0.3, 0.7, 0.4, 0.6)
    card = _correlation_card(full, low, tuple(row.values()), low)
    assert card.text.startswith("For 1 of 3 pairs the upper limit is 1")


def test_a_limit_below_one_is_not_printed_as_one(full):
    card = _correlation_card(full, (0.97, 0.9, 0.996, 0.93, 0.99))
    assert "0.90 to 0.996)" in card.claim
    assert card.text == ""


def test_correlations_that_look_the_same_are_told_once(full):
    rows = [(r, 0.9, 0.9951, 0.97, 0.994) for r in (0.9861, 0.9874, 0.9938)]
    assert "correlate between 0.99" not in _correlation_card(full, *rows[:2]).claim
    claim = _correlation_card(full, *rows[:2]).claim
    assert "abilities correlate 0.99 (least a with b; 95 % interval" in claim
    assert "correlate between 0.24" in _correlation_card(full, (0.24, 0, 0.5, 0, 0.4), *rows[:2]).claim


def test_the_scale_of_the_measurement_error_is_named(full):
    card = _correlation_card(full, (0.5, 0.3, 0.7, 0.4, 0.6))
    assert "arcsin r" in card.columns["measurement_sd"]
    assert "arcsin r" in card.how


def test_one_start_tells_nothing_about_starts():
    table = panel(0.1, CHALLENGERS)
    single = replace(table, restarts=table.restarts[table.restarts["restart"] == 0])
    claim = _by_title(present(single))["Restart agreement"].claim
    assert "fitted from one start" in claim
    assert "nan" not in claim


def test_correlations_are_printed_in_an_ink_that_can_be_read():
    names = ["a", "b", "c"]
    table = pd.DataFrame([[1, 0.7, 0.96], [0.7, 1, -0.2], [0.96, -0.2, 1]], names, names)
    svg = _heat_map(table, "claim").svg
    printed = re.findall(r'<text style="([^"]*)"[^>]*>([^<]*\.\d\d)</text>', svg)
    inks = {text: "#ffffff" in style for style, text in printed}
    assert inks == {".70": False, ".96": True, "\N{MINUS SIGN}.20": False}


def test_tables_and_curves_to_look_at(matrix, full):
    sections = _by_title(present(panel(0.1, CHALLENGERS), full=full, matrix=matrix))
    models, items = sections["Models"], sections["Items"]
    assert models.table["rank"].tolist() == sorted(models.table["rank"])
    assert len(models.table) == matrix.n_subjects
    assert len(items.folds) == matrix.n_items
    assert {fold.title for fold in items.folds} == set(items.table.index)
    lines = [re.search(r'polyline points="([^"]*)"', fold.figures[0].svg)[1] for fold in items.folds]
    assert all(len(line.split()) == 31 for line in lines)
    assert items.table["slope"].gt(0).all()  # the fitted one, not the covariate of that name
    assert "guess" not in items.table


def test_the_page_renders_and_escapes_names(matrix, full):
    page = render_report(present(panel(0.1, CHALLENGERS), full=full, matrix=matrix))
    assert "item &lt;b&gt;3&lt;/b&gt;" in page
    assert "<b>3</b>" not in page


def test_band_shares_by_hand():
    theta = np.array([3.0, 1.0, 2.0, 4.0, 5.0, 6.0])
    responses = np.array([1.0, 0.0, np.nan, 1.0, 0.0, 1.0])
    centres, shares = band_shares(theta, responses, bands=2)
    assert centres.tolist() == pytest.approx([(1 + 3 + 4) / 3, 5.5])
    assert shares.tolist() == pytest.approx([2 / 3, 0.5])
    assert band_shares(theta, responses, bands=9)[0].size == 5


def test_families_and_power_are_cards_where_they_were_computed(matrix):
    comparison = panel(0.1, CHALLENGERS)
    assert "Family resemblance" not in _by_title(present(comparison))
    over = dict.fromkeys(judge(comparison).challengers, Interval(0.05, 0.01, 0.09))
    decided = judge(comparison, cluster_intervals=over)
    power = Power(0.35, 40, 0.8, "3 random equal blocks of items")
    cards = _by_title(present(comparison, decided, matrix=matrix, family=None, power=power))
    assert "holds" in cards["Family resemblance"].claim
    free = decided.evidence[decided.evidence["challenger"].str.startswith("exploratory")]
    claim = _by_title(present(comparison, replace(decided, evidence=free)))["Family resemblance"].claim
    assert re.search(r", allowing \d free dimensions (gains|loses) 0\.", claim), claim
    assert "0.0100 to 0.0900" in cards["Family resemblance"].claim
    assert "In 14 of 40 simulated panels of this size (35 %)" in cards["Power of the verdict"].claim
    limits = _limits(present(comparison, decided, matrix=matrix, family=None))
    assert any("choice of responses, not of models" in claim for claim in limits)
    doubtful = judge(comparison, cluster_intervals=dict.fromkeys(over, Interval(0.05, -0.01, 0.11)))
    card = _by_title(present(comparison, doubtful, matrix=matrix))["Family resemblance"]
    assert "is not established" in card.claim
