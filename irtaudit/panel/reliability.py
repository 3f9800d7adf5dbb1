"""How repeatable each score is, whether another grader agrees, whether coders agree on the constructs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.data.responses import ResponseMatrix
from irtaudit.panel.estimands import MIN_MODELS, NotTested, stream
from irtaudit.panel.metrics import items_of, shares
from irtaudit.panel.plan import PanelPlan
from irtaudit.panel.screen import regraded
from irtaudit.stats.agreement import krippendorff_alpha
from irtaudit.stats.correlation import rank_correlation
from irtaudit.stats.reliability import rank_stability, spearman_brown, split_half, worst_case_se_ratio

RELIABILITY = ["column", "what", "value", "low", "n", "items", "method"]
N_SPLITS = 1_000
"""Random halves, and resamples of the items."""


def reliability(
    panel: ScorePanel, plan: PanelPlan, responses: Mapping[str, ResponseMatrix] | None = None
) -> tuple[pd.DataFrame, list[NotTested]]:
    """Whatever the panel's data allow to say about the repeatability of its scores.

    Parameters
    ----------
    panel : ScorePanel
    plan : PanelPlan
    responses : mapping of str to ResponseMatrix, optional
        Responses to single items, by column.

    Returns
    -------
    DataFrame
        ``column, what, value, low, n, items, method``. `what`: "split-half" (Spearman-Brown over random
        halves), "halves" (of two columns the plan names), "rank stability" (Spearman with resampled items;
        ``low``: 5 % quantile), "worst-case SE / SD" (largest possible standard error of a share, over the SD
        between models), "second grader" (Spearman with the other grader's scores).
    list of NotTested
        A column about which nothing can be said.
    """
    rows: list[dict[str, Any]] = []
    lost = []
    for name in [*panel.of("benchmark"), *panel.of("criterion")]:
        found = _of_column(panel, plan, name, (responses or {}).get(name))
        rows += [dict(zip(RELIABILITY, (name, *one), strict=True)) for one in found]
        if not found:
            reason = "the plan names no item responses, halves, second grader or number of items"
            lost.append(NotTested("reliability", panel.label(name), reason))
    return pd.DataFrame(rows, columns=RELIABILITY), lost


def _of_column(
    panel: ScorePanel, plan: PanelPlan, name: str, matrix: ResponseMatrix | None
) -> list[tuple[Any, ...]]:
    described = plan.columns[name]
    found = [] if matrix is None else _from_items(matrix, plan, name)
    if described.halves is not None:
        a, b = (panel.details[half] for half in described.halves)
        found += _paired("halves", a, b, "Spearman-Brown of the halves' rank correlation", spearman_brown)
    if described.regrade is not None:
        second = regraded(panel, plan, name).scores[name]
        found += _paired("second grader", panel.scores[name], second, "Spearman", float)
    items = items_of(panel, described).dropna()
    return found + (_worst_case(panel, name, float(items.median())) if len(items) else [])


def _worst_case(panel: ScorePanel, name: str, items: float) -> list[tuple[Any, ...]]:
    scores = shares(panel, name)
    if scores is None:
        return []
    ratio, n = worst_case_se_ratio(scores, items), int(scores.notna().sum())
    method = ".5 / sqrt(items) over the SD between models"
    return [("worst-case SE / SD", ratio, np.nan, n, int(items), method)] if np.isfinite(ratio) else []


def _from_items(matrix: ResponseMatrix, plan: PanelPlan, name: str) -> list[tuple[Any, ...]]:
    n, items = matrix.responses.shape
    halves = split_half(matrix.responses, N_SPLITS, stream(plan.seed, "halves", name))
    stable = rank_stability(matrix.responses, N_SPLITS, stream(plan.seed, "items of", name))
    split = f"Spearman-Brown, mean of {N_SPLITS:,} random halves"
    resampled = f"Spearman, {N_SPLITS:,} resamples of the items"
    found = [
        ("split-half", halves, np.nan, n, items, split),
        ("rank stability", stable.mean, stable.low, n, items, resampled),
    ]
    return [one for one in found if np.isfinite(one[1])]


def _paired(what: str, a: pd.Series, b: pd.Series, method: str, change: Any) -> list[tuple[Any, ...]]:
    both = pd.concat([a, b], axis=1).dropna().to_numpy(dtype=float)
    if len(both) < MIN_MODELS:
        return []
    rho = float(rank_correlation(list(both.T))[0])
    return [(what, float(change(rho)), np.nan, len(both), np.nan, method)] if np.isfinite(rho) else []


class CoderAgreement(NamedTuple):
    """Krippendorff's alpha over columns and coders, and what the coders said of each column."""

    alpha: float
    level: str
    n_units: int
    n_coders: int
    codes: pd.DataFrame


def coder_agreement(codes: pd.DataFrame, plan: PanelPlan) -> CoderAgreement:
    """Do coders assign the same construct to a column?

    Parameters
    ----------
    codes : DataFrame
        Index: columns; one column per coder; text or numbers, missing where not coded.
    plan : PanelPlan

    Returns
    -------
    CoderAgreement
        `codes`: ``column, most_common, votes, coders``.
    """
    level = plan.coding.level if plan.coding is not None else "nominal"
    flat = codes.to_numpy(dtype=object).ravel()
    if level == "nominal":
        numbers = pd.factorize(flat)[0].astype(float)
        numbers[numbers < 0] = np.nan
    else:
        numbers = pd.to_numeric(pd.Series(flat), errors="coerce").to_numpy(dtype=float)
    alpha = krippendorff_alpha(numbers.reshape(codes.shape), level)
    summary = [_votes(str(name), row.dropna()) for name, row in codes.iterrows()]
    return CoderAgreement(alpha, level, len(codes), codes.shape[1], pd.DataFrame(summary))


def _votes(name: str, given: pd.Series) -> dict[str, Any]:
    counts = given.astype(str).value_counts()
    top, votes = (counts.index[0], int(counts.iloc[0])) if len(counts) else ("", 0)
    return {"column": name, "most_common": top, "votes": votes, "coders": len(given)}
