from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from irtaudit.stats.bootstrap import unit_draws
from irtaudit.stats.correlation import (
    correlations,
    fisher_power,
    midranks,
    null_correlations,
    partial_conventions,
    permutation_p,
    rank_correlation,
    rank_residuals,
    required_n,
    standardized,
    t_p,
)

REFERENCE = Path(__file__).parents[1] / "reference"
ROWS = dict(zip("xyzw", np.random.default_rng(0).integers(0, 9, size=(4, 12)).astype(float), strict=True))

tied = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=4, max_size=15)


@given(pairs=tied)
def test_spearman_equals_scipy_with_any_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    ours = float(rank_correlation([x, y])[0])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(ours)
        return
    theirs = stats.spearmanr(x, y)
    assert ours == pytest.approx(theirs.statistic, abs=1e-9)
    if abs(ours) < 1 - 1e-9:
        assert t_p(ours, x.size).p == pytest.approx(theirs.pvalue, abs=1e-9)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(0, 2**31))
def test_midranks_of_a_resample_are_those_of_the_repeated_rows(values: list[int], seed: int) -> None:
    x = np.array(values, dtype=float)
    (counts,) = unit_draws(x.size, 1, np.random.default_rng(seed))
    found = midranks(x, counts[None])[0]
    rows = np.repeat(np.arange(x.size), counts.astype(int))
    assert found[rows] == pytest.approx(stats.rankdata(x[rows]))


def test_values_may_differ_from_draw_to_draw() -> None:
    values = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]])
    assert midranks(values, np.ones((2, 3))).tolist() == [[3, 1, 2], [1.5, 1.5, 3]]
    assert np.isnan(midranks(np.array([[np.nan, 1.0]]), np.ones((1, 2)))).any()


@pytest.mark.parametrize("covariates", ["w", "wz"])
@pytest.mark.parametrize("levels", [4, 9, 10**6])
def test_partial_spearman_equals_pingouin(covariates: str, levels: int) -> None:
    rng = np.random.default_rng(levels)
    frame = pd.DataFrame(rng.integers(0, levels, size=(15, 4)).astype(float), columns=list("xyzw"))
    theirs = pingouin.partial_corr(frame, "x", "y", covar=list(covariates), method="spearman").iloc[0]
    ours = float(rank_correlation([frame[name] for name in "xy" + covariates])[0])
    assert ours == pytest.approx(theirs["r"], abs=1e-9)
    assert t_p(ours, 15, len(covariates)).p == pytest.approx(theirs["p_val"], abs=1e-9)


def test_the_conventions_are_what_they_say() -> None:
    x, y, w = ROWS["x"], ROWS["y"], ROWS["w"]
    found = partial_conventions(x, y, w)

    def residual(v: np.ndarray, c: np.ndarray) -> np.ndarray:
        line = stats.linregress(c, v)
        return v - line.intercept - line.slope * c

    values = residual(x, w), residual(y, w)
    rx, ry, rw = (stats.rankdata(v) for v in (x, y, w))
    ranks = residual(rx, rw), residual(ry, rw)
    assert found.rank_pearson == pytest.approx(stats.pearsonr(*ranks).statistic, abs=1e-9)
    assert found.rank_pearson == pytest.approx(float(rank_correlation([x, y, w])[0]), abs=1e-12)
    assert found.rank_spearman == pytest.approx(stats.spearmanr(*ranks).statistic, abs=1e-9)
    assert found.value_pearson == pytest.approx(stats.pearsonr(*values).statistic, abs=1e-9)
    assert found.value_spearman == pytest.approx(stats.spearmanr(*values).statistic, abs=1e-9)
    assert rank_residuals(x, w) == pytest.approx(ranks[0], abs=1e-9)


def test_a_constant_or_redundant_variable_has_no_partial_correlation() -> None:
    x, y = ROWS["x"], ROWS["y"]
    assert np.isnan(rank_correlation([x, y, x])[0])
    assert np.isnan(rank_correlation([x, np.ones(12)])[0])
    assert np.isnan(rank_correlation([x, y, np.ones(12)])[0])


def test_standardizing_inside_a_resample() -> None:
    counts = np.array([[2.0, 1.0, 0.0, 1.0], [0.0, 4.0, 0.0, 0.0]])
    z = standardized([1.0, 2.0, 9.0, 5.0], counts)
    assert z[0] == pytest.approx((np.array([1, 2, 9, 5]) - 2.25) / np.std([1, 1, 2, 5]))
    assert np.isnan(z[1]).all()


