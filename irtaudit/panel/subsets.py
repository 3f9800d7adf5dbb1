"""What would smaller panels have shown? All subsets of the models, beside what chance alone gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import (
    Association,
    NotTested,
    benchmark_pairs,
    evaluate,
    models,
    point,
    sample,
    split_testable,
    stream,
)
from irtaudit.panel.plan import PanelPlan
from irtaudit.stats.bootstrap import subsets
from irtaudit.stats.correlation import NullCorrelations, null_correlations

SUBSETS = [
    "x",
    "y",
    "n",
    "rho",
    "size",
    "subsets",
    "complete",
    "threshold",
    "share",
    "null_share",
    "null_method",
    "q05",
    "q25",
    "median",
    "q75",
    "q95",
    "lowest",
    "highest",
]
QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


class SmallPanels(NamedTuple):
    r"""Correlations in subsets of the models.

    `table` has a row per pair of benchmarks and size: ``x, y, n, rho`` (of all models); ``size``; ``subsets``
    (their number), ``complete`` (whether these are all); ``threshold``; ``share`` of subsets with \|rho\| at
    least that; ``null_share, null_method`` (the same for unrelated scores without ties); quantiles and
    extremes of rho. `draws` holds the correlations themselves for the pair and size of the figure.
    """

    table: pd.DataFrame
    draws: dict[tuple[str, str, int], NDArray[np.float64]]
    not_tested: list[NotTested]


def small_panels(panel: ScorePanel, plan: PanelPlan) -> SmallPanels:
    """Correlations of every pair of benchmarks in subsets of the plan's sizes."""
    kept, lost = split_testable(panel, "small panels", [Association(x, y) for x, y in benchmark_pairs(panel)])
    rows, draws = [], {}
    largest = max((sample(panel, pair).n for pair in kept), default=0)
    nulls = {size: _null(plan, size) for size in plan.resampling.subset_sizes if size < largest}
    for pair in kept:
        given = sample(panel, pair)
        for size in plan.resampling.subset_sizes:
            if size >= given.n:
                what = f"{panel.label(pair.x)} ~ {panel.label(pair.y)} in panels of {size}"
                lost = [*lost, NotTested("small panels", what, f"{models(given.n)} have both scores")]
                continue
            rng = stream(plan.seed, "subsets", str(size))
            chosen, complete = subsets(given.n, size, rng, limit=plan.resampling.subsets)
            rho = evaluate(given, pair, chosen)
            draws[pair.x, pair.y, size] = rho
            about = {"x": pair.x, "y": pair.y, "n": given.n, "rho": point(given, pair), "size": size}
            rows.append(about | _summary(rho, plan) | {"complete": complete, **nulls[size]})
    return SmallPanels(pd.DataFrame(rows, columns=SUBSETS), draws, lost)


def chance(plan: PanelPlan, size: int) -> NullCorrelations:
    """What panels of a size show when scores are unrelated."""
    return null_correlations(size, stream(plan.seed, "subset null", str(size)))


def _null(plan: PanelPlan, size: int) -> dict[str, object]:
    found = chance(plan, size)
    return {"null_share": found.share(plan.thresholds.small_panel_effect), "null_method": found.method}


def _summary(rho: NDArray[np.float64], plan: PanelPlan) -> dict[str, object]:
    """Subsets in which a column is constant count among the subsets and reach no correlation."""
    seen, threshold = rho[np.isfinite(rho)], plan.thresholds.small_panel_effect
    quantiles = dict(zip(QUANTILES, np.quantile(seen, list(QUANTILES.values())), strict=True))
    return {
        "subsets": rho.size,
        "threshold": threshold,
        "share": float((np.abs(seen) >= threshold - 1e-9).sum() / rho.size),
        **quantiles,
        "lowest": seen.min(),
        "highest": seen.max(),
    }
