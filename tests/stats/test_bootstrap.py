from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import t

from irtaudit.stats.bootstrap import (
    cluster_draws,
    cluster_interval,
    percentile_interval,
    stratified_draws,
    subsets,
    two_sided_p,
    unit_draws,
    without_each,
)
from irtaudit.stats.correlation import rank_correlation


def test_a_draw_holds_as_many_units_as_the_sample() -> None:
    counts = unit_draws(7, 4000, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 7).all()
    # each count is Binomial(7, 1/7): SD .93, of a mean over 4,000 draws .0147
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=5 * 0.0147)
    assert counts.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.15)


def test_units_of_a_cluster_come_together() -> None:
    clusters = np.array(["a", "b", "a", "c", "b", "a"])
    counts = cluster_draws(clusters, 500, np.random.default_rng(1))
    for name in "abc":
        member = counts[:, clusters == name]
        assert (member == member[:, :1]).all()
    sizes = counts.sum(axis=1)
    assert set(sizes) == {3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}


def test_strata_keep_their_sizes() -> None:
    strata = np.array([0, 1, 0, 1, 1])
    counts = stratified_draws(strata, 300, np.random.default_rng(2))
    assert (counts[:, strata == 0].sum(axis=1) == 2).all()
    assert (counts[:, strata == 1].sum(axis=1) == 3).all()


def test_each_group_is_left_out_once() -> None:
    names, counts = without_each(np.array(["x", "y", "x"]))
    assert names == ["x", "y"]
    assert counts.tolist() == [[0, 1, 0], [1, 0, 1]]


def test_all_subsets_when_they_are_few_and_random_ones_when_they_are_many() -> None:
    rng = np.random.default_rng(3)
    counts, complete = subsets(8, 3, rng)
    assert complete
    assert len(np.unique(counts, axis=0)) == len(counts) == comb(8, 3)
    assert (counts.sum(axis=1) == 3).all()
    counts, complete = subsets(30, 10, rng, limit=2000)
    assert not complete
    assert counts.shape == (2000, 30)
    assert (counts.sum(axis=1) == 10).all()
    # inclusion is Bernoulli(1/3): SD of a mean over 2,000 subsets .0105
    assert counts.mean(axis=0) == pytest.approx(np.full(30, 1 / 3), abs=5 * 0.0105)


def test_percentiles_ignore_undefined_draws() -> None:
    found = percentile_interval(0.5, [np.nan, *np.linspace(0, 1, 101)])
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))
    assert not percentile_interval(0.5, [np.nan, 0.2]).defined
    assert not percentile_interval(np.nan, [0.1, 0.2]).defined


def test_the_bootstrap_p_has_a_floor_and_a_ceiling() -> None:
    assert two_sided_p(np.full(999, 0.3)) == pytest.approx(2 / 1000)
    assert two_sided_p([-1.0, 1.0]) == 1.0
    assert np.isnan(two_sided_p([np.nan]))


def test_few_clusters_get_the_t_rule_and_many_the_percentiles() -> None:
    draws = np.random.default_rng(4).normal(0.3, 0.2, size=5000)
    few = cluster_interval(0.3, draws, 8)
    assert few.rule == "t"
    assert few.high - 0.3 == pytest.approx(t.ppf(0.975, 7) * draws.std(ddof=1))
    assert few.p == pytest.approx(2 * t.sf(0.3 / draws.std(ddof=1), 7))
    many = cluster_interval(0.3, draws, 20)
    assert many.rule == "percentile"
    assert (many.low, many.high) == (few.percentile_low, few.percentile_high)
    assert many.p == two_sided_p(draws)


def test_one_cluster_has_no_interval_and_degenerate_draws_are_counted() -> None:
    assert cluster_interval(0.3, [0.1, 0.2], 1).rule == "undefined"
    assert cluster_interval(0.3, [0.1, np.nan, 0.2], 5).degenerate == 1
    flat = cluster_interval(0.0, [0.0, 0.0], 5)
    assert np.isnan(flat.p)
    assert (flat.low, flat.high) == (0.0, 0.0)


def test_counts_say_the_same_as_rows_that_are_drawn() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 5, size=(2, 12)).astype(float)
    counts = unit_draws(12, 50, rng)
    rows = [np.repeat(np.arange(12), c.astype(int)) for c in counts]
    each = [float(rank_correlation([x[r], y[r]])[0]) for r in rows]
    assert rank_correlation([x, y], counts) == pytest.approx(np.array(each), nan_ok=True, abs=1e-12)