def test_the_correlation_matrix_is_numpys() -> None:
    data = np.random.default_rng(0).normal(size=(1, 3, 20))
    assert correlations(data, np.ones((1, 20)))[0] == pytest.approx(np.corrcoef(data[0]), abs=1e-12)


def test_exact_p_of_a_perfect_order() -> None:
    p = permutation_p(range(6), [1, 2, 3, 4, 5, 9], 10, np.random.default_rng(0))
    assert p.p == pytest.approx(2 / 720)
    assert p.method == "exact, all 720 permutations"


@pytest.mark.parametrize("x", [[1, 2, 3, 4, 5], [1, 1, 2, 3, 3]])
def test_exact_p_equals_scipy(x: list[int]) -> None:
    y = [2, 1, 4, 3, 3]

    def rho(v: list[int]) -> float:
        return float(stats.spearmanr(v, y).statistic)

    theirs = stats.permutation_test((x,), rho, permutation_type="pairings", n_resamples=np.inf)
    assert permutation_p(x, y, 10, np.random.default_rng(0)).p == pytest.approx(theirs.pvalue, abs=1e-9)


def test_random_permutations_agree_with_the_asymptotic_p() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = x + 4 * rng.normal(size=60)
    p = permutation_p(x, y, 20_000, rng)
    assert p.method == "permutation, 20,000 draws"
    asymptotic = t_p(float(rank_correlation([x, y])[0]), 60).p
    error = np.sqrt(asymptotic / 20_000)
    assert p.p == pytest.approx(
        asymptotic, abs=5 * error + 0.003
    )  # .003: the asymptotic p's own error at n = 60


def test_permutation_p_is_uniform_under_the_null() -> None:
    rng = np.random.default_rng(2)
    p = [permutation_p(*rng.normal(size=(2, 12)), 199, rng).p for _ in range(600)]
    # with 199 draws p takes the values 1/200 .. 1; at level .05, .2 and .5 the rate is exact
    for level in (0.05, 0.2, 0.5):
        sd = np.sqrt(level * (1 - level) / 600)
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * sd)


def test_a_constant_has_no_permutation_p() -> None:
    assert np.isnan(permutation_p([1, 1, 1], [1, 2, 3], 10, np.random.default_rng(0)).p)


def test_null_shares() -> None:
    rng = np.random.default_rng(3)
    golden = json.loads((REFERENCE / "agent_safety_panel_golden.json").read_text(encoding="utf-8"))
    exact = null_correlations(7, rng)
    assert exact.share(0.5) == pytest.approx(golden["size7_subsets"]["iid_null_no_ties"], abs=1e-9)
    assert exact.method.startswith("exact")
    simulated = null_correlations(10, rng)
    assert simulated.method.startswith("simulated")
    # variance of a rank correlation without ties: 1 / (n - 1), whatever the shape
    assert simulated.rho.var() == pytest.approx(1 / 9, rel=5 * np.sqrt(2 / 200_000))
    asymptotic = 2 * stats.t.sf(0.5 * np.sqrt(8 / 0.75), 8)
    assert simulated.share(0.5) == pytest.approx(asymptotic, abs=0.01)


def test_power_and_required_size() -> None:
    assert fisher_power(0.4, 18, 1) == pytest.approx(0.3541, abs=5e-5)
    assert np.isnan(fisher_power(0.4, 4, 1))
    for n_given in (0, 1):
        n = required_n(0.4, n_given)
        assert fisher_power(0.4, n, n_given) >= 0.8 > fisher_power(0.4, n - 1, n_given)
    assert required_n(-0.4) == required_n(0.4)
    with pytest.raises(ValueError, match="correlation of 0"):
        required_n(0.0)


def test_power_is_the_share_of_samples_that_find_it() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(4000, 40))
    y = 0.4 * x + np.sqrt(1 - 0.16) * rng.normal(size=x.shape)
    r = ((x - x.mean(1, keepdims=True)) * (y - y.mean(1, keepdims=True))).mean(1) / (x.std(1) * y.std(1))
    found = np.abs(np.arctanh(r)) * np.sqrt(37) > stats.norm.ppf(0.975)
    assert found.mean() == pytest.approx(fisher_power(0.4, 40), abs=4 * 0.0075)
