"""Random binary panels have the distribution they promise."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, chisquare

from irtaudit.stats.random_panels import (
    bernoulli_cells,
    bernoulli_columns,
    drawn,
    expected_margins,
    permuted_within_columns,
)

N_DRAWS = 20_000


def _holes(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) > 0.3


def test_permuted_columns_keep_their_totals_in_every_draw() -> None:
    observed = _holes((40, 60))
    totals = np.random.default_rng(1).integers(0, observed.sum(axis=0) + 1)
    panels = permuted_within_columns(totals, observed)(np.random.default_rng(2), 500)
    assert np.isin(panels, (0, 1)).all()
    np.testing.assert_array_equal(panels.sum(axis=1), np.broadcast_to(totals, (500, 60)))
    assert not panels[:, ~observed].any()


def test_every_placement_of_the_passes_is_equally_likely() -> None:
    observed = np.array([[True], [True], [False], [True], [True], [True]])
    panels = permuted_within_columns(np.array([2]), observed)(np.random.default_rng(3), N_DRAWS)
    counts = Counter(map(bytes, panels[:, :, 0].astype(np.uint8)))
    assert len(counts) == comb(5, 2)
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_columns_are_placed_independently_of_each_other() -> None:
    panels = permuted_within_columns(np.array([3, 3]), np.ones((6, 2), bool))(
        np.random.default_rng(4), N_DRAWS
    )
    together = panels.prod(axis=2).sum(axis=1)  # hypergeometric, mean 1.5, variance .45
    assert abs(together.mean() - 1.5) < 4 * np.sqrt(0.45 / N_DRAWS)
    assert abs(together.var() - 0.45) < 0.03


def test_bernoulli_columns_have_binomial_totals_with_or_without_constant_ones() -> None:
    observed = np.ones((6, 1), dtype=bool)
    observed[0] = False
    totals, rng = np.array([1]), np.random.default_rng(5)
    expected = binom.pmf(np.arange(6), 5, 0.2)
    free = bernoulli_columns(totals, observed, constant=True)(rng, N_DRAWS).sum(axis=(1, 2)).astype(int)
    assert chisquare(np.bincount(free, minlength=6), N_DRAWS * expected).pvalue > 1e-3
    kept = bernoulli_columns(totals, observed)(rng, N_DRAWS).sum(axis=(1, 2)).astype(int)
    inside = expected[1:5] / expected[1:5].sum()
    assert set(np.unique(kept)) <= {1, 2, 3, 4}
    assert chisquare(np.bincount(kept, minlength=5)[1:], N_DRAWS * inside).pvalue > 1e-3


def test_a_column_that_is_constant_in_the_data_stays_so() -> None:
    observed = np.ones((5, 3), dtype=bool)
    panels = bernoulli_columns(np.array([0, 2, 5]), observed)(np.random.default_rng(6), 50)
    assert (panels[:, :, 0] == 0).all()
    assert (panels[:, :, 2] == 1).all()
    assert ((panels[:, :, 1].sum(axis=1) % 5) != 0).all()


def test_bernoulli_cells_are_independent_given_that_no_column_is_constant() -> None:
    p, q = 0.7, 0.1
    panels = bernoulli_cells(np.array([[p], [q]]), np.ones((2, 1), bool))(np.random.default_rng(7), N_DRAWS)
    first, second = panels[:, 0, 0], panels[:, 1, 0]
    assert (first + second == 1).all()
    share = p * (1 - q) / (p * (1 - q) + q * (1 - p))
    assert abs(first.mean() - share) < 4 * np.sqrt(share * (1 - share) / N_DRAWS)


def test_bernoulli_cells_keep_their_probabilities_and_holes() -> None:
    observed = _holes((30, 20))
    p = np.random.default_rng(8).uniform(0.2, 0.8, (30, 20))
    panels = bernoulli_cells(p, observed)(np.random.default_rng(9), 4000)
    assert not panels[:, ~observed].any()
    z = (panels.mean(axis=0) - p)[observed] / np.sqrt(p * (1 - p) / 4000)[observed]
    assert np.abs(z).max() < 4.5
    assert abs(z.std() - 1) < 0.15


@pytest.mark.parametrize("missing", [False, True])
def test_expected_margins_are_the_panels_own(missing: bool) -> None:
    rng = np.random.default_rng(10)
    observed = _holes((25, 40)) if missing else np.ones((25, 40), dtype=bool)
    y = (rng.random((25, 40)) < expit(rng.normal(size=(25, 1)) + rng.normal(size=40))) & observed
    y[3] = observed[3]  # one who passes everything
    p = expected_margins(y.astype(float), observed) * observed
    np.testing.assert_allclose(p.sum(axis=0), y.sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(p.sum(axis=1), y.sum(axis=1), atol=1e-3)
    if not missing:  # additive on the logit scale: every double difference is zero
        eta = np.log(p / (1 - p))[[0, 1, 2, 4]]
        eta = eta - eta.mean(axis=0) - eta.mean(axis=1, keepdims=True) + eta.mean()
        assert np.abs(eta).max() < 1e-6


def test_margins_that_hold_no_information_give_the_column_rates() -> None:
    y = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], dtype=float)
    p = expected_margins(y, np.ones(y.shape, dtype=bool))
    np.testing.assert_allclose(p, np.broadcast_to(y.mean(axis=0), y.shape), atol=1e-4)


def test_parts_add_up_to_the_panels_asked_for() -> None:
    draw = permuted_within_columns(np.array([1, 2]), np.ones((3, 2), bool))
    sizes = [len(part) for part in drawn(draw, 7, np.random.default_rng(0), 200_000)]
    assert sizes == [2, 2, 2, 1]
    assert [len(part) for part in drawn(draw, 2, np.random.default_rng(0), 10**9)] == [1, 1]
