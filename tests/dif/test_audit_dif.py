import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dif_panels import Truth, known_fit, panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dif.audit import audit_dif, compare_groups
from irtaudit.dif.groups import Groups
from irtaudit.dif.options import SCREENS, DifOptions
from irtaudit.dif.result import CONTROL, FLAGS, ITEMS, flags_lost, join, overlap, withdraw
from irtaudit.dif.scopes import SINGLE
from irtaudit.errors import PlanError
from irtaudit.irt.spec import ModelSpec

FAST = DifOptions(n_simulations=299, n_control=10, n_power=20)
AB = {"group": "developer", "levels": ("A", "B")}
PLANTED = {3: 4.0, 8: -4.0}


@pytest.fixture(scope="module")
def planted() -> Truth:
    return panel(11, sizes=(60, 50, 10), n_items=40, shifts=PLANTED, difference=0.5)


@pytest.fixture(scope="module")
def found(planted):
    return audit_dif(planted.matrix, known_fit(planted), options=FAST, **AB)


def rows(result, screen, scope=SINGLE):
    items = result.items
    return items[(items["screen"] == screen) & (items["scope"] == scope)].set_index("item")


def test_planted_items_are_found_by_every_uniform_screen_with_their_direction(planted, found):
    names = planted.matrix.items.index
    for screen in SCREENS[:4]:
        table = rows(found, screen)
        assert table.index[table["flag_family"]].tolist() == [names[3], names[8]], screen
        assert table["favours"][[names[3], names[8]]].tolist() == ["A", "B"]
        assert (np.sign(table["effect"][[names[3], names[8]]]) == [1, -1]).all()
        held = table["flag_family_cluster"].astype(bool)
        assert (table["reading"] == "DIF").tolist() == (table["flag_family"] & held).tolist()
    assert not rows(found, "logistic_nonuniform")["flag_family"].any()


def test_a_crossing_item_is_found_by_the_crossed_screen_alone():
    truth = panel(12, sizes=(80, 80, 0), n_items=30)
    rng, side = np.random.default_rng(1), np.where(truth.matrix.subjects["developer"] == "A", 1, -1)
    cells = truth.matrix.responses.copy()
    cells[:, 5] = rng.random(160) < 1 / (1 + np.exp(-3 * side * truth.theta))
    crossing = replace(truth, matrix=replace(truth.matrix, responses=cells))
    result = audit_dif(crossing.matrix, known_fit(crossing), options=FAST, **AB)
    assert rows(result, "logistic_nonuniform")["flag_family"].to_numpy().nonzero()[0].tolist() == [5]
    assert not rows(result, "mh")["flag_family"].iloc[5]


def test_the_tables_have_one_layout_for_every_screen(planted, found):
    assert found.items.columns.tolist() == ITEMS
    assert found.flags.columns.tolist() == FLAGS
    assert found.control.columns.tolist() == CONTROL
    assert len(found.items) == 5 * 40
    assert set(found.items["comparison"]) == {"developer:A_vs_B"}
    assert found.items["p_method"].unique().tolist() == ["simulated null, 299 matrices"]
    counts = found.items.groupby("screen", sort=False)[["flag_item", "flag_family"]].sum()
    assert found.flags["item_flags"].tolist() == counts["flag_item"].tolist()
    assert found.flags["family_flags"].tolist() == counts["flag_family"].tolist()
    assert found.flags[["n_reference", "n_focal"]].drop_duplicates().to_numpy().tolist() == [[60, 50]]
    groups = found.groups.set_index("role")
    seen = planted.matrix.responses[planted.matrix.subjects["developer"] == "A"]
    assert groups.loc["reference", "mean"] == pytest.approx(seen.mean(axis=1).mean())
    assert groups.loc["reference", "theta_mean"] - groups.loc["focal", "theta_mean"] == pytest.approx(
        0.5, abs=0.5
    )
    bands = found.bands.groupby(["item", "role"])[["responses", "passes"]].sum()
    first = planted.matrix.items.index[0]
    assert bands.loc[(first, "reference"), "responses"] == 60
    assert bands.loc[(first, "reference"), "passes"] == seen[:, 0].sum()


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(planted, found):
    again = audit_dif(planted.matrix, known_fit(planted), options=FAST, **AB)
    other = audit_dif(planted.matrix, known_fit(planted), options=replace(FAST, seed=1), **AB)
    for name, table in found.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])
    assert (found.items["p"] != other.items["p"]).any()


