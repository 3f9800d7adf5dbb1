"""Saturation: which of several data sets still tell these models apart?

A data set that nearly every model passes has no room left for differences: an item response model of it
rests on a few items and a few models. The paper finds three of four data sets at mean pass rates of .92-.94
and keeps the one at .67 (Stewart et al., 2610.12409).
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix, check_matrix
from irtaudit.errors import DataError, PlanError, check_kind, check_whole, shown_value
from irtaudit.stats.bootstrap import percentile_interval, unit_draws

SATURATED = 0.9
"""Mean pass rate at and above which a data set is called saturated."""
HIGH = 0.9
"""Pass rate above which a model counts as one that the data set does not challenge."""
N_DRAWS = 2000
SATURATION = [
    "data",
    "models",
    "items",
    "responses",
    "pass_rate",
    "low",
    "high",
    "constant_items",
    "models_above",
    "reading",
    "seed",
]


def saturation(
    matrices: Mapping[str, ResponseMatrix],
    *,
    threshold: float = SATURATED,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Screen several data sets for saturation, before anything is dropped from them.

    Parameters
    ----------
    matrices : mapping of str to ResponseMatrix
        Data sets by name, unscreened: constant items are what is counted.
    threshold : float
        Mean pass rate from which a data set is called saturated.
        Above 0, at most 1.
    n_draws : int
        Bootstrap samples of models.
    seed : int

    Returns
    -------
    DataFrame
        One row per data set, in the order given: ``data, models, items, responses``, ``pass_rate`` (mean over
        models of their pass rates), ``low, high`` (95 % percentile interval over models; missing where only
        one has a response: one model does not tell how models vary), ``constant_items``
        (share that every model passes, or every model fails), ``models_above`` (share of models with a pass
        rate above .9), ``reading`` ("saturated": the interval lies at or above the threshold; "open": below;
        "borderline": across; "undecided": there is no interval), ``seed``.

    Raises
    ------
    DataError
        Without a data set, or when one is no response matrix or holds no response.
    PlanError
        When the threshold is no share, or `n_draws` or `seed` no whole number.
    """
    if not isinstance(threshold, Real) or isinstance(threshold, bool) or not 0 < threshold <= 1:
        raise PlanError(f"threshold is {shown_value(threshold)}; expected a share above 0 and at most 1.")
    n_draws, seed = check_whole("n_draws", n_draws, 1), check_whole("seed", seed)
    check_kind("matrices", matrices, Mapping, "a dict of response matrices by name", DataError)
    for name, matrix in matrices.items():
        check_matrix(matrix, f"data set {name!r}")
    if not matrices:
        raise DataError("No data set was given to screen for saturation.")
    rows = [_row(name, matrix, threshold, n_draws, seed) for name, matrix in matrices.items()]
    return pd.DataFrame(rows, columns=SATURATION)


def _row(name: str, matrix: ResponseMatrix, threshold: float, n_draws: int, seed: int) -> dict[str, object]:
    rates = _pass_rates(name, matrix)
    mean = float(rates.mean())
    low, high = _interval(rates, mean, n_draws, np.random.default_rng([seed, *b"saturation"]))
    passes, seen = matrix.totals(axis=0)
    return {
        "data": name,
        "models": matrix.n_subjects,
        "items": matrix.n_items,
        "responses": int(seen.sum()),
        "pass_rate": mean,
        "low": low,
        "high": high,
        "constant_items": float(((passes == 0) | (passes == seen))[seen > 0].mean()),
        "models_above": float((rates > HIGH).mean()),
        "reading": _reading(low, high, threshold),
        "seed": seed,
    }


def _interval(
    rates: NDArray[np.float64], mean: float, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """95 % interval over models; NaN where one model alone does not tell how models vary."""
    if len(rates) < 2:
        return np.nan, np.nan
    _, low, high = percentile_interval(mean, unit_draws(len(rates), n_draws, rng) @ rates / len(rates))
    return low, high


def _pass_rates(name: str, matrix: ResponseMatrix) -> NDArray[np.float64]:
    """Pass rate of each subject with a response."""
    passes, seen = matrix.totals(axis=1)
    if not seen.any():
        raise DataError(f"Data set {name!r} holds no response.")
    return np.asarray(passes[seen > 0] / seen[seen > 0])


def _reading(low: float, high: float, threshold: float) -> str:
    if np.isnan(low):
        return "undecided"
    if low >= threshold:
        return "saturated"
    return "open" if high < threshold else "borderline"
