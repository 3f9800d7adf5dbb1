"""Bernoulli-null eigenvalues: identities, sizes, power, and why the paper's version misleads."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, kstest
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.eigenvalues import (
    EIGENVALUES,
    ITEM_NULLS,
    LEVEL,
    EigenvalueNull,
    eigenvalue_nulls,
    eigenvalue_table,
    plug_in_null,
)
from irtaudit.errors import PlanError

N_PANELS, N_DRAWS = 80, 59
TOLERATED = binom.isf(1e-3, N_PANELS, LEVEL) / N_PANELS
"""Share of rejections that a test of the right size exceeds once in a thousand studies."""


def _p_values(null: str, **options: object) -> NDArray[np.float64]:
    """p of a null on many panels."""
    matrices = (panel(seed, **options) for seed in range(N_PANELS))
    return np.array([eigenvalue_nulls(m, [null], n_draws=N_DRAWS, seed=1)[null].p for m in matrices])


def test_observed_eigenvalues_are_those_of_the_item_correlations() -> None:
    matrix = panel(0)
    expected = np.linalg.eigvalsh(np.corrcoef(matrix.responses.T))[::-1][:40]
    for null in eigenvalue_nulls(matrix, n_draws=3).values():
        np.testing.assert_allclose(null.observed, expected, atol=1e-4)
        assert null.draws.shape == (3, 40)


@pytest.mark.parametrize("null", ["permuted", "redrawn"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_independent_items_are_rejected_at_the_level(null: str, missing: float) -> None:
    p = _p_values(null, spread=0.0, missing=missing, intercept_sd=1.8)
    assert (p <= LEVEL).mean() <= TOLERATED
    assert kstest(p, "uniform").pvalue > 1e-3


def test_the_null_of_both_margins_is_not_rejected_where_margins_explain_everything() -> None:
    additive = _p_values("margins", slope_sd=0.0)
    assert (additive <= LEVEL).mean() <= TOLERATED
    assert (_p_values("permuted", slope_sd=0.0) <= LEVEL).mean() == 1


@pytest.mark.parametrize("null", ["permuted", "redrawn"])
def test_one_common_factor_is_found(null: str) -> None:
    assert eigenvalue_nulls(panel(1, spread=0.7), [null], n_draws=99)[null].p == 0.01


def test_the_papers_version_calls_independent_items_dependent() -> None:
    # items that came out constant are dropped from the data, but not from the draws
    rare = {"n_subjects": 30, "n_items": 150, "spread": 0.0, "intercept_sd": 2.5}
    rates = {"paper": [], "redrawn": []}
    for seed in range(40):
        nulls = eigenvalue_nulls(panel(seed, **rare), list(rates), n_draws=99)
        for name, rate in rates.items():
            rate.append(nulls[name].above[:5].mean())
    assert np.mean(rates["paper"]) > 0.25
    assert np.mean(rates["redrawn"]) < 0.12


def test_draws_keep_the_trace_and_sit_where_random_matrix_theory_says() -> None:
    matrix = panel(2, 81, 398, spread=0.0)
    draws = eigenvalue_nulls(matrix, ["permuted"], n_draws=50)["permuted"].draws
    np.testing.assert_allclose(draws.sum(axis=1), matrix.n_items, rtol=1e-5)
    edge = (1 + np.sqrt(matrix.n_items / 81)) ** 2  # Marchenko and Pastur 1967; the largest is just below
    assert 0.9 * edge < draws[:, 0].mean() < edge


def test_a_thousand_draws_of_a_wide_panel_take_less_than_five_seconds_a_null() -> None:
    matrix = panel(3, 81, 398)
    for null in ITEM_NULLS:
        start = time.process_time()
        eigenvalue_nulls(matrix, [null], n_draws=1000)
        assert time.process_time() - start < 5, null


def test_p_values_and_cutoffs_say_the_same() -> None:
    rng = np.random.default_rng(4)
    draws = np.sort(rng.normal(size=(199, 3)), axis=1)[:, ::-1]
    for value in (draws[:, 0].max() + 1, np.sort(draws[:, 0])[-10] + 1e-4, np.sort(draws[:, 0])[-11]):
        null = EigenvalueNull("permuted", np.array([value, 0, 0]), draws, 1, 0)
        assert (null.p <= LEVEL) == null.above[0]
    assert EigenvalueNull("paper", draws[0], draws, None, 0).p != null.p
    assert np.isnan(EigenvalueNull("paper", draws[0], draws, None, 0).p)


def test_constant_items_and_the_order_of_the_nulls_do_not_matter() -> None:
    matrix = panel(5)
    wider = ResponseMatrix.from_array(np.column_stack([np.ones(40), matrix.responses]))
    one = eigenvalue_nulls(matrix, ["permuted", "margins"], n_draws=9, seed=2)
    other = eigenvalue_nulls(wider, ["margins", "permuted"], n_draws=9, seed=2)
    for name, null in one.items():
        np.testing.assert_array_equal(null.draws, other[name].draws)
        np.testing.assert_array_equal(null.observed, other[name].observed)
    assert not np.array_equal(
        one["permuted"].draws, eigenvalue_nulls(matrix, ["permuted"], n_draws=9, seed=3)["permuted"].draws
    )


def test_the_plug_in_null_draws_from_the_given_probabilities() -> None:
    matrix = panel(6)
    flat = plug_in_null(matrix, np.broadcast_to(matrix.responses.mean(axis=0), (40, 60)), n_draws=200)
    redrawn = eigenvalue_nulls(matrix, ["redrawn"], n_draws=200)["redrawn"]
    np.testing.assert_allclose(flat.draws.mean(axis=0), redrawn.draws.mean(axis=0), atol=0.05)
    assert flat.tested_rank == 2
    assert flat.p == flat.p_by_rank[1]


def test_the_table_has_a_row_per_null_and_rank() -> None:
    nulls = list(eigenvalue_nulls(panel(7), n_draws=19, seed=5).values())
    table = eigenvalue_table(nulls)
    assert list(table.columns) == EIGENVALUES
    assert len(table) == 4 * 40
    assert (table["seed"] == 5).all()
    assert table.loc[table["tested"], "null"].tolist() == ["permuted", "redrawn", "margins"]
    assert (table.loc[table["tested"], "rank"] == 1).all()
    assert len(eigenvalue_table(nulls, max_rank=3)) == 12
    assert list(eigenvalue_table([]).columns) == EIGENVALUES


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(PlanError, match="no null 'bernoulli'"):
        eigenvalue_nulls(panel(0), ["bernoulli"])
    with pytest.raises(PlanError, match="n_draws is 0"):
        eigenvalue_nulls(panel(0), n_draws=0)
    with pytest.raises(PlanError, match="1 of 2 items vary"):
        eigenvalue_nulls(ResponseMatrix.from_array([[0, 1], [1, 1], [1, 1]]))