def test_the_order_of_models_does_not_matter(planted, found):
    fit, order = known_fit(planted), np.random.default_rng(3).permutation(120)
    shuffled = Truth(
        planted.matrix.select(subjects=planted.matrix.subjects.index[order]),
        planted.theta[order],
        planted.slope,
        planted.intercept,
    )
    other = audit_dif(shuffled.matrix, known_fit(shuffled), options=FAST, **AB)
    assert fit.subjects != other
    assert rows(found, "mh")["effect"].to_numpy() == pytest.approx(rows(other, "mh")["effect"], abs=0.1)
    assert rows(found, "mh")["alpha"].to_numpy() == pytest.approx(rows(other, "mh")["alpha"])
    assert (rows(found, "mh")["flag_family"] == rows(other, "mh")["flag_family"]).all()


def test_random_groups_flag_about_one_item_in_twenty():
    truth = panel(13, sizes=(30, 30, 0), n_items=60)
    options = replace(FAST, n_control=40, screens=("mh", "score"))
    control = audit_dif(truth.matrix, known_fit(truth), options=options, **AB).control
    # 40 deals x 60 items; item flags of one deal are nearly independent
    rates = control.groupby("screen")["item_flags"].mean() / 60
    assert rates.to_numpy() == pytest.approx([0.05, 0.05], abs=0.02)
    families = control.assign(any=control["family_flags"] > 0).groupby("screen")["any"].mean()
    assert (families <= 0.225).all()  # nine of 40, where two are expected: once in 10,000 times


def test_flags_that_relatives_explain_say_so():
    truth = panel(14, sizes=(30, 30, 0), n_items=80, family_sd=2.0)
    cells = truth.matrix.responses.copy()
    cells[:30, 7], cells[30:, 7] = 1.0, 0.0
    truth = replace(truth, matrix=replace(truth.matrix, responses=cells))
    result = audit_dif(truth.matrix, known_fit(truth), cluster="family", options=FAST, **AB)
    flagged = result.items[result.items["flag_family"]]
    held = flagged["flag_family_cluster"].astype(bool)
    assert result.families["sd"].iloc[0] == pytest.approx(2.0, abs=0.5)
    assert set(flagged["reading"][held]) <= {"DIF"}
    assert set(flagged["reading"][~held]) == {"not distinguishable from family resemblance"}
    assert (result.flags["family_cluster_flags"] <= result.flags["family_flags"]).all()


def test_where_one_score_is_not_supported_its_flags_may_be_a_second_dimension(planted):
    spec = ModelSpec.confirmatory("2pl", ["x", "y"] * 20, name="kind")
    both = compare_groups(
        planted.matrix,
        [known_fit(planted), known_fit(planted, spec)],
        [Groups("developer", "A", "B")],
        options=replace(FAST, screens=("mh", "logistic")),
        verdict="not supported",
    )
    assert both.items["scope"].unique().tolist() == [SINGLE, "kind:x", "kind:y"]
    flagged = both.items[both.items["flag_family"]]
    held = flagged["flag_family_cluster"].astype(bool)
    readings = flagged[held].groupby(flagged["scope"] == SINGLE)["reading"].unique()
    assert readings[True].tolist() == ["DIF or multidimensionality"]
    assert readings[False].tolist() == ["DIF"]
    assert set(flagged["reading"][~held]) <= {"not distinguishable from family resemblance"}
    lost = flags_lost(both, SINGLE).set_index("screen")
    assert lost.loc["mh", ["single_flags", "kept", "lost", "gained"]].tolist() == [2, 2, 0, 0]
    shared = overlap(both).set_index("scope")
    assert shared.loc[SINGLE, ["both", "only_first", "only_second"]].tolist() == [2, 0, 0]


