"""What the observed matrix alone says about each item: testability, classical statistics, pass rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2 as chi2_distribution

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import by_stratum, logistic_covariates, score_test
from irtaudit.dif.matching import Matching
from irtaudit.dif.options import DifOptions, ScreenName
from irtaudit.stats.logistic import coefficient_se, logistic_log_likelihood, ridge_logistic
from irtaudit.stats.mantel_haenszel import (
    MantelHaenszel,
    ets_class,
    informative,
    log_odds_ratio,
    mantel_haenszel,
)

Array = NDArray[Any]

NO_RESPONSE = "no response in one of the groups"
ALIKE = "every compared model gave the same response"
NO_STRATUM = "no ability band holds both groups and both responses"
NO_INFORMATION = "the fitted model leaves no information about the groups"
TESTABLE = ""


def chi2_p(statistic: Array) -> Array:
    """Upper tail of the chi-square distribution on one degree of freedom; NaN stays NaN."""
    return np.asarray(chi2_distribution.sf(statistic, 1))


class Gathered(NamedTuple):
    """Counts of the observed matrix by stratum, for every item: (group, stratum, item) arrays."""

    passes: Array
    totals: Array


def stratum_counts(contrast: Contrast, matchings: tuple[Matching, ...]) -> Gathered:
    """Passes and responses by group and stratum.

    Parameters
    ----------
    contrast : Contrast
    matchings : tuple of Matching
        Of the observed matrix. Strata that an item lacks hold zeros.

    Returns
    -------
    Gathered
    """
    compared = contrast.compared()
    shape = (2, max(m.n_strata for m in matchings), contrast.n_items)
    passes, totals = np.zeros(shape), np.zeros(shape)
    for m in matchings:
        cells = np.ix_(np.arange(2), np.arange(m.n_strata), m.items)
        passes[cells] = by_stratum(m, compared.responses[None, :, m.items])[0]
        totals[cells] = by_stratum(m, compared.observed[None, :, m.items].astype(np.float32))[0]
    return Gathered(passes, totals)


def reasons(contrast: Contrast, counts: Gathered, screen: ScreenName) -> Array:
    """Why an item is not testable by a screen.

    Parameters
    ----------
    contrast : Contrast
    counts : Gathered
    screen : str

    Returns
    -------
    (item,) object array
        `TESTABLE` (empty) where it is.
    """
    passes, totals = counts.passes.sum(axis=1), counts.totals.sum(axis=1)
    found = np.full(contrast.n_items, TESTABLE, dtype=object)
    if screen in ("mh", "mh_z"):
        found[~informative(counts.passes, counts.totals).any(axis=0)] = NO_STRATUM
    if screen == "score":
        found[score_test(contrast).weights.any(axis=0) == 0] = NO_INFORMATION
    both = passes.sum(axis=0)
    found[(both == 0) | (both == totals.sum(axis=0))] = ALIKE
    found[(totals == 0).any(axis=0)] = NO_RESPONSE
    return found


def mantel_haenszel_columns(counts: Gathered) -> pd.DataFrame:
    """Classical Mantel-Haenszel statistics, one row per item.

    Columns ``effect`` (log odds ratio), ``se, chi2, chi2_uncorrected, p_chi2, alpha, delta, ets_class,
    std_p_dif``, see :class:`irtaudit.stats.mantel_haenszel.MantelHaenszel`.
    """
    classical: MantelHaenszel = mantel_haenszel(*counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = -2.35 * np.log(classical.alpha)
    return pd.DataFrame(
        {
            "effect": log_odds_ratio(counts.passes, counts.totals),
            "se": classical.se,
            "chi2": classical.chi2,
            "chi2_uncorrected": classical.chi2_uncorrected,
            "p_chi2": chi2_p(classical.chi2),
            "alpha": classical.alpha,
            "delta": delta,
            "ets_class": ets_class(classical.alpha, classical.se, classical.chi2),
            "std_p_dif": classical.std_p_dif,
        }
    ).replace([np.inf, -np.inf], np.nan)


@dataclass(frozen=True, eq=False)
class LogisticColumns:
    """Logistic regressions of the observed matrix, one row per item.

    Attributes
    ----------
    table : DataFrame
        ``effect, se`` (ridge), ``chi2`` (likelihood ratio without a penalty, against the model without the
        coefficient), ``p_chi2``.
    curves : DataFrame
        ``centre, scale, intercept, slope, group``: at matching value m the logit is intercept +
        slope (m - centre) / scale + group side.
    """

    table: pd.DataFrame
    curves: pd.DataFrame


def logistic_columns(
    contrast: Contrast, matchings: tuple[Matching, ...], options: DifOptions, penalty: float, *, crossed: bool
) -> LogisticColumns:
    """Fit the logistic screens to the observed matrix in double precision.

    Parameters
    ----------
    contrast : Contrast
    matchings : tuple of Matching
    options : DifOptions
    penalty : float
    crossed : bool
        Whether the matching variable is crossed with the group (non-uniform DIF).
    """
    tables, curves = [], []
    for m in matchings:
        table, curve = _logistic_part(contrast.compared(), m, options, penalty, crossed)
        tables.append(table.set_axis(m.items))
        curves.append(curve.set_axis(m.items))
    return LogisticColumns(pd.concat(tables).sort_index(), pd.concat(curves).sort_index())


def _logistic_part(
    compared: Contrast, m: Matching, options: DifOptions, penalty: float, crossed: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    x = logistic_covariates(m, compared.side, options, crossed=crossed)[0]
    y, seen = compared.responses[:, m.items].astype(float), compared.observed[:, m.items]
    penalties = np.full(x.shape[1], penalty)
    beta = ridge_logistic(x, y, penalties, observed=seen).coefficients
    table = {
        "effect": beta[-1],
        "se": coefficient_se(x, beta, penalties, seen)[-1],
        "chi2": _likelihood_ratio(x, y, seen),
    }
    value = m.value[0]
    curve = {
        "centre": value.mean(),
        "scale": value.std() or 1.0 if options.match == "total" else 1.0,
        "intercept": beta[0],
        "slope": beta[1],
        "group": beta[2],
    }
    frame = pd.DataFrame(table)
    return frame.assign(p_chi2=chi2_p(frame["chi2"].to_numpy())), pd.DataFrame(curve)


def _likelihood_ratio(x: Array, y: Array, seen: Array) -> Array:
    """Twice the gain in log-likelihood by the last covariate, without a penalty."""
    free = np.zeros(x.shape[1])
    full, less = (ridge_logistic(part, y, free[: part.shape[1]], observed=seen) for part in (x, x[:, :-1]))
    gain = logistic_log_likelihood(x, y, full.coefficients, seen)
    gain = gain - logistic_log_likelihood(x[:, :-1], y, less.coefficients, seen)
    return np.asarray(2 * np.maximum(gain, 0))
