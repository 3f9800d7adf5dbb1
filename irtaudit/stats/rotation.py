"""Rotation, alignment and congruence of loading matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Criterion = Literal["varimax", "oblimin"]


@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotated loading matrix, its dimensions in order of the variance they carry, large side positive.

    Attributes
    ----------
    loadings : (item, dim) array
    correlation : (dim, dim) array
        Correlations of the rotated dimensions; the identity for varimax.
    turn : (dim, dim) array
        What the unrotated loadings are multiplied by from the right.
    """

    loadings: NDArray[np.float64]
    correlation: NDArray[np.float64]
    turn: NDArray[np.float64]


def rotate(loadings: ArrayLike, criterion: Criterion = "varimax") -> Rotation:
    """Rotate loadings towards simple structure, by statsmodels' gradient projection.

    Parameters
    ----------
    loadings : (item, dim) array
    criterion : {"varimax", "oblimin"}
        Orthogonal (Kaiser 1958) or oblique, quartimin (Jennrich and Sampson 1966).

    Returns
    -------
    Rotation

    Raises
    ------
    ValueError
        For an unknown criterion, or loadings that are not a finite matrix.
    """
    a = np.asarray(loadings, dtype=np.float64)
    if criterion not in get_args(Criterion):
        raise ValueError(f"criterion is {criterion!r}; expected one of {', '.join(get_args(Criterion))}")
    if a.ndim != 2 or not np.isfinite(a).all():
        raise ValueError(f"loadings must be a finite (item, dim) matrix; got shape {a.shape}")
    identity = np.eye(a.shape[1])
    if a.shape[1] == 1:
        return _in_order(a, identity, identity)
    from statsmodels.multivariate import factor_rotation

    rotate_factors: Any = factor_rotation.rotate_factors
    arguments = ("varimax",) if criterion == "varimax" else ("oblimin", 0, "oblique")
    with np.errstate(divide="ignore"):  # statsmodels logs the length of its steps, which may be 0
        rotated, transform = rotate_factors(a, *arguments)
    if criterion == "varimax":
        return _in_order(np.asarray(rotated), identity, np.asarray(transform))
    return _in_order(np.asarray(rotated), np.asarray(transform.T @ transform), np.linalg.inv(transform).T)


def _in_order(loadings: NDArray[Any], correlation: NDArray[Any], turn: NDArray[Any]) -> Rotation:
    order = np.argsort(-(loadings**2).sum(axis=0), kind="stable")
    sign = np.where(loadings[:, order].sum(axis=0) < 0, -1.0, 1.0)
    return Rotation(
        loadings[:, order] * sign,
        correlation[np.ix_(order, order)] * np.outer(sign, sign),
        turn[:, order] * sign,
    )


def align(loadings: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
    """Turn loadings, without changing what they imply, as close to a target as an orthogonal matrix can.

    Parameters
    ----------
    loadings, target : (item, dim) array

    Returns
    -------
    (item, dim) array
        The least-squares solution of the orthogonal Procrustes problem (Schoenemann 1966).
    """
    from scipy.linalg import orthogonal_procrustes

    a = np.asarray(loadings, dtype=np.float64)
    turn, _ = orthogonal_procrustes(a, np.asarray(target, dtype=np.float64))
    return np.asarray(a @ turn)


def congruence(one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """Tucker's coefficient of congruence of each dimension: the cosine between two columns of loadings.

    Parameters
    ----------
    one, other : (item, dim) array

    Returns
    -------
    (dim,) array
        Between -1 and 1; NaN where a column is zero. From .95 on two dimensions count as equal
        (Lorenzo-Seva and ten Berge 2006, Methodology 2, 57-64).
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    lengths = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    cosines: NDArray[np.float64] = np.divide(
        (a * b).sum(axis=0), lengths, out=np.full(a.shape[1], np.nan), where=lengths > 0
    )
    return cosines
