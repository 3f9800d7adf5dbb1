"""Three controls, and the rule that says whether the factor structure may be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.associations import Redundancy
from irtaudit.panel.estimands import Association, benchmark_pairs, models, point, sample, stream, untestable
from irtaudit.panel.plan import PanelPlan
from irtaudit.panel.structure import Structure
from irtaudit.panel.words import percent, rho_text
from irtaudit.report.figures import signed
from irtaudit.stats.components import permuted_eigenvalues

State = Literal["pass", "fail", "inconclusive", "not testable"]
NO_COMPONENTS = "there are no components"


class Control(NamedTuple):
    """One control: what must hold, whether it does, the number and threshold that say so, on n models."""

    control: str
    what: str
    state: State
    value: float
    threshold: float
    n: int
    detail: str


def controls(panel: ScorePanel, plan: PanelPlan, found: Structure) -> pd.DataFrame:
    """The three controls.

    Returns
    -------
    DataFrame
        ``control`` ("positive", "negative", "convergent"), ``what``, ``state`` ("pass", "fail",
        "inconclusive", "not testable"), ``value, threshold, n``, ``detail`` in words. "convergent" has a row
        for each pair of benchmarks of one construct.
    """
    rows = [_positive(panel, plan, found), _negative(panel, plan, found), *_convergent(panel, plan)]
    return pd.DataFrame(rows, columns=list(Control._fields))


def _positive(panel: ScorePanel, plan: PanelPlan, found: Structure) -> Control:
    what, least = "every anchor loads on the first component, with one sign", plan.thresholds.loading
    anchors = found.loadings[found.loadings["role"] == "anchor"]
    if anchors.empty:
        reason = "no anchor is among the columns of the components" if found.n else NO_COMPONENTS
        return Control("positive", what, "not testable", np.nan, least, found.n, reason)
    loads = anchors["pearson"].to_numpy(dtype=float)
    named = ", ".join(
        f"{panel.label(c)} {signed(v, '+.3f')}" for c, v in zip(anchors["column"], loads, strict=True)
    )
    state: State = "pass" if loads.min() >= least else "fail"
    return Control("positive", what, state, float(loads.min()), least, found.n, named)


def _negative(panel: ScorePanel, plan: PanelPlan, found: Structure) -> Control:
    what, least = "panels with shuffled columns stay within the null", plan.thresholds.negative_share
    if not found.n:
        return Control("negative", what, "not testable", np.nan, least, 0, NO_COMPONENTS)
    data = panel.scores[found.loadings["column"].tolist()].dropna().to_numpy(dtype=float)
    rng = stream(plan.seed, "shuffled")
    first = permuted_eigenvalues(data, plan.resampling.negative_control, rng)[:, 0]
    share = float((first <= found.eigenvalues["null_q95"].iloc[0]).mean())
    detail = f"first eigenvalue within the null's 95 % in {percent(share)} of {first.size:,} shuffled panels"
    return Control("negative", what, "pass" if share >= least else "fail", share, least, found.n, detail)


def _convergent(panel: ScorePanel, plan: PanelPlan) -> list[Control]:
    pairs = benchmark_pairs(panel, distinct=False)
    if pairs:
        return [_convergent_pair(panel, plan, Association(x, y)) for x, y in pairs]
    what, detail = "benchmarks of one construct agree", "no two benchmarks are meant to measure one construct"
    return [Control("convergent", what, "not testable", np.nan, plan.thresholds.convergent, 0, detail)]


def _convergent_pair(panel: ScorePanel, plan: PanelPlan, pair: Association) -> Control:
    t = plan.thresholds
    what = f"{panel.label(pair.x)} and {panel.label(pair.y)} agree"
    given, reason = sample(panel, pair), untestable(panel, pair)
    if reason:
        return Control("convergent", what, "inconclusive", np.nan, t.convergent, given.n, reason)
    rho = point(given, pair)
    hint = "; does one of them point the wrong way (higher_is in the plan)?" if rho < 0 else ""
    detail = f"rho {rho_text(rho)} on {models(given.n)}{hint}"
    if given.n < t.convergent_n:
        few = f"{detail}, too few for a conclusion (at least {t.convergent_n})"
        return Control("convergent", what, "inconclusive", rho, t.convergent, given.n, few)
    state: State = "pass" if rho >= t.convergent else "fail"
    return Control("convergent", what, state, rho, t.convergent, given.n, detail)


def doubts(panel: ScorePanel, plan: PanelPlan, table: pd.DataFrame, tested: pd.DataFrame) -> list[str]:
    """What should be mended, or known, before anything about capability is believed.

    Parameters
    ----------
    panel : ScorePanel
    plan : PanelPlan
    table : DataFrame
        Of `irtaudit.panel.associations.associations`.
    tested : DataFrame
        Of :func:`controls`.
    """
    raw = table[table["given"] == ""]
    opposed = raw[(raw["kind"] == "anchors") & (raw["rho"] < 0)]
    turned = raw[(raw["kind"] != "anchors") & (raw["rho"] <= -plan.thresholds.interchangeable)]
    said = [
        f"The anchors {panel.label(x)} and {panel.label(y)} order the models in opposite ways (rho "
        f"{rho_text(rho)}): if one of them points the wrong way (higher_is in the plan), capability is "
        "meaningless here."
        for x, y, rho in zip(opposed["x"], opposed["y"], opposed["rho"], strict=True)
    ]
    said += [
        f"{panel.label(x)} and {panel.label(y)} order the models in opposite ways (rho {rho_text(rho)}): "
        "does one of them point the wrong way (higher_is in the plan)?"
        for x, y, rho in zip(turned["x"], turned["y"], turned["rho"], strict=True)
    ]
    positive = tested[tested["control"] == "positive"].iloc[0]
    if positive["state"] == "fail":
        said.append(
            f"The positive control fails: loadings of the anchors on the first component are "
            f"{positive['detail']}, where {positive['threshold']:.2f} is asked of each. Read what is said of "
            "capability with doubt."
        )
    return said


@dataclass(frozen=True)
class Decision:
    """May the factor structure be read? The conditions of the rule one by one, and the answer in words."""

    readable: bool
    first_component: bool
    redundancy_drop: bool
    positive: State
    negative: State
    why: str


def decide(plan: PanelPlan, found: Structure, tested: pd.DataFrame, headline: Redundancy) -> Decision:
    """The rule: (first component >= .40 of the variance, or a drop >= .15), and both controls pass."""
    t = plan.thresholds
    large = bool(found.share("Pearson") >= t.first_component)
    drop = bool(headline.drop >= t.redundancy_drop)
    state = tested.drop_duplicates("control").set_index("control")["state"]
    positive, negative = state["positive"], state["negative"]
    why = (
        f"the first component carries {percent(found.share('Pearson'))} of the variance (rule: "
        f"{percent(t.first_component)}), {_change(headline)} (rule: a drop of {t.redundancy_drop:.2f}), "
        f"positive control: {positive}, negative control: {negative}"
        if found.n
        else NO_COMPONENTS
    )
    return Decision((large or drop) and positive == negative == "pass", large, drop, positive, negative, why)


def _change(headline: Redundancy) -> str:
    if not np.isfinite(headline.drop):
        return "what controlling capability does to the median correlation is undefined"
    before, after = headline.raw, headline.given_capability
    return f"controlling capability takes the median correlation from {before:.2f} to {after:.2f}"
