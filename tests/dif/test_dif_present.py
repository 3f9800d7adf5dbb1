import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dif_panels import known_fit, panel

from irtaudit.dif.audit import audit_dif, compare_groups
from irtaudit.dif.groups import Groups
from irtaudit.dif.options import DifOptions
from irtaudit.dif.present import present, present_alone
from irtaudit.dif.scopes import SINGLE
from irtaudit.dif.words import LARGE, TERMS, answer, flag_lines, item_sentence, summary
from irtaudit.irt.spec import ModelSpec
from irtaudit.report.export import json_text
from irtaudit.report.page import render_report
from irtaudit.report.section import PLACES
from irtaudit.words import counted

FAST = DifOptions(n_simulations=199, n_control=5, n_power=10, screens=("mh", "logistic", "score"))
AB = {"group": "developer", "levels": ("A", "B")}


@pytest.fixture(scope="module")
def truth():
    return panel(21, sizes=(40, 35, 10), n_items=30, shifts={4: 5.0})


@pytest.fixture(scope="module")
def found(truth):
    spec = ModelSpec.confirmatory("2pl", ["x", "y"] * 15, name="kind")
    fits = [known_fit(truth), known_fit(truth, spec)]
    pairs = [Groups("developer", "A", "B")]
    return compare_groups(truth.matrix, fits, pairs, cluster="family", options=FAST, verdict="supported")


def by_title(sections):
    return {section.title: section for section in sections}


def limits(result):
    return [section.claim for section in present(result) if section.place == "limit"]


def test_cards_stand_in_the_order_of_the_report_with_groups_first(found):
    sections = present_alone(found, {"Data": "simulated"})
    assert [section.title for section in sections if section.place == "evidence"] == [
        "Who is compared",
        "DIF under the single score",
        "DIF under scoped scores",
        "Family resemblance",
        "What could have been seen",
        "Random groups",
    ]
    assert [section.place for section in sections[:2]] == ["answer", "picture"]
    assert "Every item at equal ability" in by_title(present(found))
    assert all(section.place in PLACES for section in sections)


def test_a_comparison_of_groups_prints_in_one_line(found):
    flags = int(found.items["flag_family"].sum())
    assert flags > 0
    counts = "1 comparison, 3 scopes, 3 screens, 30 items"
    assert repr(found) == f"DifResult({counts}, {counted(flags, 'family-wise flag')})"


def test_raw_means_come_first_and_are_said_not_to_be_dif(found, truth):
    card = by_title(present(found))["Who is compared"]
    mean = truth.matrix.responses[truth.matrix.subjects["developer"] == "A"].mean()
    assert f"40 A models pass {mean:.1%}" in card.claim
    assert "they are not DIF" in card.claim


def test_a_found_item_is_named_with_its_rates_and_its_direction(found, truth):
    name = truth.matrix.items.index[4]
    group = truth.matrix.subjects["developer"]
    rates = [truth.matrix.responses[group == level, 4].mean() for level in "AB"]
    words = answer(found)
    assert words.word == "not supported"
    assert words.because.startswith("Equally able models fare unequally on 1 of 30 items: item_05, ")
    assert f"{name}, passed by {rates[0]:.0%} of A and {rates[1]:.0%} of B models" in words.because
    headline = found.items[found.items["flag_family"] & found.items["screen"].isin(["mh", "logistic"])]
    row = headline[headline["scope"] == SINGLE].sort_values("p_family", kind="stable").iloc[0]
    said = (
        r"A models have about ([\d.,]+) times the odds of B models \(95 % interval ([\d.,]+) to ([\d.,]+)\)"
    )
    spoken = [np.log(float(text)) for text in re.search(said, words.because).groups()]
    expected = [row["effect"] + side * 1.96 * row["se"] for side in (0, -1, 1)]
    assert spoken == pytest.approx(expected, abs=0.06)  # two digits of the ratio
    card = by_title(present(found))["DIF under the single score"]
    assert card.table["item"].unique().tolist() == [name]
    assert name in by_title(present(found))["Items by group"].folds[0].title


