import sys
from pathlib import Path

import numpy as np
import pytest

from irtaudit.data.screen import screen
from irtaudit.data.splits import make_splits
from irtaudit.dimensionality.followup import (
    FOLLOWUPS,
    follow,
    followup_models,
    followups_table,
    subset,
)
from irtaudit.dimensionality.plan import Followup
from irtaudit.dimensionality.present import present_followup
from irtaudit.errors import PlanError
from irtaudit.irt.fit import fit_all
from irtaudit.irt.spec import ModelSpec, spec_from_name

sys.path.insert(0, str(Path(__file__).parents[1]))
from audit_panels import FAST, two_factor_panel


@pytest.fixture(scope="module")
def panel():
    matrix = screen(two_factor_panel()).matrix
    return matrix, make_splits(matrix, seed=3)


def followed(panel, leave_out):
    """A follow-up on the simulated panel of two factors, with one free dimension more than one."""
    followup = Followup(name=f"without {' and '.join(leave_out)}", column="kind", leave_out=leave_out)
    part, held = subset(followup, *panel)
    specs = [ModelSpec.unidimensional("2pl"), ModelSpec.exploratory("2pl", 2)]
    return follow(followup, part, held, fit_all(part, specs, held, **FAST, seed=1))


@pytest.fixture(scope="module")
def both(panel):
    return followed(panel, ("rare",)), followed(panel, ("visual", "rare", "odd"))


def test_a_second_dimension_goes_with_the_items_that_bring_it(both):
    """Planted: two uncorrelated factors. Without the items of one, a second dimension has nothing to say."""
    with_both, verbal = both
    gains = [one.comparison.interval("exploratory_2d_2pl", "unidimensional_2pl") for one in both]
    assert (with_both.n_items, verbal.n_items) == (50, 24)
    assert gains[0].low > 0.02
    assert gains[1].high < 0.02


def test_held_out_cells_are_those_of_the_main_comparison(panel):
    matrix, splits = panel
    part, held = subset(Followup(name="n", column="kind", leave_out=("visual",)), matrix, splits)
    kept = (matrix.items["kind"] != "visual").to_numpy()
    assert np.array_equal(held.test, splits.test[:, :, kept])
    assert part.items.index.equals(matrix.items.index[kept])


def test_default_models_depend_on_what_is_left(panel):
    items = panel[0].items
    some = Followup(name="n", column="kind", leave_out=("visual",))
    assert followup_models(some, items)[-1] == "confirmatory_kind_2pl"
    alike = items[items["kind"] == "verbal"]
    assert followup_models(some, alike)[-1] == "exploratory_2d_2pl"
    named = Followup(name="n", column="kind", leave_out=("visual",), models=("unidimensional_1pl",))
    assert followup_models(named, items) == ("unidimensional_1pl",)
    for name in followup_models(some, alike):
        assert spec_from_name(name, alike).name == name


def test_the_table_and_the_section_say_the_same(both):
    table = followups_table(both)
    assert table.columns.tolist() == FOLLOWUPS
    assert set(table["followup"]) == {"without rare", "without visual and rare and odd"}
    row = table[(table["items"] == 50) & (table["model"] == "exploratory_2d_2pl")].iloc[0]
    said = present_followup(both[0])
    assert f"{row['difference']:.4f}" in said.claim
    assert f"{row['log_loss']:.3f}" in said.claim
    assert followups_table([]).columns.tolist() == FOLLOWUPS


@pytest.mark.parametrize(
    ("column", "leave_out", "said"),
    [
        ("domain", ("x",), "needs the item column 'domain'; the item table has: 'kind'"),
        ("kind", ("aural",), "'aural', which no item of column 'kind' has"),
        ("kind", ("verbal", "visual", "rare", "odd"), "'n' leaves 0 items of 52; at least 3"),
        ("kind", ("verbal", "visual", "rare"), "leaves 2 items of 52; at least 3"),
    ],
)
def test_an_impossible_subset_is_refused(panel, column, leave_out, said):
    with pytest.raises(PlanError) as refused:
        subset(Followup(name="n", column=column, leave_out=leave_out), *panel)
    assert said in str(refused.value)
