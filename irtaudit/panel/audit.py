"""The panel audit as one function: screen, estimate, check, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.data.responses import ResponseMatrix
from irtaudit.panel.associations import (
    Redundancy,
    associations,
    broad_benchmarks,
    conventions,
    medians,
    planned,
    redundancy,
    sensitivity,
)
from irtaudit.panel.comparison import Comparison, compare_panels
from irtaudit.panel.controls import Decision, controls, decide, doubts
from irtaudit.panel.estimands import MIN_MODELS, Estimand, NotTested, split_testable
from irtaudit.panel.metrics import Metrics, metric_validity
from irtaudit.panel.organizations import organization_differences, within_organizations
from irtaudit.panel.plan import PanelPlan
from irtaudit.panel.reliability import CoderAgreement, coder_agreement, reliability
from irtaudit.panel.robustness import as_estimand, clustered, contrasts, left_out
from irtaudit.panel.screen import Screened, as_wrong, regraded, screen_panel
from irtaudit.panel.structure import Structure, structure, structure_columns
from irtaudit.panel.subsets import SmallPanels, small_panels
from irtaudit.panel.verdict import Verdict, judge
from irtaudit.stats.agreement import kendall_w

COVERAGE = ["x", "y", "n"]
CONCORDANCE = ["panel", "benchmarks", "n", "w", "p", "p_method"]

Progress = Callable[[str, int, int], None]
"""Called with the name of the stage that begins, its number from 0, and how many there are."""
STAGES = (
    "Metrics",
    "Correlations",
    "Components and controls",
    "Small panels",
    "Leaving out and resampling",
    "Organizations",
    "Verdicts",
)


@dataclass(frozen=True, eq=False)
class PanelAudit:
    """Everything a panel audit found; each table is documented by the function that makes it.

    Attributes
    ----------
    plan : PanelPlan
    data : ScorePanel
        As read.
    screened : Screened
        As audited, and what was left out.
    metrics : Metrics
    associations, conventions, sensitivity : DataFrame
        `irtaudit.panel.associations`.
    redundancy : Redundancy
    structure : Structure
    controls : DataFrame
    decision : Decision
    small : SmallPanels
    contrasts, left_out, clusters : DataFrame
        `irtaudit.panel.robustness`.
    within, within_means, groups, residuals : DataFrame
        `irtaudit.panel.organizations`.
    reliability : DataFrame
    coders : CoderAgreement or None
    coverage : DataFrame
        ``x, y, n``: models with both columns; a column with itself: models with a score.
    concordance : DataFrame
        Kendall's W: ``panel`` (which models), ``benchmarks`` (how many), ``n, w, p, p_method``.
    comparison : Comparison or None
        With a second panel.
    verdict : Verdict
    not_tested : DataFrame
        ``part, what, reason``.
    warnings : tuple of str
        What should be mended or known before the results are believed.
    seconds : float
    """

    plan: PanelPlan
    data: ScorePanel
    screened: Screened
    metrics: Metrics
    associations: pd.DataFrame
    conventions: pd.DataFrame
    sensitivity: pd.DataFrame
    redundancy: Redundancy
    structure: Structure
    controls: pd.DataFrame
    decision: Decision
    small: SmallPanels
    contrasts: pd.DataFrame
    left_out: pd.DataFrame
    clusters: pd.DataFrame
    within: pd.DataFrame
    within_means: pd.DataFrame
    groups: pd.DataFrame
    residuals: pd.DataFrame
    reliability: pd.DataFrame
    coders: CoderAgreement | None
    coverage: pd.DataFrame
    concordance: pd.DataFrame
    comparison: Comparison | None
    verdict: Verdict
    not_tested: pd.DataFrame
    warnings: tuple[str, ...]
    seconds: float

    @property
    def panel(self) -> ScorePanel:
        """The panel as audited."""
        return self.screened.panel


def audit_panel(
    data: ScorePanel,
    plan: PanelPlan,
    *,
    against: ScorePanel | None = None,
    responses: Mapping[str, ResponseMatrix] | None = None,
    codes: pd.DataFrame | None = None,
    progress: Progress | None = None,
) -> PanelAudit:
    """Audit a table of scores: is a safety score capability in disguise, and may one stand for another?

    Parameters
    ----------
    data : ScorePanel
        Read by the plan.
    plan : PanelPlan
    against : ScorePanel, optional
        A second panel, read by the same plan; usually the larger one.
    responses : mapping of str to ResponseMatrix, optional
        Responses to single items of a column, for its reliability.
    codes : DataFrame, optional
        Constructs that coders assigned to columns.
    progress : callable, optional

    Returns
    -------
    PanelAudit
        What the panel cannot answer is in its `not_tested`, with the reason, and in no table.
    """
    started = time.monotonic()
    begin = (lambda _stage: None) if progress is None else _teller(progress)
    screened = screen_panel(data, plan)
    panel = screened.panel
    begin("Metrics")
    metrics = metric_validity(panel, plan)
    repeatable, unreliable = reliability(panel, plan, responses)
    begin("Correlations")
    table, lost = associations(panel, plan)
    begin("Components and controls")
    headline = redundancy(table, panel, plan)
    found, no_structure = structure(panel, plan)
    tested = controls(panel, plan, found)
    begin("Small panels")
    small = small_panels(panel, plan)
    begin("Leaving out and resampling")
    differences, no_contrasts = contrasts(panel, plan)
    estimands = _robust_estimands(panel, plan)
    clusters, no_clusters = clustered(panel, plan, estimands)
    begin("Organizations")
    within, within_means, no_within = within_organizations(panel, plan)
    groups, residuals, no_groups = organization_differences(panel, plan)
    second = None if against is None else screen_panel(against, plan)
    comparison = None if second is None else compare_panels(panel, second.panel, plan)
    begin("Verdicts")
    reasons = [
        *metrics.not_tested,
        *lost,
        *no_structure,
        *small.not_tested,
        *no_contrasts,
        *no_clusters,
        *no_within,
        *no_groups,
        *unreliable,
        *([] if comparison is None else comparison.not_tested),
    ]
    return PanelAudit(
        plan=plan,
        data=data,
        screened=screened,
        metrics=metrics,
        associations=table,
        conventions=conventions(panel),
        sensitivity=sensitivity(panel, _variants(data, panel, plan)),
        redundancy=headline,
        structure=found,
        controls=tested,
        decision=decide(plan, found, tested, headline),
        small=small,
        contrasts=differences,
        left_out=left_out(panel, estimands),
        clusters=clusters,
        within=within,
        within_means=within_means,
        groups=groups,
        residuals=residuals,
        reliability=repeatable,
        coders=None if codes is None else coder_agreement(codes, plan),
        coverage=coverage(panel),
        concordance=concordance(panel, plan),
        comparison=comparison,
        verdict=judge(panel, plan, table, metrics.against, reasons),
        not_tested=_gathered(reasons),
        warnings=(
            *screened.warnings,
            *doubts(panel, plan, table, tested),
            *([] if second is None else [f"Second panel: {warning}" for warning in second.warnings]),
        ),
        seconds=time.monotonic() - started,
    )


def _teller(progress: Progress) -> Callable[[str], None]:
    return lambda stage: progress(stage, STAGES.index(stage), len(STAGES))


def _robust_estimands(panel: ScorePanel, plan: PanelPlan) -> list[Estimand]:
    """Every planned correlation but those of anchors, the planned contrasts, and the headline."""
    correlations = [one for kind, several in planned(panel).items() if kind != "anchors" for one in several]
    columns = {*panel.scores.columns}
    differences = [
        one
        for contrast in plan.all_contrasts()
        if {contrast.first, contrast.second} <= columns
        for one in [as_estimand(contrast)]
    ]
    return [
        *split_testable(panel, "", correlations)[0],
        *split_testable(panel, "", differences)[0],
        *medians(panel, plan),
    ]


def _variants(data: ScorePanel, panel: ScorePanel, plan: PanelPlan) -> dict[str, ScorePanel]:
    """Other versions of the panel that a reader may ask for."""
    common = panel.scores[structure_columns(panel, plan)].dropna().index
    kept = panel.scores.where(panel.scores.index.to_series().isin(common), np.nan)
    differing = data.with_scores(data.scores[panel.scores.columns])
    graded = [name for name in map(str, panel.scores) if plan.columns[name].regrade is not None]
    return {
        f"the {len(common)} models with every column": panel.with_scores(kept),
        "unparseable outputs count as wrong": as_wrong(differing, plan),
        **{f"{panel.label(name)} by the second grader": regraded(panel, plan, name) for name in graded},
    }


def coverage(panel: ScorePanel) -> pd.DataFrame:
    """Models with both of two columns; a column with itself: with that one."""
    seen = panel.scores.notna()
    pairs = combinations_with_replacement(panel.scores.columns, 2)
    return pd.DataFrame([(x, y, int((seen[x] & seen[y]).sum())) for x, y in pairs], columns=COVERAGE)


def concordance(panel: ScorePanel, plan: PanelPlan) -> pd.DataFrame:
    """Kendall's W of the benchmarks that enough models have, over the models that have them all."""
    names = broad_benchmarks(panel, plan)
    complete = panel.scores[names].dropna()
    if len(names) < 2 or len(complete) < MIN_MODELS:
        return pd.DataFrame(columns=CONCORDANCE)
    w, p = kendall_w(complete.to_numpy())
    method = f"asymptotic chi-square, {len(complete) - 1} df"
    row = ("models with every benchmark", len(names), len(complete), w, p, method)
    return pd.DataFrame([row], columns=CONCORDANCE).dropna(subset=["w"])


def _gathered(reasons: list[NotTested]) -> pd.DataFrame:
    return pd.DataFrame(reasons, columns=list(NotTested._fields)).drop_duplicates(ignore_index=True)
