import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binom
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from irtaudit.stats.scoring import CLIP, brier, log_likelihood, log_loss


@pytest.fixture
def cells():
    rng = np.random.default_rng(1)
    return rng.integers(0, 2, (6, 9)).astype(float), rng.random((6, 9))


def test_scores_equal_scikit_learns_on_the_cells_that_count(cells):
    y, p = cells
    where = np.random.default_rng(2).random(y.shape) < 0.4
    y[0, 0] = np.nan
    counted = where & ~np.isnan(y)
    assert log_loss(y, p, where) == pytest.approx(sklearn_log_loss(y[counted], p[counted]), abs=1e-12)
    assert brier(y, p, where) == pytest.approx(brier_score_loss(y[counted], p[counted]), abs=1e-12)


def test_log_likelihood_is_minus_cells_times_log_loss(cells):
    y, p = cells
    y[2, 3] = np.nan
    assert log_likelihood(y, p) == pytest.approx(-(y.size - 1) * log_loss(y, p), abs=1e-10)


def test_splits_are_scored_apart(cells):
    y, p = cells
    where = np.stack([np.eye(6, 9, dtype=bool), ~np.eye(6, 9, dtype=bool)])
    both = log_loss(y, p, where, axis=(-2, -1))
    assert both.shape == (2,)
    assert both[1] == pytest.approx(log_loss(y, p, where[1]))
    assert log_loss(y, np.stack([p, p]), where, axis=(-2, -1)) == pytest.approx(both)
    assert brier(y, p, where, axis=(-2, -1))[0] == pytest.approx(brier(y[where[0]], p[where[0]]))


def test_a_certain_miss_costs_the_clip_and_not_infinity():
    assert log_loss([[1.0]], [[0.0]]) == pytest.approx(-np.log(CLIP))
    assert brier([[1.0]], [[0.0]]) == 1.0


def test_a_score_of_no_cells_is_undefined_and_not_zero(cells):
    y, p = cells
    none = np.zeros(y.shape, dtype=bool)
    assert np.isnan(log_loss(y, p, none))
    assert np.isnan(brier(y, p, none))


def test_counted_outcomes_score_as_the_single_ones_behind_them():
    rng = np.random.default_rng(3)
    trials, p = rng.integers(0, 6, (2, 4, 5)), rng.random((4, 5))
    passes = rng.binomial(trials, 0.6)
    share = np.divide(passes, trials, out=np.full(trials.shape, np.nan), where=trials > 0)
    where = rng.random((4, 5)) < 0.7
    for s in range(2):
        cells = [
            (y, p[i])
            for i in zip(*np.nonzero(where), strict=True)
            for y in outcomes(passes[s][i], trials[s][i])
        ]
        y, q = (np.array(column) for column in zip(*cells, strict=True))
        kept = {"trials": trials[s]}
        assert log_loss(share[s], p, where, **kept) == pytest.approx(sklearn_log_loss(y, q), abs=1e-12)
        assert brier(share[s], p, where, **kept) == pytest.approx(brier_score_loss(y, q), abs=1e-12)
        lik = binom.logpmf(passes[s], trials[s], p) - np.log(comb(trials[s], passes[s]))
        assert log_likelihood(share[s], p, where, **kept) == pytest.approx(lik[where].sum(), abs=1e-10)
    apart = log_loss(share, p, where, axis=(-2, -1), trials=trials)
    assert apart == pytest.approx([log_loss(share[s], p, where, trials=trials[s]) for s in range(2)])


def outcomes(passes, trials):
    return [1.0] * passes + [0.0] * (trials - passes)


@pytest.mark.parametrize("score", [log_loss, brier, log_likelihood])
def test_one_trial_each_changes_no_number(cells, score):
    y, p = cells
    y[1, 2] = np.nan
    assert score(y, p, trials=np.ones(y.shape, dtype=int)) == score(y, p)
