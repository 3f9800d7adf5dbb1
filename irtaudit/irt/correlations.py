"""Intervals of factor correlations, for the models at hand and for the population they stand for."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import PlanError, check_whole
from irtaudit.irt.panels import fit_panels
from irtaudit.irt.predict import draw_responses, pass_probability, plug_in
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult, ability_correlations

N_REFITS = 25
EDGE = 1 - 2.0**-50
"""Correlations beyond it have the Fisher's z of it, 18: far from all others, and finite."""
NEAR_ONE = 0.9
"""An upper limit above this asks whether the factors could be one."""
COLUMNS = [
    "factor_1", "factor_2", "correlation", "population_low", "population_high", "panel_low", "panel_high",
    "measurement_sd",
]  # fmt: skip


def factor_correlation_intervals(
    fit: FitResult,
    matrix: ResponseMatrix,
    *,
    n_refits: int = N_REFITS,
    level: float = 0.95,
    preset: str | Preset = "default",
    seed: int = 0,
    workers: int | None = None,
) -> pd.DataFrame:
    """Two intervals of every factor correlation.

    The measurement error s is the root mean square error of ``arcsin r`` in panels that are simulated from
    the fit and refitted, each against the correlation of its own simulated abilities. *Panel* interval: what
    the correlation of these very subjects' abilities may be, ``arcsin r +- t s``, t of as many degrees of
    freedom as there are refits. *Population* interval: what it may be among subjects like them. On Fisher's z
    scale, each of its limits is ``sqrt(d^2 + q^2 / (N - 3))`` from z, d being the distance of the panel's
    limit and q the normal quantile; so it holds the panel interval, and reaches 1 where that does.

    At a correlation of 1 errors go one way only, and no estimate reaches it. So where a limit comes near, as
    many panels are simulated in which all factors are one; an estimate that is not below theirs has 1 as its
    upper limit.

    Parameters
    ----------
    fit : FitResult
        A confirmatory model fitted to every observed cell.
    matrix : ResponseMatrix
        The matrix that was fitted.
    n_refits : int
        Simulated panels.
    level : float
    preset : str or Preset
        Of the refits, one start each.
    seed : int
    workers : int, optional

    Returns
    -------
    DataFrame
        One row per pair of factors: ``factor_1, factor_2, correlation, population_low, population_high,
        panel_low, panel_high, measurement_sd`` (s).

    Raises
    ------
    PlanError
        When the model has no learned correlations, `level` is no share, or `n_refits` no whole number.

    Notes
    -----
    Errors of measurement shrink as correlations grow: where abilities are known up to small normal errors,
    that of r has an SD in proportion to ``sqrt(1 - r^2)``, so ``arcsin r`` has the same at every r (Fisher's
    z stabilises the other error, that of sampling subjects). ``experiments/factor_correlations`` has the
    coverage of both intervals.

    References
    ----------
    Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12: limits of
    a sum from those of its parts.
    """
    found = fit.factor_correlations
    if found is None:
        raise PlanError(f"{fit.spec.name} has no learned factor correlations.")
    if not 0 < level < 1:
        raise PlanError(f"level is {level!r}; expected a number between 0 and 1.")
    check_whole("n_refits", n_refits, 1)
    pairs = list(combinations(range(fit.spec.dims), 2))
    how = {"preset": preset, "seed": seed, "workers": workers}
    refitted, own = _refits(fit, matrix, found.to_numpy(), pairs, n_refits, how)
    r = _pairs(found.to_numpy(), pairs)
    s = np.sqrt(((refitted - own) ** 2).sum(axis=0) / max(len(own), 1))
    measured = student.ppf((1 + level) / 2, len(own)) * s
    low, high = (np.clip(np.arcsin(r) + side * measured, -np.pi / 2, np.pi / 2) for side in (-1, 1))
    if (high > np.arcsin(NEAR_ONE)).any():
        alike, _ = _refits(fit, matrix, np.ones(found.shape), pairs, n_refits, how)
        high = np.where(np.arcsin(r) > _lower_prediction_limit(alike, level), np.pi / 2, high)
    panel = (np.sin(low), np.sin(high))
    sampled = norm.ppf((1 + level) / 2) / np.sqrt(max(len(fit.subjects) - 3, 0) or np.nan)
    population = [
        np.where(limit == side, limit, np.tanh(_z(r) + side * np.hypot(_z(limit) - _z(r), sampled)))
        for side, limit in zip((-1, 1), panel, strict=True)
    ]
    names = [(fit.spec.factors[a], fit.spec.factors[b]) for a, b in pairs]
    columns = [[a for a, _ in names], [b for _, b in names], r, *population, *panel, s]
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _refits(
    fit: FitResult,
    matrix: ResponseMatrix,
    correlations: NDArray[np.float64],
    pairs: list[tuple[int, int]],
    n: int,
    how: dict[str, Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(refit, pair) arcsin of correlations in simulated panels: refitted, and of their own abilities."""
    theta, panels = _simulated(fit, matrix, correlations, n, np.random.default_rng(how["seed"]))
    refits = fit_panels(fit.spec, panels, trials=matrix.trials, **how)
    kept = refits.finite
    refitted = ability_correlations(
        fit.spec,
        refits.means["theta"][kept],
        refits.sds["theta"][kept],
        refits.hypers["factor_correlation"][kept],
        seed=how["seed"],
    )
    both = (
        [_pairs(one, pairs) for one in refitted],
        [_pairs(np.corrcoef(one.T), pairs) for one in theta[kept]],
    )
    first, second = (np.arcsin(np.clip(rows, -1, 1)).reshape(-1, len(pairs)) for rows in both)
    return first, second


def _z(r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fisher's z, large but finite at 1 and -1."""
    return np.asarray(np.arctanh(np.clip(r, -EDGE, EDGE)))


def _lower_prediction_limit(values: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """What one more value falls below in ``(1 - level) / 2`` of cases, by t, column by column."""
    n = len(values)
    if n < 2:
        return np.full(values.shape[1], np.nan)
    half = student.ppf((1 + level) / 2, n - 1) * values.std(axis=0, ddof=1) * np.sqrt(1 + 1 / n)
    return np.asarray(values.mean(axis=0) - half)


def _pairs(correlations: NDArray[np.float64], pairs: list[tuple[int, int]]) -> NDArray[np.float64]:
    return np.array([correlations[a, b] for a, b in pairs])


def _simulated(
    fit: FitResult,
    matrix: ResponseMatrix,
    correlations: NDArray[np.float64],
    n: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(panel, subject, dim) new abilities and (panel, subject, item) their responses, missing alike."""
    sites = plug_in(*fit.posterior())
    theta = rng.multivariate_normal(np.zeros(fit.spec.dims), correlations, size=(n, matrix.n_subjects))
    p = pass_probability(fit.layout, {**sites, "theta": theta})
    return theta, draw_responses(p, matrix, rng)
