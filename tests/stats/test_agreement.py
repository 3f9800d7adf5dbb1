from __future__ import annotations

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats

from irtaudit.stats.agreement import Level, kendall_w, krippendorff_alpha

_ = np.nan
CODES = np.array(  # four coders, twelve units, some not coded: the example of Krippendorff (2011)
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_equals_the_krippendorff_package(level: Level, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 5, size=(20, 4)).astype(float)
    codes[rng.random(codes.shape) < 0.2] = np.nan
    theirs = krippendorff.alpha(reliability_data=codes.T, level_of_measurement=level)
    assert krippendorff_alpha(codes, level) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_equals_krippendorffs_own_example(level: str, printed: float) -> None:
    """Krippendorff (2011), Computing Krippendorff's alpha-reliability, section E."""
    assert krippendorff_alpha(CODES, level) == pytest.approx(printed, abs=5e-4)


def test_alpha_without_anything_to_agree_on_is_undefined() -> None:
    assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]]))
    assert np.isnan(krippendorff_alpha([[1, np.nan], [np.nan, 2]]))
    assert krippendorff_alpha([[1, 1], [2, 2]]) == 1.0


def test_w_without_ties_is_the_friedman_statistic() -> None:
    x = np.random.default_rng(0).normal(size=(9, 4))
    friedman = stats.friedmanchisquare(*x)  # units are the treatments, rankings the blocks
    w, p = kendall_w(x)
    assert w == pytest.approx(friedman.statistic / (4 * 8), abs=1e-9)
    assert p == pytest.approx(friedman.pvalue, abs=1e-9)


@pytest.mark.parametrize("rankings", [2, 3, 6])
def test_w_with_ties_equals_pingouin(rankings: int) -> None:
    x = pd.DataFrame(np.random.default_rng(rankings).integers(0, 4, size=(14, rankings)).astype(float))
    long = x.rename_axis("unit").reset_index().melt("unit", var_name="ranking", value_name="score")
    theirs = pingouin.friedman(long, dv="score", within="unit", subject="ranking").iloc[0]
    assert tuple(kendall_w(x)) == pytest.approx((theirs["W"], theirs["p_unc"]), abs=1e-9)


def test_w_with_ties_follows_from_the_mean_spearman_correlation() -> None:
    x = np.random.default_rng(1).integers(0, 4, size=(11, 2)).astype(float)
    friedman = stats.friedmanchisquare(*x)
    assert kendall_w(x).w == pytest.approx(friedman.statistic / (2 * 10), abs=1e-9)


def test_w_at_its_ends() -> None:
    order = np.arange(5.0)
    assert kendall_w(np.stack([order, order, order], axis=1)).w == pytest.approx(1.0)
    assert kendall_w(np.stack([order, -order], axis=1)).w == pytest.approx(0.0)
    assert np.isnan(kendall_w(np.ones((5, 2))).w)
    assert np.isnan(kendall_w(order[:, None]).w)