def test_scoped_matching_says_what_it_can_absorb_and_what_many_cut_offs_mean(found):
    card = by_title(present(found))["DIF under scoped scores"]
    assert "2 scopes of kind" in card.claim
    assert "can absorb real differences" in card.text
    assert "flags something in 10% of audits" in card.text
    assert (
        "of 1 flag under the single score 1 stays and 0 go when models are matched within kind" in card.text
    )


def test_the_family_card_prints_the_estimated_spread(found):
    card = by_title(present(found))["Family resemblance"]
    sd = found.families["sd"].iloc[0]
    assert f"SD of {sd:.2f} logits" in card.claim
    assert "Column family: 84 models in 28 families" in card.how


def test_limits_name_only_what_applies(found, truth):
    assert not any("Test 1" in limit or "second ability" in limit for limit in limits(found))
    assert not any(limit.startswith("Groups are small") for limit in limits(found))
    assert "No flag does not mean no DIF." in limits(found)
    small = panel(22, sizes=(8, 7, 5), n_items=12)
    alone = audit_dif(small.matrix, known_fit(small), options=FAST, **AB)
    said = limits(alone)
    assert "Groups are small: A (8), B (7)." in said
    assert "Each group stands for one family." in said
    assert "A second ability can look like DIF." in said
    classical = audit_dif(truth.matrix, options=DifOptions(match="total", bands="score"), **AB)
    assert "Relatives count as independent models." in limits(classical)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ([True], "it still does"),
        ([False], "it no longer does"),
        ([True, False], "1 still does"),
        ([True, True], "2 still do"),
        ([False, False], "none still does"),
    ],
)
def test_flags_say_what_families_leave_of_them(found, kept, said):
    clean = found.items.assign(flag_family=False)
    chosen = clean.index[(clean["scope"] == SINGLE) & (clean["screen"] == "mh")][: len(kept)]
    clean.loc[chosen, "flag_family"] = True
    clean.loc[chosen, "flag_family_cluster"] = kept
    card = by_title(present(replace(found, items=clean)))["DIF under the single score"]
    assert card.claim.endswith(f"; {said} when families of models are allowed for.")


def test_the_single_score_speaks_of_one_number_of_items(found):
    flags = found.flags.assign(n_testable=found.flags["n_testable"] - 3)
    fewer = replace(found, flags=flags)
    n = flags.loc[flags["scope"] == SINGLE, "n_testable"].max()
    card = by_title(present(fewer))["DIF under the single score"]
    assert f"of {n} testable items" in card.claim
    assert f"the largest of {n} testable items" in card.otherwise


def test_bands_in_which_one_group_stands_alone_are_a_limit(found):
    assert not any("stand alone" in limit for limit in limits(found))
    apart = panel(24, sizes=(15, 15, 0), n_items=20, difference=12.0)
    result = audit_dif(apart.matrix, known_fit(apart), options=FAST, **AB)
    assert "In 2 of 3 ability bands A or B models stand alone." in limits(result)


def test_items_that_nobody_of_both_groups_answered_leave_nothing_to_measure():
    truth = panel(25, sizes=(15, 15, 5), n_items=10)
    cells = truth.matrix.responses.copy()
    cells[:15, :5], cells[15:30, 5:] = np.nan, np.nan
    matrix = replace(truth.matrix, responses=cells)
    result = audit_dif(matrix, known_fit(replace(truth, matrix=matrix)), options=FAST, **AB)
    assert answer(result).word == "nothing to measure"
    sections = present_alone(result, {"Data": "simulated"})
    titles = [section.title for section in sections if section.place == "evidence"]
    assert titles == ["Who is compared"]
    assert "10 items are not testable." in limits(result)
    assert len(render_report(sections, glossary=TERMS)) > 10_000


def test_a_crossing_item_is_told_as_a_lead_that_grows_with_ability(found):
    items = found.items
    row = items[items["screen"] == "mh"].iloc[4]
    crossed = row.copy()
    crossed["screen"], crossed["effect"], crossed["se"] = "logistic_nonuniform", np.log(4), 0.5
    assert "the more A models gain on B models" in item_sentence(crossed, ("A", "B"))
    assert item_sentence(crossed, ("A", "B")).endswith("grows 4 times (95 % interval 1.5 to 11)")
    assert "At equal ability A models have" in item_sentence(row, ("A", "B"))
    crossed["se"] = np.nan
    assert item_sentence(crossed, ("A", "B")).endswith("grows 4 times")


