import numpy as np
import pytest
from scipy.stats import norm

from irtaudit.stats.ranking import rank_intervals


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
