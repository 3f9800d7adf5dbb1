"""What is left out before anything is computed, and what a reader should be warned of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.data.responses import listed
from irtaudit.errors import DataError
from irtaudit.panel.plan import PanelPlan

MAX_ITEMS = 1e9
"""No benchmark has more items."""
EXCLUDED = ["column", "model", "reason", "value"]


@dataclass(frozen=True, eq=False)
class Screened:
    """The panel that is audited.

    Attributes
    ----------
    panel : ScorePanel
        Without what was excluded.
    excluded : DataFrame
        One row per excluded score or column: ``column``; ``model`` ("" when the whole column is left out);
        ``reason``; ``value`` (share of parseable outputs; NaN where the reason is another).
    warnings : tuple of str
        What does not exclude anything but should be known.
    """

    panel: ScorePanel
    excluded: pd.DataFrame
    warnings: tuple[str, ...]


def screen_panel(panel: ScorePanel, plan: PanelPlan) -> Screened:
    """Apply the valid-output rule, then leave out columns in which models do not differ.

    Parameters
    ----------
    panel : ScorePanel
    plan : PanelPlan

    Raises
    ------
    DataError
        If a number behind the scores cannot be what the plan says it is: a share above 1, say.
    """
    refuse_details(panel, plan)
    scores, invalid = _valid_outputs(panel, plan)
    flat = [
        {"column": name, "model": "", "reason": _flat_reason(values), "value": np.nan}
        for name, values in scores.items()
        if values.nunique() < 2
    ]
    kept = scores.drop(columns=[row["column"] for row in flat])
    return Screened(
        panel=panel.with_scores(kept),
        excluded=pd.DataFrame([*invalid, *flat], columns=EXCLUDED),
        warnings=(*panel.notes, *repeated_models(panel)),
    )


def refuse_details(panel: ScorePanel, plan: PanelPlan) -> None:
    """Refuse numbers behind the scores that cannot be what the plan says they are.

    Raises
    ------
    DataError
        With the model, the column, what was found and what was expected.
    """
    for column in plan.columns.values():
        published = column.published
        shares = [column.valid, *((published.f1, published.specificity) if published else ())]
        limits = [
            *((name, "a share", (0.0, 1.0), "; is it a percentage?") for name in shares),
            (column.items, "a number of items", (0.0, MAX_ITEMS), ""),
            (column.regrade, "a score on its scale", column.scale or (-np.inf, np.inf), ""),
        ]
        for name, what, ends, advice in limits:
            if isinstance(name, str):
                _refuse_detail(panel.details[name], what, ends, advice)


def _refuse_detail(values: pd.Series, what: str, ends: tuple[float, float], advice: str) -> None:
    wrong = values[(values < ends[0]) | (values > ends[1])]
    if len(wrong):
        raise DataError(
            f"model {wrong.index[0]!r}, column {values.name!r}: found {wrong.iloc[0]:g}, expected {what}, "
            f"{ends[0]:g} to {ends[1]:g} ({len(wrong)} of {values.notna().sum()} lie outside){advice}"
        )


def as_wrong(panel: ScorePanel, plan: PanelPlan) -> ScorePanel:
    """The panel without the valid-output rule: every unparseable output counts as wrong.

    Scores are taken to be means over the parseable outputs, so that the share of unparseable ones pulls them
    to the bottom of the scale. Columns without a declared scale keep their scores.
    """
    scores = panel.scores.copy()
    for name, share in _valid_shares(panel, plan).items():
        worst = panel.columns["low"][name]
        if np.isfinite(worst):
            weight = share.fillna(1.0)
            scores[name] = (weight * scores[name]).where(weight > 0, 0.0) + (1 - weight) * worst
    return panel.with_scores(scores)


def regraded(panel: ScorePanel, plan: PanelPlan, column: str) -> ScorePanel:
    """The panel with one column scored by its second grader."""
    described = plan.columns[column]
    second = panel.details[described.regrade].rename(column)
    if described.higher_is == "worse":
        low, high = described.scale or (0.0, 0.0)
        second = low + high - second
    return replace(panel, scores=panel.scores.assign(**{column: second}))


def repeated_models(panel: ScorePanel) -> list[str]:
    """Say which models have the same scores in the same columns, two columns at least."""
    scores = panel.scores[panel.scores.notna().sum(axis=1) >= 2]
    same = scores[scores.duplicated(keep=False)]
    keys = [tuple(row) for row in same.fillna(np.inf).to_numpy()]
    groups = pd.Series(same.index, dtype=object).groupby(pd.Series(keys), sort=False).apply(list)
    return [
        f"{listed(group)} have the same score in every column: one model under several names would count "
        "several times."
        for group in groups
    ]


def _valid_shares(panel: ScorePanel, plan: PanelPlan) -> dict[str, pd.Series]:
    named = {str(name): plan.columns[str(name)].valid for name in panel.scores}
    return {name: panel.details[share] for name, share in named.items() if share is not None}


def _valid_outputs(panel: ScorePanel, plan: PanelPlan) -> tuple[pd.DataFrame, list[dict[str, object]]]:
    scores, rows = panel.scores.copy(), []
    for name, share in _valid_shares(panel, plan).items():
        below = (share < plan.thresholds.valid_output) & scores[name].notna()
        scores.loc[below, name] = np.nan
        rows += [
            {
                "column": name,
                "model": model,
                "reason": f"{share[model]:.0%} of the outputs could be parsed, the rule asks for "
                f"{plan.thresholds.valid_output:.0%}",
                "value": share[model],
            }
            for model in scores.index[below]
        ]
    return scores, rows


def _flat_reason(values: pd.Series) -> str:
    seen = values.dropna()
    if seen.empty:
        return "no model has a score"
    who = "the only model that has one" if len(seen) == 1 else f"all {len(seen)} models that have one"
    return f"the same score, {seen.iloc[0]:g}, for {who}"
