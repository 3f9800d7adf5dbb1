"""Rotations undo what was turned; alignment and congruence are what geometry says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from irtaudit.stats.rotation import align, congruence, rotate

SIMPLE = np.kron(np.diag([0.9, 0.7, 0.5]), np.ones((8, 1)))


@pytest.mark.parametrize("criterion", ["varimax", "oblimin"])
def test_a_turned_simple_structure_is_found_again(criterion: Any) -> None:
    turn = special_ortho_group.rvs(3, random_state=1)
    found = rotate(SIMPLE @ turn, criterion)
    np.testing.assert_allclose(found.loadings, SIMPLE, atol=1e-3)
    np.testing.assert_allclose(found.correlation, np.eye(3), atol=2e-3)


def test_oblimin_recovers_correlated_dimensions() -> None:
    r = np.array([[1, 0.5, 0.3], [0.5, 1, 0.4], [0.3, 0.4, 1]])
    turned = SIMPLE @ np.linalg.cholesky(r) @ special_ortho_group.rvs(3, random_state=2)
    found = rotate(turned, "oblimin")
    np.testing.assert_allclose(found.loadings, SIMPLE, atol=5e-3)
    np.testing.assert_allclose(found.correlation, r, atol=1e-2)


@pytest.mark.parametrize("criterion", ["varimax", "oblimin"])
def test_rotation_keeps_what_the_loadings_imply(criterion: Any) -> None:
    a = np.random.default_rng(0).normal(size=(20, 3))
    found = rotate(a, criterion)
    np.testing.assert_allclose(found.loadings @ found.correlation @ found.loadings.T, a @ a.T, atol=1e-6)
    np.testing.assert_allclose(a @ found.turn, found.loadings, atol=1e-8)
    variance = (found.loadings**2).sum(axis=0)
    assert (np.diff(variance) <= 0).all()
    assert (found.loadings.sum(axis=0) >= 0).all()


def test_signs_and_order_do_not_depend_on_the_input() -> None:
    a = np.random.default_rng(3).normal(size=(30, 3)) * [2.0, 1.0, 0.5]
    other = rotate(a[:, [2, 0, 1]] * [-1, 1, -1])
    np.testing.assert_allclose(other.loadings, rotate(a).loadings, atol=1e-4)


def test_alignment_undoes_a_turn_and_congruence_is_a_cosine() -> None:
    turn = special_ortho_group.rvs(3, random_state=4)
    np.testing.assert_allclose(align(SIMPLE @ turn, SIMPLE), SIMPLE, atol=1e-10)
    assert congruence(SIMPLE, 2 * SIMPLE) == pytest.approx([1, 1, 1])
    assert congruence(SIMPLE, -SIMPLE) == pytest.approx([-1, -1, -1])
    assert congruence(SIMPLE, SIMPLE[:, [1, 0, 2]]) == pytest.approx([0, 0, 1])
    assert congruence([[3.0], [4.0]], [[4.0], [3.0]]) == pytest.approx([24 / 25])
    assert np.isnan(congruence([[0.0]], [[1.0]])).all()


@pytest.mark.parametrize("criterion", ["varimax", "oblimin"])
@pytest.mark.filterwarnings("error")
def test_a_dimension_without_loadings_is_turned_quietly(criterion: Any) -> None:
    a = np.outer(np.linspace(0.2, 0.9, 12), [1.0, 0.0, 0.0])
    found = rotate(a, criterion)
    np.testing.assert_allclose(found.loadings @ found.correlation @ found.loadings.T, a @ a.T, atol=1e-9)
    np.testing.assert_array_equal(rotate(np.zeros((9, 2)), criterion).loadings, 0)


def test_one_dimension_only_has_its_sign_fixed() -> None:
    np.testing.assert_array_equal(rotate([[-1.0], [-0.5]]).loadings, [[1.0], [0.5]])


@pytest.mark.parametrize(
    ("loadings", "criterion", "found"),
    [
        (SIMPLE, "promax", "'promax'"),
        ([1.0, 2.0], "varimax", "shape"),
        ([[np.nan, 1.0]], "varimax", "finite"),
    ],
)
def test_nonsense_is_refused(loadings: Any, criterion: Any, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        rotate(loadings, criterion)
