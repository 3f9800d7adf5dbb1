"""Put new subjects on a fitted scale, without refitting: abilities by quadrature. Numpy only.

Given item parameters, the posterior of a subject's abilities is ``N(theta; 0, R) prod_j P_j(y_j | theta)``.
Its mode is found by Fisher scoring, and adaptive Gauss-Hermite quadrature around the mode gives its mean
and covariance (Naylor and Smith 1982, Applied Statistics 31, 214-225).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logsumexp

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import refuse_counts
from irtaudit.errors import DataError
from irtaudit.irt.result import FitResult, check_fit

Array = NDArray[np.float64]

NODES = {1: 31, 2: 15, 3: 13}
"""Quadrature nodes per dimension; with more dimensions one node, the mode, is left (Laplace)."""
SCORING_STEPS, SCORING_TOLERANCE, LONGEST_STEP = 50, 1e-8, 2.0
CELLS_AT_A_TIME = 4_000_000


def score(fit: FitResult, matrix: ResponseMatrix) -> pd.DataFrame:
    """Abilities of new subjects on the scale of a fit.

    Parameters
    ----------
    fit : FitResult
        Its first split's selected restart gives the item parameters, taken as known.
    matrix : ResponseMatrix
        Responses of the new subjects. Items are matched by name; those that the fit does not know are left
        out, those that the new subjects did not answer hold no information.

    Returns
    -------
    DataFrame indexed by subject
        Columns ``<factor>`` and ``<factor>_sd``, posterior mean and SD of theta, as in
        :attr:`FitResult.abilities`, and ``n_items``, the responses that the row rests on. Rows stand in the
        order of `matrix`, which `read_responses` sorts by name: take rows by name, or put them into an order
        of your own with ``score(fit, matrix).reindex(names)``.

    Raises
    ------
    DataError
        When no item of the matrix belongs to the fit, or `matrix` is no response matrix.
    PlanError
        When cells of the matrix count several trials, or `fit` is no fit.
    """
    check_fit(fit)
    refuse_counts(matrix, "Putting new subjects on a fitted scale")
    there = set(matrix.items.index)
    shared = [item for item in fit.items if item in there]
    if not shared:
        raise DataError(
            f"None of the {matrix.n_items} items is among the {len(fit.items)} items of the fit (here for "
            f"example {matrix.items.index[0]!r}, there {fit.items[0]!r}); are they named differently?"
        )
    parameters = fit.item_parameters.loc[shared]
    columns = matrix.items.index.get_indexer(pd.Index(shared))
    mean, covariance = ability_posterior(
        matrix.responses[:, columns],
        parameters[[f"slope_{factor}" for factor in fit.spec.factors]].to_numpy(),
        parameters["intercept"].to_numpy(),
        parameters["guess"].to_numpy() if "guess" in parameters else 0.0,
        correlation=fit.hypers["factor_correlation"][0, fit.selected_restart()]
        if fit.spec.correlated
        else None,
    )
    table = {}
    for d, factor in enumerate(fit.spec.factors):
        table[factor], table[f"{factor}_sd"] = mean[:, d], np.sqrt(covariance[:, d, d])
    table["n_items"] = matrix.observed[:, columns].sum(axis=1)
    return pd.DataFrame(table, index=matrix.subjects.index)


def ability_posterior(
    responses: ArrayLike,
    slopes: ArrayLike,
    intercepts: ArrayLike,
    guess: ArrayLike = 0.0,
    *,
    correlation: ArrayLike | None = None,
    nodes: int | None = None,
) -> tuple[Array, Array]:
    """Posterior mean (EAP) and covariance of each subject's abilities, at given item parameters.

    Parameters
    ----------
    responses : (subject, item) array of 0, 1 or NaN
    slopes : (item, dim) array
        Logits per unit of theta.
    intercepts : (item,) array
        Logits.
    guess : (item,) array or float
        Probability of passing by guessing.
    correlation : (dim, dim) array, optional
        Prior covariance of theta; default the identity.
    nodes : int, optional
        Quadrature nodes per dimension; default `NODES`.

    Returns
    -------
    mean : (subject, dim) array
    covariance : (subject, dim, dim) array
    """
    y = np.asarray(responses, dtype=np.float64)
    a, d = np.asarray(slopes, dtype=np.float64), np.asarray(intercepts, dtype=np.float64)
    c = np.broadcast_to(np.asarray(guess, dtype=np.float64), d.shape)
    k = a.shape[1]
    prior = np.eye(k) if correlation is None else np.asarray(correlation, dtype=np.float64)
    precision: Array = np.asarray(np.linalg.inv(prior), dtype=np.float64)
    per_dim = NODES.get(k, 1) if nodes is None else nodes
    size = max(1, CELLS_AT_A_TIME // (per_dim**k * max(1, len(d))))
    parts = [_posterior(y[i : i + size], a, d, c, precision, per_dim) for i in range(0, len(y), size)]
    return np.concatenate([m for m, _ in parts]), np.concatenate([v for _, v in parts])


def _posterior(y: Array, a: Array, d: Array, c: Array, precision: Array, nodes: int) -> tuple[Array, Array]:
    mode, information = _mode(y, a, d, c, precision)
    spread = np.linalg.cholesky(np.linalg.inv(information))
    if nodes == 1:
        return mode, spread @ np.swapaxes(spread, 1, 2)
    x, log_weight = _grid(nodes, a.shape[1])
    theta = mode[:, None, :] + x @ np.swapaxes(spread, 1, 2)
    log_density = _log_lik(y, theta, a, d, c) - 0.5 * np.einsum("snd,de,sne->sn", theta, precision, theta)
    # The rule integrates against N(0, I) in x; dividing it out leaves the posterior itself.
    log_weight = log_weight + 0.5 * (x**2).sum(axis=1) + log_density
    weight = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    mean = np.einsum("sn,snd->sd", weight, theta)
    centred = theta - mean[:, None, :]
    return mean, np.einsum("sn,snd,sne->sde", weight, centred, centred)


def _grid(nodes: int, k: int) -> tuple[Array, Array]:
    """Product Gauss-Hermite rule for N(0, I): (node, dim) points and (node,) log weights."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    points = np.stack(np.meshgrid(*[x] * k, indexing="ij"), axis=-1).reshape(-1, k)
    weights = np.stack(np.meshgrid(*[np.log(w / w.sum())] * k, indexing="ij"), axis=-1).reshape(-1, k)
    return points, weights.sum(axis=1)


