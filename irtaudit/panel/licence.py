"""What one benchmark's score licenses one to say: a headline to quote, and what follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import Association, NotTested, label
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.standings import Standing, outer
from irtaudit.panel.words import (
    both_spans,
    excluding_zero,
    joined,
    metric_name,
    percent,
    records,
    rho_text,
    span,
)

WORDS: dict[Standing, str] = {
    "below": "not interchangeable",
    "above": "interchangeable",
    "open": "not settled",
}
LICENCES = [
    "benchmark",
    "ranks_models_by",
    "n",
    "interchangeable_with",
    "not_interchangeable_with",
    "not_settled_with",
    "capability_rho",
    "capability_share",
    "is_capability",
    "not_testable",
    "n_needed",
    "headline",
    "sentence",
]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the sentences about one benchmark draw on."""

    panel: ScorePanel
    plan: PanelPlan
    standings: pd.DataFrame
    associations: pd.DataFrame
    against: pd.DataFrame
    not_tested: list[NotTested]

    def of(self, name: str) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Standings of a benchmark with others (each with its ``partner``), and with capability."""
        table = self.standings
        rows = records(table[(table["x"] == name) | (table["y"] == name)])
        own = next((row for row in rows if row["x"] == CAPABILITY), None)
        others = [row for row in rows if row["x"] != CAPABILITY]
        partners = [self.panel.label(row["y"] if row["x"] == name else row["x"]) for row in others]
        return [{**row, "partner": p} for row, p in zip(others, partners, strict=True)], own


def licence(found: Evidence, name: str) -> tuple[dict[str, Any], list[str]]:
    """Row of the table, and the paragraphs that follow its headline."""
    described, table = found.plan.columns[name], found.associations
    others, own = found.of(name)
    n = int(found.panel.scores[name].notna().sum()) if name in found.panel.scores else 0
    gaps = _gaps(found, name)
    given = table[(table["given"] == CAPABILITY) & ((table["x"] == name) | (table["y"] == name))]
    why_not = _why_not(found, name)
    headline = _headline(described.label or name, described.measures, others, own, why_not)
    paragraphs = [
        _pairs_paragraph(others),
        " ".join([_capability_sentence(own), *_criterion_sentences(found.panel, name, table)]).strip(),
        " ".join(_policy_sentences(found.against[found.against["column"] == name])),
        " ".join(
            [f"Not testable here: {'; '.join(gaps)}." if gaps else "", _size_sentence(found.plan, given)]
        ),
    ]
    details = [paragraph.strip() for paragraph in paragraphs if paragraph.strip()]
    partners = {
        side: [row["partner"] for row in others if row["standing"] == side] for side in get_args(Standing)
    }
    words = {"above": "yes", "below": "no", "open": "open"}
    row = {
        "benchmark": name,
        "ranks_models_by": described.measures,
        "n": n,
        "interchangeable_with": ", ".join(partners["above"]),
        "not_interchangeable_with": ", ".join(partners["below"]),
        "not_settled_with": ", ".join(partners["open"]),
        "capability_rho": np.nan if own is None else own["rho"],
        "capability_share": np.nan if own is None else own["rho"] ** 2,
        "is_capability": "" if own is None else words[own["standing"]],
        "not_testable": "; ".join(gaps),
        "n_needed": float(given["n_needed"].max()) if len(given) else np.nan,
        "headline": headline,
        "sentence": " ".join([headline, *details]),
    }
    return row, details


def _why_not(found: Evidence, name: str) -> str:
    """Why nothing is said about a benchmark and capability."""
    if name not in found.panel.scores:
        return "its models do not differ"
    wanted = label(found.panel, Association(CAPABILITY, name))
    return next((one.reason for one in found.not_tested if one.what == wanted), "")


def _headline(
    title: str, measures: str, others: list[dict[str, Any]], own: dict[str, Any] | None, why_not: str
) -> str:
    apart, alike = ([r["partner"] for r in others if r["standing"] == side] for side in ("below", "above"))
    clauses = [f"{title} ranks models by {measures or 'its own measure'}"]
    clauses += [f"it is not interchangeable with {joined(apart, 'or')}"] if apart else []
    clauses += [f"it may stand for {joined(alike)}"] if alike else []
    clauses += ["whether it may stand for another score is open"] if others and not (apart or alike) else []
    if own is None:
        clauses.append(f"how much of it is capability cannot be said: {why_not}")
    elif own["standing"] == "above":
        clauses.append(f"its order is capability's on this panel of n = {own['n']}")
    else:
        share = percent(own["rho"] ** 2)
        clauses.append(f"capability explains {share} of its order on this panel of n = {own['n']}")
    return "; ".join(clauses) + "."


def _pairs_paragraph(others: list[dict[str, Any]]) -> str:
    said = [
        f"{r['partner']} {rho_text(r['rho'])} ({both_spans(r)}; n = {r['n']}), " + WORDS[r["standing"]]
        for r in others
    ]
    return f"Rank correlations with 95 % intervals: {'; '.join(said)}." if said else ""


def _capability_sentence(own: dict[str, Any] | None) -> str:
    if own is None:
        return ""
    least, most = _squares(*outer(own))
    tail = {
        "above": "its order is capability's",
        "below": "it is not capability under another name",
        "open": "whether it is capability under another name is not settled",
    }[own["standing"]]
    return (
        f"It goes with capability at rho {rho_text(own['rho'])} ({both_spans(own)}), which leaves capability "
        f"{percent(least)} to {percent(most)} of its order: {tail}."
    )


def _squares(low: float, high: float) -> tuple[float, float]:
    """Range of rho squared over an interval of rho."""
    ends = sorted((low**2, high**2))
    return (0.0 if low < 0 < high else ends[0]), ends[1]


def _criterion_sentences(panel: ScorePanel, name: str, table: pd.DataFrame) -> list[str]:
    rows = table[(table["kind"] == "criterion") & (table["x"] == name) & (table["given"] == CAPABILITY)]
    found = excluding_zero(rows[rows["p_adjusted"] < 0.05])
    if len(found):
        said = [
            f"{panel.label(r['y'])} (partial rho {rho_text(r['rho'])}, {span(r['low'], r['high'])}, "
            f"n = {r['n']})"
            for r in records(found)
        ]
        return [f"Beyond capability it goes with {joined(said)}."]
    if rows.empty:
        return []
    names, most = [panel.label(y) for y in rows["y"]], rows["rho"].abs().max()
    return [f"Beyond capability it is not shown to predict {joined(names, 'or')} (largest |rho| {most:.2f})."]


def _policy_sentences(against: pd.DataFrame) -> list[str]:
    """The benchmark's own metric against the best policy that never looks."""
    said = []
    for metric, rows in against[against["metric"] != "balanced_accuracy"].groupby("metric", sort=False):
        ahead, n = int((rows["beats"] == "yes").sum()), len(rows)
        score, policy = rows["constant"].median(), rows["policy"].iloc[0]
        one = f"the one model with known counts is{'' if ahead else ' not'}"
        who = f"{ahead or 'none'} of {n} models {'is' if ahead == 1 else 'are'}" if n > 1 else one
        said.append(
            f"By {metric_name(str(metric))} alone a policy that never looks ({policy}) scores {score:.2f}; "
            f"{who} shown to do better."
        )
    return said


