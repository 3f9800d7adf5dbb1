"""What each score licenses one to say, in sentences, and the answer to the reading under test.

Two scores may stand for each other when their rank correlation reaches the plan's threshold (.80). Where a
pair stands is read off its 95 % interval over models and, where organizations are known, the one over
organizations: both must lie on one side. The answer uses intervals that hold for all pairs jointly.

=========================  ==========================================================================
``nothing to measure``     no two benchmarks, and no benchmark and capability, can be compared
``not supported``          some pair of benchmarks lies below the threshold, or some benchmark's order
                           is that of capability (above it)
``supported``              every pair lies above the threshold and no benchmark's order is capability's
``inconclusive``           anything else
=========================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import Association, NotTested, models
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.robustness import cluster_bootstrap

Word = Literal["supported", "not supported", "inconclusive", "nothing to measure"]
Standing = Literal["above", "below", "open"]
STANDING = [
    "x",
    "y",
    "n",
    "rho",
    "low",
    "high",
    "clusters_low",
    "clusters_high",
    "low_joint",
    "high_joint",
    "threshold",
    "standing",
    "standing_joint",
    "n_to_settle",
]
VERDICTS = [
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
    "sentence",
]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer.

    Attributes
    ----------
    word : str
    because : str
        One sentence with the number and interval that decide.
    standings : DataFrame
        ``x, y`` (two benchmarks, or "capability" and one), ``n, rho``; ``low, high`` (over models) and
        ``clusters_low, clusters_high`` (over organizations; NaN: unknown), 95 % each; ``low_joint,
        high_joint`` (over models, jointly 95 %); ``threshold``; ``standing, standing_joint``: "above",
        "below" or "open"; ``n_to_settle``: models with which the 95 % intervals would keep clear of the
        threshold, if the correlation stayed and intervals shrank with the root of n (NaN: never).
    benchmarks : DataFrame
        One row per benchmark, see `VERDICTS`: the parts of its verdict, and ``sentence``, which says it all.
    """

    word: Word
    because: str
    standings: pd.DataFrame
    benchmarks: pd.DataFrame


def judge(
    panel: ScorePanel,
    plan: PanelPlan,
    associations: pd.DataFrame,
    against: pd.DataFrame,
    not_tested: list[NotTested],
) -> Verdict:
    """Sentences for every benchmark, and one word for the reading.

    Parameters
    ----------
    panel : ScorePanel
        Screened.
    plan : PanelPlan
    associations : DataFrame
        Of `irtaudit.panel.associations.associations`.
    against : DataFrame
        Of `irtaudit.panel.metrics.Metrics`.
    not_tested : list of NotTested
        From every part of the audit.
    """
    standings = _standings(panel, plan, associations)
    word, because = _answer(panel, plan, standings)
    evidence = _Evidence(panel, plan, standings, associations, against, not_tested)
    rows = [_benchmark(evidence, name) for name in plan.of("benchmark")]
    return Verdict(word, because, standings, pd.DataFrame(rows, columns=VERDICTS))


# pairs ------------------------------------------------------------------------------------------------


def _standings(panel: ScorePanel, plan: PanelPlan, table: pd.DataFrame) -> pd.DataFrame:
    raw = table[(table["given"] == "") & table["y"].isin(panel.of("benchmark"))]
    rows = [
        _standing(panel, plan, row, len(pairs))
        for kind in ("between", "capability")
        for pairs in [raw[raw["kind"] == kind]]
        for row in pairs.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=STANDING)


def _standing(panel: ScorePanel, plan: PanelPlan, row: dict[Any, Any], together: int) -> dict[str, Any]:
    pair, threshold = Association(row["x"], row["y"]), plan.thresholds.interchangeable
    each, joint = (_over_organizations(panel, plan, pair, 1 - 0.05 / m) for m in (1, together))
    enough = row["n"] >= plan.thresholds.convergent_n
    rule = _Rule(threshold, either_sign=row["x"] == CAPABILITY, enough=enough)
    own = row["low"], row["high"]
    return {
        **{name: row[name] for name in ("x", "y", "n", "rho", "low", "high", "low_joint", "high_joint")},
        "clusters_low": max(each[0], -1.0),
        "clusters_high": min(each[1], 1.0),
        "threshold": threshold,
        "standing": rule.standing(own, each),
        "standing_joint": rule.standing((row["low_joint"], row["high_joint"]), joint),
        "n_to_settle": models_to_settle(row["n"], row["rho"], [own, each], threshold),
    }


def _over_organizations(
    panel: ScorePanel, plan: PanelPlan, pair: Association, level: float
) -> tuple[float, float]:
    found = cluster_bootstrap(panel, plan, pair, level)
    return (np.nan, np.nan) if isinstance(found, str) else (found.low, found.high)


