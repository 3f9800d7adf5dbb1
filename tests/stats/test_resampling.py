import numpy as np
import pytest

from irtaudit.stats.resampling import corrected_interval

# Five paired differences; mean 2, variance 2.5.
FIVE = [0.0, 1.0, 2.0, 3.0, 4.0]


def test_interval_by_hand():
    # t(4, .975) = 2.776445, s sqrt(1/5 + .25) = sqrt(2.5 * .45)
    estimate, low, high = corrected_interval(FIVE, 0.25)
    half = 2.7764451 * np.sqrt(2.5 * 0.45)
    assert (estimate, low, high) == pytest.approx((2.0, 2 - half, 2 + half), abs=1e-6)


def test_bonferroni_uses_the_printed_quantile():
    # t(4, 1 - .05/8) = 4.314702 (tables of the t distribution, .00625 in one tail)
    half = 4.3147 * np.sqrt(2.5 * 0.45)
    assert corrected_interval(FIVE, 0.25, n_comparisons=4).high == pytest.approx(2 + half, abs=1e-3)


def test_without_test_cells_it_is_the_ordinary_t_interval():
    from scipy.stats import ttest_1samp

    ordinary = ttest_1samp(FIVE, 0).confidence_interval(0.95)
    _, low, high = corrected_interval(FIVE, 0.0)
    assert (low, high) == pytest.approx((ordinary.low, ordinary.high))


def test_one_split_has_an_estimate_but_no_limits():
    interval = corrected_interval([0.3], 0.25)
    assert interval.estimate == 0.3
    assert np.isnan(interval.low)
    assert not interval.defined
    assert corrected_interval(FIVE, 0.25).defined


def test_the_correction_holds_its_level_where_the_plain_interval_does_not():
    """Planted truth: training mean against 0 as predictor of N(.3, 1), squared error, five 80/20 splits.

    Its expected gain is .3^2 - 1/80. Over 600 samples the Monte Carlo error of a coverage of .95 is .009.
    """
    rng = np.random.default_rng(5)
    covered = {0.25: 0, 0.0: 0}
    for _ in range(600):
        sample = rng.normal(0.3, 1.0, size=100)
        tests = [rng.permutation(100) < 20 for _ in range(5)]
        gains = [np.mean(sample[m] ** 2 - (sample[m] - sample[~m].mean()) ** 2) for m in tests]
        for ratio in covered:
            _, low, high = corrected_interval(gains, ratio)
            covered[ratio] += low <= 0.3**2 - 1 / 80 <= high
    assert covered[0.25] / 600 > 0.92
    assert covered[0.0] / 600 < 0.88
