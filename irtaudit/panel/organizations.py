"""Inside organizations and between them: does capability order the models of one maker; do makers differ?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.associations import adjusted_by_family
from irtaudit.panel.estimands import Association, NotTested, Sample, models, sample, split_testable, stream
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.robustness import NO_ORGANIZATIONS
from irtaudit.stats.correlation import permutation_p, rank_correlation, rank_residuals
from irtaudit.stats.groups import kruskal_permutation

WITHIN = ["y", "organization", "n", "rho", "p", "p_method"]
WITHIN_MEANS = ["y", "organizations", "models", "mean", "n_weighted_mean", "pooled"]
GROUPS = [
    "y",
    "n",
    "n_groups",
    "h",
    "p",
    "p_method",
    "epsilon_squared_df_adjusted",
    "epsilon_squared_unadjusted",
    "family",
    "p_adjusted",
]
RESIDUALS = ["y", "model", "organization", "residual_rank"]


def _with_capability(panel: ScorePanel, part: str) -> tuple[list[Association], list[NotTested]]:
    wanted = [Association(CAPABILITY, y) for y in (*panel.of("benchmark"), *panel.of("criterion"))]
    if panel.organizations is None:
        return [], [NotTested(part, "every score", NO_ORGANIZATIONS)]
    return split_testable(panel, part, wanted)


def within_organizations(
    panel: ScorePanel, plan: PanelPlan
) -> tuple[pd.DataFrame, pd.DataFrame, list[NotTested]]:
    """Capability against each score inside every organization with enough models.

    Returns
    -------
    DataFrame
        ``y, organization, n, rho, p, p_method`` (exact permutation up to nine models).
    DataFrame
        ``y, organizations, models``; ``mean, n_weighted_mean`` of rho over organizations; ``pooled``: rho of
        all models, ignoring organizations.
    list of NotTested
    """
    kept, lost = _with_capability(panel, "within organizations")
    rows: list[dict[str, Any]] = []
    for one in kept:
        found, reasons = _inside(panel, plan, one)
        rows, lost = [*rows, *found], [*lost, *reasons]
    table = pd.DataFrame(rows, columns=WITHIN)
    means = [_means(panel, one, table[table["y"] == one.y]) for one in kept if (table["y"] == one.y).any()]
    return table, pd.DataFrame(means, columns=WITHIN_MEANS), lost


def _inside(
    panel: ScorePanel, plan: PanelPlan, one: Association
) -> tuple[list[dict[str, Any]], list[NotTested]]:
    x, y, groups = _values(panel, one)
    rows, lost = [], []
    for name in sorted(set(groups)):
        member = groups == name
        n, what = int(member.sum()), f"{panel.label(one.y)} inside {name}"
        if n < plan.groups.within:
            continue
        rho = float(rank_correlation([x[member], y[member]])[0])
        if not np.isfinite(rho):
            lost.append(NotTested("within organizations", what, f"all {models(n)} have the same score"))
            continue
        rng = stream(plan.seed, "within", one.y, name)
        p = permutation_p(x[member], y[member], plan.resampling.permutations, rng)
        rows.append(dict(zip(WITHIN, (one.y, name, n, rho, p.p, p.method), strict=True)))
    if not rows and not lost:
        few = f"no organization has {plan.groups.within} models with this score and every anchor"
        lost.append(NotTested("within organizations", panel.label(one.y), few))
    return rows, lost


def _values(panel: ScorePanel, one: Association) -> tuple[Any, Any, Any]:
    """Capability, score and organization of the models that have all of them."""
    given: Sample = sample(panel, one)
    x, y = (given.column(name, np.ones((1, given.n))).ravel() for name in (one.x, one.y))
    assert panel.organizations is not None  # asked before
    return x, y, panel.organizations[given.scores.index].to_numpy()


def _means(panel: ScorePanel, one: Association, rows: pd.DataFrame) -> dict[str, Any]:
    x, y, _ = _values(panel, one)
    return {
        "y": one.y,
        "organizations": len(rows),
        "models": int(rows["n"].sum()),
        "mean": rows["rho"].mean(),
        "n_weighted_mean": float(np.average(rows["rho"], weights=rows["n"])),
        "pooled": float(rank_correlation([x, y])[0]),
    }


def organization_differences(
    panel: ScorePanel, plan: PanelPlan
) -> tuple[pd.DataFrame, pd.DataFrame, list[NotTested]]:
    """Do organizations differ in a score once capability is taken out of its ranks?

    Kruskal-Wallis on the residuals of the score's ranks given the ranks of capability, with p from permuting
    the residuals over the models.

    Returns
    -------
    DataFrame
        ``y, n, n_groups, h, p, p_method, epsilon_squared_df_adjusted`` ((H - k + 1) / (n - k)),
        ``epsilon_squared_unadjusted`` (H / (n - 1)), ``family, p_adjusted``.
    DataFrame
        ``y, model, organization, residual_rank``: what was compared.
    list of NotTested
    """
    kept, lost = _with_capability(panel, "organizations")
    rows, residuals = [], []
    for one in kept:
        x, y, groups = _values(panel, one)
        names, sizes = np.unique(groups, return_counts=True)
        compared = np.isin(groups, names[sizes >= plan.groups.between])
        n_groups = len(set(groups[compared]))
        if n_groups < 2:
            reason = f"{n_groups} organization(s) have at least {plan.groups.between} models, two are needed"
            lost.append(NotTested("organizations", f"differences in {panel.label(one.y)}", reason))
            continue
        left = rank_residuals(y[compared], x[compared])
        rows.append(_difference(plan, one.y, left, groups[compared]))
        index = sample(panel, one).scores.index[compared]
        residuals.append(
            pd.DataFrame(
                {"y": one.y, "model": index, "organization": groups[compared], "residual_rank": left}
            )
        )
    table = pd.DataFrame(rows, columns=GROUPS)
    table = table.assign(p_adjusted=adjusted_by_family(table, plan))
    every = pd.concat(residuals, ignore_index=True) if residuals else pd.DataFrame(columns=RESIDUALS)
    return table, every, lost


def _difference(plan: PanelPlan, y: str, residuals: Any, groups: Any) -> dict[str, Any]:
    rng = stream(plan.seed, "groups", y)
    found = kruskal_permutation(np.round(residuals, 9), groups, plan.resampling.permutations, rng)
    return {
        "y": y,
        **found._asdict(),
        "p_method": f"permutation of residual ranks, {plan.resampling.permutations:,} draws",
        "family": plan.multiplicity.family("groups"),
    }