def _log_lik(y: Array, theta: Array, a: Array, d: Array, c: Array) -> Array:
    """(subject, node) log-likelihood at (subject, node, dim) abilities."""
    eta = theta @ a.T + d
    log_fail = np.log1p(-c) + log_expit(-eta)
    log_pass = (
        np.logaddexp(np.log(np.maximum(c, 1e-300)), np.log1p(-c) + log_expit(eta))
        if c.any()
        else log_expit(eta)
    )
    return np.einsum("sj,snj->sn", np.nan_to_num(y), log_pass) + np.einsum(
        "sj,snj->sn", np.nan_to_num(1 - y), log_fail
    )


def _mode(y: Array, a: Array, d: Array, c: Array, precision: Array) -> tuple[Array, Array]:
    """Posterior mode (subject, dim) and expected information there (subject, dim, dim)."""
    seen = ~np.isnan(y)
    theta = np.zeros((len(y), a.shape[1]))
    for step in range(SCORING_STEPS + 1):
        p_star = expit(theta @ a.T + d)
        p = c + (1 - c) * p_star
        slope = (1 - c) * p_star * (1 - p_star)
        variance = np.maximum(p * (1 - p), 1e-12)
        information = np.einsum("sj,jd,je->sde", seen * slope**2 / variance, a, a) + precision
        gradient = np.where(seen, (np.nan_to_num(y) - p) * slope / variance, 0.0) @ a - theta @ precision
        move = np.linalg.solve(information, gradient[..., None])[..., 0]
        if step == SCORING_STEPS or np.abs(move).max(initial=0.0) < SCORING_TOLERANCE:
            break
        theta += np.clip(move, -LONGEST_STEP, LONGEST_STEP)
    return theta, information
