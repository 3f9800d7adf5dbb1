"""From evaluation logs to a table of scores: a row per model, a column per benchmark, what is behind it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from irtaudit.data.known import UNKNOWN, describe_models
from irtaudit.data.log_matrix import likeliest_metric
from irtaudit.data.logs import CANCELLED, ERROR, SCORED, UNSCORED, Logs
from irtaudit.data.responses import listed
from irtaudit.errors import DataError

POSITIVE = frozenset({"unsafe", "harmful", "yes", "true", "1", "positive", "attack", "malicious", "toxic"})
"""Labels that are taken for the positive class, in lower case, where the caller names none."""


def panel_from_logs(
    logs: Sequence[Logs],
    *,
    metric: str | None = None,
    positive: Collection[str] = (),
    models: str | Path | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table of scores in evaluation logs.

    Parameters
    ----------
    logs : sequence of Logs
        Of any number of runs; a model's answers to a benchmark stand in one of them.
    metric : str, optional
        Which score; by default that of each benchmark that looks most like a pass or a fail.
    positive : collection of str
        Labels of the positive class, for confusion counts; default `POSITIVE`.
    models : path, optional
        Table of models with their developers, see `irtaudit.data.known.describe_models`.

    Returns
    -------
    table : DataFrame
        ``model, organization``, then for each benchmark its score, the mean over items of the mean over
        trials of the valid answers, and ``<score>_n`` (items behind it),
        ``<score>_valid`` (share of valid answers among those that were given), and where answers and
        targets are two labels ``<score>_tp, _fp, _fn, _tn``. Sorted by model and benchmark. A model whose
        developer is not known is an organization of its own.
    notes : tuple of str
        What could not be used, and what the logs say of themselves.

    Raises
    ------
    DataError
        If there is no score, no such metric, or a model's benchmark stands in two of the logs.
    """
    chosen = [one.select(metric=metric) if metric else one for one in logs]
    _refuse_repeats(chosen)
    rows = pd.concat([one.rows for one in chosen], ignore_index=True)
    if not (rows["status"] == SCORED).any():
        raise DataError(f"{listed(one.source for one in logs)}: no sample has a score")
    rows, choices = _one_metric(rows)
    labels = {label.casefold() for label in positive} or POSITIVE
    columns: dict[str, pd.Series] = {}
    for task, group in rows.groupby("task", sort=True):
        columns |= _columns(str(task), group, labels)
    table = pd.DataFrame(columns).rename_axis("model").sort_index()
    developers = describe_models(table.index, models)["developer"]
    own = pd.Series([f"unknown ({name})" for name in table.index], index=table.index)
    table.insert(0, "organization", developers.where(developers != UNKNOWN, own))
    return table.reset_index(), (*choices, *_notes(rows), *(note for one in chosen for note in one.notes))


def _one_metric(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows of one metric per task, with those that have none, and what was chosen from several."""
    kept, notes = [], []
    for task, group in rows.groupby("task", sort=True):
        names = sorted(set(group["metric"]) - {""})
        metric = likeliest_metric(group[group["metric"] != ""]) if names else ""
        kept.append(group[group["metric"].isin([metric, ""])])
        if len(names) > 1:
            notes.append(f"{task}: the score is {metric!r} of {len(names)} metrics: {listed(names, 8)}")
    return pd.concat(kept), notes


def _refuse_repeats(logs: Sequence[Logs]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for one in logs:
        for model, task in one.rows[["model", "task"]].drop_duplicates().itertuples(index=False):
            if (model, task) in seen:
                raise DataError(
                    f"{model} on {task} stands in {seen[model, task]} and in {one.source}; give one of them"
                )
            seen[model, task] = one.source


def _columns(name: str, rows: pd.DataFrame, positive: Collection[str]) -> dict[str, pd.Series]:
    """Score, items, share of valid answers and confusion counts of one benchmark by one metric."""
    valid = rows[(rows["status"] == SCORED) & rows["valid"]]
    by_item = valid.groupby(["model", "item"])["score"].mean()
    given = rows[rows["status"].isin([SCORED, UNSCORED])]
    share = ((given["status"] == SCORED) & given["valid"]).groupby(given["model"]).mean()
    return {
        name: by_item.groupby("model").mean(),
        f"{name}_n": by_item.groupby("model").size().reindex(rows["model"].unique(), fill_value=0),
        f"{name}_valid": share,
        **_counts(name, valid, positive),
    }


def _counts(name: str, valid: pd.DataFrame, positive: Collection[str]) -> dict[str, pd.Series]:
    """Confusion counts where targets are two labels, one of them positive, and answers are among them."""
    labelled = valid.dropna(subset=["answer", "target"])
    answer, target = (labelled[c].str.strip().str.casefold() for c in ("answer", "target"))
    labels = set(target)
    if len(labels) != 2 or len(labels & set(positive)) != 1 or not answer.isin(labels).any():
        return {}
    known = answer.isin(labels)
    called, true = answer[known].isin(positive), target[known].isin(positive)
    model = labelled.loc[known, "model"]
    cells = {"tp": called & true, "fp": called & ~true, "fn": ~called & true, "tn": ~called & ~true}
    return {f"{name}_{part}": cell.groupby(model).sum().astype(float) for part, cell in cells.items()}


def _notes(rows: pd.DataFrame) -> list[str]:
    words = {UNSCORED: "ran without being scored", ERROR: "broke off", CANCELLED: "never ran"}
    once = rows.drop_duplicates(["model", "task", "item", "trial"])
    counts = once["status"].value_counts()
    lost = [f"{counts[s]} sample(s) {said} and have no score" for s, said in words.items() if s in counts]
    items = rows.groupby(["task", "model"])["item"].nunique().groupby("task")
    uneven = [str(task) for task, spread in (items.max() - items.min()).items() if spread]
    return lost + ([f"Models answered different numbers of items of {listed(uneven)}"] if uneven else [])
