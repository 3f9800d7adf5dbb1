"""Correlations of variables that are known up to normal errors, averaged over what the errors leave open.

Unit i has latent values ``u_i ~ N(0, R)`` and measurements of precision ``w_i`` about them, one per
variable. The correlations *of these units' values* are those of ``(1/N) sum_i (m_i m_i' + V_i)``, m_i and
V_i being the mean and covariance of u_i given R; R itself is uniform over correlation matrices and is
averaged out. At its mode instead, correlations near 1 come out wrong where there are few measurements: the
likelihood of R is skewed there, and a single R decides how far all units are drawn together.

R is sampled by random-walk Metropolis on Fisher's z of its canonical partial correlations (Lewandowski,
Kurowicka and Joe 2009, J. Multivariate Analysis 100, 1989-2001), the same number of steps for every problem
of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

STEPS, STEPS_PER_PAIR, MOST_STEPS = 600, 150, 2000
"""So many steps, and so many more for each correlation: chains then differ by .01 to .03 in Fisher's z."""
SETTLING = 0.25
"""Share of the steps in which the step size is tuned and nothing is kept."""
KEEP_EVERY = 5
WANTED_RATE = 0.3
"""Share of accepted steps that the step size is tuned to."""
LEAST_PRECISION = 1e-3
WIDEST = 0.999


def latent_correlations(values: ArrayLike, precision: ArrayLike, start: ArrayLike, *, seed: int = 0) -> Array:
    """Correlations of the latent values of each problem's units.

    Parameters
    ----------
    values : (problem, unit, dim) array
        Precision times measurement: 0 where nothing was measured.
    precision : (problem, unit, dim) array
        Of the measurements, one over their error variance; the latent values have variance 1.
    start : (problem, dim, dim) array
        Correlation matrices that the sampling starts from.
    seed : int

    Returns
    -------
    (problem, dim, dim) array
        Posterior means under the uniform prior of correlation matrices.
    """
    w = np.maximum(np.asarray(precision, dtype=np.float64), LEAST_PRECISION)
    root, scaled = np.sqrt(w), np.asarray(values, dtype=np.float64) / np.sqrt(w)
    rng = np.random.default_rng([seed, *b"latent correlations"])
    z = _partials(np.asarray(start, dtype=np.float64))
    n_steps = min(STEPS + STEPS_PER_PAIR * z.shape[1], MOST_STEPS)
    step = np.full(len(z), 1.0 / np.sqrt(w.shape[1] * z.shape[1]))
    current, total, kept = _log_density(z, root, scaled), np.zeros_like(start, dtype=np.float64), 0
    for t in range(n_steps):
        proposed = z + step[:, None] * rng.standard_normal(z.shape)
        found = _log_density(proposed, root, scaled)
        rate = np.exp(np.minimum(found - current, 0))
        taken = rng.random(len(z)) < rate
        z, current = np.where(taken[:, None], proposed, z), np.where(taken, found, current)
        if t < SETTLING * n_steps:
            step = step * np.exp((rate - WANTED_RATE) / np.sqrt(1 + t))
        elif t % KEEP_EVERY == 0:
            total, kept = total + _of_units(_matrix(_rows(z, w.shape[2])), root, scaled), kept + 1
    return np.asarray(total / kept)


def _partials(r: Array) -> Array:
    """(problem, pair) Fisher's z of the canonical partial correlations, row by row of the Cholesky factor."""
    lower = np.linalg.cholesky(r)
    i, j = np.tril_indices(r.shape[-1], -1)
    left = 1 - np.cumsum(lower**2, axis=-1) + lower**2
    return np.asarray(np.arctanh(np.clip(lower[:, i, j] / np.sqrt(left[:, i, j]), -WIDEST, WIDEST)))


def _rows(z: Array, k: int) -> tuple[list[list[Array]], Array]:
    """Rows of the Cholesky factor, and log prior density of z under uniform correlation matrices."""
    p, log_rest = np.tanh(z), -2 * np.logaddexp(z, -z) + 2 * np.log(2)
    rows, log_prior, pair = [[np.ones(len(z))]], np.zeros(len(z)), 0
    for i in range(1, k):
        row, log_left = [], np.zeros(len(z))
        for _ in range(i):
            row.append(p[:, pair] * np.exp(log_left / 2))
            log_prior = log_prior + log_left / 2 + log_rest[:, pair]
            log_left = log_left + log_rest[:, pair]
            pair += 1
        rows.append([*row, np.exp(log_left / 2)])
        log_prior = log_prior + (k - 1 - i) * log_left / 2
    return rows, log_prior


def _matrix(rows: tuple[list[list[Array]], Array]) -> Array:
    """(problem, dim, dim) correlation matrices."""
    k = len(rows[0])
    lower = np.zeros((len(rows[1]), k, k))
    for i, row in enumerate(rows[0]):
        lower[:, i, : i + 1] = np.stack(row, axis=-1)
    return np.asarray(lower @ np.swapaxes(lower, 1, 2))


def _log_density(z: Array, root: Array, scaled: Array) -> Array:
    """(problem,) log posterior density of z but for a constant: ``scaled ~ N(0, I + D R D)``, D of `root`."""
    rows = _rows(z, root.shape[2])
    r = _matrix(rows)
    # by hand: LAPACK is called once a matrix, and there are units x problems of them, each a few numbers wide
    lower: list[list[Array]] = []
    solved: list[Array] = []
    log_lik = np.zeros(root.shape[:2])
    for i in range(root.shape[2]):
        row: list[Array] = []
        for j in range(i + 1):
            entry = root[:, :, i] * root[:, :, j] * r[:, i, j, None] + (i == j)
            for a, b in zip(row, (lower[j] if j < i else row), strict=False):
                entry = entry - a * b
            row.append(np.sqrt(entry) if i == j else entry / lower[j][j])
        lower.append(row)
        rest = scaled[:, :, i]
        for a, x in zip(row, solved, strict=False):
            rest = rest - a * x
        solved.append(rest / row[i])
        log_lik -= np.log(row[i]) + 0.5 * solved[i] ** 2
    return np.asarray(log_lik.sum(axis=1) + rows[1])


def _of_units(r: Array, root: Array, scaled: Array) -> Array:
    """(problem, dim, dim) correlations of the centred second moments of the units' values, given R."""
    k = r.shape[-1]
    gain = root[..., None] * r[:, None]  # D R
    spread = np.eye(k) + gain * root[..., None, :]
    weights = np.linalg.solve(spread, gain)  # S^-1 D R
    mean = np.einsum("pnd,pnde->pne", scaled, weights)
    covariance = r - np.einsum("pnde,pndf->pef", gain, weights) / root.shape[1]
    centred = mean - mean.mean(axis=1, keepdims=True)
    moments = np.swapaxes(centred, 1, 2) @ centred / root.shape[1] + covariance
    sd = np.sqrt(np.einsum("pdd->pd", moments))
    return np.asarray(moments / (sd[:, :, None] * sd[:, None, :]))
