"""Two panels: did a correlation change when the pool of models did?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.data.responses import listed
from irtaudit.panel.associations import adjusted_by_family, planned
from irtaudit.panel.estimands import (
    MIN_MODELS,
    Association,
    NotTested,
    Sample,
    evaluate,
    label,
    models,
    point,
    sample,
    stream,
    untestable,
)
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.words import joined
from irtaudit.stats.bootstrap import Counts, percentile_interval, stratified_draws, two_sided_p

CHANGES = [
    "x",
    "y",
    "given",
    "n_first",
    "rho_first",
    "n_second",
    "rho_second",
    "change",
    "low",
    "high",
    "p",
    "p_method",
    "family",
    "p_adjusted",
    "shared_models",
    "design",
]
MATCHED = [
    "x",
    "y",
    "given",
    "rho_first",
    "rho_second",
    "n_matched",
    "missing_models",
    "matched_median",
    "matched_q05",
    "matched_q95",
]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Correlations in two panels.

    Attributes
    ----------
    changes : DataFrame
        ``x, y, given, n_first, rho_first, n_second, rho_second``; ``change`` (second minus first); ``low,
        high, p, p_method`` (bootstrap in which a shared model is drawn for both panels at once);
        ``family, p_adjusted``; ``shared_models``; ``design`` ("nested", "overlapping", "independent").
    matched : DataFrame
        The second panel cut to the first's numbers of models per organization: ``n_matched``,
        ``missing_models`` (that the second panel's organizations could not supply), median and 5 % and 95 %
        quantiles of rho over random such subsets.
    not_tested : list of NotTested
    notes : tuple of str
        Shared models whose scores differ between the panels.
    """

    changes: pd.DataFrame
    matched: pd.DataFrame
    not_tested: list[NotTested]
    notes: tuple[str, ...]


def compare_panels(first: ScorePanel, second: ScorePanel, plan: PanelPlan) -> Comparison:
    """Every planned correlation of the first panel in both.

    The panels must differ in no model or in five: over fewer the bootstrap finds changes that are none (one
    more model: in a quarter of simulated panels, ``experiments/agent_safety_panel``).

    Parameters
    ----------
    first, second : ScorePanel
        Screened panels read by the same plan; `second` is usually the larger one.
    plan : PanelPlan
    """
    wanted = [one for kind, several in planned(first).items() if kind != "anchors" for one in several]
    changes, matched, lost = [], [], []
    for one in wanted:
        reason = untestable(first, one) or _untestable_there(first, second, one) or _alike(first, second, one)
        if reason:
            lost.append(NotTested("two panels", label(first, one), reason))
            continue
        pair = sample(first, one), sample(second, one)
        changes.append(_change(pair, one, plan))
        if first.organizations is not None and second.organizations is not None:
            groups = (
                first.organizations[pair[0].scores.index].to_numpy(),
                second.organizations[pair[1].scores.index].to_numpy(),
            )
            matched.append(_matched(pair, groups, one, plan))
    table = pd.DataFrame(changes, columns=CHANGES)
    return Comparison(
        table.assign(p_adjusted=adjusted_by_family(table, plan)),
        pd.DataFrame(matched, columns=MATCHED),
        lost,
        _disagreements(first, second),
    )


def _untestable_there(first: ScorePanel, second: ScorePanel, one: Association) -> str:
    """Why a correlation cannot be asked of the second panel; "" when it can."""
    missing = [first.label(name) for name in (one.x, one.y) if name not in (*second.scores, CAPABILITY)]
    reason = f"models do not differ in {joined(missing)}" if missing else untestable(second, one)
    return f"in the second panel {reason}" if reason else ""


def _alike(first: ScorePanel, second: ScorePanel, one: Association) -> str:
    """Why a handful of models in one panel alone gives no interval; "" when there are enough, or none."""
    names = [sample(panel, one).scores.index for panel in (first, second)]
    n = len(names[0].symmetric_difference(names[1]))
    if not 0 < n < MIN_MODELS:
        return ""
    return (
        f"only {models(n)} differ{'s' if n == 1 else ''} between the panels, at least {MIN_MODELS} are needed"
    )