def test_lost_and_gained_flags_are_counted_within_the_scopes_of_a_column(found):
    def flags(scope, names, flagged):
        template = found.items.head(len(names))
        return template.assign(scope=scope, item=names, flag_family=flagged)

    items = pd.concat(
        [
            flags(SINGLE, ["a", "b", "c", "d"], [True, True, False, False]),
            flags("kind:x", ["a", "b"], [True, False]),
            flags("kind:y", ["c", "d"], [True, False]),
        ]
    )
    lost = flags_lost(replace(found, items=items), SINGLE)
    assert lost[["scopes", "single_flags", "kept", "lost", "gained"]].to_numpy().tolist() == [
        ["kind", 2, 1, 1, 1]
    ]


def test_totals_need_no_fit_and_then_the_tests_are_classical(planted):
    options = DifOptions(match="total", bands="score")
    result = audit_dif(planted.matrix, options=options, **AB)
    assert result.items["screen"].unique().tolist() == ["mh", "logistic", "logistic_nonuniform"]
    assert result.items["flag_pooled"].isna().all()
    assert result.items["flag_family_cluster"].isna().all()
    assert result.items["p_method"].str.startswith("chi-square").all()
    table = rows(result, "mh")
    assert table.index[table["flag_family"]].tolist() == [planted.matrix.items.index[j] for j in PLANTED]
    assert table["p"].to_numpy() == pytest.approx(table["p_chi2"])
    assert (table["p_family"] >= table["p"]).all()
    assert result.power.empty
    assert result.control.empty
    assert any("No null was simulated" in note for note in result.notes)


@pytest.mark.parametrize(
    "options", [DifOptions(match="total", bands="score", purify=True), replace(FAST, purify=True)]
)
def test_purification_takes_planted_items_out_of_the_matching_variable(options, planted):
    fit = known_fit(planted) if options.n_simulations == 299 else None
    result = audit_dif(planted.matrix, fit, options=options, **AB)
    anchors = rows(result, "mh")["anchor"]
    assert not anchors.iloc[list(PLANTED)].any()
    assert anchors.mean() > 0.8
    assert any("anchors" in note for note in result.notes)
    assert rows(result, "mh")["flag_family"].iloc[list(PLANTED)].all()


def test_items_without_information_are_not_testable_and_not_free_of_dif():
    truth = panel(15, n_items=20)
    cells = truth.matrix.responses.copy()
    cells[:32, 0] = 1.0  # everybody who is compared passes, others do not
    cells[:21, 1] = np.nan  # nobody of the reference group answered
    cells[32:, 0] = 0.0
    truth = replace(truth, matrix=replace(truth.matrix, responses=cells))
    result = audit_dif(truth.matrix, known_fit(truth), options=FAST, **AB)
    for screen in SCREENS:
        table = rows(result, screen)
        assert table["testable"].tolist() == [False, False, *[True] * 18]
        assert table["reason"].iloc[0] == "every compared model gave the same response"
        assert table["reason"].iloc[1] == "no response in one of the groups"
        assert table.iloc[:2][["statistic", "effect", "p", "p_family"]].isna().all(axis=None)
        assert not table.iloc[:2][["flag_item", "flag_family"]].any(axis=None)
    assert (result.flags["n_testable"] == 18).all()


def test_fewer_than_three_items_are_refused():
    truth = panel(17, n_items=2)
    for fit, options in ((known_fit(truth), FAST), (None, DifOptions(match="total"))):
        with pytest.raises(PlanError, match="2 items, and no scope has 3"):
            audit_dif(truth.matrix, fit, options=options, **AB)


def test_tables_of_an_earlier_comparison_are_taken_away_and_nothing_else(tmp_path):
    for name in ("dif.csv", "dif_power.csv", "items.csv", "dif.json"):
        (tmp_path / name).write_text("earlier")
    withdraw(tmp_path, {"dif", "items"})
    assert {path.name for path in tmp_path.iterdir()} == {"dif.csv", "items.csv", "dif.json"}


