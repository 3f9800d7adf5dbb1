import numpy as np
import pytest
from scipy.stats import kstest

from irtaudit.stats.simulated import cutoff, exceeds, family_p, simulated_p, standardised


def test_p_counts_values_as_large_and_the_observed_one():
    stack = np.array([[2.0, 5.0, -1.0], [1.0, 4.0, 0.0], [2.0, 4.5, 3.0], [3.0, 1.0, 2.0]])
    assert simulated_p(stack).tolist() == [3 / 4, 1 / 4, 1.0]
    # maxima 4, 4.5, 3
    assert family_p(stack).tolist() == [1.0, 1 / 4, 1.0]


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("n", [19, 99, 300, 1000])
def test_cutoffs_are_exceeded_exactly_where_p_is_small(level, n):
    rng = np.random.default_rng(n)
    stack = rng.integers(0, 40, (1 + n, 500)).astype(float)
    limit = cutoff(stack[1:], level)
    assert (exceeds(stack[0], limit) == (simulated_p(stack) <= level + 1e-12)).all()
    largest = stack[1:].max(axis=1)
    assert (exceeds(stack[0], cutoff(largest, level)) == (family_p(stack) <= level + 1e-12)).all()


def test_too_few_simulations_flag_nothing():
    assert cutoff(np.zeros((18, 2)), 0.05).tolist() == [np.inf, np.inf]
    assert not exceeds(np.array([1e9]), np.inf).any()


def test_values_that_differ_by_rounding_are_equal():
    stack = np.array([[1.0], [1.0 - 1e-7], [1.0 - 1e-3]])
    assert simulated_p(stack).tolist() == [2 / 3]
    assert not exceeds(np.array([1.0 + 1e-7]), 1.0).any()


def test_p_is_uniform_under_the_null_also_after_standardising():
    rng = np.random.default_rng(5)
    stack = np.abs(standardised(rng.gamma(0.5, size=(40, 4000))))
    assert stack.mean(axis=0).max() < 1.01
    # among 40 exchangeable rows the rank of the first is uniform on 1..40
    ranks = simulated_p(stack) - rng.uniform(0, 1 / 40, 4000)
    assert kstest(ranks, "uniform").pvalue > 0.001


def test_standardising_by_the_simulated_rows_alone_would_reject_too_often():
    # the reason why the observed row takes part: with 19 simulations the difference is plain
    rng = np.random.default_rng(6)
    stack = rng.normal(size=(20, 20_000))
    null = stack[1:]
    naive = np.abs((stack - null.mean(axis=0)) / null.std(axis=0))
    assert (simulated_p(np.abs(standardised(stack))) <= 0.05).mean() == pytest.approx(0.05, abs=0.006)
    assert (simulated_p(naive) <= 0.05).mean() > 0.06


def test_what_never_varies_is_zero():
    assert standardised(np.full((5, 2), 3.0)).tolist() == np.zeros((5, 2)).tolist()


def test_nothing_to_test_is_no_error():
    assert simulated_p(np.empty((20, 0))).shape == family_p(np.empty((20, 0))).shape == (0,)
    assert cutoff(np.empty((20, 0)), 0.05).shape == (0,)