def test_power_that_was_not_computed_is_not_claimed():
    clean = panel(26, sizes=(20, 20, 0), n_items=12)
    for options in (replace(FAST, n_power=0), DifOptions(match="total", n_simulations=0)):
        fit = known_fit(clean) if options.n_simulations else None
        result = audit_dif(clean.matrix, fit, options=options, **AB)
        words = answer(replace(result, items=result.items.assign(flag_family=False)))
        assert words.word == "inconclusive"
        assert "was not computed" in words.because
        assert "No flag does not mean no DIF." not in limits(result)


def test_the_word_follows_the_flags_and_what_could_have_been_seen(found):
    def but(flags=None, **items):
        table = found.items.assign(**items)
        changed = found.flags if flags is None else found.flags.assign(**flags)
        return answer(replace(found, items=table, flags=changed)).word

    assert but() == "not supported"
    assert but(reading="not distinguishable from family resemblance") == "inconclusive"
    assert but(reading="DIF or multidimensionality") == "inconclusive"
    assert but(flag_family=False) == "inconclusive"
    assert but(flag_family=False, flags={"smallest_shift": LARGE - 0.01}) == "supported"
    assert but(flag_family=False, flags={"smallest_shift": np.nan}) == "inconclusive"
    assert but(testable=False) == "nothing to measure"


def test_the_page_renders_and_hostile_names_stay_text():
    nasty = panel(23, sizes=(20, 20, 0), n_items=8)
    names = [f"<script>{j}</script>" for j in range(8)]
    subjects = nasty.matrix.subjects.assign(developer=np.repeat(["<b>A</b>", "=B()"], 20))
    matrix = replace(nasty.matrix, subjects=subjects, items=pd.DataFrame(index=names))
    nasty = replace(nasty, matrix=matrix)
    result = audit_dif(matrix, known_fit(nasty), group="developer", levels=("<b>A</b>", "=B()"), options=FAST)
    page = render_report(present_alone(result, {"Data": "simulated"}), glossary=TERMS)
    assert "<script>0" not in page
    assert "<b>A</b>" not in page
    assert "&lt;script&gt;0" in page


def test_several_comparisons_are_told_apart(truth):
    pairs = [Groups("developer", "A", "B"), Groups("developer", "A", "other")]
    both = compare_groups(truth.matrix, [known_fit(truth)], pairs, options=FAST)
    titles = [section.title for section in present(both)]
    assert "Who is compared: A vs B" in titles
    assert "Who is compared: A vs other" in titles
    assert "2 comparisons are more chances for a false flag than one." in limits(both)
    assert len(render_report(present_alone(both, {"Data": "simulated"}), glossary=TERMS)) > 10_000


def test_a_result_without_a_null_is_presented_with_its_classical_numbers(truth):
    classical = audit_dif(truth.matrix, options=DifOptions(match="total", bands="score"), **AB)
    sections = present_alone(classical, {"Data": "simulated"})
    titles = [section.title for section in sections]
    assert "DIF under the single score" in titles
    assert "What could have been seen" not in titles
    assert "Random groups" not in titles
    assert answer(classical).word == "not supported"
    assert render_report(sections, glossary=TERMS)


def test_the_summary_is_json_with_the_flagged_rows(found):
    text = json_text(summary(found))
    assert '"reading": "not supported"' in text
    assert "NaN" not in text
    assert len(summary(found)["flagged"]) == found.items["flag_family"].sum()


def test_the_terminal_gets_a_line_for_the_single_score_and_one_for_the_scopes(found):
    lines = flag_lines(found)
    assert lines[0].startswith("A vs B, single score: of ")
    assert lines[1].startswith("A vs B, within 2 scopes of kind: of ")
    assert all(re.search(r"Mantel-Haenszel flags \d+ and logistic regression \d+", line) for line in lines)
