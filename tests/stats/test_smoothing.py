import numpy as np
import pytest
from scipy.stats import betabinom

from irtaudit.stats.smoothing import beta_binomial_prior, shrunken_rates


def test_prior_of_simulated_groups_is_recovered():
    # 4,000 groups of 40: the standard error of a and b is below 2.5 % (inverse information, checked by
    # repeating the simulation); 10 % is four of them.
    rng = np.random.default_rng(3)
    n = np.full(4000, 40)
    s = betabinom.rvs(n, 3.0, 1.5, random_state=rng)
    assert beta_binomial_prior(s, n) == pytest.approx((3.0, 1.5), rel=0.10)


def test_prior_is_where_scipys_likelihood_peaks():
    rng = np.random.default_rng(4)
    n = rng.integers(5, 60, 200)
    s = betabinom.rvs(n, 2.0, 5.0, random_state=rng)
    a, b = beta_binomial_prior(s, n)
    best = betabinom.logpmf(s, n, a, b).sum()
    for factor_a, factor_b in (
        (1.05, 1.0),
        (0.95, 1.0),
        (1.0, 1.05),
        (1.0, 0.95),
        (1.05, 1.05),
        (0.95, 0.95),
    ):
        assert betabinom.logpmf(s, n, a * factor_a, b * factor_b).sum() < best


def test_rates_that_do_not_differ_collapse_to_their_mean():
    rates = shrunken_rates(np.full(50, 7), np.full(50, 20))
    assert rates == pytest.approx(np.full(50, 0.35), abs=1e-4)


def test_rates_stay_between_the_group_and_the_mean_and_off_the_borders():
    s, n = np.array([0, 10, 5, 2, 9]), np.full(5, 10)
    rates = shrunken_rates(s, n)
    assert 0 < rates[0] < 0.5 < rates[1] < 1


def test_a_group_without_trials_gets_the_priors_mean():
    s, n = np.array([3, 5, 9, 0]), np.array([10, 10, 10, 0])
    a, b = beta_binomial_prior(s, n)
    assert shrunken_rates(s, n)[3] == pytest.approx(a / (a + b))
    assert beta_binomial_prior([0, 0], [0, 0]) == (1.0, 1.0)
