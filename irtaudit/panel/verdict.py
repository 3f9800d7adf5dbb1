"""What each score licenses one to say, in sentences, and the answer to the reading under test.

Two scores may stand for each other when their rank correlation reaches the plan's threshold (.80). Where a
pair stands is read off its 95 % interval over models and, where organizations are known, the one over
organizations: both must lie on one side. The answer uses intervals that hold for all pairs jointly.

=========================  ==========================================================================
``nothing to measure``     no two benchmarks, and no benchmark and capability, can be compared
``not supported``          some pair of benchmarks lies below the threshold, or some benchmark's order
                           is that of capability (above it)
``supported``              every pair lies above the threshold and no benchmark's order is capability's;
                           none of these comparisons is missing
``inconclusive``           anything else
=========================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import MIN_MODELS, Association, NotTested, label, models
from irtaudit.panel.licence import LICENCES, Evidence, licence
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.standings import standings
from irtaudit.panel.words import both_spans, comparisons, joined, records, rho_text

Word = Literal["supported", "not supported", "inconclusive", "nothing to measure"]


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
        high_joint`` and ``clusters_low_joint, clusters_high_joint`` (the same, jointly 95 %);
        ``threshold``; ``standing, standing_joint``: "above", "below" or "open"; ``n_to_settle``: models
        with which the 95 % intervals would keep clear of the threshold, if the correlation stayed and
        intervals shrank with the root of n (NaN: never); ``n_to_settle_joint``: the same for the joint ones.
    benchmarks : DataFrame
        One row per benchmark, see `licence.LICENCES`: the parts of its verdict; ``headline``, to be quoted;
        ``sentence``, which says it all.
    details : mapping of str to tuple of str
        What follows the headline, in paragraphs, by benchmark.
    """

    word: Word
    because: str
    standings: pd.DataFrame
    benchmarks: pd.DataFrame
    details: Mapping[str, tuple[str, ...]]


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
    found = standings(panel, plan, associations)
    missing = _missing(panel, plan, found, not_tested)
    word, because = _answer(panel, plan, found, missing)
    evidence = Evidence(panel, plan, found, associations, against, not_tested)
    told = {name: licence(evidence, name) for name in plan.of("benchmark")}
    table = pd.DataFrame([row for row, _ in told.values()], columns=LICENCES)
    return Verdict(word, because, found, table, {name: tuple(text) for name, (_, text) in told.items()})


# the answer -------------------------------------------------------------------------------------------


def _answer(panel: ScorePanel, plan: PanelPlan, found: pd.DataFrame, missing: list[str]) -> tuple[Word, str]:
    if found.empty:
        return "nothing to measure", _nothing(panel)
    capability = found["x"] == CAPABILITY
    pairs, own = found[~capability], found[capability]
    apart, disguised = pairs[pairs["standing_joint"] == "below"], own[own["standing_joint"] == "above"]
    if len(disguised) or len(apart):
        decisive = disguised if len(disguised) else apart.sort_values("high_joint")
        return "not supported", _because(panel, records(decisive)[0])
    if pairs.empty:
        return "inconclusive", _alone(own)
    left = found[found["standing_joint"] == "open"]
    if len(left):
        return "inconclusive", _open(panel, plan, left, len(found))
    if missing:
        return "inconclusive", _incomplete(len(found), missing)
    return "supported", _because(panel, records(pairs.sort_values("low_joint"))[0])


def _missing(
    panel: ScorePanel, plan: PanelPlan, found: pd.DataFrame, not_tested: list[NotTested]
) -> list[str]:
    """Comparisons that the reading needs and the panel cannot make, each with the reason."""
    benchmarks = plan.of("benchmark")
    wanted = [*combinations(benchmarks, 2), *((CAPABILITY, name) for name in benchmarks)]
    made = set(zip(found["x"], found["y"], strict=True))
    reasons = {one.what: one.reason for one in not_tested}
    return [
        f"{joined(_names(panel, {'x': x, 'y': y}))} "
        f"({reasons.get(label(panel, Association(x, y)), 'a score in which models do not differ')})"
        for x, y in wanted
        if (x, y) not in made
    ]


def _nothing(panel: ScorePanel) -> str:
    usable = panel.scores.notna().sum()
    if len(usable) < 2:
        return f"{'Only one column' if len(usable) else 'No column'} has scores in which models differ."
    return (
        "No two benchmarks, and no benchmark and capability, have enough models in common: a correlation of "
        f"ranks needs {MIN_MODELS}, the fullest column has {models(int(usable.max()))}."
    )


def _because(panel: ScorePanel, row: dict[str, Any]) -> str:
    x, y = _names(panel, row)
    said = f"rho {rho_text(row['rho'])}, joint 95 % interval {both_spans(row, '_joint')}"
    if row["x"] == CAPABILITY:
        return f"{y} orders the {row['n']} models as {x} does ({said}): it is capability under another name."
    if row["standing_joint"] == "below":
        return (
            f"{x} and {y} order the same {row['n']} models differently ({said}). One score could stand for "
            f"another from {row['threshold']:.2f}."
        )
    return (
        f"Even {x} and {y}, the pair that agrees least, order the {row['n']} models alike ({said}; the "
        f"threshold is {row['threshold']:.2f}), and no benchmark is capability under another name."
    )


def _alone(own: pd.DataFrame) -> str:
    who = "Only one benchmark has enough models" if len(own) == 1 else "No two benchmarks share enough models"
    return f"{who}: nothing shows whether one score could stand for another."


def _incomplete(n_made: int, missing: list[str]) -> str:
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"Nothing speaks against it in the {comparisons(n_made)} that can be made, "
        f"but it needs others: {missing[0]}{more}."
    )


def _open(panel: ScorePanel, plan: PanelPlan, left: pd.DataFrame, n_made: int) -> str:
    row = records(left.sort_values("n_to_settle_joint"))[0]
    need = row["n_to_settle_joint"]
    few = ", too few for any verdict" if row["n"] < plan.thresholds.convergent_n else ""
    enough = max(need, row["n"] + 1, plan.thresholds.convergent_n)
    settles = f"; about {enough:.0f} models would settle it if it stays there" if np.isfinite(need) else ""
    return (
        f"{len(left)} of {comparisons(n_made)} stay open: {joined(_names(panel, row))} correlate at "
        f"{rho_text(row['rho'])} (joint 95 % interval {both_spans(row, '_joint')}; threshold "
        f"{row['threshold']:.2f}) on {models(row['n'])}{few}{settles}."
    )


def _names(panel: ScorePanel, row: dict[str, Any]) -> list[str]:
    return [CAPABILITY if row[axis] == CAPABILITY else panel.label(row[axis]) for axis in ("x", "y")]
