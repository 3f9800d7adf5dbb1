from __future__ import annotations

import numpy as np
import pytest

from irtaudit.stats.reliability import rank_stability, spearman_brown, split_half, worst_case_se_ratio


def panel(n_units: int, n_items: int, seed: int) -> np.ndarray:
    """Units with true scores of SD .2, independent items."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.normal(0.5, 0.2, size=(n_units, 1)), 0.02, 0.98)
    return (rng.random((n_units, n_items)) < p).astype(float)


def test_spearman_brown() -> None:
    assert spearman_brown([0.5, 0.0, 1.0]) == pytest.approx([2 / 3, 0, 1])


def test_split_half_recovers_the_reliability_of_the_whole() -> None:
    """Reliability = var(p) / (var(p) + mean p(1 - p) / items), known by construction."""
    items = 40
    responses = panel(800, items, 0)
    rng = np.random.default_rng(0)
    p = np.clip(rng.normal(0.5, 0.2, size=800), 0.02, 0.98)
    truth = p.var() / (p.var() + (p * (1 - p)).mean() / items)
    # SE of a correlation near .8 over 800 units: (1 - r^2) / sqrt(800) = .013
    assert split_half(responses, 200, np.random.default_rng(1)) == pytest.approx(truth, abs=3 * 0.013)


def test_unrelated_items_have_no_reliability() -> None:
    responses = (np.random.default_rng(2).random((400, 30)) < 0.5).astype(float)
    assert abs(split_half(responses, 200, np.random.default_rng(3))) < 4 * 2 / np.sqrt(400)


def test_missing_cells_are_left_out_of_each_half() -> None:
    responses = panel(300, 60, 4)
    complete = split_half(responses, 100, np.random.default_rng(5))
    responses[np.random.default_rng(6).random(responses.shape) < 0.1] = np.nan
    assert split_half(responses, 100, np.random.default_rng(5)) == pytest.approx(complete, abs=0.05)


def test_rank_stability_rises_with_items() -> None:
    few, many = (rank_stability(panel(30, n, 7), 400, np.random.default_rng(8)) for n in (10, 400))
    assert few.mean < many.mean
    assert few.low < few.mean
    assert many.mean > 0.97


def test_rank_stability_of_one_repeated_item_is_perfect() -> None:
    responses = np.repeat(np.arange(5.0)[:, None], 6, axis=1)
    assert rank_stability(responses, 50, np.random.default_rng(9)) == pytest.approx((1.0, 1.0))


def test_worst_case_error() -> None:
    scores = [0.2, 0.4, np.nan, 0.6]
    assert worst_case_se_ratio(scores, 100) == pytest.approx(0.05 / 0.2)
    assert np.isnan(worst_case_se_ratio([0.2, 0.2], 100))
    assert np.isnan(worst_case_se_ratio(scores, 0))


def test_too_little_to_split() -> None:
    assert np.isnan(split_half(np.ones((4, 1)), 10, np.random.default_rng(0)))
    assert np.isnan(split_half(np.ones((4, 6)), 10, np.random.default_rng(0)))
