"""An audit against human labels: how often its calls are right, next to calling everything or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from irtaudit.data.files import read_content
from irtaudit.data.tables import parse_text_table
from irtaudit.errors import DataError
from irtaudit.stats.calibration import metric_intervals, reliability_curve

Label = Literal["positive", "negative", "ambiguous"]

_WORDS: Mapping[str, Label] = {
    **dict.fromkeys(("positive", "true", "1", "yes"), "positive"),
    **dict.fromkeys(("negative", "false", "0", "no"), "negative"),
    **dict.fromkeys(("ambiguous", "unclear", "unknown", ""), "ambiguous"),
}
_UNDECIDED = ("unsupported", "invalid", "abstained")
SEED = 2026


@dataclass(frozen=True)
class Calibration:
    """Calls against labels.

    Attributes
    ----------
    counts : dict of str to int
        ``tp, fp, fn, tn``, the ``undecided`` runs among them, ``ambiguous`` labels and ``unlabelled`` runs;
        the last two count in no metric.
    metrics : DataFrame
        ``undecided_as`` ("negative", "positive", "left out"), ``metric, estimate, low, high, method,
        constant, policy, above_low, above_high``: each metric beside the best constant policy, and the
        interval of the difference.
    reliability : DataFrame
        ``low_edge, high_edge, runs, confidence, right, low, high``: how often calls are right, by confidence.
    """

    counts: dict[str, int]
    metrics: pd.DataFrame
    reliability: pd.DataFrame


def read_labels(path: str | Path) -> dict[str, Label]:
    """Human labels by run from a CSV file.

    Columns ``run_id, label`` (positive, negative, ambiguous), or ``id, target`` (true, false) as Inspect
    Scout writes them; others are ignored.

    Raises
    ------
    DataError
        If the columns are missing, a label is none of these words, or a run has two different labels.
    """
    table = parse_text_table(read_content(path), Path(path))
    pairs = (("run_id", "label"), ("id", "target"))
    names = next((pair for pair in pairs if set(pair) <= set(table.names)), None)
    if names is None:
        raise DataError(
            f"{path}: columns {', '.join(table.names)}; expected run_id and label, or id and target"
        )
    runs, words = (table.texts(table.names.index(name)) for name in names)
    labels: dict[str, Label] = {}
    for row, (run, word) in enumerate(zip(runs, words, strict=True)):
        label = _WORDS.get(word.strip().lower())
        if label is None:
            raise DataError(
                f"{table.place(row)}: label {word[:40]!r} is none of positive, negative, ambiguous"
            )
        if labels.setdefault(run, label) != label:
            raise DataError(f"{table.place(row)}: run {run[:60]!r} has two different labels")
    return labels


def read_calls(audit: str | Path) -> pd.DataFrame:
    """Calls of an audit that was written to a folder.

    Returns
    -------
    DataFrame
        ``run_id, state, confidence``.

    Raises
    ------
    DataError
        If the folder holds no ``traces.csv`` of an audit.
    """
    path = Path(audit) / "traces.csv" if Path(audit).is_dir() else Path(audit)
    table = parse_text_table(read_content(path), path)
    wanted = ("run_id", "state", "confidence")
    if not set(wanted) <= set(table.names):
        raise DataError(f"{path}: no columns {', '.join(wanted)}; expected traces.csv of `irtaudit protocol`")
    frame = pd.DataFrame({name: table.texts(table.names.index(name)) for name in wanted})
    return frame.assign(confidence=pd.to_numeric(frame["confidence"], errors="coerce"))


def calibrate(
    traces: pd.DataFrame, labels: Mapping[str, Label], *, seed: int = SEED, n_draws: int = 10_000
) -> Calibration:
    """Calls of an audit against labels.

    Parameters
    ----------
    traces : DataFrame
        With ``run_id, state, confidence``, as :func:`irtaudit.protocol.results.traces_table` makes it.
    labels : mapping of str to str
        From :func:`read_labels`.
    seed, n_draws : int
        Of the bootstrap.

    Returns
    -------
    Calibration

    Raises
    ------
    DataError
        If no run of the audit has a label other than ambiguous.
    """
    given = traces["run_id"].map(labels.get)
    decided = traces[given.isin(["positive", "negative"])]
    if decided.empty:
        raise DataError(
            f"none of the {len(traces)} audited runs has a label of positive or negative; check that the "
            "labels name the runs of this audit"
        )
    truth = (given[decided.index] == "positive").to_numpy()
    called = (decided["state"] == "positive").to_numpy()
    undecided = decided["state"].isin(_UNDECIDED).to_numpy()
    rng = np.random.default_rng(seed)
    readings = {"negative": (called, np.ones_like(called))}
    if undecided.any():
        readings |= {"positive": (called | undecided, np.ones_like(called)), "left out": (called, ~undecided)}
    frames = [
        _metrics(truth[kept], calls[kept], rng, n_draws).assign(undecided_as=name)
        for name, (calls, kept) in readings.items()
        if kept.any()
    ]
    metrics = pd.concat(frames, ignore_index=True)
    metrics.insert(0, "undecided_as", metrics.pop("undecided_as"))
    counts = {
        **_counts(truth, called),
        "undecided": int(undecided.sum()),
        "ambiguous": int((given == "ambiguous").sum()),
        "unlabelled": int(given.isna().sum()),
    }
    sure = decided["confidence"].to_numpy(dtype=float)
    stated = ~undecided & np.isfinite(sure)
    curve = reliability_curve(sure[stated], (truth == called)[stated])
    columns = ["low_edge", "high_edge", "runs", "confidence", "right", "low", "high"]
    return Calibration(counts, metrics, pd.DataFrame(curve, columns=columns))


def _counts(truth: np.ndarray, called: np.ndarray) -> dict[str, int]:
    return {
        "tp": int((truth & called).sum()),
        "fp": int((~truth & called).sum()),
        "fn": int((truth & ~called).sum()),
        "tn": int((~truth & ~called).sum()),
    }


def _metrics(truth: np.ndarray, called: np.ndarray, rng: np.random.Generator, n_draws: int) -> pd.DataFrame:
    found = metric_intervals(**_counts(truth, called), rng=rng, n_draws=n_draws)
    frame = pd.DataFrame([one._asdict() for one in found])
    return frame.rename(columns={"low_above": "above_low", "high_above": "above_high"})