def test_equally_able_models_are_compared_all_together(planted):
    level = Truth(planted.matrix, np.zeros(120), planted.slope, planted.intercept)
    result = audit_dif(
        level.matrix, known_fit(level), options=replace(FAST, screens=("mh", "logistic")), **AB
    )
    assert any("equally able" in note for note in result.notes)
    assert result.bands["band"].unique().tolist() == [1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": DifOptions(screens=("score",), n_simulations=0)}, "score need a simulated null"),
        ({"fit": None}, "Matching on theta needs a fitted model"),
        ({"options": replace(FAST, bands=500)}, "500 ability bands were asked for, but only 110 models"),
        ({"levels": ("A", "Z")}, "No model has developer 'Z'"),
        ({"levels": ("A", "A")}, "two different levels"),
        ({"levels": ("A",)}, "levels names 1 groups"),
        ({"group": "maker"}, "no subject column 'maker'"),
        ({"cluster": "lab"}, "no subject column 'lab'"),
    ],
)
def test_what_does_not_go_together_is_refused(planted, change, message):
    call = {"fit": known_fit(planted), "options": FAST, **AB, **change}
    with pytest.raises(PlanError, match=message):
        audit_dif(planted.matrix, **call)


def test_fits_of_other_data_or_of_splits_are_refused(planted):
    fit = known_fit(planted)
    with pytest.raises(PlanError, match="another matrix"):
        audit_dif(planted.matrix.select(items=planted.matrix.items.index[1:]), fit, options=FAST, **AB)
    with pytest.raises(PlanError, match="held cells out"):
        audit_dif(planted.matrix, replace(fit, splits=("2026",)), options=FAST, **AB)
    rotated = replace(fit, spec=ModelSpec.exploratory("2pl", 2))
    with pytest.raises(PlanError, match="may be rotated"):
        audit_dif(planted.matrix, rotated, options=FAST, **AB)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"match": "score"}, "expected theta or total"),
        ({"bands": 0}, "bands is 0; expected a whole number, at least 1"),
        ({"bands": 2.5}, r"bands is 2\.5; expected a whole number"),
        ({"bands": True}, "bands is True; expected a whole number"),
        ({"seed": True}, "seed is True; expected a whole number"),
        ({"n_simulations": "x"}, "n_simulations is 'x'; expected a whole number"),
        ({"penalty": "x"}, "penalty is 'x'"),
        ({"purify": 1}, "purify is 1; expected True or False"),
        ({"screens": "mh"}, "screens is 'mh'; expected some of mh, logistic"),
        ({"bands": "score"}, "needs match='total'"),
        ({"screens": ("mh", "wald")}, "no screen wald"),
        ({"screens": ()}, "no screen named"),
        ({"screens": ("mh", "mh")}, "named twice"),
        ({"penalty": -1.0}, "penalty is -1"),
        ({"penalty": float("nan")}, "penalty is nan"),
        ({"n_simulations": 10}, "10 simulations cannot give"),
        ({"n_control": -1}, "n_control is -1"),
    ],
)
def test_options_are_checked_when_they_are_made(options, message):
    with pytest.raises(PlanError, match=message):
        DifOptions(**options)


def test_results_join_in_order(found):
    twice = join([found, found])
    assert len(twice.items) == 2 * len(found.items)
    assert twice.options == found.options
    assert set(twice.files) == {
        f"dif{part}"
        for part in ("", "_flags", "_groups", "_bands", "_curves", "_power", "_control", "_families")
    }


def test_comparing_groups_needs_no_torch():
    program = "import sys, irtaudit.dif.audit, irtaudit.dif.present; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_a_fitted_panel_goes_through():
    import irtaudit

    truth = panel(16, sizes=(40, 40, 20), n_items=40, shifts={0: 4.0}, missing=0.05)
    matrix: ResponseMatrix = irtaudit.screen(truth.matrix).matrix
    fit = irtaudit.fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, preset="quick", workers=1)
    result = irtaudit.audit_dif(matrix, fit, options=FAST, **AB)
    assert rows(result, "score")["flag_family"].iloc[0]
    assert rows(result, "score")["flag_family"].sum() <= 2


def test_whole_numbers_of_options_may_be_numpys():
    given = DifOptions(bands=np.int64(3), n_power=np.int32(20), seed=np.uint8(7))
    assert given == DifOptions(bands=3, n_power=20, seed=7)
    assert [type(value) for value in (given.bands, given.n_power, given.seed)] == [int, int, int]