class _Rule(NamedTuple):
    """Where intervals stand to the threshold; a score that reverses capability's order is capability, too."""

    threshold: float
    either_sign: bool
    enough: bool

    def standing(self, *intervals: tuple[float, float]) -> Standing:
        sides = {self._side(low, high) for low, high in intervals if np.isfinite(low)}
        return sides.pop() if len(sides) == 1 and self.enough else "open"

    def _side(self, low: float, high: float) -> Standing:
        if low >= self.threshold or (self.either_sign and high <= -self.threshold):
            return "above"
        inside = high < self.threshold and (low > -self.threshold or not self.either_sign)
        return "below" if inside else "open"


def models_to_settle(n: int, rho: float, intervals: list[tuple[float, float]], threshold: float) -> float:
    """Models with which intervals around `rho` would end at the threshold, if they shrink with the root of n.

    Returns
    -------
    float
        A whole number; NaN when it is beyond ten thousand or `rho` is the threshold.
    """
    above = rho >= threshold
    reach = max((rho - low if above else high - rho) for low, high in intervals if np.isfinite(low))
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(n * (np.float64(reach) / abs(threshold - rho)) ** 2)
    return float(needed) if needed <= 10_000 else np.nan


# the answer -------------------------------------------------------------------------------------------


def _answer(panel: ScorePanel, plan: PanelPlan, standings: pd.DataFrame) -> tuple[Word, str]:
    if standings.empty:
        return "nothing to measure", _nothing(panel)
    capability = standings["x"] == CAPABILITY
    pairs, own = standings[~capability], standings[capability]
    apart, disguised = pairs[pairs["standing_joint"] == "below"], own[own["standing_joint"] == "above"]
    if len(disguised) or len(apart):
        decisive = disguised if len(disguised) else apart.sort_values("high_joint")
        return "not supported", _because(panel, decisive.iloc[0])
    alike = len(pairs) > 0 and bool((pairs["standing_joint"] == "above").all())
    if alike and (own["standing_joint"] == "below").all():
        return "supported", _because(panel, pairs.sort_values("low_joint").iloc[0])
    return "inconclusive", _open(panel, plan, standings, pairs)


def _nothing(panel: ScorePanel) -> str:
    most = int(panel.scores.notna().sum().max()) if panel.scores.size else 0
    return (
        "No two benchmarks, and no benchmark and capability, share enough models that differ: the fullest of "
        f"the {panel.scores.shape[1]} columns that can rank models has {models(most)}."
    )


def _because(panel: ScorePanel, row: pd.Series) -> str:
    x, y = (_name(panel, row[axis]) for axis in "xy")
    said = f"rho {row['rho']:+.2f}, joint 95 % interval {row['low_joint']:+.2f} to {row['high_joint']:+.2f}"
    if row["x"] == CAPABILITY:
        return f"{y} orders the {row['n']} models as {x} does ({said}): it is capability under another name."
    if row["standing_joint"] == "below":
        return (
            f"{x} and {y} order the same {row['n']} models differently ({said}); from {row['threshold']:.2f} "
            "one score could stand for the other."
        )
    return (
        f"Even {x} and {y}, the pair that agrees least, order the {row['n']} models alike ({said}; the "
        f"threshold is {row['threshold']:.2f}), and no benchmark is capability under another name."
    )


def _open(panel: ScorePanel, plan: PanelPlan, standings: pd.DataFrame, pairs: pd.DataFrame) -> str:
    if pairs.empty:
        return (
            "Only one benchmark has enough models: nothing shows whether its score could stand for another."
        )
    left = standings[standings["standing_joint"] == "open"]
    row = (left if len(left) else pairs).sort_values("n_to_settle").iloc[0]
    x, y = (_name(panel, row[axis]) for axis in "xy")
    few = ", too few for any verdict" if row["n"] < plan.thresholds.convergent_n else ""
    return (
        f"{len(left)} of {len(standings)} comparisons are open: {x} and {y} correlate at {row['rho']:+.2f} "
        f"(95 % interval {row['low']:+.2f} to {row['high']:+.2f}, threshold {row['threshold']:.2f}) on "
        f"{models(row['n'])}{few}{_settles(row, plan)}."
    )


def _settles(row: pd.Series, plan: PanelPlan) -> str:
    if not np.isfinite(row["n_to_settle"]):
        return ""
    need = max(row["n_to_settle"], row["n"] + 1, plan.thresholds.convergent_n)
    return f"; about {need:.0f} models would settle it if it stays there"


def _name(panel: ScorePanel, column: str) -> str:
    return CAPABILITY if column == CAPABILITY else panel.label(column)


# one benchmark ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the sentences about one benchmark draw on."""

    panel: ScorePanel
    plan: PanelPlan
    standings: pd.DataFrame
    associations: pd.DataFrame
    against: pd.DataFrame
    not_tested: list[NotTested]


