"""Metric validity: what the scores of a benchmark are worth against policies that never look."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.estimands import NotTested, stream
from irtaudit.panel.plan import Column, PanelPlan
from irtaudit.panel.screen import MAX_ITEMS
from irtaudit.stats.classification import (
    METRICS,
    Confusion,
    best_constant,
    confusion,
    random_policy,
    recover_confusion,
)
from irtaudit.stats.proportions import wilson

COUNTS = ["column", "model", "tp", "fp", "fn", "tn", "origin"]
METRIC_TABLE = ["column", "model", "metric", "n", "value", "low", "high", "interval"]
BASELINES = ["column", "metric", "policy", "prevalence", "score"]
AGAINST = [
    "column",
    "metric",
    "model",
    "n",
    "score",
    "constant",
    "policy",
    "difference",
    "low",
    "high",
    "beats",
]
POLICIES = {"always positive": 1.0, "always negative": 0.0, "random, half positive": 0.5}
DENOMINATORS = {"recall": ("tp", "fn"), "specificity": ("tn", "fp"), "precision": ("tp", "fp")}
DEFAULT_METRIC = "f1"
ONE_SIDED = ("recall", "specificity")
"""Metrics of one class only: what a constant policy scores does not depend on the share of positives."""


class Metrics(NamedTuple):
    """Metric validity.

    Attributes
    ----------
    counts : DataFrame
        ``column, model, tp, fp, fn, tn``; ``origin`` ("given", or "recovered from F1 and specificity").
    metrics : DataFrame
        ``column, model, metric, n, value, low, high``; ``interval``: Wilson for shares of one class,
        bootstrap over items for the others.
    baselines : DataFrame
        ``column, metric, policy, prevalence, score``: policies that never look, in closed form.
    against : DataFrame
        Each model against the best constant policy of the benchmark's metric: ``column, metric, model, n,
        score, constant, policy, difference, low, high`` (bootstrap over items where the counts are known, NaN
        elsewhere), ``beats`` ("yes", "no", "not settled"; without counts by the score alone).
    not_tested : list of NotTested
    """

    counts: pd.DataFrame
    metrics: pd.DataFrame
    baselines: pd.DataFrame
    against: pd.DataFrame
    not_tested: list[NotTested]


def metric_validity(panel: ScorePanel, plan: PanelPlan) -> Metrics:
    """Metrics with intervals, constant policies, and which models do better than those."""
    benchmarks = {name: plan.columns[name] for name in panel.of("benchmark")}
    found = [_counts(panel, name, column) for name, column in benchmarks.items()]
    counts = _stacked([one for one, _ in found], COUNTS)
    lost = [reason for _, reasons in found for reason in reasons]
    baselines = [_baselines(name, column, counts) for name, column in benchmarks.items()]
    against = [_against(panel, plan, name, column, counts) for name, column in benchmarks.items()]
    lost += [
        NotTested("metric", f"{panel.label(name)} against policies that never look", reason)
        for name, column in benchmarks.items()
        if (reason := _unmeasured(column, counts[counts["column"] == name]))
    ]
    return Metrics(
        counts,
        _metric_table(counts, plan),
        _stacked(baselines, BASELINES),
        _stacked(against, AGAINST),
        lost,
    )


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def _unmeasured(column: Column, counts: pd.DataFrame) -> str:
    if column.metric is None and counts.empty:
        return "the plan does not say which metric it is, and there are no counts"
    if column.metric is not None and counts.empty and _prevalence(column, counts) is None:
        return "" if column.metric in ONE_SIDED else "the share of positives is not known"
    return ""


# counts -----------------------------------------------------------------------------------------------


def _counts(panel: ScorePanel, name: str, column: Column) -> tuple[pd.DataFrame, list[NotTested]]:
    """Confusion counts of a benchmark by model, given or recovered."""
    if column.counts is not None:
        names = column.counts.model_dump()
        table = panel.details[list(names.values())].set_axis(list(names), axis=1).dropna()
        whole = ((table >= 0) & (table <= MAX_ITEMS) & (table == table.round())).all(axis=1)
        usable = whole & (table.sum(axis=1) > 0)
        why = np.where(whole, "no item is counted", "counts are no whole numbers of items")
        lost = [
            NotTested("metric", f"{panel.label(name)} of {model}", str(reason))
            for model, reason in zip(table.index[~usable], why[~usable], strict=True)
        ]
        return _count_frame(name, table[usable], "given"), lost
    if column.published is not None:
        return _recovered(panel, name, column)
    return pd.DataFrame(columns=COUNTS), []


def _count_frame(name: str, table: pd.DataFrame, origin: str) -> pd.DataFrame:
    flat = table.astype(int).rename_axis("model").reset_index()
    return flat.assign(column=name, origin=origin)[COUNTS]


def _recovered(panel: ScorePanel, name: str, column: Column) -> tuple[pd.DataFrame, list[NotTested]]:
    published, p, n = column.published, column.positives, column.negatives
    assert published is not None
    assert p is not None
    assert n is not None  # the plan's schema asks for all three
    f1, specificity = panel.details[published.f1], panel.details[published.specificity]
    places = {"f1_decimals": decimals(f1), "specificity_decimals": decimals(specificity)}
    rows, lost = {}, []
    for model in f1.index[f1.notna() & specificity.notna()]:
        found = recover_confusion(f1[model], specificity[model], p, n, **places)
        if len(found) == 1:
            tp, fp = found[0]
            rows[model] = {"tp": tp, "fp": fp, "fn": p - tp, "tn": n - fp}
        else:
            what = "no counts fit" if not found else "several pairs of counts fit"
            reason = f"{what} F1 {f1[model]:g} and specificity {specificity[model]:g} with {p} + {n} items"
            lost.append(NotTested("metric", f"counts of {model} on {panel.label(name)}", reason))
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["tp", "fp", "fn", "tn"])
    return _count_frame(name, table, "recovered from F1 and specificity"), lost


def decimals(values: pd.Series) -> int:
    """Decimals that printed values were rounded to: the most that any of them has."""
    return max((len(text.partition(".")[2]) for text in (repr(float(v)) for v in values.dropna())), default=0)


def _confusion(counts: pd.DataFrame) -> Confusion:
    return confusion(*(counts[name].to_numpy(dtype=float) for name in ("tp", "fp", "fn", "tn")))


def _resampled(counts: pd.DataFrame, plan: PanelPlan, name: str) -> Confusion:
    """Counts of each model when its items are drawn again; (draw, model)."""
    table = counts[["tp", "fp", "fn", "tn"]].to_numpy(dtype=float)
    n = table.sum(axis=1)
    rng = stream(plan.seed, "items", name)
    drawn = rng.multinomial(n.astype(int), table / n[:, None], size=(plan.resampling.bootstrap, len(n)))
    return confusion(*np.moveaxis(drawn, -1, 0))


# tables -----------------------------------------------------------------------------------------------


def _metric_table(counts: pd.DataFrame, plan: PanelPlan) -> pd.DataFrame:
    parts = [
        _one_metric(rows, metric, plan)
        for _, rows in counts.groupby("column", sort=False)
        for metric in METRICS
    ]
    return _stacked(parts, METRIC_TABLE)


def _one_metric(rows: pd.DataFrame, metric: str, plan: PanelPlan) -> pd.DataFrame:
    n = rows[["tp", "fp", "fn", "tn"]].sum(axis=1).to_numpy()
    if metric in DENOMINATORS:
        hit, miss = (rows[name].to_numpy(dtype=float) for name in DENOMINATORS[metric])
        n = hit + miss
        (low, high), method = wilson(hit, n), "Wilson"
    else:
        draws = METRICS[metric](_resampled(rows, plan, str(rows["column"].iloc[0])))
        low, high = _limits(draws)
        method = f"bootstrap over items, {plan.resampling.bootstrap:,} draws"
    return pd.DataFrame(
        {
            "column": rows["column"],
            "model": rows["model"],
            "metric": metric,
            "n": n.astype(int),
            "value": METRICS[metric](_confusion(rows)),
            "low": low,
            "high": high,
            "interval": method,
        }
    ).dropna(subset=["value"])


def _prevalence(column: Column, counts: pd.DataFrame) -> float | None:
    """Share of positives: by the plan, or by the counts."""
    if column.positives is not None and column.negatives is not None:
        return column.positives / (column.positives + column.negatives)
    if len(counts):
        totals = counts[["tp", "fp", "fn", "tn"]].sum()
        return float((totals["tp"] + totals["fn"]) / totals.sum())
    return None


def _baselines(name: str, column: Column, counts: pd.DataFrame) -> pd.DataFrame:
    mine = counts[counts["column"] == name]
    pi, metrics = _prevalence(column, mine), list(METRICS) if len(mine) else [column.metric or DEFAULT_METRIC]
    if pi is None and metrics[0] not in ONE_SIDED:
        return pd.DataFrame(columns=BASELINES)
    share = 0.5 if pi is None else pi
    rows = [
        (name, metric, policy, pi, float(METRICS[metric](random_policy(share, q))))
        for metric in metrics
        for policy, q in POLICIES.items()
    ]
    return pd.DataFrame(rows, columns=BASELINES).dropna(subset=["score"]).astype({"prevalence": float})


def _against(
    panel: ScorePanel, plan: PanelPlan, name: str, column: Column, counts: pd.DataFrame
) -> pd.DataFrame:
    """Models against the best constant policy: on F1 and balanced accuracy by counts, on the score itself."""
    mine = counts[counts["column"] == name]
    parts = [_by_counts(mine, plan, metric) for metric in ("f1", "balanced_accuracy") if len(mine)]
    return _stacked([_by_score(panel, name, column, mine), *parts], AGAINST)


def _by_counts(rows: pd.DataFrame, plan: PanelPlan, metric: str) -> pd.DataFrame:
    name = str(rows["column"].iloc[0])
    drawn, observed = _resampled(rows, plan, name), _confusion(rows)
    score, draws = METRICS[metric](observed), METRICS[metric](drawn)
    constant, policy = best_constant(metric, _positives(observed))
    gap = draws - best_constant(metric, _positives(drawn))[0]
    low, high = _limits(gap)
    table = pd.DataFrame(
        {
            "column": name,
            "metric": metric,
            "model": rows["model"],
            "n": rows[["tp", "fp", "fn", "tn"]].sum(axis=1),
            "score": score,
            "constant": constant,
            "policy": policy,
            "difference": score - constant,
            "low": low,
            "high": high,
        }
    )
    return table.assign(beats=np.select([table["low"] > 0, table["high"] < 0], ["yes", "no"], "not settled"))


def _limits(draws: Any) -> Any:
    """95 % percentile limits over draws, NaN for a model in whose draws nothing is defined."""
    defined = np.isfinite(draws).any(axis=0)
    limits = np.full((2, draws.shape[1]), np.nan)
    limits[:, defined] = np.nanquantile(draws[:, defined], [0.025, 0.975], axis=0)
    return limits


def _positives(c: Confusion) -> Any:
    return (c.tp + c.fn) / (c.tp + c.fp + c.fn + c.tn)


def _by_score(panel: ScorePanel, name: str, column: Column, counts: pd.DataFrame) -> pd.DataFrame:
    """The benchmark's own scores, where the metric is known and a share; no interval without counts."""
    pi = _prevalence(column, counts)
    scores = shares(panel, name)
    if column.metric is None or scores is None or (pi is None and column.metric not in ONE_SIDED):
        return pd.DataFrame(columns=AGAINST)
    constant, policy = best_constant(column.metric, 0.5 if pi is None else pi)
    if len(counts) and column.metric in ("f1", "balanced_accuracy"):
        scores = scores.drop(counts["model"], errors="ignore")
    return pd.DataFrame(
        {
            "column": name,
            "metric": column.metric,
            "model": scores.index,
            "n": items_of(panel, column).reindex(scores.index).to_numpy(),
            "score": scores.to_numpy(),
            "constant": float(constant),
            "policy": policy,
            "difference": scores.to_numpy() - float(constant),
            "low": np.nan,
            "high": np.nan,
            "beats": np.where(scores > float(constant), "yes", "no"),
        }
    )


def shares(panel: ScorePanel, name: str) -> pd.Series | None:
    """Scores that exist, divided by the top of their scale; None where they are no shares."""
    low, high = panel.columns["low"][name], panel.columns["high"][name]
    scores = panel.scores[name].dropna() / (high if np.isfinite(high) else 1.0)
    return scores if low in (0.0, -high) or (np.isnan(low) and scores.between(-1, 1).all()) else None


def items_of(panel: ScorePanel, column: Column) -> pd.Series:
    """Number of items behind each model's score; NaN where it is not known, or 0."""
    if isinstance(column.items, str):
        return panel.details[column.items].where(panel.details[column.items] > 0)
    if column.items is None and column.positives is not None and column.negatives is not None:
        return pd.Series(float(column.positives + column.negatives), index=panel.scores.index)
    return pd.Series(np.nan if column.items is None else float(column.items), index=panel.scores.index)
