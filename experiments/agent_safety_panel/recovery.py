"""A simulated panel with known truth: does each part of the audit find what was planted?

Usage: ``python experiments/agent_safety_panel/recovery.py [--out FOLDER]``. Writes ``recovery.csv``.

Planted: capability with two anchors; ``judge``, whose score is mostly capability; ``inject`` and ``dojo``,
two benchmarks of one construct; ``harm``, unrelated to capability; two held-out outcomes, ``task``
(capability predicts it) and ``jailbreak`` (``harm`` predicts it, capability does not); makers whose models
resemble each other and differ in ``harm``; a second, larger panel in which capability and ``jailbreak`` go
together. All scores are simulated.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.plan import CAPABILITY, PanelPlan
from irtaudit.plan import make_plan

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Config:
    """Size of the simulated panels and strength of what is planted.

    Attributes
    ----------
    models, more : int
        Models of the first panel, and how many the second adds.
    makers : int
    confound : float
        Correlation of ``judge`` with capability.
    link : float
        Correlation of ``harm`` with ``jailbreak``.
    maker_share : float
        Share of the variance of ``harm`` that lies between makers.
    later : float
        Correlation of capability with ``jailbreak`` among the added models.
    seed : int
    """

    models: int = 80
    more: int = 120
    makers: int = 10
    confound: float = 0.9
    link: float = 0.8
    maker_share: float = 0.5
    later: float = 0.8
    seed: int = 2026


ROLES: dict[str, dict[str, Any]] = {
    "mmlu": {"role": "anchor"},
    "gpqa": {"role": "anchor"},
    "judge": {"role": "benchmark", "construct": "risk awareness"},
    "inject": {"role": "benchmark", "construct": "injection"},
    "dojo": {"role": "benchmark", "construct": "injection"},
    "harm": {"role": "benchmark", "construct": "refusal"},
    "task": {"role": "criterion"},
    "jailbreak": {"role": "criterion"},
}


def plan_of() -> PanelPlan:
    """The plan of the simulated audit."""
    values = {"kind": "panel", "schema_version": 1, "columns": ROLES, "organization": "maker"}
    return make_plan(values, PanelPlan)


def mixed(source: np.ndarray, r: float, rng: np.random.Generator) -> np.ndarray:
    """A standard normal that correlates with `source` at r."""
    return r * source + np.sqrt(1 - r**2) * rng.standard_normal(source.size)


def simulate(
    config: Config, n: int, r: float, names: str, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Scores and makers of n simulated models whose jailbreak score correlates with capability at r."""
    makers = rng.permutation(np.arange(n) % config.makers)
    ability = rng.standard_normal(n)
    maker_effect = np.linspace(-1.5, 1.5, config.makers)
    maker_effect = maker_effect / maker_effect.std()
    own = rng.standard_normal(n)
    harm = np.sqrt(config.maker_share) * maker_effect[makers] + np.sqrt(1 - config.maker_share) * own
    robust = rng.standard_normal(n)
    jailbreak = r * ability + np.sqrt(1 - r**2) * mixed(harm, config.link, rng)
    scores = {
        "mmlu": mixed(ability, 0.95, rng),
        "gpqa": mixed(ability, 0.95, rng),
        "judge": mixed(ability, config.confound, rng),
        "inject": mixed(robust, 0.95, rng),
        "dojo": mixed(robust, 0.95, rng),
        "harm": harm,
        "task": mixed(ability, 0.7, rng),
        "jailbreak": jailbreak,
    }
    index = pd.Index([f"{names}-{i:03d}" for i in range(n)], name="model", dtype=object)
    return pd.DataFrame(scores, index=index), makers


def panel_of(scores: pd.DataFrame, makers: np.ndarray) -> ScorePanel:
    """The panel as a reader would give it."""
    return ScorePanel.from_frame(
        scores,
        plan_of().columns,
        organizations=pd.Series([f"maker {m}" for m in makers], index=scores.index, dtype=object),
        source="simulated panel with planted truth",
    )