def _change(pair: tuple[Sample, Sample], one: Association, plan: PanelPlan) -> dict[str, Any]:
    first, second = pair
    names = first.scores.index.union(second.scores.index)
    inside = names.isin(first.scores.index), names.isin(second.scores.index)
    strata = inside[0] + 2 * inside[1]  # only in the first, only in the second, in both
    rng = stream(plan.seed, "two panels", str(len(names)), str(int((strata == 3).sum())))
    counts = stratified_draws(strata, plan.resampling.bootstrap, rng)
    draws = _drawn(second, one, names, counts) - _drawn(first, one, names, counts)
    rho = point(first, one), point(second, one)
    interval = percentile_interval(rho[1] - rho[0], draws)
    shared = int((strata == 3).sum())
    nested = shared == min(first.n, second.n)
    design = "nested" if nested else "overlapping" if shared else "independent"
    return {
        "x": one.x,
        "y": one.y,
        "given": CAPABILITY if one.given_capability else "",
        "n_first": first.n,
        "rho_first": rho[0],
        "n_second": second.n,
        "rho_second": rho[1],
        "change": rho[1] - rho[0],
        "low": interval.low,
        "high": interval.high,
        "p": two_sided_p(draws),
        "p_method": f"{design} bootstrap over models, {plan.resampling.bootstrap:,} draws",
        "family": plan.multiplicity.family("panels"),
        "shared_models": shared,
        "design": design,
    }


def _drawn(given: Sample, one: Association, names: pd.Index, counts: Counts) -> Any:
    return evaluate(given, one, counts[:, names.get_indexer(given.scores.index)])


def _matched(
    pair: tuple[Sample, Sample], groups: tuple[Any, ...], one: Association, plan: PanelPlan
) -> dict[str, Any]:
    first, second = pair
    wanted = pd.Series(groups[0]).value_counts()
    counts = matched_subsets(groups[1], wanted, plan.resampling.matched, stream(plan.seed, "matched"))
    rho = evaluate(second, one, counts)
    seen = rho[np.isfinite(rho)]
    low, median, high = np.quantile(seen, [0.05, 0.5, 0.95]) if seen.size else (np.nan,) * 3
    n = int(counts[0].sum())
    return {
        "x": one.x,
        "y": one.y,
        "given": CAPABILITY if one.given_capability else "",
        "rho_first": point(first, one),
        "rho_second": point(second, one),
        "n_matched": n,
        "missing_models": first.n - n,
        "matched_median": median,
        "matched_q05": low,
        "matched_q95": high,
    }


def matched_subsets(organizations: Any, wanted: pd.Series, n_draws: int, rng: np.random.Generator) -> Counts:
    """Random subsets with given numbers of models per organization, as many as each has where it has fewer.

    Parameters
    ----------
    organizations : (model,) array
    wanted : Series
        Number of models by organization.

    Returns
    -------
    (draw, model) array of 0 and 1
    """
    counts = np.zeros((n_draws, len(organizations)))
    keys = rng.random(counts.shape)
    for name, number in wanted.items():
        member = np.flatnonzero(organizations == name)
        order = np.argsort(keys[:, member], axis=1)[:, : int(number)]
        np.put_along_axis(counts, member[order], 1.0, axis=1)
    return counts


def _disagreements(first: ScorePanel, second: ScorePanel) -> tuple[str, ...]:
    names = first.scores.index.intersection(second.scores.index)
    columns = first.scores.columns.intersection(second.scores.columns)
    a, b = first.scores.loc[names, columns], second.scores.loc[names, columns]
    differ = names[((a - b).abs() > 1e-9).any(axis=1)]
    if differ.empty:
        return ()
    said = f"{len(differ)} of {len(names)} shared models have other scores in the second panel"
    return (f"{said}: {listed(differ)}.",)
