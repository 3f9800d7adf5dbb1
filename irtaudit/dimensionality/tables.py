"""Tidy tables of full-data fits: abilities with ranks, item parameters with difficulties, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtaudit.data.responses import ResponseMatrix
from irtaudit.stats.ranking import rank_intervals

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

Z95 = 1.959964
ABILITIES = [
    "model",
    "factor",
    "subject",
    "theta",
    "theta_sd",
    "low",
    "high",
    "rank",
    "rank_low",
    "rank_high",
]
ITEMS = [
    "model",
    "factor",
    "item",
    "difficulty",
    "difficulty_sd",
    "slope",
    "slope_sd",
    "intercept",
    "intercept_sd",
    "guess",
    "guess_sd",
    "pass_rate",
    "responses",
]
CORRELATIONS = [
    "model", "factor_1", "factor_2", "correlation", "population_low", "population_high", "panel_low",
    "panel_high", "measurement_sd",
]  # fmt: skip


def abilities_table(fits: Mapping[str, FitResult], seed: int = 0) -> pd.DataFrame:
    """Abilities of every subject under every fit.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits by name of the model.
    seed : int
        Seed of the rank intervals.

    Returns
    -------
    DataFrame
        One row per model, factor and subject, best first: ``theta, theta_sd`` (posterior mean and SD, in SDs
        of the population), ``low, high`` (95 % interval), ``rank`` of the mean (1 is best), ``rank_low,
        rank_high`` (95 % interval of the rank, abilities taken as independent normals).
    """
    frames = [
        _abilities_of(fit.abilities, factor, seed).assign(model=name, factor=factor)
        for name, fit in fits.items()
        for factor in fit.spec.factors
    ]
    return _stacked(frames, ABILITIES)


def _abilities_of(abilities: pd.DataFrame, factor: str, seed: int) -> pd.DataFrame:
    theta, sd = abilities[factor].to_numpy(float), abilities[f"{factor}_sd"].to_numpy(float)
    rank_low, rank_high = rank_intervals(theta, sd, seed=seed)
    frame = pd.DataFrame(
        {
            "subject": abilities.index,
            "theta": theta,
            "theta_sd": sd,
            "low": theta - Z95 * sd,
            "high": theta + Z95 * sd,
            "rank": pd.Series(theta).rank(ascending=False, method="min").astype(int),
            "rank_low": rank_low,
            "rank_high": rank_high,
        }
    )
    return frame.sort_values(["rank", "subject"])


def items_table(fits: Mapping[str, FitResult], matrix: ResponseMatrix) -> pd.DataFrame:
    """Item parameters under every fit, one row per loading.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits by name of the model.
    matrix : ResponseMatrix
        The matrix they were fitted to.

    Returns
    -------
    DataFrame
        One row per model, item and factor it loads on: ``difficulty`` (theta at which a subject passes half
        of the time, guessing aside: -intercept / slope), ``slope`` (logits per unit of theta), ``intercept``
        (logits), ``guess`` (3PL only), each with its SD (the difficulty's by the delta method);
        ``pass_rate`` and number of ``responses``, every trial one. No difficulty where an item loads on
        several factors.
    """
    passes, trials = matrix.totals(axis=0)
    seen = pd.Series(trials, matrix.items.index)
    rate = pd.Series(passes / np.maximum(trials, 1), matrix.items.index)
    frames = [_items_of(name, fit) for name, fit in fits.items()]
    table = _stacked(frames, [c for c in ITEMS if c not in ("pass_rate", "responses")])
    return table.assign(pass_rate=table["item"].map(rate), responses=table["item"].map(seen))[ITEMS]


def _items_of(name: str, fit: FitResult) -> pd.DataFrame:
    parameters, pattern = fit.item_parameters, fit.spec.pattern(len(fit.items))
    simple = pattern.sum(axis=1) == 1
    frames = []
    for d, factor in enumerate(fit.spec.factors):
        on = pattern[:, d]
        rows = parameters[on]
        slope, slope_sd = rows[f"slope_{factor}"], rows[f"slope_{factor}_sd"]
        frame = pd.DataFrame({"model": name, "factor": factor, "item": rows.index, "slope": slope.to_numpy()})
        frame["slope_sd"] = slope_sd.to_numpy()
        for column in ("intercept", "intercept_sd", "guess", "guess_sd"):
            frame[column] = rows[column].to_numpy() if column in rows else np.nan
        difficulty = -frame["intercept"] / frame["slope"]
        spread = np.hypot(frame["intercept_sd"], difficulty * frame["slope_sd"]) / frame["slope"].abs()
        frame["difficulty"] = difficulty.where(simple[on])
        frame["difficulty_sd"] = spread.where(simple[on])
        frames.append(frame)
    return pd.concat(frames)


def correlations_table(
    fits: Mapping[str, FitResult], matrix: ResponseMatrix, *, seed: int = 0, workers: int | None = None
) -> pd.DataFrame:
    """Correlation of every pair of factors with its two intervals, under every fit that learns correlations.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Fits to every observed cell.
    matrix : ResponseMatrix
        The matrix that was fitted.
    seed : int
        Of the parametric bootstrap behind the intervals.
    workers : int, optional

    Returns
    -------
    DataFrame
        ``model``, and the columns of `irtaudit.irt.correlations.factor_correlation_intervals`.
    """
    from irtaudit.irt.correlations import factor_correlation_intervals

    frames = []
    for name, fit in fits.items():
        if fit.spec.correlated:
            found = factor_correlation_intervals(fit, matrix, seed=seed, workers=workers)
            frames.append(found.assign(model=name))
    return _stacked(frames, CORRELATIONS)


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """The frames below each other; a column that holds nothing in one of them is missing there."""
    if not frames:
        return pd.DataFrame(columns=columns)
    known = [frame.dropna(axis=1, how="all") for frame in frames]
    return pd.concat(known, ignore_index=True).reindex(columns=columns)
