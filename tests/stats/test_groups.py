from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from irtaudit.stats.groups import kruskal_permutation

GROUPS = np.repeat(["a", "b", "c"], [5, 4, 6])


def test_h_and_its_effect_sizes() -> None:
    values = np.random.default_rng(0).integers(0, 6, size=15).astype(float)
    found = kruskal_permutation(values, GROUPS, 100, np.random.default_rng(1))
    h = stats.kruskal(*(values[g == GROUPS] for g in "abc")).statistic
    assert found.h == pytest.approx(h, abs=1e-9)
    assert found.epsilon_squared_df_adjusted == pytest.approx((h - 2) / 12)
    assert found.epsilon_squared_unadjusted == pytest.approx(h / 14)


def test_p_is_that_of_all_permutations() -> None:
    values, groups = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 5.0]), np.array([0, 0, 0, 1, 1, 1])
    p = kruskal_permutation(values, groups, 20_000, np.random.default_rng(2)).p
    assert p == pytest.approx(2 / 20, abs=5 * np.sqrt(0.09 / 20_000))  # 2 of the 20 splits are as extreme


def test_p_is_uniform_under_the_null() -> None:
    rng = np.random.default_rng(3)
    p = np.array([kruskal_permutation(rng.normal(size=15), GROUPS, 199, rng).p for _ in range(500)])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 500))


def test_nothing_to_compare() -> None:
    rng = np.random.default_rng(4)
    for values, groups in (([1, 2], [0, 0]), ([1, 2], [0, 1]), ([1, 1, 1], [0, 0, 1])):
        assert np.isnan(kruskal_permutation(values, groups, 10, rng).p)
