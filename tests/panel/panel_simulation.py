"""Simulated panels with known truth, and plans for them with few draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.plan import PanelPlan
from irtaudit.plan import make_plan

FEW = {
    "bootstrap": 400,
    "permutations": 400,
    "horn": 200,
    "negative_control": 200,
    "matched": 200,
    "subsets": 500,
}


def plan_for(columns: Mapping[str, str | Mapping[str, Any]], **more: Any) -> PanelPlan:
    """A plan; a column is a role, or a table of keys."""
    described = {name: {"role": use} if isinstance(use, str) else dict(use) for name, use in columns.items()}
    resampling = {**FEW, "subset_sizes": [5], **more.pop("resampling", {})}
    values = {"kind": "panel", "schema_version": 1, "columns": described, "resampling": resampling, **more}
    return make_plan(values, PanelPlan)


def panel_of(
    scores: Mapping[str, Any],
    plan: PanelPlan,
    organizations: Any = None,
    details: Mapping[str, Any] | None = None,
    names: list[str] | None = None,
) -> ScorePanel:
    """A panel of these scores, models named in order unless `names` are given."""
    n = len(next(iter(scores.values())))
    index = pd.Index(names or [f"model_{i:02d}" for i in range(n)], name="model", dtype=object)
    return ScorePanel.from_frame(
        pd.DataFrame({c: np.asarray(scores[c], dtype=float) for c in plan.columns}, index=index),
        plan.columns,
        organizations=None if organizations is None else pd.Series(list(organizations), index=index),
        details=pd.DataFrame(dict(details or {}), index=index, dtype=float),
    )


def normal_columns(n: int, correlation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, column) normal draws with a correlation matrix."""
    return rng.standard_normal((n, len(correlation))) @ np.linalg.cholesky(correlation).T


def spearman_of(r: float) -> float:
    """Spearman correlation of a bivariate normal with Pearson correlation r."""
    return float(6 / np.pi * np.arcsin(r / 2))
