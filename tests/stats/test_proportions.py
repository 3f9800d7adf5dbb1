from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from irtaudit.stats.proportions import clopper_pearson, newcombe, wilson

REFERENCE = Path(__file__).parents[1] / "reference" / "agent_safety_panel_golden.json"
GOLDEN = json.loads(REFERENCE.read_text(encoding="utf-8"))["hackdetect"]
COUNTS = [(0, 7), (1, 7), (7, 7), (24, 36), (331, 494), (5, 1000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_equal_statsmodels(k: int, n: int, level: float) -> None:
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        assert ours(k, n, level=level) == pytest.approx(
            proportion_confint(k, n, 1 - level, method=method), abs=1e-9
        )


@pytest.mark.parametrize("counts", [(0, 9, 4, 4), *map(tuple, GOLDEN["cross_model_candidates"])])
def test_difference_equals_statsmodels(counts: tuple[int, int, int, int]) -> None:
    theirs = confint_proportions_2indep(*counts, method="newcomb")
    assert newcombe(*counts) == pytest.approx(theirs, abs=1e-9)


def test_the_printed_rates_of_two_models_do_not_differ() -> None:
    """Printed: 65.0 % and 69.7 % of 494 passing traces in all, 331 of them positive, no difference shown."""
    passing = np.arange(1, 494)
    a, b = np.round(0.65 * passing), np.round(0.697 * (494 - passing))
    prints = (np.round(100 * a / passing, 1) == 65.0) & (np.round(100 * b / (494 - passing), 1) == 69.7)
    fits = np.flatnonzero(prints & (a + b == 331))
    found = [[int(a[i]), int(passing[i]), int(b[i]), int(494 - passing[i])] for i in fits]
    assert found == GOLDEN["cross_model_candidates"]
    for counts in found:
        low, high = newcombe(*counts)
        assert low < 0 < high


PRINTED = {"wilson_331_494": wilson, "wilson_24_36": wilson, "cp_331_494": clopper_pearson}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_intervals(name: str) -> None:
    successes, trials = map(int, name.split("_")[1:])
    assert np.round(PRINTED[name](successes, trials), 4).tolist() == GOLDEN[name]


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