def _gaps(found: Evidence, name: str) -> list[str]:
    """What a reader might expect to be said of a benchmark, and cannot be."""
    panel, described = found.panel, found.plan.columns[name]
    construct = panel.columns["construct"]
    present = name in panel.scores
    alone = not present or (construct[panel.of("benchmark")] == construct[name]).sum() < 2
    unreliable = any(one.part == "reliability" and one.what == panel.label(name) for one in found.not_tested)
    reasons = {
        "anything about its order, because its models do not differ": not present,
        "convergence, without a second score of its construct": alone,
        "prediction, without a held-out outcome": not panel.of("criterion"),
        "capability, without an anchor": not panel.of("anchor"),
        "reliability, without item responses, halves or the number of items": unreliable,
        "what a policy that never looks would score, without its metric": described.metric is None
        and described.counts is None,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _size_sentence(plan: PanelPlan, given: pd.DataFrame) -> str:
    if given.empty:
        return ""
    what = f"a correlation of {plan.thresholds.effect:.2f} given capability"
    power, n, needed = given["power"].min(), int(given["n"].min()), int(given["n_needed"].max())
    if power >= 0.8:
        return f"With n = {n}, {what} is found with a power of {percent(power)}."
    return f"With n = {n}, {what} is found with a power of {percent(power)}; 80 % needs {needed} models."
