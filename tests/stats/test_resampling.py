import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from irtaudit.stats.resampling import SAMPLING_DF, Interval, corrected_interval, joint_intervals

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
    covered = {0.25: 0, 0.0: 0}
    for gains in _gains_of_the_mean(600):
        for ratio in covered:
            _, low, high = corrected_interval([gain.mean() for gain in gains], ratio)
            covered[ratio] += low <= GAIN <= high
    assert covered[0.25] / 600 > 0.92
    assert covered[0.0] / 600 < 0.88


GAIN = 0.3**2 - 1 / 80
"""What the training mean of 80 draws from N(.3, 1) gains over 0 in expected squared error."""


def _gains_of_the_mean(n_samples):
    """Gains of single held-out draws, an array per split."""
    rng = np.random.default_rng(5)
    for _ in range(n_samples):
        sample = rng.normal(0.3, 1.0, size=100)
        tests = [rng.permutation(100) < 20 for _ in range(5)]
        yield [sample[m] ** 2 - (sample[m] - sample[~m].mean()) ** 2 for m in tests]


def test_the_spread_of_single_responses_shortens_the_interval_and_keeps_its_level():
    """Planted truth as above; half-widths fall by a fifth or more at the level of four comparisons."""
    covered, half = {False: 0, True: 0}, {False: 0.0, True: 0.0}
    for gains in _gains_of_the_mean(600):
        sampling = [gain.var(ddof=1) / gain.size for gain in gains]
        for used in covered:
            options = {"sampling": sampling} if used else {}
            mean, low, high = corrected_interval([g.mean() for g in gains], 0.25, n_comparisons=4, **options)
            covered[used] += low <= GAIN <= high
            half[used] += high - mean
    # 1 - .05 / 4 = .9875, Monte Carlo error .0045
    assert covered[True] / 600 == pytest.approx(0.9875, abs=0.0135)
    assert half[True] < 0.8 * half[False]


def test_the_spread_within_splits_by_hand():
    # variance 2.5 between splits (4 df), 4 within them
    variance = (4 * 2.5 + SAMPLING_DF * 4) / (4 + SAMPLING_DF)
    half = student.ppf(0.975, 4 + SAMPLING_DF) * np.sqrt(variance * 0.45)
    _, low, high = corrected_interval(FIVE, 0.25, sampling=[4.0] * 5)
    assert (low, high) == pytest.approx((2 - half, 2 + half), rel=1e-12)


def _normal(estimate):
    """Interval of an estimate with standard error 1, by the number of comparisons."""
    halves = {n: norm.ppf(1 - 0.025 / n) for n in range(1, 5)}
    return lambda n: Interval(estimate, estimate - halves[n], estimate + halves[n])


def test_what_is_clearly_below_is_settled_and_not_corrected_for_again():
    estimates = [-9.0, 2.0, -5.0]
    found = joint_intervals([_normal(e) for e in estimates], 0.0)
    # z(1 - .025 / 3) = 2.3940 and, the only one left, 1.9600
    assert [one.high - one.estimate for one in found] == pytest.approx([2.3940, 1.9600, 2.3940], abs=1e-4)
    assert [one.estimate for one in found] == estimates


@pytest.mark.parametrize("threshold", [-9.0, float("nan")])
def test_where_nothing_is_settled_it_is_bonferroni(threshold):
    found = joint_intervals([_normal(e) for e in (-1.0, 0.0, 3.0)], threshold)
    assert [one.high - one.estimate for one in found] == pytest.approx([2.3940] * 3, abs=1e-4)
    assert joint_intervals([], threshold) == []


@pytest.mark.parametrize("below", [(0, 0, 0, 0), (0, 6, 6, 6), (0, 2, 2, 2), (1, 1, 3, 3)])
def test_no_more_false_findings_than_meant_wherever_the_true_values_lie(below):
    rng = np.random.default_rng(8)
    draws = rng.normal(size=(10_000, 4)) - below
    false = np.mean(
        [any(one.low > 0 for one in joint_intervals([_normal(e) for e in row], 0.0)) for row in draws]
    )
    # 10,000 experiments: the Monte Carlo error of 2.5 % is .16 %
    assert false < 0.03
    if below == (0, 6, 6, 6):  # the one at the threshold has the whole 2.5 % to itself; Bonferroni: .6 %
        assert false > 0.02
