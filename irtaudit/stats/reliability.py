"""How repeatable scores are that are means over items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irtaudit.stats.correlation import correlations, midranks


class Stability(NamedTuple):
    """Rank correlation of scores from resampled items with the observed scores: mean and 5 % quantile."""

    mean: float
    low: float


def spearman_brown(correlation: ArrayLike) -> NDArray[Any]:
    """Reliability of the whole from the correlation of its halves, 2 r / (1 + r)."""
    r = np.asarray(correlation, dtype=float)
    return np.asarray(2 * r / (1 + r))


def split_half(responses: ArrayLike, n_splits: int, rng: np.random.Generator) -> float:
    """Mean Spearman-Brown reliability over random halves of the items.

    Parameters
    ----------
    responses : (unit, item) array
        Item scores, NaN where missing.
    n_splits : int
        Random halves.

    Returns
    -------
    float
        NaN with fewer than two items or three units, or when no split has spread on both sides.
    """
    n_items = np.shape(responses)[1]
    if n_items < 2:
        return float("nan")
    halves = np.argsort(rng.random((n_splits, n_items)), axis=1) < n_items // 2
    first, second = _means(responses, halves * 1.0), _means(responses, 1.0 - halves)
    r = _correlate(first, second)
    return _mean(spearman_brown(r[np.isfinite(r)]))


def rank_stability(responses: ArrayLike, n_draws: int, rng: np.random.Generator) -> Stability:
    """Does the order of the units survive another draw of the items?

    Parameters
    ----------
    responses : (unit, item) array
        Item scores, NaN where missing.
    n_draws : int
        Bootstrap samples of the items.
    """
    n_units, n_items = np.shape(responses)
    counts = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=n_draws).astype(float)
    observed = _means(responses, np.ones((1, n_items)))
    drawn = _means(responses, counts)
    everyone = np.ones((n_draws, n_units))
    ranks = [midranks(np.broadcast_to(scores, drawn.shape), everyone) for scores in (observed, drawn)]
    rho = _correlate(*ranks)
    rho = rho[np.isfinite(rho)]
    return Stability(_mean(rho), float(np.quantile(rho, 0.05)) if rho.size else float("nan"))


def worst_case_se_ratio(scores: ArrayLike, n_items: float) -> float:
    """Largest possible standard error of a share over `n_items`, .5 / sqrt(items), over the SD of the scores.

    Parameters
    ----------
    scores : (unit,) array
        Shares between 0 and 1; NaN is left out.
    n_items : float
        Items behind each score.
    """
    x = np.asarray(scores, dtype=float)
    x = x[~np.isnan(x)]
    if x.size < 2 or not x.std() > 0 or not n_items > 0:
        return float("nan")
    return float(0.5 / np.sqrt(n_items) / x.std(ddof=1))


def _means(responses: ArrayLike, weights: NDArray[Any]) -> NDArray[Any]:
    """Weighted item means of each unit; (draw, unit). NaN where nothing is observed."""
    x = np.asarray(responses, dtype=float)
    seen = ~np.isnan(x)
    total, n = weights @ np.where(seen, x, 0.0).T, weights @ seen.T.astype(float)
    return np.asarray(np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0))


def _correlate(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Correlation over units in each draw; NaN where a value is missing or constant."""
    stacked = np.stack([first, second], axis=1)
    return np.asarray(correlations(stacked, np.ones(first.shape))[:, 0, 1])


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
