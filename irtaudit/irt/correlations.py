"""Intervals of factor correlations, for the models at hand and for the population they stand for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import PlanError
from irtaudit.irt.panels import fit_panels
from irtaudit.irt.predict import draw_responses, pass_probability, plug_in
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult, ability_correlations

N_REFITS = 25
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
    freedom as there are refits. *Population* interval: what it may be among subjects like them, on Fisher's z
    scale, ``z +- sqrt(q^2 / (N - 3) + t^2 s^2 / (1 - r^2))``, q being the normal quantile.

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
        When the model has no learned correlations.

    Notes
    -----
    Errors of measurement shrink as correlations grow: where abilities are known up to small normal errors,
    that of r has an SD in proportion to ``sqrt(1 - r^2)``, so ``arcsin r`` has the same at every r (Fisher's
    z stabilises the other error, that of sampling subjects). ``experiments/factor_correlations`` has the
    coverage of both intervals.
    """
    found = fit.factor_correlations
    if found is None:
        raise PlanError(f"{fit.spec.name} has no learned factor correlations.")
    pairs = list(combinations(range(fit.spec.dims), 2))
    errors = _refit_errors(fit, matrix, found.to_numpy(), n_refits, preset, seed, workers)
    r = _pairs(found.to_numpy(), pairs)
    s = np.sqrt((errors**2).mean(axis=0))
    measured = student.ppf((1 + level) / 2, len(errors)) * s
    sampled = norm.ppf((1 + level) / 2) / np.sqrt(len(fit.subjects) - 3)
    half = np.hypot(sampled, measured / np.sqrt(1 - r**2))
    population = [np.tanh(np.arctanh(r) + side * half) for side in (-1, 1)]
    right = np.pi / 2
    panel = [np.sin(np.clip(np.arcsin(r) + side * measured, -right, right)) for side in (-1, 1)]
    names = [(fit.spec.factors[a], fit.spec.factors[b]) for a, b in pairs]
    columns = [[a for a, _ in names], [b for _, b in names], r, *population, *panel, s]
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _refit_errors(
    fit: FitResult,
    matrix: ResponseMatrix,
    correlations: NDArray[np.float64],
    n_refits: int,
    preset: str | Preset,
    seed: int,
    workers: int | None,
) -> NDArray[np.float64]:
    """(refit, pair) errors of arcsin r in simulated panels, against that of their own abilities."""
    pairs = list(combinations(range(fit.spec.dims), 2))
    theta, panels = _simulated(fit, matrix, correlations, n_refits, np.random.default_rng(seed))
    refits = fit_panels(fit.spec, panels, preset=preset, seed=seed, workers=workers, trials=matrix.trials)
    kept = refits.finite
    refitted = ability_correlations(
        fit.spec,
        refits.means["theta"][kept],
        refits.sds["theta"][kept],
        refits.hypers["factor_correlation"][kept],
        seed=seed,
    )
    return np.array(
        [
            np.arcsin(_pairs(found, pairs)) - np.arcsin(_pairs(np.corrcoef(one.T), pairs))
            for found, one in zip(refitted, theta[kept], strict=True)
        ]
    )


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
