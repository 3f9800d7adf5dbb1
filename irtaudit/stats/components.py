"""Principal components of a few score columns, and how large their eigenvalues are by chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Array = NDArray[Any]


class Components(NamedTuple):
    """Principal components of a correlation matrix, largest first.

    Attributes
    ----------
    eigenvalues : (component,) array
        They sum to the number of columns.
    loadings : (column, component) array
        Correlations of columns with components; each component's sign makes its loadings sum to 0 or more.
    scores : (unit, component) array
        Component scores of the standardized data.
    """

    eigenvalues: Array
    loadings: Array
    scores: Array


def principal_components(data: ArrayLike, *, ranked: bool = False) -> Components:
    """Components of the Pearson correlations of the columns, or of their ranks (Spearman).

    Parameters
    ----------
    data : (unit, column) array
        No NaN, no constant column.
    ranked : bool
        Take midranks first.
    """
    x = _standard(_ranked(data) if ranked else np.asarray(data, dtype=float))
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)
    return Components(values, vectors * np.sqrt(values), x @ vectors)


def null_eigenvalues(
    n_units: int, n_columns: int, n_draws: int, rng: np.random.Generator, *, ranked: bool = False
) -> Array:
    """Eigenvalues of correlation matrices of independent normal columns (Horn 1965); (draw, component).

    Parameters
    ----------
    n_units, n_columns, n_draws : int
        Shape of the data, and how many such data sets.
    ranked : bool
        Of the Spearman matrices instead.
    """
    draws = rng.standard_normal((n_draws, n_units, n_columns))
    return _eigenvalues(rankdata(draws, axis=1) if ranked else draws)


def permuted_eigenvalues(
    data: ArrayLike, n_draws: int, rng: np.random.Generator, *, ranked: bool = False
) -> Array:
    """Eigenvalues after every column is shuffled on its own; (draw, component)."""
    x = _ranked(data) if ranked else np.asarray(data, dtype=float)
    return _eigenvalues(rng.permuted(np.broadcast_to(x, (n_draws, *x.shape)), axis=1))


def retained(eigenvalues: ArrayLike, criterion: ArrayLike) -> int:
    """Leading eigenvalues above the criterion, counted until the first failure."""
    above = np.asarray(eigenvalues) > np.asarray(criterion)
    return int(np.argmin(above)) if not above.all() else above.size


def _eigenvalues(draws: Array) -> Array:
    x = _standard(draws)
    return np.linalg.eigvalsh(x.swapaxes(-1, -2) @ x / x.shape[-2])[..., ::-1]


def _ranked(data: ArrayLike) -> Array:
    return rankdata(np.asarray(data, dtype=float), axis=0)


def _standard(x: Array) -> Array:
    return np.asarray((x - x.mean(axis=-2, keepdims=True)) / x.std(axis=-2, keepdims=True))
