from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from irtaudit.stats.proportions import clopper_pearson, newcombe, wilson

COUNTS = [(0, 7), (1, 7), (7, 7), (24, 36), (331, 494), (5, 1000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_equal_statsmodels(k: int, n: int, level: float) -> None:
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        assert ours(k, n, level=level) == pytest.approx(
            proportion_confint(k, n, 1 - level, method=method), abs=1e-9
        )


def test_difference_equals_statsmodels() -> None:
    ours = newcombe(186, 494, 147, 494)
    assert ours == pytest.approx(confint_proportions_2indep(186, 494, 147, 494, method="newcomb"), abs=1e-9)


def test_printed_intervals() -> None:
    assert np.round(wilson(331, 494), 4).tolist() == [0.6274, 0.7101]
    assert np.round(wilson(24, 36), 4).tolist() == [0.5033, 0.7979]
    assert np.round(clopper_pearson(331, 494), 4).tolist() == [0.6266, 0.7114]


def test_arrays_and_cells_without_trials() -> None:
    low, high = wilson([3, 0], [10, 0])
    assert low[0] == pytest.approx(float(wilson(3, 10)[0]))
    assert np.isnan([low[1], high[1]]).all()
    assert np.isnan(clopper_pearson(0, 0)).all()
    assert np.isnan(newcombe(0, 0, 1, 2)).all()


def test_a_t_quantile_and_fewer_effective_trials_widen_the_interval() -> None:
    plain, wide = wilson(30, 60), wilson(15, 30, quantile=float(t.ppf(0.975, 9)))
    assert wide[0] < plain[0]
    assert wide[1] > plain[1]
