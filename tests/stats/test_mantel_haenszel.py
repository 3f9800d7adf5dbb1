import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import StratifiedTable

from irtaudit.stats.mantel_haenszel import ets_class, informative, log_odds_ratio, mantel_haenszel


def random_counts(seed: int, n_items: int = 30, low: int = 3, high: int = 30):
    """(group, stratum, item) passes and responses of four strata."""
    rng = np.random.default_rng(seed)
    totals = np.broadcast_to(rng.integers(low, high, (2, 4, 1)), (2, 4, n_items)).astype(float)
    return rng.binomial(totals.astype(int), rng.uniform(0.2, 0.8, (2, 4, n_items))).astype(float), totals


def stratified(passes, totals, item):
    """statsmodels' view of one item: 2 x 2 tables of the strata that say something."""
    tables = [
        [[passes[g, k, item], totals[g, k, item] - passes[g, k, item]] for g in (0, 1)]
        for k in range(passes.shape[1])
    ]
    return StratifiedTable([np.array(table) for table in tables])


@pytest.mark.parametrize("seed", range(3))
def test_statsmodels_finds_the_same_odds_ratio_error_and_tests(seed):
    passes, totals = random_counts(seed)
    found = mantel_haenszel(passes, totals)
    for item in range(passes.shape[-1]):
        oracle = stratified(passes, totals, item)
        assert found.alpha[item] == pytest.approx(oracle.oddsratio_pooled, rel=1e-12)
        assert found.se[item] == pytest.approx(oracle.logodds_pooled_se, rel=1e-12)
        plain, corrected = (oracle.test_null_odds(correction).statistic for correction in (False, True))
        assert found.chi2_uncorrected[item] == pytest.approx(plain, rel=1e-12)
        assert found.chi2[item] == pytest.approx(corrected, rel=1e-12)


def test_swapping_the_groups_inverts_every_direction():
    passes, totals = random_counts(4)
    a, b = mantel_haenszel(passes, totals), mantel_haenszel(passes[::-1], totals[::-1])
    assert a.alpha == pytest.approx(1 / b.alpha)
    assert a.se == pytest.approx(b.se)
    assert a.chi2 == pytest.approx(b.chi2)
    assert log_odds_ratio(passes, totals) == pytest.approx(-log_odds_ratio(passes[::-1], totals[::-1]))


def test_more_passes_of_the_reference_raise_alpha_and_lower_the_focal_difference():
    totals = np.full((2, 3, 1), 10.0)
    passes = np.array([8.0, 8.0, 8.0, 5.0, 5.0, 5.0]).reshape(2, 3, 1)
    found = mantel_haenszel(passes, totals)
    assert found.alpha == pytest.approx([8 * 5 / (2 * 5)])
    assert found.std_p_dif == pytest.approx([-0.3])


def test_the_standardised_difference_weighs_strata_by_the_focal_group():
    totals = np.array([[4, 40], [20, 10]], dtype=float)[:, :, None]
    passes = np.array([[2, 20], [15, 2]], dtype=float)[:, :, None]
    assert mantel_haenszel(passes, totals).std_p_dif == pytest.approx([(20 * 0.25 + 10 * -0.3) / 30])


def test_strata_without_information_change_nothing():
    passes, totals = random_counts(5)
    more = np.zeros((2, 2, 30))
    more_totals = np.array([[7, 6], [0, 6]], dtype=float)[:, :, None] * np.ones(30)
    more[0, 0], more[:, 1] = 3, 6  # a stratum without focal models, and one in which everybody passes
    plain = mantel_haenszel(passes, totals)
    padded = mantel_haenszel(np.concatenate([passes, more], 1), np.concatenate([totals, more_totals], 1))
    for name in ("alpha", "se", "chi2", "chi2_uncorrected"):
        assert getattr(padded, name) == pytest.approx(getattr(plain, name))
    focal = totals[1].sum(axis=0)  # the second stratum is one of equal pass rates, and counts as such
    assert padded.std_p_dif == pytest.approx(plain.std_p_dif * focal / (focal + 6))
    assert not informative(more, more_totals).any()
    assert log_odds_ratio(more, more_totals) == pytest.approx(np.zeros(30))


def test_the_corrected_log_odds_ratio_is_finite_where_the_plain_one_is_not():
    totals = np.full((2, 1, 2), 10.0)
    passes = np.array([[3.0, 5.0], [0.0, 5.0]])[:, None, :]
    assert mantel_haenszel(passes, totals).alpha[0] == np.inf
    # sums of products 3 * 10 / 20 and 7 * 0 / 20, and half a response on either side
    assert log_odds_ratio(passes, totals) == pytest.approx([np.log(2.0 / 0.5), 0.0])


@given(st.integers(0, 10**6))
def test_with_many_responses_the_correction_does_not_matter(seed):
    passes, totals = random_counts(seed, n_items=3, low=4000, high=5000)
    exact = np.log(mantel_haenszel(passes, totals).alpha)
    assert log_odds_ratio(passes, totals) == pytest.approx(exact, abs=2e-3)


def test_an_item_that_everybody_passes_has_no_statistics():
    totals = np.full((2, 2, 1), 9.0)
    found = mantel_haenszel(totals, totals)
    assert np.isnan(found.alpha).all()
    assert np.isnan(found.chi2).all()


def test_ets_classes_need_size_and_evidence():
    alpha = np.exp(-np.array([0.3, 0.5, 0.5, 1.0, 1.0, 0.7, np.nan]))
    se = np.array([0.01, 0.1, 0.1, 0.1, 0.5, 0.2, 0.1])
    chi2 = np.array([50.0, 50.0, 1.0, 50.0, 4.5, 9.0, np.nan])
    # delta .705; 1.175; 1.175 without evidence; 2.35; 2.35 and 1.645 not clearly above 1; none
    assert ets_class(alpha, se, chi2).tolist() == ["A", "B", "A", "C", "B", "B", ""]
