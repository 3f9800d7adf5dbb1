"""Shares of clustered trials: identities at both ends, and coverage where Wilson's interval fails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from irtaudit.stats.clustered import clustered_proportion
from irtaudit.stats.proportions import wilson


def test_one_trial_per_cluster_is_wilson() -> None:
    found = clustered_proportion([1] * 331 + [0] * 163, [1] * 494)
    assert (round(found.low, 4), round(found.high, 4)) == (0.6274, 0.7101)
    assert (found.deff, found.method) == (1.0, "Wilson")


def test_clusters_that_agree_with_themselves_count_once() -> None:
    found = clustered_proportion([10] * 30 + [0] * 20, [10] * 50)
    assert found.deff == pytest.approx(10 * 50 / 49)
    low, high = wilson(30 * 49 / 50, 49, quantile=student.ppf(0.975, 49))
    assert (found.low, found.high) == pytest.approx((float(low), float(high)))


def test_few_successes_fall_back_on_the_number_of_clusters() -> None:
    none = clustered_proportion([0] * 50, [10] * 50)
    assert (none.low, none.high) == pytest.approx(tuple(map(float, wilson(0, 50))))
    assert np.isnan(none.deff)
    assert none.method == "Wilson, n = clusters"
    few = clustered_proportion([2, *[0] * 49], [10] * 50)
    assert (few.low, few.high) == pytest.approx(tuple(map(float, wilson(0.004 * 50, 50))))


def test_success_and_failure_are_symmetric_and_empty_clusters_do_not_count() -> None:
    n = np.array([4, 0, 7, 2, 9, 5] * 5)
    y = np.minimum(n, np.array([1, 0, 5, 0, 8, 3] * 5))
    one, other = clustered_proportion(y, n), clustered_proportion(n - y, n)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))
    assert clustered_proportion(y[n > 0], n[n > 0]) == one
    assert np.isnan(clustered_proportion([], []).estimate)


@pytest.mark.parametrize("p", [0.05, 0.3])
def test_it_covers_where_trials_taken_as_independent_do_not(p: float) -> None:
    """50 clusters of 10, intraclass correlation .5; 600 samples, so three Monte Carlo errors are .027."""
    rng = np.random.default_rng(2026)
    y = rng.binomial(10, rng.beta(p, 1 - p, size=(600, 50)))
    found = [clustered_proportion(row, np.full(50, 10)) for row in y]
    naive = [wilson(row.sum(), 500) for row in y]
    covered = np.mean([one.low <= p <= one.high for one in found])
    assert covered >= 0.95 - 3 * 0.009
    assert np.mean([low <= p <= high for low, high in naive]) < 0.75
