"""Logistic regressions of many outcomes on a few covariates, fitted together by Newton's method.

A problem is one item of one (simulated) matrix. All items of a matrix share their covariates, so a step is a
few products with (subject, item) arrays, and the responses enter only through their cross-products with the
covariates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

MAX_STEPS = 30
FIRST_LIMIT, SHRINK = 5.0, 0.8
"""No coefficient changes by more than 5 in the first step and 0.8 times as much in each further one. Without
the shrinking, 2 in 100 problems of a nearly constant item jump between two flat ends for ever."""


class LogisticFit(NamedTuple):
    """Coefficients (..., 1 + covariate, item), the intercept first, and (..., item) whether they settled."""

    coefficients: Array
    converged: Array


def ridge_logistic(
    covariates: Array,
    responses: Array,
    penalty: ArrayLike,
    *,
    observed: Array | None = None,
    start: Array | None = None,
) -> LogisticFit:
    """Maximum of the log-likelihood minus ``sum_c penalty_c coefficient_c^2 / 2``; the intercept is free.

    Parameters
    ----------
    covariates : (..., subject, covariate) array
        Leading axes (simulations) broadcast against those of `responses`; one set may serve them all.
    responses : (..., subject, item) array of floats
        0, 1 or anything between; finite also where not observed. Its type is the working precision.
    penalty : (covariate,) array
    observed : (subject, item) bool array, optional
        Default: all.
    start : (1 + covariate, item) array, optional
        Coefficients near the answer, from the expected responses say.

    Returns
    -------
    LogisticFit
        All coefficients are 0 where an item's responses are all alike: its intercept has no finite maximum,
        and the penalised coefficients tend to 0 along the way.
    """
    x = _design(covariates, responses.dtype)
    ridge = np.concatenate([[0.0], np.asarray(penalty, dtype=float)]).astype(x.dtype)
    mask = None if observed is None else observed.astype(x.dtype)
    simulations, items = int(np.prod(responses.shape[:-2])), responses.shape[-1]
    cross = x @ (responses if mask is None else responses * mask)
    parts = [cross.reshape(simulations, len(ridge), items)]
    designs = x.reshape(-1, *x.shape[-2:])
    if len(designs) > 1:  # every simulation has covariates of its own
        parts = np.split(parts[0], simulations)
    solved = [_newton(design, part, mask, ridge, start) for design, part in zip(designs, parts, strict=True)]
    beta, converged = (np.concatenate(arrays) for arrays in zip(*solved, strict=True))
    return LogisticFit(beta.reshape(cross.shape), converged.reshape(*cross.shape[:-2], items))


def _newton(
    x: Array, cross: Array, mask: Array | None, ridge: Array, start: Array | None
) -> tuple[Array, Array]:
    """Solve all problems of one design: `cross` is (simulation, coefficient, item), and so is the answer.

    Problems stand side by side, and one that has settled leaves.
    """
    simulations, k, items = cross.shape
    flat = np.ascontiguousarray(np.swapaxes(cross, 0, 1).reshape(k, -1))
    seen = np.ones((x.shape[1], items), x.dtype) if mask is None else mask
    n = np.tile(seen.sum(axis=0), simulations)
    alike = (flat[0] <= 0) | (flat[0] >= n)
    flat = np.where(alike, np.tile(x @ seen / 2, simulations), flat)
    beta = _start(x, start, flat, seen, n)
    weights = None if mask is None else np.tile(mask, simulations)

    lower = np.tril_indices(k)
    outer, x_back = x[lower[0]] * x[lower[1]], np.ascontiguousarray(x.T)
    tolerance = 2e-2 if x.dtype == np.float32 else 1e-9  # the error of a step is about the square of its size
    open_ = np.arange(flat.shape[1])
    for step_number in range(MAX_STEPS):
        now = beta[:, open_]
        p = x_back @ now
        sigmoid_in_place(p)
        curvature = p * p
        np.subtract(p, curvature, out=curvature)
        if weights is not None:
            p *= weights[:, open_]
            curvature *= weights[:, open_]
        step = _solved(outer @ curvature, ridge, flat[:, open_] - x @ p - ridge[:, None] * now)
        limit = FIRST_LIMIT * SHRINK**step_number
        np.clip(step, -limit, limit, out=step)
        beta[:, open_] = now + step
        open_ = open_[np.abs(step).max(axis=0) >= tolerance]
        if not len(open_):
            break
    settled = np.ones(flat.shape[1], dtype=bool)
    settled[open_] = False
    return np.swapaxes(beta.reshape(k, simulations, items), 0, 1), settled.reshape(simulations, items)


def logistic_log_likelihood(
    covariates: Array, responses: Array, coefficients: Array, observed: Array | None = None
) -> Array:
    """Log-likelihood of each item at given coefficients, in nats.

    Parameters
    ----------
    covariates, responses, observed
        As in :func:`ridge_logistic`.
    coefficients : (..., 1 + covariate, item) array

    Returns
    -------
    (..., item) array
    """
    eta = np.swapaxes(_design(covariates, responses.dtype), -1, -2) @ coefficients
    nats = responses * eta - np.logaddexp(0, eta)
    return np.asarray((nats if observed is None else nats * observed).sum(axis=-2))


def sigmoid_in_place(x: Array) -> None:
    """Replace every number by its logistic function, faster than `scipy.special.expit` in float32."""
    np.negative(x, out=x)
    with np.errstate(over="ignore"):  # exp becomes infinite, its reciprocal the right 0
        np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)


def _design(covariates: Array, dtype: np.dtype[Any]) -> Array:
    """(..., 1 + covariate, subject): covariates under a row of ones."""
    rows = np.swapaxes(covariates, -1, -2)
    ones = np.ones((*rows.shape[:-2], 1, rows.shape[-1]))
    return np.ascontiguousarray(np.concatenate([ones, rows], axis=-2), dtype=dtype)


def _start(x: Array, start: Array | None, cross: Array, seen: Array, n: Array) -> Array:
    """Given slopes, and the intercept moved to where the item's pass rate is about the observed one."""
    rate = (cross[0] + 0.5) / (n + 1)
    beta = np.zeros_like(cross)
    if start is not None:
        p = x.T @ start.astype(x.dtype)
        sigmoid_in_place(p)
        expected = ((p * seen).sum(axis=0) + 0.5) / (seen.sum(axis=0) + 1)
        moved = start.astype(x.dtype)
        moved[0] -= np.log(expected / (1 - expected))
        beta += np.tile(moved, cross.shape[1] // start.shape[1])
    beta[0] += np.log(rate / (1 - rate))
    return beta


def _solved(packed: Array, ridge: Array, gradient: Array) -> Array:
    """Newton step (coefficient, problem): the penalised information, a packed lower triangle, solved.

    Cholesky's factorisation, written out over the few coefficients and elementwise over problems; a floor
    keeps it real where rounding has eaten a pivot.
    """
    k = len(gradient)
    at = {pair: n for n, pair in enumerate((i, j) for i in range(k) for j in range(i + 1))}
    floor = np.finfo(packed.dtype).eps * 16
    factor: dict[tuple[int, int], Array] = {}
    for i in range(k):
        for j in range(i + 1):
            rest = packed[at[i, j]] + (ridge[i] if i == j else 0)
            for m in range(j):
                rest -= factor[i, m] * factor[j, m]
            factor[i, j] = np.sqrt(np.maximum(rest, floor)) if i == j else rest / factor[j, j]
    step = gradient.copy()
    for i in range(k):
        for m in range(i):
            step[i] -= factor[i, m] * step[m]
        step[i] /= factor[i, i]
    for i in reversed(range(k)):
        for m in range(i + 1, k):
            step[i] -= factor[m, i] * step[m]
        step[i] /= factor[i, i]
    return step


def coefficient_se(
    covariates: Array, coefficients: Array, penalty: ArrayLike, observed: Array | None = None
) -> Array:
    """Standard errors from the inverse of the penalised information.

    Parameters
    ----------
    covariates : (subject, covariate) array
    coefficients : (1 + covariate, item) array
    penalty, observed
        As in :func:`ridge_logistic`.

    Returns
    -------
    (1 + covariate, item) array
        NaN where the information is singular.
    """
    x = _design(covariates, np.dtype(float))
    p = x.T @ coefficients
    sigmoid_in_place(p)
    weight = p * (1 - p) if observed is None else p * (1 - p) * observed
    ridge = np.diag(np.concatenate([[0.0], np.asarray(penalty, dtype=float)]))
    information = np.einsum("ai,bi,ij->jab", x, x, weight) + ridge
    singular = np.linalg.cond(information) > 1e14
    inverse = np.linalg.inv(np.where(singular[:, None, None], np.eye(len(x)), information))
    variance = np.diagonal(inverse, axis1=-2, axis2=-1).T
    return np.asarray(np.sqrt(np.where(singular, np.nan, variance)))
