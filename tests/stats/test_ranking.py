import numpy as np
import pytest
from scipy.stats import norm

from irtaudit.stats.ranking import probability_greater, rank_intervals


def test_certain_quantities_have_certain_ranks():
    low, high = rank_intervals([0.0, 2.0, 1.0], [1e-9] * 3, seed=1)
    assert low.tolist() == high.tolist() == [3, 1, 2]


def test_two_quantities_share_their_ranks_exactly_when_the_order_is_uncertain():
    # P(first above second) = Phi(gap / sqrt 2): .986 at a gap of 3.1 and .964 at 2.55, against the .975 cut
    assert norm.cdf(3.1 / np.sqrt(2)) > 0.980
    assert norm.cdf(2.55 / np.sqrt(2)) < 0.970
    apart = rank_intervals([3.1, 0.0], [1.0, 1.0], seed=2, n_draws=20_000)
    close = rank_intervals([2.55, 0.0], [1.0, 1.0], seed=2, n_draws=20_000)
    assert [*map(list, apart)] == [[1, 2], [1, 2]]
    assert [*map(list, close)] == [[1, 1], [2, 2]]


def test_ranks_of_many_equal_quantities_spread_over_the_middle_95_percent():
    low, high = rank_intervals(np.zeros(100), np.ones(100), seed=3)
    assert low == pytest.approx(np.full(100, 3), abs=1.5)
    assert high == pytest.approx(np.full(100, 98), abs=1.5)


def test_same_seed_same_ranks():
    m, s = np.linspace(0, 1, 9), np.full(9, 0.3)
    assert np.array_equal(rank_intervals(m, s, seed=4), rank_intervals(m, s, seed=4))


def test_probabilities_of_order_are_those_of_a_simulation_and_sum_to_the_mean_rank():
    rng = np.random.default_rng(5)
    m, s = rng.normal(size=6), rng.uniform(0.1, 1.0, 6)
    draws = rng.normal(m, s, (40_000, 6))
    p = probability_greater(m, s)
    simulated = (draws[:, :, None] > draws[:, None, :]).mean(axis=0)
    off_diagonal = ~np.eye(6, dtype=bool)
    assert p[off_diagonal] == pytest.approx(simulated[off_diagonal], abs=4 * 0.5 / np.sqrt(40_000))
    mean_rank = 1 + (draws[:, None, :] > draws[:, :, None]).sum(axis=2).mean(axis=0)
    assert (1 + p.sum(axis=0) - 0.5) == pytest.approx(mean_rank, abs=4 * 2.5 / np.sqrt(40_000))


def test_order_of_certain_quantities():
    p = probability_greater([1.0, 2.0, 2.0], [0.0, 0.0, 0.0])
    assert p.tolist() == [[0.5, 0, 0], [1, 0.5, 0.5], [1, 0.5, 0.5]]


def test_one_order_and_its_reverse_sum_to_one():
    p = probability_greater([0.3, -1.0, 2.0], [0.5, 0.0, 1.5])
    assert p + p.T == pytest.approx(np.ones((3, 3)))
    assert p[0, 2] == pytest.approx(norm.cdf((0.3 - 2.0) / np.hypot(0.5, 1.5)))
