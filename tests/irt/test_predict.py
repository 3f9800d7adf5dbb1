"""Predictions against the model's formula written out, and against quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from panels import BIFACTOR, every_spec

from irtaudit.irt.layout import Layout
from irtaudit.irt.predict import pass_probability, plug_in, posterior_predictive, slope_matrix
from irtaudit.irt.spec import ModelSpec

SPECS = every_spec("hierarchical")


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_probability_is_the_formula_cell_by_cell(spec: ModelSpec) -> None:
    layout = Layout(spec, 4, 9)
    sites = layout.unpack(np.random.default_rng(0).normal(size=layout.width))
    p, slopes = pass_probability(layout, sites), slope_matrix(layout, sites)
    pattern = spec.pattern(9)
    assert (slopes[~pattern] == 0).all()
    assert (slopes[pattern] != 0).all()
    guess = 1 / (1 + np.exp(-sites["logit_guess"])) if spec.family == "3pl" else np.zeros(9)
    for i in range(4):
        for j in range(9):
            eta = sum(slopes[j, d] * sites["theta"][i, d] for d in range(spec.dims)) + sites["intercept"][j]
            assert p[i, j] == pytest.approx(guess[j] + (1 - guess[j]) / (1 + np.exp(-eta)), abs=1e-12)


def test_slopes_follow_the_table_of_sites() -> None:
    oblique = Layout(ModelSpec.from_pattern("2pl", BIFACTOR), 4, 9)
    free = np.arange(1.0, 1 + BIFACTOR.sum())
    expected = np.zeros((9, 3))
    expected[BIFACTOR == 1] = np.exp(free)  # item by item
    np.testing.assert_allclose(slope_matrix(oblique, {"log_slope": free}), expected)
    common = Layout(ModelSpec.from_pattern("1pl", BIFACTOR), 4, 9)
    values = slope_matrix(common, {"log_slope": np.log([1.0, 2.0, 3.0])})
    np.testing.assert_allclose(values, BIFACTOR * [1.0, 2.0, 3.0])


def test_plug_in_slope_is_the_mean_of_a_log_normal() -> None:
    draws = np.exp(np.random.default_rng(0).normal(0.3, 0.5, 400_000))
    value = np.exp(plug_in({"log_slope": np.array(0.3)}, {"log_slope": np.array(0.5)})["log_slope"])
    assert value == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(draws.size))


def test_posterior_predictive_is_the_integral_over_the_posterior() -> None:
    layout = Layout(ModelSpec.exploratory("2pl", 2), 3, 9)
    rng = np.random.default_rng(1)
    means = layout.unpack(rng.normal(size=layout.width))
    sds = {name: np.zeros_like(value) for name, value in means.items()} | {"intercept": np.full(9, 0.8)}
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    exact = sum(
        w * pass_probability(layout, means | {"intercept": means["intercept"] + 0.8 * x})
        for x, w in zip(nodes, weights / weights.sum(), strict=True)
    )
    n_draws = 4000
    found = posterior_predictive(layout, means, sds, seed=3, n_draws=n_draws)
    assert np.abs(found - exact).max() < 4 * 0.5 / np.sqrt(n_draws)  # a probability's SD is at most .5
    np.testing.assert_array_equal(found, posterior_predictive(layout, means, sds, seed=3, n_draws=n_draws))
