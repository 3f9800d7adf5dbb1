import numpy as np
import pandas as pd
import pytest

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.tables import abilities_table, correlations_table, items_table
from irtaudit.irt.fit import fit
from irtaudit.irt.spec import ModelSpec

KINDS = ["verbal"] * 12 + ["visual"] * 12


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(8)
    theta = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 60)
    logits = theta[:, np.repeat([0, 1], 12)] * 1.3 + rng.normal(0, 1, 24)
    cells = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    cells[3, 4] = np.nan
    return ResponseMatrix.from_array(cells)


@pytest.fixture(scope="module")
def fits(matrix):
    specs = [
        ModelSpec.unidimensional("3pl"),
        ModelSpec.confirmatory("2pl", KINDS, name="kind"),
        ModelSpec.exploratory("2pl", 2),
    ]
    return {spec.name: fit(matrix, spec, n_restarts=1, preset="quick", workers=1) for spec in specs}


def test_abilities_are_ranked_within_model_and_factor(fits, matrix):
    table = abilities_table(fits)
    counts = table.groupby(["model", "factor"], sort=False).size()
    assert counts.index.tolist() == [
        ("unidimensional_3pl", "ability"),
        ("confirmatory_kind_2pl", "verbal"),
        ("confirmatory_kind_2pl", "visual"),
        ("exploratory_2d_2pl", "dim1"),
        ("exploratory_2d_2pl", "dim2"),
    ]
    assert (counts == matrix.n_subjects).all()
    visual = table[table["factor"] == "visual"].set_index("subject")
    assert visual["theta"].is_monotonic_decreasing
    assert visual["rank"].tolist() == list(range(1, 61))
    assert (visual["rank_low"] <= visual["rank"]).all()
    assert (visual["rank_high"] >= visual["rank"]).all()
    assert visual["theta"].reindex(matrix.subjects.index).tolist() == pytest.approx(
        fits["confirmatory_kind_2pl"].abilities["visual"].tolist()
    )


def test_every_item_has_the_parameters_of_its_own_factor(fits, matrix):
    table = items_table({"kind": fits["confirmatory_kind_2pl"]}, matrix).set_index("item")
    assert table["factor"].reindex(matrix.items.index).tolist() == KINDS
    parameters = fits["confirmatory_kind_2pl"].item_parameters
    assert table.loc["item_20", "slope"] == parameters.loc["item_20", "slope_visual"]
    assert table["guess"].isna().all()
    assert table.loc["item_05", "responses"] == 59
    assert table.loc["item_05", "pass_rate"] == pytest.approx(np.nanmean(matrix.responses[:, 4]))


def test_difficulty_is_where_half_of_the_subjects_pass(fits, matrix):
    row = items_table({"kind": fits["confirmatory_kind_2pl"]}, matrix).iloc[5]
    assert row["slope"] * row["difficulty"] + row["intercept"] == pytest.approx(0, abs=1e-12)


def test_delta_method_agrees_with_simulation(fits, matrix):
    """Ratio of two independent normals whose denominator stays away from zero: within 5 %."""
    table = items_table({"kind": fits["confirmatory_kind_2pl"]}, matrix)
    row = table.loc[(table["slope_sd"] / table["slope"]).idxmin()]
    assert row["slope_sd"] / row["slope"] < 0.25
    rng = np.random.default_rng(1)
    draws = -rng.normal(row["intercept"], row["intercept_sd"], 200_000) / rng.normal(
        row["slope"], 0.25 * row["slope_sd"], 200_000
    )
    narrow = np.hypot(row["intercept_sd"], row["difficulty"] * 0.25 * row["slope_sd"]) / row["slope"]
    assert narrow == pytest.approx(draws.std(), rel=0.05)
    full = np.hypot(row["intercept_sd"], row["difficulty"] * row["slope_sd"]) / row["slope"]
    assert row["difficulty_sd"] == pytest.approx(full)


def test_items_on_several_factors_have_no_single_difficulty(fits, matrix):
    table = items_table({"two": fits["exploratory_2d_2pl"]}, matrix)
    assert len(table) == 2 * matrix.n_items
    assert table[["difficulty", "difficulty_sd"]].isna().all(axis=None)


def test_a_3pl_has_guesses(fits, matrix):
    table = items_table({"3pl": fits["unidimensional_3pl"]}, matrix)
    assert table["guess"].between(0, 1).all()
    assert table["guess_sd"].gt(0).all()


def test_correlations_come_from_fits_that_learn_them(fits, matrix):
    table = correlations_table(fits, matrix, workers=1)
    assert table[["model", "factor_1", "factor_2"]].to_numpy().tolist() == [
        ["confirmatory_kind_2pl", "verbal", "visual"]
    ]
    expected = fits["confirmatory_kind_2pl"].factor_correlations.loc["verbal", "visual"]
    assert table["correlation"].iloc[0] == pytest.approx(expected)
    assert table["population_low"].iloc[0] < table["panel_low"].iloc[0] < expected


def test_without_fits_the_tables_are_empty_but_have_their_columns(matrix):
    for table in (abilities_table({}), items_table({}, matrix), correlations_table({}, matrix)):
        assert isinstance(table, pd.DataFrame)
        assert table.empty
        assert "model" in table
