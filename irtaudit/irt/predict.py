"""Probabilities of passing from a posterior: plug-in at its means, or averaged over draws. Numpy only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.irt.layout import Layout

Array = NDArray[np.floating]
Sites = Mapping[str, Array]


def slope_matrix(layout: Layout, sites: Sites) -> Array:
    """Slopes in the loading pattern from the values of the slope site.

    Parameters
    ----------
    layout : Layout
    sites : mapping of arrays
        ``slope`` or ``log_slope``: (..., loading), or (..., dim) in a 1PL.

    Returns
    -------
    (..., item, dim) array, zero where the pattern is zero
    """
    site, k, j = layout.latents[1], layout.spec.dims, layout.n_items
    free = np.exp(sites["log_slope"]) if site.name == "log_slope" else sites["slope"]
    if site.plate == "dim":
        free = free[..., layout.loading_index // j]
    flat = np.zeros((*free.shape[:-1], k * j))
    flat[..., layout.loading_index] = free
    return np.swapaxes(flat.reshape(*free.shape[:-1], k, j), -1, -2)


def pass_probability(layout: Layout, sites: Sites) -> Array:
    """``guess + (1 - guess) sigmoid(theta slope' + intercept)`` at given values of the sites.

    Parameters
    ----------
    layout : Layout
    sites : mapping of arrays
        ``theta`` (..., subject, dim), the slope site, ``intercept`` (..., item), in a 3PL ``logit_guess``.

    Returns
    -------
    (..., subject, item) array
    """
    slopes = slope_matrix(layout, sites)
    eta = sites["theta"] @ np.swapaxes(slopes, -1, -2) + sites["intercept"][..., None, :]
    p = expit(eta)
    if layout.spec.family != "3pl":
        return p
    guess = expit(sites["logit_guess"])[..., None, :]
    return guess + (1 - guess) * p


def plug_in(means: Sites, sds: Sites) -> dict[str, Array]:
    """Site values whose slopes are the posterior means of the slopes.

    A log-normal slope has mean ``exp(m + s^2 / 2)``; every other site is normal and enters by its mean.

    Parameters
    ----------
    means, sds : mapping of arrays
        Posterior moments per latent site.

    Returns
    -------
    dict of arrays
    """
    values: dict[str, Array] = {name: np.asarray(mean, dtype=np.float64) for name, mean in means.items()}
    if "log_slope" in values:
        values["log_slope"] = values["log_slope"] + 0.5 * np.asarray(sds["log_slope"], np.float64) ** 2
    return values


def draw_responses(p: Array, matrix: ResponseMatrix, rng: np.random.Generator) -> NDArray[np.float64]:
    """Responses at given probabilities, missing where those of a matrix are.

    Parameters
    ----------
    p : (..., subject, item) array
    matrix : ResponseMatrix
        Where its cells count trials, as many are drawn and the share that passes is given.
    rng : Generator

    Returns
    -------
    (..., subject, item) float64 array
    """
    if matrix.trials is None:
        return np.where(matrix.observed, (rng.random(p.shape) < p).astype(np.float64), np.nan)
    passes = rng.binomial(matrix.trials, p)
    return np.where(matrix.observed, passes / np.maximum(matrix.trials, 1), np.nan)


def posterior_predictive(
    layout: Layout, means: Sites, sds: Sites, *, seed: int | tuple[int, ...], n_draws: int = 100
) -> Array:
    """Probability of passing averaged over the mean-field posterior.

    Parameters
    ----------
    layout : Layout
    means, sds : mapping of arrays
        Posterior moments of one fit: ``theta`` (subject, dim), ...
    seed : int or tuple of int
    n_draws : int

    Returns
    -------
    (subject, item) array
    """
    rng = np.random.default_rng(seed)
    total = np.zeros((layout.n_subjects, layout.n_items))
    for _ in range(n_draws):
        draw = {name: rng.normal(means[name], sds[name]) for name in means}
        total += pass_probability(layout, draw)
    return total / n_draws