def audited(config: Config) -> PanelAudit:
    """The audit of the first panel against the second."""
    rng = np.random.default_rng(config.seed)
    first, makers = simulate(config, config.models, 0.0, "first", rng)
    added, more_makers = simulate(config, config.more, config.later, "added", rng)
    both, all_makers = pd.concat([first, added]), np.concatenate([makers, more_makers])
    return audit_panel(panel_of(first, makers), plan_of(), against=panel_of(both, all_makers))


def spearman_of(r: float) -> float:
    """Spearman correlation of a bivariate normal with Pearson correlation r."""
    return float(6 / np.pi * np.arcsin(r / 2))


def checks(result: PanelAudit, config: Config) -> pd.DataFrame:
    """What was planted, what was found, and whether they agree."""
    rows = [*planted_correlations(result, config), *planted_structure(result), *planted_changes(result)]
    return pd.DataFrame(rows, columns=["what", "planted", "found", "agrees"])


Check = tuple[str, str, str, bool]


def planted_correlations(result: PanelAudit, config: Config) -> list[Check]:
    """True correlations beside their intervals."""
    anchor = 0.95 / np.sqrt(0.95**2 + (1 - 0.95**2) / 2)  # of the mean of two anchors with capability
    link, twin = spearman_of(config.link), spearman_of(0.95**2)
    truths = {
        "capability and judge": (CAPABILITY, "judge", "", spearman_of(config.confound * anchor)),
        "capability and task": (CAPABILITY, "task", "", spearman_of(0.7 * anchor)),
        "capability and harm: unrelated": (CAPABILITY, "harm", "", 0.0),
        "harm and jailbreak, given capability": ("harm", "jailbreak", CAPABILITY, link),
        "inject and dojo, one construct": ("inject", "dojo", "", twin),
    }
    table = result.associations.set_index(["x", "y", "given"]).sort_index()
    rows = []
    for what, (x, y, given, truth) in truths.items():
        rho, low, high = table.loc[(x, y, given), ["rho", "low", "high"]]
        rows.append((what, f"{truth:+.2f}", span(rho, low, high), bool(low <= truth <= high)))
    return rows


def planted_structure(result: PanelAudit) -> list[Check]:
    """Controls, organizations, the contrast and the verdicts."""
    states = list(result.controls["state"])
    p = result.groups.set_index("y")["p_adjusted"]
    contrast = result.contrasts.iloc[0]
    told = result.verdict.benchmarks.set_index("benchmark")
    beyond = "goes with jailbreak" in told.loc["harm", "sentence"]
    apart = told.loc["inject", "not_interchangeable_with"]
    shown = span(contrast["difference"], contrast["low"], contrast["high"])
    word, same = result.verdict.word, told.loc["harm", "is_capability"]
    return [
        ("controls", "pass, pass, pass", ", ".join(states), states == ["pass"] * 3),
        ("organizations differ in harm", "yes", f"p {p['harm']:.4f}", bool(p["harm"] < 0.05)),
        ("organizations differ in inject", "no", f"p {p['inject']:.4f}", bool(p["inject"] > 0.05)),
        ("capability: jailbreak minus task", "below 0", shown, bool(contrast["high"] < 0)),
        ("harm is capability", "no", same, same == "no"),
        ("inject is not interchangeable with", "harm among them", apart, "harm" in apart),
        ("harm says something beyond capability of", "jailbreak", "named" if beyond else "none", beyond),
        ("verdict on the reading", "not supported", word, word == "not supported"),
    ]


def planted_changes(result: PanelAudit) -> list[Check]:
    """The second panel: one correlation changes, another does not."""
    assert result.comparison is not None
    table = result.comparison.changes.set_index(["x", "y"]).sort_index()
    rows = []
    for y, changed in (("jailbreak", True), ("task", False)):
        change, low, high = table.loc[(CAPABILITY, y), ["change", "low", "high"]].to_numpy().ravel()[:3]
        excludes = bool(low > 0 or high < 0)
        what = f"second panel: capability and {y}"
        rows.append((what, "changes" if changed else "stays", span(change, low, high), excludes == changed))
    return rows


def span(value: float, low: float, high: float) -> str:
    """An estimate with its interval."""
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    config = Config()
    table = checks(audited(config), config)
    table.to_csv(out / "recovery.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
