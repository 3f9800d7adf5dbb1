"""Do the columns share a factor? Principal components, Horn's parallel analysis, three controls, one rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import NotTested, capability, models, stream
from irtaudit.panel.plan import PanelPlan
from irtaudit.stats.bootstrap import without_each
from irtaudit.stats.components import (
    Components,
    null_eigenvalues,
    principal_components,
    retained,
)
from irtaudit.stats.correlation import rank_correlation

MATRICES = {"Pearson": False, "Spearman": True}
EIGENVALUES = [
    "matrix",
    "component",
    "eigenvalue",
    "share",
    "null_mean",
    "null_q95",
    "above_mean",
    "above_q95",
    "n",
]
LOADINGS = ["column", "role", "pearson", "spearman", "sign_kept", "left_out_models"]


@dataclass(frozen=True, eq=False)
class Structure:
    """Components of the common panel.

    Attributes
    ----------
    eigenvalues : DataFrame
        ``matrix`` ("Pearson", "Spearman"), ``component``, ``eigenvalue``, ``share`` of variance, ``null_mean,
        null_q95`` (Horn), ``above_mean, above_q95``, ``n`` models.
    loadings : DataFrame
        ``column, role``; ``pearson, spearman`` (loading on the first component of either matrix);
        ``sign_kept`` of ``left_out_models``: fits without one model in which the loading keeps its sign
        (Pearson; there is none where the others do not differ in some column).
    retained : dict
        Components kept until the first failure, by matrix and criterion: ``{"Pearson": {"mean": 1, ...}}``.
    composite_agreement : float
        Spearman correlation of the capability composite with the anchors' own first component; NaN with
        one anchor.
    """

    eigenvalues: pd.DataFrame
    loadings: pd.DataFrame
    retained: dict[str, dict[str, int]]
    composite_agreement: float

    @property
    def n(self) -> int:
        """Models that have every column of the components; 0 when there are no components."""
        return int(self.eigenvalues["n"].iloc[0]) if len(self.eigenvalues) else 0

    def share(self, matrix: str) -> float:
        """Share of variance of the first component."""
        rows = self.eigenvalues[self.eigenvalues["matrix"] == matrix]
        return float(rows["share"].iloc[0]) if len(rows) else np.nan


EMPTY = Structure(pd.DataFrame(columns=EIGENVALUES), pd.DataFrame(columns=LOADINGS), {}, np.nan)


def structure_columns(panel: ScorePanel, plan: PanelPlan) -> list[str]:
    """Columns of the components: the plan's, or anchors and benchmarks that enough models have."""
    if plan.structure:
        return [name for name in plan.structure if name in panel.scores]
    wanted = [*panel.of("anchor"), *panel.of("benchmark")]
    enough = panel.scores[wanted].notna().sum() >= plan.thresholds.convergent_n
    return [name for name in wanted if enough[name]]


def structure(panel: ScorePanel, plan: PanelPlan) -> tuple[Structure, list[NotTested]]:
    """Components of the models that have every column, against what unrelated columns would give."""
    columns = structure_columns(panel, plan)
    data = panel.scores[columns].dropna()
    reason = _why_not(data, panel, plan)
    if reason:
        return EMPTY, [NotTested("structure", "components of the score columns", reason)]
    values = data.to_numpy(dtype=float)
    found = {name: principal_components(values, ranked=ranked) for name, ranked in MATRICES.items()}
    n, k = values.shape
    nulls = {
        name: null_eigenvalues(n, k, plan.resampling.horn, stream(plan.seed, "horn", name), ranked=ranked)
        for name, ranked in MATRICES.items()
    }
    scree = [_scree(name, found[name], nulls[name], n) for name in MATRICES]
    return Structure(
        eigenvalues=pd.concat(scree, ignore_index=True),
        loadings=_loadings(panel, data, found),
        retained={name: _retained(found[name], nulls[name]) for name in MATRICES},
        composite_agreement=composite_agreement(panel),
    ), []


def _why_not(data: pd.DataFrame, panel: ScorePanel, plan: PanelPlan) -> str:
    least = plan.thresholds.convergent_n
    if data.shape[1] < 3:
        return f"{data.shape[1]} column(s) have scores of at least {least} models, three are needed"
    if len(data) < least:
        return f"{models(len(data))} have all {data.shape[1]} columns, at least {least} are needed"
    flat = [panel.label(str(name)) for name in data if data[name].nunique() < 2]
    return f"the {len(data)} models with all columns do not differ in {', '.join(flat)}" if flat else ""


def _scree(name: str, found: Components, null: np.ndarray, n: int) -> pd.DataFrame:
    mean, q95 = null.mean(axis=0), np.quantile(null, 0.95, axis=0)
    return pd.DataFrame(
        {
            "matrix": name,
            "component": np.arange(1, found.eigenvalues.size + 1),
            "eigenvalue": found.eigenvalues,
            "share": found.eigenvalues / found.eigenvalues.size,
            "null_mean": mean,
            "null_q95": q95,
            "above_mean": found.eigenvalues > mean,
            "above_q95": found.eigenvalues > q95,
            "n": n,
        },
        columns=EIGENVALUES,
    )


def _retained(found: Components, null: np.ndarray) -> dict[str, int]:
    criteria = {"mean": null.mean(axis=0), "q95": np.quantile(null, 0.95, axis=0)}
    return {name: retained(found.eigenvalues, criterion) for name, criterion in criteria.items()}


def _loadings(panel: ScorePanel, data: pd.DataFrame, found: dict[str, Components]) -> pd.DataFrame:
    """Loadings on the first component; the whole component is turned so that the anchors load positively."""
    values = data.to_numpy(dtype=float)
    anchor = np.isin(data.columns, panel.of("anchor"))
    first = {name: _turned(one.loadings[:, 0], anchor) for name, one in found.items()}
    _, counts = without_each(np.arange(len(data)))
    fewer = [values[row > 0] for row in counts]
    left_out = [
        _turned(principal_components(rest).loadings[:, 0], anchor)
        for rest in fewer
        if (np.ptp(rest, axis=0) > 0).all()
    ]
    kept = [
        sum(np.sign(one[j]) == np.sign(load) for one in left_out) for j, load in enumerate(first["Pearson"])
    ]
    return pd.DataFrame(
        {
            "column": data.columns,
            "role": panel.columns["role"][data.columns].to_numpy(),
            "pearson": first["Pearson"],
            "spearman": first["Spearman"],
            "sign_kept": kept,
            "left_out_models": len(left_out),
        },
        columns=LOADINGS,
    )


def _turned(loadings: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    reference = loadings[anchor].sum() if anchor.any() else loadings.sum()
    return -loadings if reference < 0 else loadings


def composite_agreement(panel: ScorePanel) -> float:
    """Spearman correlation of the composite with the anchors' first component; NaN with fewer than two."""
    anchors = panel.scores[panel.of("anchor")].dropna()
    if anchors.shape[1] < 2 or len(anchors) < 3:
        return np.nan
    component = principal_components(anchors.to_numpy(dtype=float)).scores[:, 0]
    return float(rank_correlation([capability(panel).to_numpy(), component])[0])
