"""What cannot be analysed is dropped before the analysis, with a reason for each name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from irtaudit.data.responses import ResponseMatrix, check_matrix, listed
from irtaudit.errors import DataError, check_kind, check_whole
from irtaudit.words import panel_size


@dataclass(frozen=True, eq=False)
class Screened:
    """A screened matrix and what was dropped from it.

    Attributes
    ----------
    matrix : ResponseMatrix
        What is left.
    dropped : DataFrame
        One row per dropped name: `axis` ("subject" or "item"), `name`, `reason`, in the order of dropping.
    """

    matrix: ResponseMatrix
    dropped: pd.DataFrame

    def __repr__(self) -> str:
        return f"Screened({self.matrix!r}, {len(self.dropped)} dropped)"


def screen(matrix: ResponseMatrix) -> Screened:
    """Drop empty subjects and items, and items that are constant over their observed cells.

    A constant item (every trial passes, or every trial fails) says nothing about which subject is abler; an
    empty row or column says nothing at all. Subjects who pass or fail everything are kept: dropping them
    would select on the outcome. Dropping items can empty a subject, so the screen runs until nothing changes.

    Parameters
    ----------
    matrix : ResponseMatrix

    Returns
    -------
    Screened
        The matrix that is left, and what was dropped with the reason.

    Raises
    ------
    DataError
        If nothing is left, or `matrix` is no response matrix.
    """
    check_matrix(matrix)
    subjects = np.ones(matrix.n_subjects, dtype=bool)
    items = np.ones(matrix.n_items, dtype=bool)
    dropped: list[tuple[str, str, str]] = []
    names = matrix.items.index
    while True:
        empty = subjects & ~matrix.observed[:, items].any(axis=1)
        reasons = _item_reasons(matrix.responses[subjects & ~empty], items)
        dropped += [("subject", str(name), "no observed response") for name in matrix.subjects.index[empty]]
        dropped += [("item", str(names[j]), reason) for j, reason in reasons.items()]
        subjects = subjects & ~empty
        items[list(reasons)] = False
        if not reasons:
            break
    if not (subjects.any() and items.any()):
        size = panel_size(matrix.n_subjects, matrix.n_items, "subject")
        raise DataError(
            f"screening leaves nothing of {size}: every item is empty or has the same response from every "
            "subject"
        )
    frame = pd.DataFrame(dropped, columns=["axis", "name", "reason"], dtype=object)
    return Screened(matrix.select(subjects=subjects, items=items), frame)


def _item_reasons(cells: NDArray[np.float64], kept: NDArray[np.bool_]) -> dict[int, str]:
    """Position and reason of every kept item that is empty or constant over `cells` (subject, item)."""
    seen = (~np.isnan(cells)).sum(axis=0)
    passes = np.nansum(cells, axis=0)
    reasons = {}
    for j in np.flatnonzero(kept & ((passes == 0) | (passes == seen))):
        word = "passes" if passes[j] else "fails"
        reasons[int(j)] = (
            f"constant: all {seen[j]} observed responses are {word}" if seen[j] else "no observed response"
        )
    return reasons


def drop_incomplete(matrix: ResponseMatrix) -> ResponseMatrix:
    """Drop the subjects that lack a response to some item; a note of the matrix lists them.

    Raises
    ------
    DataError
        If no subject has a response to every item.
    """
    lacking = pd.Series((~matrix.observed).sum(axis=1), index=matrix.subjects.index)
    counted = [f"{name} ({count})" for name, count in lacking.items() if count]
    if not counted:
        return matrix
    if len(counted) == matrix.n_subjects:
        raise DataError(
            "every subject lacks a response to some item, so none is left; missing items: "
            f"{listed(counted, 10)}"
        )
    kept = matrix.select(subjects=(lacking == 0).to_numpy())
    note = f"{len(counted)} of {matrix.n_subjects} subjects lack items and were dropped: {', '.join(counted)}"
    return replace(kept, notes=(*kept.notes, note))


def merge_small_factors(labels: pd.Series, minimum: int = 3) -> tuple[pd.Series, str | None]:
    """Merge factors with too few items to carry a slope into one called "other", or refuse.

    Parameters
    ----------
    labels : Series
        Factor label of each item, indexed by item name.
    minimum : int
        Fewest items a factor may have.

    Returns
    -------
    labels : Series
        The labels as text without blanks around them, small factors renamed to "other".
    note : str or None
        What was merged, and which labels had blanks; None when nothing was.

    Raises
    ------
    DataError
        If `labels` is no Series, an item has no label, or the small factors together (with a factor already
        called "other") still have fewer than `minimum` items.
    PlanError
        If `minimum` is no whole number from 1 on.
    """
    check_kind("labels", labels, pd.Series, "a Series, the factor of each item by its name", DataError)
    minimum = check_whole("minimum", minimum, 1)
    column = f" of {labels.name!r}" if labels.name is not None else ""
    if labels.isna().any():
        names = listed(labels.index[labels.isna()])
        raise DataError(f"{int(labels.isna().sum())} item(s) have no factor label{column}: {names}")
    text = labels.astype(str).str.strip()
    padded = sorted(set(labels.astype(str)) - set(text))
    notes = [f"blanks around labels{column} do not count: {listed(padded)}"] if padded else []
    counts = text.value_counts().sort_index()
    small = counts[(counts < minimum) & (counts.index != "other")]
    together = int(small.sum() + counts.get("other", 0))
    if 0 < together < minimum:
        raise DataError(
            f"factor(s){column} with fewer than {minimum} items: {_counted(counts[counts < minimum])}; "
            f"together they have {together}, too few to merge: relabel these items or leave them out"
        )
    if len(small):
        merged = f"factors{column} with fewer than {minimum} items merged into 'other' ({together} items): "
        notes.append(merged + _counted(small))
    return text.where(~text.isin(small.index), "other"), "; ".join(notes) or None


def _counted(counts: pd.Series) -> str:
    return ", ".join(f"{name!r} ({count})" for name, count in counts.items())


def missingness_warnings(matrix: ResponseMatrix, level: float = 0.01) -> list[str]:
    """Say where cells are missing in a pattern that goes with score or group.

    Responses missing for a reason that has to do with the response (time-outs on hard items, a weak model's
    errors left out) bias every estimate. Three looks, each at `level`, uncorrected: subjects' share of
    missing cells against their pass rate relative to the items they saw, and items' share against their
    pass rate (Spearman); subjects' share between the levels of each text or boolean subject covariate
    (Kruskal-Wallis, levels of three or more subjects, at most ten levels).

    Returns
    -------
    list of str
        One sentence per finding, with the p-value and its method. Empty when nothing is missing or nothing
        stands out.
    """
    if matrix.observed.all():
        return []
    item_means = _means(matrix.responses, axis=0)
    residual_means = _means(matrix.responses - item_means, axis=1)
    missing = pd.Series((~matrix.observed).mean(axis=1), index=matrix.subjects.index)
    found = [
        _score_warning("subjects", missing.to_numpy(), residual_means, level),
        _score_warning("items", (~matrix.observed).mean(axis=0), item_means, level),
        *(_group_warning(missing, matrix.subjects[column], level) for column in matrix.subjects),
    ]
    return [warning for warning in found if warning is not None]


def _means(cells: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    seen = (~np.isnan(cells)).sum(axis=axis)
    means = np.full(seen.shape, np.nan)
    np.divide(np.nansum(cells, axis=axis), seen, out=means, where=seen > 0)
    return means


def _score_warning(
    axis: str, missing: NDArray[np.float64], score: NDArray[np.float64], level: float
) -> str | None:
    usable = ~np.isnan(score)
    missing, score = missing[usable], score[usable]
    if len(score) < 10 or np.ptp(missing) == 0 or np.ptp(score) == 0:
        return None
    result = stats.spearmanr(missing, score)
    if not result.pvalue < level:
        return None
    lower = "lower" if result.statistic < 0 else "higher"
    return (
        f"{axis} with more missing responses have {lower} pass rates "
        f"(Spearman {result.statistic:.2f}, p = {result.pvalue:.2g}): responses may be missing for a reason "
        "that depends on the score"
    )


def _group_warning(missing: pd.Series, group: pd.Series, level: float) -> str | None:
    if pd.api.types.is_numeric_dtype(group) and not pd.api.types.is_bool_dtype(group):
        return None
    shares = _by_level(missing, group)
    if not 2 <= len(shares) <= 10 or missing.nunique() == 1:
        return None
    p = float(stats.kruskal(*list(shares.values())).pvalue)
    if not p < level:
        return None
    means = ", ".join(f"{name!r} {np.mean(values):.0%}" for name, values in shares.items())
    return (
        f"the share of missing responses differs by {group.name!r} ({means}; Kruskal-Wallis, p = {p:.2g}): "
        "group comparisons rest on different items"
    )


def _by_level(missing: pd.Series, group: pd.Series) -> dict[str, NDArray[np.float64]]:
    levels = missing.groupby(group.astype(object).to_numpy())
    return {str(name): values.to_numpy() for name, values in levels if len(values) >= 3}
