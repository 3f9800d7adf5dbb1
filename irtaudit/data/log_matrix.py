"""From the rows of evaluation logs to a response matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data import cells
from irtaudit.data.files import MAX_BYTES
from irtaudit.data.known import describe_models, harmbench_items, unknown_models
from irtaudit.data.logs import CANCELLED, ERROR, UNSCORED, Logs
from irtaudit.data.long import pivot, refuse_too_large
from irtaudit.data.responses import ResponseMatrix, listed
from irtaudit.data.trials import WORDS, Trials, check_trials
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError, PlanError, check_kind

_USUAL = ("safety_score", "acc", "accuracy", "exact_match", "quasi_exact_match", "pass@1", "score")
Unscored = Literal["missing", "fail"]


def responses_from_logs(
    logs: Logs,
    *,
    metric: str | None = None,
    pass_at: float | None = None,
    trials: Trials | None = None,
    unscored: Unscored = "missing",
    models: str | Path | None = None,
    max_bytes: int = MAX_BYTES,
) -> ResponseMatrix:
    """The response matrix in evaluation logs: models by items.

    With several tasks an item is called ``task/item``. A cell without a score is not observed, whatever the
    reason; the notes count them by reason.

    Parameters
    ----------
    logs : Logs
    metric : str, optional
        Which score; may be left out where each task has only one.
    pass_at : float, optional
        A response passes when its score is at least this; needed for scores between 0 and 1.
    trials : {"first", "majority", "mean", "counts"}, optional
        What counts where a cell has several scored trials, see `irtaudit.data.trials.WORDS`.
    unscored : {"missing", "fail"}
        Whether a sample that ran without a score, or broke off, is not observed or a fail. Samples that never
        ran are not observed.
    models : path, optional
        Table of models, see `irtaudit.data.known.describe_models`; default the packaged one.
    max_bytes : int
        Refuse matrices that would take more memory.

    Returns
    -------
    ResponseMatrix
        Sorted by name. ``subjects``: ``developer, access``, by the table of models; ``items``:
        ``task``, what the logs say (``target``), and HarmBench's ``functional`` and ``semantic`` categories.

    Raises
    ------
    DataError
        If `logs` are none, the metric is not clear, or a score is outside 0 to 1 or needs a cut-off or a rule
        for trials.
    PlanError
        If an option has no such value.
    """
    check_kind("logs", logs, Logs, "Logs: read_logs(path) or read_helm(folder) reads them", DataError)
    cells.check_pass_at(pass_at)
    check_trials(trials, pass_at)
    if unscored not in get_args(Unscored):
        raise PlanError(f"unscored is {unscored!r}, expected missing or fail")
    chosen = logs.select(metric=metric) if metric else _only_metric(logs)
    rows = _counted(chosen.rows, unscored)
    score = _checked(rows, pass_at, logs.source)
    several = len(chosen.tasks) > 1
    names = rows["task"] + "/" + rows["item"] if several else rows["item"]
    row_codes, subjects = pd.factorize(rows["model"].to_numpy(dtype=object))
    column_codes, items = pd.factorize(names.to_numpy(dtype=object))
    refuse_too_large(len(subjects), len(items), max_bytes, logs.source)
    if trials is None:
        _refuse_trials(rows, names, score, logs.source)
    matrix = pivot(
        row_codes,
        column_codes,
        score,
        subjects,
        items,
        source=logs.source,
        pass_at=pass_at,
        trials=trials or "first",
    )
    known = describe_models(matrix.subjects.index, models)
    return replace(
        matrix,
        items=_items(chosen, rows, names, matrix.items.index),
        subjects=known,
        notes=(
            *chosen.notes,
            *_without_metric(logs, chosen, metric),
            *_notes(chosen.rows, unscored, trials),
            *unknown_models(known),
        ),
    )


def _only_metric(logs: Logs) -> Logs:
    scored = logs.rows[logs.rows["metric"] != ""]
    by_task = scored.groupby("task")["metric"].unique()
    unclear = {task: names for task, names in by_task.items() if len(names) > 1}
    if not unclear:
        return logs
    task, names = next(iter(unclear.items()))
    raise UndecidedError(
        f"{logs.source}: {task} has {len(names)} metrics: {listed(sorted(names), 12)}; "
        "name one (metric=, --metric)",
        "metric",
        likeliest_metric(scored[scored["task"] == task]),
    )


def likeliest_metric(rows: pd.DataFrame) -> str:
    """The metric of one task that looks most like a pass or a fail.

    Its scores lie between 0 and 1 and differ, and its name is a usual one, in this order of weight.
    """

    def looks(metric: str) -> tuple[bool, int, bool, str]:
        score = rows.loc[rows["metric"] == metric, "score"].dropna()
        name = metric.partition(",")[0]
        usual = _USUAL.index(name) if name in _USUAL else len(_USUAL)
        return not score.between(0, 1).all(), usual, score.nunique() < 2, metric

    names: list[str] = rows["metric"].unique().tolist()
    return min(names, key=looks)


def _counted(rows: pd.DataFrame, unscored: Unscored) -> pd.DataFrame:
    if unscored == "missing":
        return rows
    failed = rows["status"].isin([UNSCORED, ERROR])
    return rows.assign(score=rows["score"].mask(failed, 0.0))


def _checked(rows: pd.DataFrame, pass_at: float | None, source: str) -> NDArray[np.float64]:
    def place(row: int) -> str:
        one = rows.iloc[row]
        return f"{source}: {one['model']}, {one['task']}, item {one['item']!r}, metric {one['metric']!r}"

    score = rows["score"].to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(cells.unreadable(score))
    if len(wrong):
        raise DataError(
            f"{place(int(wrong[0]))}: the score is {score[wrong[0]]:g}, outside 0 to 1 ({len(wrong)} such "
            "scores); choose another metric (metric=, --metric)"
        )
    return cells.checked_scores(score, pass_at, place)


def _refuse_trials(rows: pd.DataFrame, names: pd.Series, score: NDArray[np.float64], source: str) -> None:
    scored = ~np.isnan(score)
    repeated = pd.DataFrame({"model": rows["model"], "item": names})[scored].duplicated()
    if repeated.any():
        first = repeated.index[repeated][0]
        raise UndecidedError(
            f"{source}: {rows.loc[first, 'model']}, item {names[first]!r} has several trials "
            f"({int(repeated.sum())} more than one a cell); say what counts (trials=, --trials first, "
            "majority, mean, counts)",
            "trials",
            "first",
        )


def _items(logs: Logs, rows: pd.DataFrame, names: pd.Series, index: pd.Index) -> pd.DataFrame:
    """What is known about each item, in the order of `index`."""
    first = rows.assign(name=names).drop_duplicates("name").set_index("name").reindex(index)
    table = pd.DataFrame({"task": first["task"]}, index=index)
    if len(logs.items):
        keys = pd.MultiIndex.from_arrays([first["task"], first["item"]])
        table = table.join(logs.items.reindex(keys).set_index(index).dropna(axis=1, how="all"))
    elif first["target"].notna().any():
        table["target"] = first["target"]
    harmbench = first["task"].str.casefold().str.replace("_", "").str.contains("harmbench")
    if harmbench.any():
        known = harmbench_items()[["functional", "semantic"]]
        table = table.join(known.reindex(first["item"].where(harmbench)).set_index(index))
    return table.rename_axis(index="item")


def _without_metric(logs: Logs, chosen: Logs, metric: str | None) -> list[str]:
    notes = []
    for column in ("model", "task"):
        every, kept = set(logs.rows[column]), set(chosen.rows[column])
        lacking = sorted(every - kept)
        if lacking:
            notes.append(
                f"{len(lacking)} of {len(every)} {column}s have no score by {metric!r} and were left out: "
                f"{listed(lacking)}"
            )
    return notes


def _notes(rows: pd.DataFrame, unscored: Unscored, trials: Trials | None) -> list[str]:
    counts = rows["status"].value_counts()
    words = {
        UNSCORED: "ran without a score",
        ERROR: "broke off",
        CANCELLED: "never ran",
    }
    notes = [
        f"{counts[status]} sample(s) {words[status]} and count as "
        f"{'failed' if unscored == 'fail' and status != CANCELLED else 'not observed'}"
        for status in words
        if counts.get(status, 0)
    ]
    return notes + ([f"Repeated trials: {WORDS[trials]}"] if trials else [])