def _benchmark(found: _Evidence, name: str) -> dict[str, Any]:
    described, standings, table = found.plan.columns[name], found.standings, found.associations
    mine = standings[(standings["y"] == name) | (standings["x"] == name)]
    others = {side: _partners(found.panel, mine, name, side) for side in ("above", "below", "open")}
    own = mine[mine["x"] == CAPABILITY]
    n = int(found.panel.scores[name].notna().sum()) if name in found.panel.scores else 0
    gaps = _gaps(found, name)
    given = table[(table["given"] == CAPABILITY) & ((table["x"] == name) | (table["y"] == name))]
    sentences = [
        f"{described.label or name} ranks models by {described.measures or 'its own measure'}.",
        *_pair_sentences(others),
        _capability_sentence(own, n),
        *_criterion_sentences(found.panel, name, table),
        *_policy_sentences(found.against[found.against["column"] == name]),
        f"Not testable here: {'; '.join(gaps)}." if gaps else "",
        _size_sentence(found.plan, given),
    ]
    rho = float(own["rho"].iloc[0]) if len(own) else np.nan
    words = {"above": "yes", "below": "no", "open": "open"}
    return {
        "benchmark": name,
        "ranks_models_by": described.measures,
        "n": n,
        "interchangeable_with": ", ".join(others["above"]),
        "not_interchangeable_with": ", ".join(others["below"]),
        "not_settled_with": ", ".join(others["open"]),
        "capability_rho": rho,
        "capability_share": rho**2,
        "is_capability": words[own["standing"].iloc[0]] if len(own) else "",
        "not_testable": "; ".join(gaps),
        "n_needed": float(given["n_needed"].max()) if len(given) else np.nan,
        "sentence": " ".join(sentence for sentence in sentences if sentence),
    }


def _partners(panel: ScorePanel, mine: pd.DataFrame, name: str, side: str) -> list[str]:
    rows = mine[(mine["standing"] == side) & (mine["x"] != CAPABILITY)]
    return [
        f"{panel.label(row['y'] if row['x'] == name else row['x'])} (rho {row['rho']:+.2f}, n = {row['n']})"
        for row in rows.to_dict("records")
    ]


def _pair_sentences(others: dict[str, list[str]]) -> list[str]:
    words = {
        "below": ("It is not interchangeable with {}.", "or"),
        "above": ("It is interchangeable with {}.", "and"),
        "open": ("Whether it is interchangeable with {} is not settled.", "or"),
    }
    return [said.format(_joined(others[side], word)) for side, (said, word) in words.items() if others[side]]


def _joined(names: list[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _capability_sentence(own: pd.DataFrame, n: int) -> str:
    if own.empty:
        return f"How much of it is capability cannot be said on this panel of n = {n}."
    row = own.iloc[0]
    least, most = _squares(row["low"], row["high"])
    tail = {
        "above": "its order is capability's",
        "below": "it is not capability under another name",
        "open": "whether it is capability under another name is not settled",
    }[row["standing"]]
    return (
        f"Capability explains {row['rho'] ** 2:.0%} of its order (rho {row['rho']:+.2f}; 95 % interval "
        f"{least:.0%} to {most:.0%}) on this panel of n = {row['n']}: {tail}."
    )


def _squares(low: float, high: float) -> tuple[float, float]:
    """Range of rho squared over an interval of rho."""
    ends = sorted((low**2, high**2))
    return (0.0 if low < 0 < high else ends[0]), ends[1]


def _criterion_sentences(panel: ScorePanel, name: str, table: pd.DataFrame) -> list[str]:
    rows = table[(table["kind"] == "criterion") & (table["x"] == name) & (table["given"] == CAPABILITY)]
    found = rows[(rows["p_adjusted"] < 0.05) & ((rows["low"] > 0) | (rows["high"] < 0))]
    if len(found):
        said = [
            f"{panel.label(y)} (partial rho {rho:+.2f}, {low:+.2f} to {high:+.2f}, n = {n})"
            for y, rho, low, high, n in found[["y", "rho", "low", "high", "n"]].itertuples(index=False)
        ]
        return [f"Beyond capability it goes with {_joined(said, 'and')}."]
    if rows.empty:
        return []
    names, most = [panel.label(y) for y in rows["y"]], rows["rho"].abs().max()
    return [
        f"Beyond capability it is not shown to predict {_joined(names, 'or')} (largest |rho| {most:.2f})."
    ]


def _policy_sentences(against: pd.DataFrame) -> list[str]:
    """The benchmark's own metric against the best policy that never looks."""
    said = []
    for metric, rows in against[against["metric"] != "balanced_accuracy"].groupby("metric", sort=False):
        ahead, n = int((rows["beats"] == "yes").sum()), len(rows)
        score, policy = rows["constant"].median(), rows["policy"].iloc[0]
        who = (
            f"{ahead} of {n} models are"
            if n > 1
            else f"the one model with known counts is{'' if ahead else ' not'}"
        )
        said.append(
            f"By {metric} alone a policy that never looks ({policy}) scores {score:.2f}: {who} shown to do "
            "better."
        )
    return said


def _gaps(found: _Evidence, name: str) -> list[str]:
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
        return f"With n = {n}, {what} is found with a power of {power:.0%}."
    return f"With n = {n}, {what} is found with a power of {power:.0%}; 80 % needs {needed} models."
