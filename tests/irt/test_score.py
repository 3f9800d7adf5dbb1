"""New subjects on a fitted scale: R's values, brute-force integration, and the fit's own abilities."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from panels import REFERENCE, random_matrix

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import DataError, PlanError
from irtaudit.irt.fit import fit, fit_all
from irtaudit.irt.score import ability_posterior, score
from irtaudit.irt.spec import ModelSpec


@pytest.mark.parametrize("model", ["2PL", "3PL"])
def test_lsat7_patterns_score_as_in_r_mirt(model: str) -> None:
    items = pd.read_csv(REFERENCE / "lsat7_mirt_parameters.csv").query(f"model == {model!r}")
    scores = pd.read_csv(REFERENCE / "lsat7_mirt_scores.csv", dtype={"pattern": str}).query(
        f"model == {model!r}"
    )
    responses = np.array([[float(passed) for passed in pattern] for pattern in scores["pattern"]])
    mean, covariance = ability_posterior(responses, items[["a"]], items["d"], items["g"])
    np.testing.assert_allclose(mean[:, 0], scores["EAP"].astype(float), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(covariance[:, 0, 0]), scores["SE"].astype(float), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_quadrature_equals_brute_force(dims: int) -> None:
    a, d, c, r, y = _problem(dims, n_items=8)
    mean, covariance = ability_posterior(y, a, d, c, correlation=r)
    axis = np.arange(-6, 6.01, {1: 0.01, 2: 0.05, 3: 0.2}[dims])
    theta = np.array(list(itertools.product(axis, repeat=dims)))
    p = c + (1 - c) / (1 + np.exp(-(theta @ a.T + d)))
    prior = np.exp(-0.5 * np.einsum("nd,de,ne->n", theta, np.linalg.inv(r), theta))
    for row, m, v in zip(y, mean, covariance, strict=True):
        likelihood = np.where(np.isnan(row), 1.0, np.where(row == 1, p, 1 - p)).prod(axis=1)
        weight = prior * likelihood / (prior * likelihood).sum()
        exact = weight @ theta
        np.testing.assert_allclose(m, exact, rtol=0, atol=2e-3)
        second = np.einsum("n,nd,ne->de", weight, theta - exact, theta - exact)
        np.testing.assert_allclose(v, second, rtol=0, atol=4e-3)


def test_laplace_with_many_dimensions_is_close_where_items_are_many() -> None:
    a, d, c, r, y = _problem(2, n_items=300)
    mean, covariance = ability_posterior(y, a, d, c, correlation=r)
    mode, curvature = ability_posterior(y, a, d, c, correlation=r, nodes=1)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    assert (np.abs(mode - mean) < 0.15 * sd).all()
    np.testing.assert_allclose(np.sqrt(np.diagonal(curvature, axis1=1, axis2=2)), sd, rtol=0.1)
    many = np.random.default_rng(0).normal(size=(300, 6))
    assert np.isfinite(ability_posterior(y, many, d)[0]).all()


def test_a_subject_without_responses_has_the_prior() -> None:
    a, d, c, r, _ = _problem(2, n_items=8)
    mean, covariance = ability_posterior(np.full((1, 8), np.nan), a, d, c, correlation=r)
    np.testing.assert_allclose(mean[0], 0, atol=1e-10)
    np.testing.assert_allclose(covariance[0], r, atol=1e-8)


def test_the_subjects_of_a_fit_score_as_they_were_fitted() -> None:
    matrix = random_matrix(80, 60, missing=0.1)
    fitted = fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, workers=1)
    again = score(fitted, matrix)
    assert again.index.equals(matrix.subjects.index)
    np.testing.assert_array_equal(again["n_items"], matrix.observed.sum(axis=1))
    # Quadrature at fixed item parameters against mean-field: the same posterior but for what each leaves out.
    assert (again["ability"] - fitted.abilities["ability"]).abs().max() < 0.5 * again["ability_sd"].mean()
    assert np.corrcoef(again["ability"], fitted.abilities["ability"])[0, 1] > 0.995


def test_items_are_matched_by_name_whatever_their_order() -> None:
    matrix = random_matrix(20, 12)
    fitted = fit(matrix, ModelSpec.confirmatory("3pl", list("abc") * 4), n_restarts=1, workers=1)
    some = matrix.items.index[[7, 2, 9, 4]]
    extra = ResponseMatrix.from_array(
        np.column_stack([matrix.select(items=some).responses, np.ones(20)]),
        subjects=matrix.subjects.index,
        items=[*some, "an item of another test"],
    )
    blanked = matrix.responses.copy()
    blanked[:, ~matrix.items.index.isin(some)] = np.nan
    expected = score(fitted, ResponseMatrix.from_array(blanked))
    found = score(fitted, extra)
    assert list(found) == ["a", "a_sd", "b", "b_sd", "c", "c_sd", "n_items"]
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), atol=1e-8)


def test_of_many_fits_one_is_to_be_named() -> None:
    matrix = random_matrix(12, 6, seed=3)
    fits = fit_all(matrix, [ModelSpec.unidimensional("1pl"), ModelSpec.unidimensional("2pl")], n_restarts=1)
    with pytest.raises(PlanError) as refused:
        score(fits, matrix)  # type: ignore[arg-type]  # the mistake under test
    assert str(refused.value) == (
        "fit is a dict of 2, as irtaudit.fit_all returns; expected one fit of it: "
        "fits['unidimensional_1pl'], say. There are 'unidimensional_1pl', 'unidimensional_2pl'."
    )
    with pytest.raises(PlanError, match=r"fit is \{\}; expected what irtaudit.fit returns"):
        score({}, matrix)  # type: ignore[arg-type]  # likewise


def test_rows_stand_in_the_order_of_the_matrix() -> None:
    matrix = random_matrix(12, 6, seed=3)
    fitted = fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, preset="quick")
    turned = matrix.select(subjects=matrix.subjects.index[::-1])
    abilities = score(fitted, turned)
    assert abilities.index.equals(turned.subjects.index)
    pd.testing.assert_frame_equal(abilities.reindex(matrix.subjects.index), score(fitted, matrix))


def test_no_item_in_common_is_refused() -> None:
    fitted = fit(
        random_matrix(12, 9), ModelSpec.unidimensional("2pl"), n_restarts=1, preset="quick", workers=1
    )
    other = ResponseMatrix.from_array(np.ones((2, 2)), items=["x", "y"])
    with pytest.raises(DataError, match=r"None of the 2 items is among the 9 items of the fit.*'x'"):
        score(fitted, other)


def _problem(dims: int, n_items: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(dims)
    a = np.abs(rng.normal(1, 0.4, size=(n_items, dims)))
    d, c = rng.normal(size=n_items), np.full(n_items, 0.15)
    r = np.full((dims, dims), 0.5) + 0.5 * np.eye(dims)
    y = (rng.random((6, n_items)) < 0.6) * 1.0
    y[rng.random(y.shape) < 0.2] = np.nan
    return a, d, c, r, y
