"""Does it hold without one model, without one organization, when whole organizations are resampled?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.associations import adjusted_by_family, model_draws
from irtaudit.panel.estimands import (
    Association,
    Difference,
    Estimand,
    MedianCorrelation,
    NotTested,
    Sample,
    evaluate,
    label,
    point,
    sample,
    split_testable,
    stream,
)
from irtaudit.panel.plan import CAPABILITY, Contrast, PanelPlan
from irtaudit.stats.bootstrap import (
    ClusterInterval,
    cluster_draws,
    cluster_interval,
    percentile_interval,
    two_sided_p,
    without_each,
)

CONTRASTS = [
    "of",
    "first",
    "second",
    "given",
    "n",
    "rho_first",
    "rho_second",
    "difference",
    "low",
    "high",
    "p",
    "p_method",
    "family",
    "p_adjusted",
    "degenerate",
]
LEFT_OUT = [
    "estimand",
    "n",
    "estimate",
    "left_out",
    "units",
    "lowest",
    "without_lowest",
    "highest",
    "without_highest",
    "sign_flips",
    "flipped_by",
    "undefined",
]
CLUSTERS = ["estimand", "n", "estimate", *ClusterInterval._fields, "p_method"]
NO_ORGANIZATIONS = "the plan names no column of organizations"


def contrasts(panel: ScorePanel, plan: PanelPlan) -> tuple[pd.DataFrame, list[NotTested]]:
    """Differences of dependent correlations by a bootstrap that keeps each model's scores together.

    Returns
    -------
    DataFrame
        ``of, first, second, given``; ``n``; ``rho_first, rho_second``; ``difference`` (second minus first);
        ``low, high`` (95 % percentile); ``p, p_method`` (two-sided, floor 2 / (B + 1)); ``family,
        p_adjusted``; ``degenerate`` (draws without a value).
    list of NotTested
    """
    wanted = [as_estimand(one) for one in plan.all_contrasts()]
    present = [one for one in wanted if _present(panel, one)]
    kept, lost = split_testable(panel, "contrasts", present)
    table = pd.DataFrame([_contrast(panel, plan, one) for one in kept], columns=CONTRASTS)
    return table.assign(p_adjusted=adjusted_by_family(table, plan)), lost


def as_estimand(contrast: Contrast) -> Difference:
    """The difference that an entry of the plan asks for."""
    first, second = (
        Association(contrast.of, other, contrast.given_capability)
        for other in (contrast.first, contrast.second)
    )
    return Difference(first, second)


def _present(panel: ScorePanel, one: Difference) -> bool:
    """Columns that the screen dropped are reported there."""
    return {one.first.x, one.first.y, one.second.y} <= {*panel.scores.columns, CAPABILITY}


def _contrast(panel: ScorePanel, plan: PanelPlan, one: Difference) -> dict[str, Any]:
    given = sample(panel, one)
    draws, estimate = model_draws(given, one, plan), point(given, one)
    interval = percentile_interval(estimate, draws)
    return {
        "of": one.first.x,
        "first": one.first.y,
        "second": one.second.y,
        "given": CAPABILITY if one.first.given_capability else "",
        "n": given.n,
        "rho_first": point(given, one.first),
        "rho_second": point(given, one.second),
        "difference": estimate,
        "low": interval.low,
        "high": interval.high,
        "p": two_sided_p(draws),
        "p_method": f"paired bootstrap over models, {plan.resampling.bootstrap:,} draws",
        "family": plan.multiplicity.family("contrasts"),
        "degenerate": int((~np.isfinite(draws)).sum()),
    }


def left_out(panel: ScorePanel, estimands: list[Estimand]) -> pd.DataFrame:
    """Range of each estimand without one model at a time, and without one organization at a time.

    Returns
    -------
    DataFrame
        ``estimand, n, estimate``; ``left_out`` ("model" or "organization"), ``units`` (how many); ``lowest,
        without_lowest, highest, without_highest``: the extremes and what was left out there; ``sign_flips,
        flipped_by``: how often and without which units the sign changes; ``undefined``: units without which
        nothing can be computed.
    """
    rows = []
    for one in estimands:
        given = sample(panel, one)
        rows.append(_left_out_row(panel, given, one, "model", given.scores.index.to_numpy()))
        groups = organizations_of(panel, given)
        if groups is not None and len(set(groups)) > 1:
            rows.append(_left_out_row(panel, given, one, "organization", groups))
    return pd.DataFrame(rows, columns=LEFT_OUT)


def organizations_of(panel: ScorePanel, given: Sample) -> NDArray[Any] | None:
    """Organization of each model of a sample; None when unknown."""
    return None if panel.organizations is None else panel.organizations[given.scores.index].to_numpy()


def _left_out_row(
    panel: ScorePanel, given: Sample, one: Estimand, kind: str, groups: NDArray[Any]
) -> dict[str, Any]:
    names, counts = without_each(groups)
    values, estimate = evaluate(given, one, counts), point(given, one)
    flips = [name for name, value in zip(names, values, strict=True) if value * estimate < 0]
    defined = np.isfinite(values).any()
    low, high = (int(np.nanargmin(values)), int(np.nanargmax(values))) if defined else (0, 0)
    return {
        "estimand": label(panel, one),
        "n": given.n,
        "estimate": estimate,
        "left_out": kind,
        "units": len(names),
        "lowest": values[low],
        "without_lowest": names[low],
        "highest": values[high],
        "without_highest": names[high],
        "sign_flips": len(flips),
        "flipped_by": ", ".join(flips),
        "undefined": int((~np.isfinite(values)).sum()),
    }


def clustered(
    panel: ScorePanel, plan: PanelPlan, estimands: list[Estimand]
) -> tuple[pd.DataFrame, list[NotTested]]:
    """Each estimand when whole organizations are resampled.

    Returns
    -------
    DataFrame
        ``estimand, n, estimate``, then the fields of `irtaudit.stats.bootstrap.ClusterInterval`: ``low, high,
        p`` by ``rule`` (cut off at the ends of the estimand's range; no ``p`` for a median of sizes, which
        is never 0), ``percentile_low, percentile_high, n_clusters, degenerate``; ``p_method``.
    list of NotTested
    """
    rows, lost = [], []
    for one in estimands:
        found = cluster_bootstrap(panel, plan, one)
        name = label(panel, one)
        if isinstance(found, str):
            lost.append(NotTested("organizations", f"{name}, resampling organizations", found))
        else:
            given = sample(panel, one)
            inside = _within_range(found, one)
            about = {"estimand": name, "n": given.n, "estimate": point(given, one)}
            rows.append({**about, **inside._asdict(), "p_method": _cluster_p_method(inside, plan)})
    return pd.DataFrame(rows, columns=CLUSTERS), lost


def _cluster_p_method(found: ClusterInterval, plan: PanelPlan) -> str:
    draws = f"{plan.resampling.bootstrap:,} draws of whole organizations"
    if not np.isfinite(found.p):
        return ""
    return f"t, {found.n_clusters - 1} df, SD of {draws}" if found.rule == "t" else f"bootstrap, {draws}"


def _within_range(found: ClusterInterval, one: Estimand) -> ClusterInterval:
    """The interval cut off at the ends of the estimand's range; a size is never tested against 0."""
    if isinstance(one, MedianCorrelation):
        return found._replace(low=max(found.low, 0.0), high=min(found.high, 1.0), p=np.nan)
    widest = 2.0 if isinstance(one, Difference) else 1.0
    return found._replace(low=max(found.low, -widest), high=min(found.high, widest))


def cluster_bootstrap(
    panel: ScorePanel, plan: PanelPlan, one: Estimand, level: float = 0.95
) -> ClusterInterval | str:
    """Interval of an estimand when whole organizations are resampled, or why there is none."""
    given = sample(panel, one)
    groups = organizations_of(panel, given)
    if groups is None:
        return NO_ORGANIZATIONS
    n_groups = len(set(groups))
    if n_groups < 3:
        return f"the models come from {n_groups} organization(s), at least 3 are needed"
    counts = cluster_draws(groups, plan.resampling.bootstrap, stream(plan.seed, "clusters", str(given.n)))
    return cluster_interval(point(given, one), evaluate(given, one, counts), n_groups, level)
