"""What the paper prints and Table 1 can reproduce, beside what the audit finds.

Usage: ``python experiments/agent_safety_panel/reproduce.py [--out FOLDER]``. Writes ``reproduced.csv``.

Table 1 is printed to two decimals (GPQA to one), so a value computed from it is compared with the printed one
through two intervals: the numbers that round to the printed value, and the values that scores within the
rounding cells of Table 1 can give (`low_reachable` to `high_reachable`, over 2,000 random points of the
cells). They agree when the intervals meet.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.estimands import Association, point, sample
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.read import demo
from irtaudit.stats.correlation import t_p

HERE = Path(__file__).parent
RJ, IA, AH = "rjudge_specificity", "injecagent_robustness", "agentharm_safety"
HALF_UNIT = {RJ: 0.005, IA: 0.005, AH: 0.005, "gpqa_diamond": 0.05}


@dataclass(frozen=True)
class Printed:
    """A number of the paper, its section and rounding, and how it is computed, of an audit and of a panel."""

    what: str
    where: str
    value: float
    half_unit: float
    compute: Callable[[PanelAudit], float]
    rounding: Callable[[ScorePanel], float] | None = None


def rho(x: str, y: str, given_capability: bool = False) -> Callable[[ScorePanel], float]:
    """The correlation as a function of a panel."""
    one = Association(x, y, given_capability)
    return lambda panel: point(sample(panel, one), one)


def found_rho(x: str, y: str, column: str = "rho", given: str = "") -> Callable[[PanelAudit], float]:
    """A column of the row of a correlation in the audit's table."""

    def look(result: PanelAudit) -> float:
        table = result.associations
        return float(table[(table["x"] == x) & (table["y"] == y) & (table["given"] == given)][column].iloc[0])

    return look


def small(x: str, y: str) -> Callable[[PanelAudit], float]:
    """Share of panels of seven that reach .5."""

    def look(result: PanelAudit) -> float:
        table = result.small.table
        chosen = (table["x"] == x) & (table["y"] == y) & (table["size"] == 7)
        return float(table[chosen]["share"].iloc[0])

    return look


def o3_mini(metric: str) -> Callable[[PanelAudit], float]:
    """A metric of o3-mini on R-Judge, from its recovered counts."""

    def look(result: PanelAudit) -> float:
        table = result.metrics.metrics
        return float(table[(table["model"] == "o3-mini") & (table["metric"] == metric)]["value"].iloc[0])

    return look


def constant_f1(result: PanelAudit) -> float:
    """F1 of the always-positive policy on R-Judge."""
    table = result.metrics.baselines
    chosen = (table["metric"] == "f1") & (table["policy"] == "always positive")
    return float(table[chosen]["score"].iloc[0])


def p_of(panel: ScorePanel) -> float:
    """Asymptotic p of R-Judge specificity and AgentHarm safety."""
    return t_p(rho(RJ, AH)(panel), panel.n_models).p


PAIR = "rho(R-Judge specificity, AgentHarm safety), n = 18"
PRINTED = (
    Printed(PAIR, "4.3", 0.02, 0.005, found_rho(RJ, AH), rho(RJ, AH)),
    Printed("its asymptotic p", "4.3", 0.95, 0.005, found_rho(RJ, AH, "p"), p_of),
    Printed("share of size-7 panels with |rho| >= .5", "4.3", 0.25, 0.005, small(RJ, AH)),
    Printed("F1 of the always-unsafe policy on R-Judge", "4.1", 0.690, 0.0005, constant_f1),
    Printed("F1 of o3-mini on R-Judge", "4.1", 0.702, 0.0005, o3_mini("f1")),
    # printed as the difference of two rounded numbers, so that two half units add up
    Printed("o3-mini's F1 above it", "4.1", 0.012, 0.001, lambda r: o3_mini("f1")(r) - constant_f1(r)),
    Printed("specificity of o3-mini on R-Judge", "4.1", 0.97, 0.005, o3_mini("specificity")),
    Printed("power for a partial rho of .40", "4.4", 0.35, 0.005, found_rho(RJ, AH, "power", CAPABILITY)),
)


def reachable(
    panel: ScorePanel, compute: Callable[[ScorePanel], float], n: int, seed: int
) -> tuple[float, float]:
    """Range of a value over scores that print as the panel's do."""
    rng = np.random.default_rng(seed)
    half = np.array([HALF_UNIT[name] for name in panel.scores])
    values = [
        compute(panel.with_scores(panel.scores + rng.uniform(-half, half, panel.scores.shape)))
        for _ in range(n)
    ]
    return min(values), max(values)


def compare(result: PanelAudit, n_points: int = 2000, seed: int = 0) -> pd.DataFrame:
    """One row per printed number."""
    rows = []
    for one in PRINTED:
        value = one.compute(result)
        low, high, half = value, value, one.half_unit + 1e-12
        if one.rounding is not None:
            low, high = reachable(result.panel, one.rounding, n_points, seed)
        rows.append(
            {
                "what": one.what,
                "section": one.where,
                "printed": one.value,
                "found": value,
                "low_printed": one.value - one.half_unit,
                "high_printed": one.value + one.half_unit,
                "low_reachable": low,
                "high_reachable": high,
                "agrees": low <= one.value + half and high >= one.value - half,
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    result = audit_panel(*demo())
    table = compare(result)
    table.to_csv(out / "reproduced.csv", index=False, float_format="%.6f")
    print(table.drop(columns=["low_printed", "high_printed"]).round(4).to_string(index=False))
    print(f"\nVerdict on Table 1: {result.verdict.word}. {result.verdict.because}")
    print("The rest of the paper rests on scores that are not public: recovery.py plants such a panel.")


if __name__ == "__main__":
    main()
