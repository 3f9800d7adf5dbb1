"""Where each pair of scores stands to the agreement from which one may be quoted for the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import Association
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.panel.robustness import cluster_bootstrap
from irtaudit.panel.words import records

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
    "clusters_low_joint",
    "clusters_high_joint",
    "threshold",
    "standing",
    "standing_joint",
    "n_to_settle",
    "n_to_settle_joint",
]


def standings(panel: ScorePanel, plan: PanelPlan, associations: pd.DataFrame) -> pd.DataFrame:
    """Every pair of benchmarks, and capability with every benchmark, against the plan's threshold.

    Returns
    -------
    DataFrame
        `STANDING`, as `irtaudit.panel.verdict.Verdict` describes.
    """
    raw = associations[(associations["given"] == "") & associations["y"].isin(panel.of("benchmark"))]
    rows = [
        _standing(panel, plan, row, len(pairs))
        for kind in ("between", "capability")
        for pairs in [raw[raw["kind"] == kind]]
        for row in records(pairs)
    ]
    return pd.DataFrame(rows, columns=STANDING)


def _standing(panel: ScorePanel, plan: PanelPlan, row: dict[str, Any], together: int) -> dict[str, Any]:
    pair, threshold = Association(row["x"], row["y"]), plan.thresholds.interchangeable
    each, joint = (_over_organizations(panel, plan, pair, 1 - 0.05 / m) for m in (1, together))
    enough = row["n"] >= plan.thresholds.convergent_n
    rule = _Rule(threshold, either_sign=row["x"] == CAPABILITY, enough=enough)
    over_models = [(row[f"low{kind}"], row[f"high{kind}"]) for kind in ("", "_joint")]
    ends = [(max(low, -1.0), min(high, 1.0)) for low, high in (each, joint)]
    needed = [
        models_to_settle(row["n"], row["rho"], list(both), threshold, either_sign=rule.either_sign)
        for both in zip(over_models, (each, joint), strict=True)
    ]
    return {
        **{name: row[name] for name in ("x", "y", "n", "rho", "low", "high", "low_joint", "high_joint")},
        "clusters_low": ends[0][0],
        "clusters_high": ends[0][1],
        "clusters_low_joint": ends[1][0],
        "clusters_high_joint": ends[1][1],
        "threshold": threshold,
        "standing": rule.standing(over_models[0], each),
        "standing_joint": rule.standing(over_models[1], joint),
        "n_to_settle": needed[0],
        "n_to_settle_joint": needed[1],
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


def models_to_settle(
    n: int, rho: float, intervals: list[tuple[float, float]], threshold: float, *, either_sign: bool = False
) -> float:
    """Models with which intervals around `rho` would end at the threshold, if they shrink with the root of n.

    Parameters
    ----------
    n : int
    rho : float
    intervals : list of (low, high)
        Over models, over organizations; NaN: unknown.
    threshold : float
    either_sign : bool
        -`threshold` counts as well.

    Returns
    -------
    float
        A whole number; NaN when it is beyond ten thousand or `rho` is the threshold.
    """
    known = [pair for pair in intervals if np.isfinite(pair[0])]
    if either_sign and rho < 0:
        rho, known = -rho, [(-high, -low) for low, high in known]
    down, up = max(rho - low for low, _ in known), max(high - rho for _, high in known)
    room = [(down, rho - threshold)] if rho >= threshold else [(up, threshold - rho)]
    room += [(down, rho + threshold)] if either_sign and rho < threshold else []
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(n * max(np.float64(reach) / left for reach, left in room) ** 2)
    return float(needed) if needed <= 10_000 else np.nan


def outer(row: Mapping[str, Any], suffix: str = "") -> tuple[float, float]:
    """Ends of a standing's intervals over models and over organizations together: what decides it.

    Parameters
    ----------
    row : mapping
        Of :func:`standings`.
    suffix : {"", "_joint"}
    """
    low, high = (
        [v for v in (row[f"{end}{suffix}"], row[f"clusters_{end}{suffix}"]) if np.isfinite(v)]
        for end in ("low", "high")
    )
    return min(low), max(high)
