from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from panel_simulation import panel_of, plan_for
from scipy import stats

from irtaudit.panel.subsets import small_panels

PLAN = plan_for(
    {"a": "benchmark", "b": "benchmark"}, resampling={"subset_sizes": [5, 7, 12], "subsets": 5000}
)


def test_every_subset_is_looked_at() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 9))
    found = small_panels(panel_of({"a": a, "b": b}, PLAN), PLAN)
    slow = [stats.spearmanr(a[list(s)], b[list(s)]).statistic for s in combinations(range(9), 5)]
    assert np.sort(found.draws["a", "b", 5]) == pytest.approx(np.sort(slow))
    row = found.table.set_index("size").loc[5]
    assert row["share"] == pytest.approx(np.mean(np.abs(slow) >= 0.5 - 1e-9))
    assert (row["lowest"], row["highest"]) == pytest.approx((min(slow), max(slow)))
    assert row["subsets"] == 126
    assert found.table["size"].tolist() == [5, 7]
    (lost,) = found.not_tested
    assert (lost.what, lost.reason) == ("a ~ b in panels of 12", "9 models have both scores")


def test_unrelated_scores_show_what_chance_shows() -> None:
    """The null share beside the observed one is what unrelated scores give on average: 300 panels of 12."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(150):
        a, b = rng.normal(size=(2, 12))
        found = small_panels(panel_of({"a": a, "b": b}, PLAN), PLAN).table.set_index("size")
        shares.append(found.loc[7, "share"])
    null = found.loc[7, "null_share"]
    assert null == pytest.approx(0.2667, abs=5e-5)
    assert np.mean(shares) == pytest.approx(null, abs=4 * np.std(shares) / np.sqrt(150))


def test_a_subset_of_ties_counts_as_without_correlation() -> None:
    a = np.array([1.0, 1, 1, 1, 1, 2, 3, 4])
    b = np.arange(8.0)
    found = small_panels(panel_of({"a": a, "b": b}, PLAN), PLAN)
    row = found.table.set_index("size").loc[5]
    assert np.isnan(found.draws["a", "b", 5]).sum() == 1
    assert row["share"] == pytest.approx((np.abs(found.draws["a", "b", 5]) >= 0.5 - 1e-9).mean())
