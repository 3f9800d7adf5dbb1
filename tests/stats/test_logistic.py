import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression

from irtaudit.stats.logistic import (
    coefficient_se,
    logistic_log_likelihood,
    ridge_logistic,
    sigmoid_in_place,
)


def data(seed: int, n: int = 40, items: int = 12, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), np.where(np.arange(n) < n // 2, 0.5, -0.5)])
    logits = rng.normal(1, 1.5, items) + scale * x @ rng.normal(0, 1, (2, items))
    return x, (rng.random((n, items)) < 1 / (1 + np.exp(-logits))).astype(float)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_scikit_learn_finds_the_same_penalised_coefficients(penalty):
    x, y = data(1)
    found = ridge_logistic(x, y, [penalty] * 2)
    assert found.converged.all()
    for item in np.flatnonzero(y.any(axis=0) & ~y.all(axis=0)):
        oracle = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12).fit(x, y[:, item])
        expected = [oracle.intercept_[0], *oracle.coef_[0]]
        assert found.coefficients[:, item] == pytest.approx(expected, abs=1e-6)


def test_statsmodels_finds_the_same_estimates_errors_and_likelihood_without_a_penalty():
    x, y = data(2, n=300)
    beta = ridge_logistic(x, y, [0.0, 0.0]).coefficients
    se, likelihood = coefficient_se(x, beta, [0.0, 0.0]), logistic_log_likelihood(x, y, beta)
    for item in range(y.shape[1]):
        oracle = sm.Logit(y[:, item], sm.add_constant(x)).fit(disp=0, tol=1e-12)
        assert beta[:, item] == pytest.approx(oracle.params, abs=1e-7)
        assert se[:, item] == pytest.approx(oracle.bse, rel=1e-6)
        assert likelihood[item] == pytest.approx(oracle.llf, abs=1e-8)


def test_missing_cells_do_not_exist():
    x, y = data(3)
    seen = np.random.default_rng(3).random(y.shape) < 0.7
    beta = ridge_logistic(x, np.where(seen, y, 0.5), [1.0, 1.0], observed=seen).coefficients
    for item in range(y.shape[1]):
        rows = seen[:, item]
        alone = ridge_logistic(x[rows], y[rows][:, [item]], [1.0, 1.0]).coefficients
        assert beta[:, item] == pytest.approx(alone[:, 0], abs=1e-8)
        at = logistic_log_likelihood(x[rows], y[rows][:, [item]], alone)
        assert logistic_log_likelihood(x, y, beta, seen)[item] == pytest.approx(at[0])


def test_the_gradient_is_zero_where_an_item_is_nearly_constant_and_the_start_is_far_off():
    # with steps of a fixed largest size 2 in 100 of these jump for ever between two flat ends
    rng = np.random.default_rng(4)
    x = np.column_stack([rng.normal(size=32), np.where(np.arange(32) < 21, 0.5, -0.5)])
    y = (rng.random((32, 400)) < rng.uniform(0.02, 0.98, 400)).astype(float)
    start = np.vstack([rng.normal(0, 4, 400), rng.normal(0, 2, (2, 400))])
    found = ridge_logistic(x, y, [1.0, 1.0], start=start)
    assert found.converged.all()
    p = np.column_stack([np.ones(32), x]) @ found.coefficients
    sigmoid_in_place(p)
    varies = y.any(axis=0) & ~y.all(axis=0)
    gradient = x.T @ (y - p) - found.coefficients[1:]
    assert np.abs(gradient[:, varies]).max() < 1e-6


def test_items_without_both_responses_have_no_effect():
    x, y = data(5)
    y[:, 0], y[:, 1] = 1.0, 0.0
    assert ridge_logistic(x, y, [1.0, 1.0]).coefficients[:, :2].tolist() == np.zeros((3, 2)).tolist()


def test_simulations_share_a_design_or_have_their_own():
    xs, ys = zip(*(data(seed) for seed in range(4)), strict=True)
    own = ridge_logistic(np.stack(xs), np.stack(ys), [1.0, 1.0]).coefficients
    for x, y, beta in zip(xs, ys, own, strict=True):
        assert ridge_logistic(x, y, [1.0, 1.0]).coefficients == pytest.approx(beta, abs=1e-9)
    shared = ridge_logistic(xs[0][None], np.stack(ys), [1.0, 1.0]).coefficients
    for y, beta in zip(ys, shared, strict=True):
        assert ridge_logistic(xs[0], y, [1.0, 1.0]).coefficients == pytest.approx(beta, abs=1e-9)


def test_single_precision_is_good_to_three_decimals():
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.normal(size=32), np.where(np.arange(32) < 21, 0.5, -0.5)])
    y = (rng.random((20, 32, 300)) < rng.uniform(0.03, 0.97, 300)).astype(np.float32)
    exact = ridge_logistic(x, y.astype(float), [1.0, 1.0]).coefficients
    assert np.abs(ridge_logistic(x, y, [1.0, 1.0]).coefficients - exact).max() < 1e-3


def test_a_singular_design_has_no_standard_error():
    x, y = data(7)
    twice = np.column_stack([x[:, 0], x[:, 0]])
    assert np.isnan(coefficient_se(twice, np.zeros((3, y.shape[1])), [0.0, 0.0])).all()


def test_the_logistic_function_has_its_limits():
    x = np.array([-1e4, -200.0, 0.0, 200.0, 1e4], dtype=np.float32)
    sigmoid_in_place(x)
    assert x.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
