"""Rank correlations of small samples, of many resamples at once.

Resamples come as counts (draw, unit), see :mod:`irtaudit.stats.bootstrap`: the midrank of a value in a
resample is a running sum of counts in the order of the values, so that ten thousand resamples are one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata
from scipy.stats import t as student

Array = NDArray[np.float64]
EXACT_UP_TO = 9
"""Samples up to this size get all n! permutations."""


class PValue(NamedTuple):
    """A p-value and how it was obtained."""

    p: float
    method: str


# --- ranks and correlations of weighted samples --------------------------------------------------------


def midranks(values: ArrayLike, counts: Array) -> Array:
    """Midranks within each resample.

    Parameters
    ----------
    values : (unit,) or (draw, unit) array
        One value per unit, the same in every resample or its own in each.
    counts : (draw, unit) array
        How often each unit is in the resample.

    Returns
    -------
    (draw, unit) array
        Rank of the unit's value among the resample, ties at their mean; meaningless where the count is 0.
    """
    x = np.asarray(values, dtype=float)
    if x.ndim == 1:  # one order serves every draw
        order = np.argsort(x)
        ranks = np.empty(counts.shape)
        ranks[:, order] = _midranks_in_order(x[None, order], counts[:, order])
        ranks[:, np.isnan(x)] = np.nan
        return ranks
    order = np.argsort(x, axis=1)
    ordered = _midranks_in_order(*(np.take_along_axis(a, order, axis=1) for a in (x, counts)))
    ranks = np.empty(counts.shape)
    np.put_along_axis(ranks, order, ordered, axis=1)
    ranks[np.isnan(x)] = np.nan
    return ranks


def _midranks_in_order(x: Array, weight: Array) -> Array:
    """Midranks of sorted values; counts are not negative, so running extremes carry the ends of a tie."""
    up_to = np.cumsum(weight, axis=1)
    new = np.ones(x.shape, dtype=bool)
    new[:, 1:] = x[:, 1:] != x[:, :-1]
    last = np.ones(x.shape, dtype=bool)
    last[:, :-1] = new[:, 1:]
    before = np.maximum.accumulate(np.where(new, up_to - weight, 0.0), axis=1)
    through = np.minimum.accumulate(np.where(last, up_to, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((before + through + 1) / 2)


def standardized(values: ArrayLike, counts: Array) -> Array:
    """z-scores within each resample.

    Parameters
    ----------
    values : (unit,) array
    counts : (draw, unit) array

    Returns
    -------
    (draw, unit) array
        NaN in a resample whose values are all equal.
    """
    x = np.asarray(values, dtype=float)
    n = counts.sum(axis=1, keepdims=True)
    deviation = x - counts @ x[:, None] / n
    variance = (counts * deviation**2).sum(axis=1, keepdims=True) / n
    sd = np.sqrt(np.where(variance > 1e-12 * (x**2).max(initial=1e-300), variance, np.nan))
    return np.asarray(deviation / sd)


def correlations(variables: Array, counts: Array) -> Array:
    """Pearson correlation matrix of each resample.

    Parameters
    ----------
    variables : (draw, variable, unit) array
        Ranks, for Spearman correlations.
    counts : (draw, unit) array

    Returns
    -------
    (draw, variable, variable) array
        NaN where a variable is constant in the resample.
    """
    n = counts.sum(axis=1)[:, None, None]
    weights = counts[:, None, :]
    centred = variables - (variables * weights).sum(axis=2, keepdims=True) / n
    covariance = (centred * weights) @ centred.transpose(0, 2, 1) / n
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    scale = np.abs(variables).max(axis=2, initial=0.0) ** 2
    sd = np.sqrt(np.where(variance > 1e-12 * scale, variance, np.nan))
    return np.asarray(covariance / (sd[:, :, None] * sd[:, None, :]))


def partial_correlation(matrix: Array) -> Array:
    """Correlation of the first two variables given all others.

    Parameters
    ----------
    matrix : (draw, variable, variable) array
        Correlation matrices.

    Returns
    -------
    (draw,) array
        NaN where a variable is constant or follows from the others.
    """
    if matrix.shape[1] == 2:
        return np.asarray(matrix[:, 0, 1])
    usable = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
    m = np.where(usable[:, None, None], matrix, np.eye(matrix.shape[1]))
    across, given = m[:, :2, 2:], m[:, 2:, 2:]
    left = m[:, :2, :2] - across @ np.linalg.pinv(given, hermitian=True) @ across.transpose(0, 2, 1)
    variance = left[:, 0, 0] * left[:, 1, 1]
    kept = usable & (left[:, 0, 0] > 1e-10) & (left[:, 1, 1] > 1e-10)
    return np.asarray(
        np.where(kept, np.clip(left[:, 0, 1] / np.sqrt(np.where(kept, variance, 1)), -1, 1), np.nan)
    )


def rank_correlation(variables: Sequence[ArrayLike], counts: Array | None = None) -> Array:
    """Spearman correlation of the first two variables, given the ranks of all others, in each resample.

    The partial correlation is the Pearson correlation of what linear regression on the covariates' ranks
    leaves of the two variables' ranks.

    Parameters
    ----------
    variables : sequence of (unit,) or (draw, unit) arrays
        Two, and any number of covariates; no NaN.
    counts : (draw, unit) array, optional
        Resamples; by default the sample itself.

    Returns
    -------
    (draw,) array
    """
    if counts is None:
        counts = np.ones((1, np.shape(variables[0])[-1]))
    ranks = np.stack([midranks(values, counts) for values in variables], axis=1)
    return partial_correlation(correlations(ranks, counts))


class PartialConventions(NamedTuple):
    """Four things that are called a partial rank correlation; they can differ in sign.

    `rank_pearson` is the usual one and the primary one here: Pearson of rank residuals.
    """

    rank_pearson: float
    rank_spearman: float
    value_pearson: float
    value_spearman: float


def partial_conventions(x: ArrayLike, y: ArrayLike, *given: ArrayLike) -> PartialConventions:
    """The two choices behind "partial Spearman", crossed: what is regressed, and how residuals correlate.

    Parameters
    ----------
    x, y, given : (unit,) arrays
        No NaN.
    """
    values = [np.asarray(v, dtype=float) for v in (x, y, *given)]
    found = []
    for variables in ([rankdata(v) for v in values], values):
        residuals = _residuals(np.stack(variables[:2]), np.stack(variables[2:]))
        found += [_pearson(*residuals), _pearson(*rankdata(np.round(residuals, 9), axis=1))]
    return PartialConventions(*found)


def _residuals(outcomes: Array, covariates: Array) -> Array:
    """What least squares on the covariates leaves of each outcome; (variable, unit)."""
    design = np.column_stack([np.ones(covariates.shape[1]), covariates.T])
    return np.asarray(outcomes - (design @ (np.linalg.pinv(design) @ outcomes.T)).T)


def rank_residuals(outcome: ArrayLike, covariate: ArrayLike) -> Array:
    """What linear regression on the covariate's midranks leaves of the outcome's midranks; (unit,)."""
    ranks = [rankdata(np.asarray(v, dtype=float))[None] for v in (outcome, covariate)]
    return np.asarray(_residuals(*ranks)[0])


def _pearson(x: Array, y: Array) -> float:
    matrix = correlations(np.stack([x, y])[None], np.ones((1, x.size)))
    return float(matrix[0, 0, 1])


# --- p-values, power -----------------------------------------------------------------------------------


def t_p(rho: float, n: int, n_given: int = 0) -> PValue:
    """Two-sided p of a (partial) rank correlation by its asymptotic t with n - 2 - k degrees of freedom."""
    df = n - 2 - n_given
    if df < 1 or not np.isfinite(rho):
        return PValue(np.nan, "undefined")
    with np.errstate(divide="ignore"):
        t = abs(rho) * np.sqrt(df / max(1 - rho**2, 0.0)) if abs(rho) < 1 else np.inf
    return PValue(float(2 * student.sf(t, df)), f"asymptotic t, {df} df")


def permutation_p(x: ArrayLike, y: ArrayLike, n_draws: int, rng: np.random.Generator) -> PValue:
    """Two-sided permutation p of a Spearman correlation, ties as they are.

    Parameters
    ----------
    x, y : (unit,) arrays
        No NaN.
    n_draws : int
        Random permutations of a sample of more than `EXACT_UP_TO` units; smaller ones get all n!.

    Returns
    -------
    PValue
        Exact: share of permutations at least as far from 0; random: (1 + number) / (B + 1).
    """
    rx, ry = (rankdata(np.asarray(v, dtype=float)) - (np.size(v) + 1) / 2 for v in (x, y))
    if not (rx.any() and ry.any()):
        return PValue(np.nan, "undefined")
    observed = abs(rx @ ry) - 1e-9
    if rx.size <= EXACT_UP_TO:
        order = _all_orders(rx.size)
        extreme = int((np.abs(ry[order] @ rx) >= observed).sum())
        return PValue(extreme / len(order), f"exact, all {len(order):,} permutations")
    shuffled = rng.permuted(np.broadcast_to(ry, (n_draws, ry.size)), axis=1)
    extreme = int((np.abs(shuffled @ rx) >= observed).sum())
    return PValue((1 + extreme) / (n_draws + 1), f"permutation, {n_draws:,} draws")


@cache
def _all_orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)


class NullCorrelations(NamedTuple):
    """Rank correlations of unrelated values without ties: of every order, or of random ones."""

    rho: Array
    method: str

    def share(self, threshold: float) -> float:
        r"""Share of samples whose \|rho\| reaches a threshold."""
        return float((np.abs(self.rho) >= threshold - 1e-9).mean())


def null_correlations(n: int, rng: np.random.Generator, n_draws: int = 200_000) -> NullCorrelations:
    """What samples of unrelated values give.

    Parameters
    ----------
    n : int
        Sample size.
    n_draws : int
        Random permutations where n! is too many.

    Returns
    -------
    NullCorrelations
    """
    ranks = np.arange(n) - (n - 1) / 2
    if n <= EXACT_UP_TO:
        order, method = ranks[_all_orders(n)], f"exact, all {len(_all_orders(n)):,} permutations"
    else:
        order = rng.permuted(np.broadcast_to(ranks, (n_draws, n)), axis=1)
        method = f"simulated, {n_draws:,} permutations"
    return NullCorrelations(np.asarray(order @ ranks / (ranks @ ranks)), method)


def fisher_power(rho: float, n: int, n_given: int = 0, alpha: float = 0.05) -> float:
    """Chance that a two-sided test finds a (partial) correlation of `rho`, by Fisher's z with n - 3 - k."""
    freedom = n - 3 - n_given
    if freedom < 1:
        return float("nan")
    z, cut = np.arctanh(rho) * np.sqrt(freedom), norm.ppf(1 - alpha / 2)
    return float(norm.sf(cut - z) + norm.cdf(-cut - z))


def required_n(rho: float, n_given: int = 0, power: float = 0.8, alpha: float = 0.05) -> int:
    """Smallest n at which a (partial) correlation of `rho` is found with that power.

    Raises
    ------
    ValueError
        If `rho` is 0 or not inside (-1, 1).
    """
    if not 0 < abs(rho) < 1:
        raise ValueError(f"no sample size makes a correlation of {rho} detectable")
    guess = ((norm.ppf(1 - alpha / 2) + norm.ppf(power)) / np.arctanh(abs(rho))) ** 2
    n = max(4 + n_given, int(guess) + 2 + n_given)  # a little below the answer, whose lower tail is ignored
    while fisher_power(rho, n, n_given, alpha) < power:
        n += 1
    while n > 4 + n_given and fisher_power(rho, n - 1, n_given, alpha) >= power:
        n -= 1
    return n
