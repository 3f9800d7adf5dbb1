"""How scores go together: with capability, with each other, with held-out outcomes."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import (
    Association,
    MedianCorrelation,
    NotTested,
    Sample,
    benchmark_pairs,
    evaluate,
    label,
    point,
    sample,
    split_testable,
    stream,
)
from irtaudit.panel.plan import CAPABILITY, Family, PanelPlan
from irtaudit.stats.bootstrap import percentile_interval, unit_draws
from irtaudit.stats.correlation import (
    fisher_power,
    partial_conventions,
    permutation_p,
    required_n,
    t_p,
)
from irtaudit.stats.multiplicity import adjusted

FAMILIES: tuple[Family, ...] = get_args(Family)
ASSOCIATIONS = [
    "kind",
    "x",
    "y",
    "given",
    "n",
    "rho",
    "low",
    "high",
    "low_joint",
    "high_joint",
    "p",
    "p_method",
    "p_permutation",
    "p_permutation_method",
    "family",
    "p_adjusted",
    "power",
    "n_needed",
]
CONVENTIONS = ["x", "y", "given", "n", "rank_pearson", "rank_spearman", "value_pearson", "value_spearman"]
SENSITIVITY = ["variant", "x", "y", "given", "n", "rho", "n_variant", "rho_variant", "difference"]


def planned(panel: ScorePanel) -> dict[str, list[Association]]:
    """The correlations an audit looks at, by kind.

    Returns
    -------
    dict
        "capability": capability with each benchmark and criterion; "between": pairs of benchmarks, and given
        capability; "criterion": each benchmark with each criterion, and given capability; "anchors": pairs of
        anchors.
    """
    benchmarks, criteria, anchors = (panel.of(role) for role in ("benchmark", "criterion", "anchor"))
    crossed = [(b, c) for b in benchmarks for c in criteria]
    return {
        "capability": [Association(CAPABILITY, y) for y in (*benchmarks, *criteria)],
        "between": _raw_and_given(benchmark_pairs(panel)),
        "criterion": _raw_and_given(crossed),
        "anchors": [Association(a, b) for i, a in enumerate(anchors) for b in anchors[i + 1 :]],
    }


def _raw_and_given(pairs: list[tuple[str, str]]) -> list[Association]:
    return [Association(x, y, given) for given in (False, True) for x, y in pairs]


def associations(panel: ScorePanel, plan: PanelPlan) -> tuple[pd.DataFrame, list[NotTested]]:
    """Every planned correlation with its interval and p-values.

    Returns
    -------
    DataFrame
        ``kind``; ``x, y`` (columns, or "capability"); ``given`` ("" or "capability"); ``n``; ``rho``; ``low,
        high`` (95 % percentile bootstrap over models); ``low_joint, high_joint`` (the same, jointly 95 % over
        the correlations of the kind with the same ``given``, Bonferroni); ``p, p_method`` (asymptotic t);
        ``p_permutation, p_permutation_method`` (raw correlations only); ``family, p_adjusted`` (of ``p``
        over its family); ``power`` to find the plan's effect at this n; ``n_needed`` for a power of .80.
    list of NotTested
    """
    rows: list[dict[str, Any]] = []
    lost: list[NotTested] = []
    for kind, estimands in planned(panel).items():
        kept, reasons = split_testable(panel, kind, estimands)
        lost += reasons
        together = Counter(one.given_capability for one in kept)
        rows += [_row(panel, plan, kind, one, together[one.given_capability]) for one in kept]
    table = pd.DataFrame(rows, columns=ASSOCIATIONS)
    return table.assign(p_adjusted=adjusted_by_family(table, plan)), lost


def adjusted_by_family(table: pd.DataFrame, plan: PanelPlan) -> pd.Series:
    """Adjusted p of the column ``p`` over each value of ``family``; NaN where the family is ""."""
    found = pd.Series(np.nan, index=table.index)
    for family, p in table["p"].groupby(table["family"]):
        if family:
            found[p.index] = adjusted(p.to_numpy(dtype=float), plan.multiplicity.method)
    return found


def _row(panel: ScorePanel, plan: PanelPlan, kind: str, one: Association, together: int) -> dict[str, Any]:
    given, k = sample(panel, one), int(one.given_capability)
    rho, draws = point(given, one), model_draws(given, one, plan)
    interval, joint = (percentile_interval(rho, draws, 1 - 0.05 / m) for m in (1, together))
    p = t_p(rho, given.n, k)
    permuted = _permuted(given, one, plan)
    return {
        "kind": kind,
        "x": one.x,
        "y": one.y,
        "given": CAPABILITY if one.given_capability else "",
        "n": given.n,
        "rho": rho,
        "low": interval.low,
        "high": interval.high,
        "low_joint": joint.low,
        "high_joint": joint.high,
        "p": p.p,
        "p_method": p.method,
        "p_permutation": permuted[0],
        "p_permutation_method": permuted[1],
        "family": _family(plan, kind, one),
        "power": fisher_power(plan.thresholds.effect, given.n, k),
        "n_needed": required_n(plan.thresholds.effect, k),
    }


def _family(plan: PanelPlan, kind: str, one: Association) -> str:
    """The criterion family holds the partial correlations, its claim; raw ones stand beside them."""
    if kind not in FAMILIES or (kind == "criterion" and not one.given_capability):
        return ""
    return plan.multiplicity.family(kind)


def model_draws(given: Sample, estimand: Any, plan: PanelPlan) -> Any:
    """The estimand in bootstrap samples of the models; equal n, equal draws."""
    rng = stream(plan.seed, "models", str(given.n))
    return evaluate(given, estimand, unit_draws(given.n, plan.resampling.bootstrap, rng))


def _permuted(given: Sample, one: Association, plan: PanelPlan) -> tuple[float, str]:
    if one.given_capability:
        return np.nan, ""
    x, y = (given.column(name, np.ones((1, given.n))).ravel() for name in (one.x, one.y))
    return permutation_p(x, y, plan.resampling.permutations, stream(plan.seed, "permutation", one.x, one.y))


def conventions(panel: ScorePanel) -> pd.DataFrame:
    """Each partial correlation under the four conventions that share its name.

    Returns
    -------
    DataFrame
        ``x, y, given, n``; ``rank_pearson`` (primary), ``rank_spearman, value_pearson, value_spearman``: what
        is regressed on capability, and how the residuals are correlated.
    """
    wanted = [one for kind in planned(panel).values() for one in kind if one.given_capability]
    rows = []
    for one in split_testable(panel, "conventions", wanted)[0]:
        given = sample(panel, one)
        values = [given.column(name, np.ones((1, given.n))).ravel() for name in (one.x, one.y, CAPABILITY)]
        found = partial_conventions(*values)
        rows.append({"x": one.x, "y": one.y, "given": CAPABILITY, "n": given.n, **found._asdict()})
    return pd.DataFrame(rows, columns=CONVENTIONS)


class Redundancy(NamedTuple):
    r"""Median \|rho\| between benchmarks of distinct constructs, raw and given capability."""

    raw: float
    given_capability: float
    n_pairs: int

    @property
    def drop(self) -> float:
        """How much of the raw median controlling capability takes away; NaN where either is undefined."""
        return self.raw - self.given_capability


def broad_benchmarks(panel: ScorePanel, plan: PanelPlan) -> list[str]:
    """Benchmarks that enough models have for a conclusion."""
    enough = panel.scores.notna().sum() >= plan.thresholds.convergent_n
    return [name for name in panel.of("benchmark") if enough[name]]


def _distinct_pairs(panel: ScorePanel, plan: PanelPlan) -> list[tuple[str, str]]:
    broad = broad_benchmarks(panel, plan)
    return [(x, y) for x, y in benchmark_pairs(panel, distinct=True) if x in broad and y in broad]


def medians(panel: ScorePanel, plan: PanelPlan) -> list[MedianCorrelation]:
    """The headline as estimands of one common set of models, raw and given capability, where possible."""
    pairs = _distinct_pairs(panel, plan)
    both = [MedianCorrelation(tuple(Association(x, y, g) for x, y in pairs)) for g in (False, True)]
    return split_testable(panel, "redundancy", both)[0] if pairs else []


def redundancy(table: pd.DataFrame, panel: ScorePanel, plan: PanelPlan) -> Redundancy:
    """The headline from the table of associations: every pair of broad benchmarks at its own n.

    Parameters
    ----------
    table : DataFrame
        Of :func:`associations`.
    panel : ScorePanel
    plan : PanelPlan
    """
    pairs = set(_distinct_pairs(panel, plan))
    chosen = [pair in pairs for pair in zip(table["x"], table["y"], strict=True)]
    between = table[(table["kind"] == "between") & np.array(chosen, dtype=bool)]
    raw, given = (between.loc[between["given"] == g, "rho"].abs() for g in ("", CAPABILITY))
    return Redundancy(_median(raw), _median(given), len(raw))


def _median(values: pd.Series) -> float:
    return float(values.median()) if len(values) else np.nan


def sensitivity(base: ScorePanel, variants: dict[str, ScorePanel]) -> pd.DataFrame:
    """Every correlation beside its value in other versions of the panel, where a version changes it.

    Parameters
    ----------
    base : ScorePanel
    variants : dict of str to ScorePanel

    Returns
    -------
    DataFrame
        ``variant, x, y, given, n, rho, n_variant, rho_variant, difference``.
    """
    wanted = [one for kind, several in planned(base).items() if kind != "anchors" for one in several]
    kept = split_testable(base, "sensitivity", wanted)[0]
    rows = []
    for name, panel in variants.items():
        for one in split_testable(panel, "sensitivity", kept)[0]:
            here, there = sample(base, one), sample(panel, one)
            if here.scores.equals(there.scores):
                continue
            rho, other = point(here, one), point(there, one)
            given = CAPABILITY if one.given_capability else ""
            rows.append((name, one.x, one.y, given, here.n, rho, there.n, other, other - rho))
    return pd.DataFrame(rows, columns=SENSITIVITY)


def estimand_labels(panel: ScorePanel, table: pd.DataFrame) -> pd.Series:
    """Names of the associations in a table with columns ``x, y, given``."""
    cells = zip(table["x"], table["y"], table["given"], strict=True)
    each = [Association(x, y, given != "") for x, y, given in cells]
    return pd.Series([label(panel, one) for one in each], index=table.index, dtype=object)
