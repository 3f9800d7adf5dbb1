"""Standardised columns and their eigenvalues against numpy's correlation matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtaudit.stats.spectrum import spectrum, standardised_columns


def _binary(n: int, j: int, seed: int = 0) -> np.ndarray:
    cells = (np.random.default_rng(seed).random((n, j)) < 0.6).astype(float)
    cells[0], cells[1] = 0, 1  # no constant column
    return cells


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (20, 20)])
def test_eigenvalues_are_those_of_the_correlation_matrix(shape: tuple[int, int]) -> None:
    cells = _binary(*shape)
    found = spectrum(standardised_columns(cells, np.ones(shape, bool)))
    expected = np.linalg.eigvalsh(np.corrcoef(cells.T))[::-1][: min(shape)]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx(shape[1])


def test_stacks_and_float32_give_the_same() -> None:
    stack = np.stack([_binary(15, 25, s) for s in range(3)])
    observed = np.ones((15, 25), dtype=bool)
    alone = [spectrum(standardised_columns(cells, observed)) for cells in stack]
    single = spectrum(standardised_columns(stack.astype(np.float32), observed))
    np.testing.assert_allclose(single, alone, atol=1e-4)


def test_missing_cells_are_zero_and_the_others_standardised_among_themselves() -> None:
    cells = _binary(40, 10)
    observed = np.random.default_rng(1).random(cells.shape) > 0.3
    z = standardised_columns(np.where(observed, cells, 0.0), observed)
    assert not z[~observed].any()
    for j in range(10):
        seen = cells[observed[:, j], j]
        np.testing.assert_allclose(z[observed[:, j], j], (seen - seen.mean()) / seen.std(), atol=1e-12)


def test_a_constant_column_carries_nothing() -> None:
    cells = np.column_stack([_binary(20, 5), np.ones(20), np.zeros(20)]).astype(np.float32)
    observed = np.ones(cells.shape, dtype=bool)
    observed[3, 5] = False
    z = standardised_columns(np.where(observed, cells, 0), observed)
    assert not z[:, 5:].any()
    assert spectrum(z).sum() == pytest.approx(5, rel=1e-5)


@given(st.integers(0, 2**16))
def test_neither_order_nor_coding_matters(seed: int) -> None:
    rng, cells = np.random.default_rng(seed), _binary(14, 9, seed)
    flipped = np.where(rng.random(9) < 0.5, cells, 1 - cells)
    shuffled = flipped[rng.permutation(14)][:, rng.permutation(9)]
    everything = np.ones((14, 9), dtype=bool)
    np.testing.assert_allclose(
        spectrum(standardised_columns(cells, everything)),
        spectrum(standardised_columns(shuffled, everything)),
        atol=1e-9,
    )
