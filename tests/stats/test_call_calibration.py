"""Intervals of call metrics: exact where a closed form is, honest about constant policies, repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from irtaudit.stats.calibration import metric_intervals, reliability_curve
from irtaudit.stats.classification import METRICS
from irtaudit.stats.proportions import wilson


def test_the_metrics_of_a_printed_table() -> None:
    found = {one.metric: one for one in metric_intervals(29, 2, 9, 10, np.random.default_rng(1))}
    assert list(found) == list(METRICS)
    printed = {"precision": 0.9355, "recall": 0.7632, "f1": 0.8406, "specificity": 0.8333}
    assert {name: round(found[name].estimate, 4) for name in printed} == printed
    assert (found["recall"].low, found["recall"].high) == pytest.approx(tuple(map(float, wilson(29, 38))))
    assert found["f1"].constant == pytest.approx(2 * 0.76 / 1.76)
    assert found["f1"].low_above < 0 < found["balanced_accuracy"].low_above
    assert found["f1"].low < found["f1"].estimate < found["f1"].high


def test_a_bootstrap_share_agrees_with_its_normal_limit() -> None:
    """Of 10,000 calls F1's interval has the width that the delta method gives."""
    found = {
        one.metric: one for one in metric_intervals(4_000, 1_000, 2_000, 3_000, np.random.default_rng(1))
    }
    f1 = found["f1"].estimate
    s = np.array([0.4, 0.1, 0.2, 0.3])  # shares of tp, fp, fn, tn
    total = 2 * s[0] + s[1] + s[2]
    slope = np.array([2 * (s[1] + s[2]), -2 * s[0], -2 * s[0], 0.0]) / total**2
    sd = np.sqrt((np.diag(s) - np.outer(s, s)) @ slope @ slope / 10_000)
    assert f1 == pytest.approx(0.8 / 1.1)
    assert found["f1"].high - found["f1"].low == pytest.approx(2 * 1.96 * sd, rel=0.05)


def test_calls_that_never_vary_do_not_beat_a_constant() -> None:
    everything = {one.metric: one for one in metric_intervals(30, 20, 0, 0, np.random.default_rng(1))}
    assert everything["f1"].estimate == pytest.approx(everything["f1"].constant)
    assert (everything["f1"].low_above, everything["f1"].high_above) == (0.0, 0.0)
    assert np.isnan(everything["mcc"].estimate)


def test_the_same_seed_gives_the_same_interval() -> None:
    one, other = (metric_intervals(8, 3, 2, 9, np.random.default_rng(7), n_draws=500) for _ in range(2))
    assert one == other


def test_reliability_bins_partition_the_calls() -> None:
    rng = np.random.default_rng(3)
    stated = np.append(rng.uniform(size=400), [0.0, 1.0])
    right = rng.uniform(size=402) < stated
    bins = reliability_curve(stated, right, n_bins=4)
    assert sum(one.n for one in bins) == 402
    assert sum(one.n * one.right for one in bins) == pytest.approx(right.sum())
    assert all(one.low_edge <= one.confidence <= one.high_edge for one in bins)
    assert all(abs(one.right - one.confidence) < 4 * np.sqrt(0.25 / one.n) for one in bins)  # calibrated
    assert [one.low_edge for one in reliability_curve([0.1, 0.9], [True, False])] == [0.0, 0.8]
