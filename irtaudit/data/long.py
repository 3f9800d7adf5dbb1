"""Long tables: one row per response, or per cell with its counts of trials, with its subject and item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data import cells, columns
from irtaudit.data.responses import MOST_TRIALS, ResponseMatrix, sorted_order
from irtaudit.data.tables import Table
from irtaudit.data.trials import Trials, reduce_counts, reduce_trials
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError


def read_long(
    table: Table,
    *,
    subject_column: str | None,
    item_column: str | None,
    response_column: str | None,
    pass_at: float | None,
    trials: Trials | None,
    max_bytes: int,
) -> ResponseMatrix:
    """The matrix in a long table; cells without a row are not observed, further columns are left alone.

    Columns of passes and trials may stand in place of a response. They are kept as counts where no rule for
    trials says otherwise.

    Raises
    ------
    DataError
        If a role has no column or several, a name is empty, a cell is given twice (without a rule for trials)
        or holds no response, or the matrix would not fit in `max_bytes`.
    PlanError
        If the rule is first, and the table has counts.
    """
    subject = columns.find(table, columns.SUBJECT, subject_column)
    item = columns.find(table, columns.ITEM, item_column)
    counted = columns.counted(table) if response_column is None else None
    response = columns.find(table, columns.RESPONSE, response_column) if counted is None else -1
    rows, subjects = factorise(table, subject, columns.SUBJECT)
    cols, items = factorise(table, item, columns.ITEM)
    refuse_too_large(len(subjects), len(items), max_bytes, str(table.path))
    if counted is not None:
        found = _counts(table, *counted)
        if trials is None:
            share = np.divide(*found, out=np.full(len(rows), np.nan), where=found[1] > 0)
            _refuse_repeats(table, rows, cols, share, subjects, items, "counts")
        place = _Place(rows, cols, subjects, items, str(table.path))
        passes, count = (np.bincount(place.cell, weights=n, minlength=place.size) for n in found)
        return place.matrix(*reduce_counts(passes, count, trials or "counts", pass_at))
    score = cells.checked_scores(
        table.values(response),
        pass_at,
        lambda row: f"{table.path}, {table.place(row)}, column {table.names[response]!r}",
    )
    if trials is None:
        _refuse_repeats(table, rows, cols, cells.binarise(score, pass_at), subjects, items, "first")
    return pivot(rows, cols, score, subjects, items, source=str(table.path), pass_at=pass_at, trials=trials)


def _counts(table: Table, passes: int, trials: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Passes and trials of each row, 0 of 0 where it holds none."""
    passed, count = (cells.scores(table.values(column)) for column in (passes, trials))
    none = (np.isnan(passed) | (passed == 0)) & (np.isnan(count) | (count == 0))
    passed, count = np.where(none, 0, passed), np.where(none, 0, count)
    with np.errstate(invalid="ignore"):
        whole = (passed == np.rint(passed)) & (count == np.rint(count)) & (count <= MOST_TRIALS)
        wrong = np.flatnonzero(~(whole & (passed >= 0) & (passed <= count)))
    if len(wrong):
        row = int(wrong[0])
        said = " of ".join(cells.shown(table.values(column)[row]) for column in (passes, trials))
        raise DataError(
            f"{table.path}, {table.place(row)}: found {said}, expected whole numbers: passes "
            f"(column {table.names[passes]!r}) and trials ({table.names[trials]!r}), passes at most trials "
            f"and these at most {MOST_TRIALS:,}"
        )
    return passed, count


def long_columns(matrix: ResponseMatrix) -> dict[str, NDArray[Any]]:
    """Columns of the long table of a matrix: ``subject, item``, then ``response`` or ``passes, trials``.

    Every observed cell has a row. So does one unobserved cell (NaN, or 0 of 0) of each subject and item that
    would otherwise not be named.
    """
    rows, cols = np.nonzero(kept_cells(matrix))
    names = {
        "subject": matrix.subjects.index.to_numpy(dtype=object)[rows],
        "item": matrix.items.index.to_numpy(dtype=object)[cols],
    }
    if matrix.trials is None:
        return {**names, "response": matrix.responses[rows, cols]}
    return {**names, "passes": matrix.passes[rows, cols], "trials": matrix.trials[rows, cols]}


def long_rows(matrix: ResponseMatrix) -> Iterator[list[str]]:
    """Header and records of the long text table of a matrix; a missing response is an empty field."""
    table = long_columns(matrix)
    yield list(table)
    for subject, item, *numbers in zip(*table.values(), strict=True):
        yield [subject, item, *("" if np.isnan(number) else str(int(number)) for number in numbers)]


def factorise(table: Table, column: int, axis: str) -> tuple[NDArray[np.integer], NDArray[np.object_]]:
    """Code of each row and the distinct names of a column; a DataError names the row that has no name."""
    codes, names = table.coded(column)
    for code, name in enumerate(names):
        if not name.strip():
            row = int(np.argmax(codes == code))
            raise DataError(
                f"{table.path}, {table.place(row)}: the {axis} has no name (column {table.names[column]!r})"
            )
    return codes, names


def refuse_too_large(n_subjects: int, n_items: int, max_bytes: int, source: str) -> None:
    """Raise DataError if the full matrix (8 bytes a cell) would not fit in `max_bytes`."""
    if n_subjects * n_items * 8 > max_bytes:
        raise DataError(
            f"{source} names {n_subjects:,} subjects and {n_items:,} items, a matrix of more than "
            f"{max_bytes:,} bytes: is a column mistaken for names? If not, raise the limit (max_bytes=, "
            "--max-bytes)"
        )


def pivot(
    rows: NDArray[np.integer],
    cols: NDArray[np.integer],
    score: NDArray[np.float64],
    subjects: NDArray[np.object_],
    items: NDArray[np.object_],
    source: str,
    *,
    pass_at: float | None = None,
    trials: Trials | None = None,
) -> ResponseMatrix:
    """The matrix, sorted by name, with `score[n]` at row `rows[n]` and column `cols[n]`, made a response.

    Where a cell has several scores, the rule for trials reduces them; without a rule each has one.
    """
    place = _Place(rows, cols, subjects, items, source)
    if trials is not None:
        return place.matrix(*reduce_trials(place.cell, score, place.size, trials, pass_at))
    responses = np.full(place.size, np.nan)
    responses[place.cell] = cells.binarise(score, pass_at)
    return place.matrix(responses)


class _Place:
    """Where the rows of a long table stand in the matrix, sorted by name, flat."""

    def __init__(
        self,
        rows: NDArray[np.integer],
        cols: NDArray[np.integer],
        subjects: NDArray[np.object_],
        items: NDArray[np.object_],
        source: str,
    ) -> None:
        row_order, column_order = sorted_order(pd.Index(subjects)), sorted_order(pd.Index(items))
        self.cell = _cell_numbers(_rank(row_order)[rows], _rank(column_order)[cols], len(items))
        self.size = len(subjects) * len(items)
        self.subjects, self.items, self.source = subjects[row_order], items[column_order], source

    def matrix(
        self, responses: NDArray[np.float64], trials: NDArray[np.int64] | None = None
    ) -> ResponseMatrix:
        """The matrix of the flat cells."""
        shape = len(self.subjects), len(self.items)
        return ResponseMatrix.from_array(
            responses.reshape(shape),
            subjects=self.subjects,
            items=self.items,
            source=self.source,
            trials=None if trials is None else trials.reshape(shape),
        )


def _cell_numbers(rows: NDArray[np.integer], cols: NDArray[np.integer], n_items: int) -> NDArray[np.intp]:
    """Number of each cell, counted row by row; one array, because there may be tens of millions."""
    cell = rows.astype(np.intp)
    cell *= n_items
    cell += cols
    return cell


def _rank(order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Place of each code when the codes stand in `order`."""
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank


def kept_cells(matrix: ResponseMatrix) -> NDArray[np.bool_]:
    """Cells to write so that every name occurs: the observed ones, and one of each empty subject and item."""
    kept = matrix.observed.copy()
    kept[~kept.any(axis=1), 0] = True
    kept[0, ~kept.any(axis=0)] = True
    return kept


def _refuse_repeats(
    table: Table,
    rows: NDArray[np.integer],
    cols: NDArray[np.integer],
    observed: NDArray[np.float64],
    subjects: NDArray[np.object_],
    items: NDArray[np.object_],
    example: Trials,
) -> None:
    seen = np.zeros(len(subjects) * len(items), dtype=bool)
    seen[_cell_numbers(rows, cols, len(items))] = True
    if np.count_nonzero(seen) == len(rows):
        return
    frame = pd.DataFrame({"row": rows, "column": cols, "response": observed})
    repeated = frame.duplicated(["row", "column"], keep=False)
    same = frame.duplicated(keep=False)
    first = int(
        np.flatnonzero(repeated & ~same)[0] if (repeated & ~same).any() else np.flatnonzero(repeated)[0]
    )
    where = np.flatnonzero((rows == rows[first]) & (cols == cols[first]))
    answers = ", ".join(f"{_word(observed[i])} at {table.place(i)}" for i in where[:5])
    kind = "the same response" if same[where].all() else "conflicting responses"
    raise UndecidedError(
        f"{table.path}: {int(frame[repeated].groupby(['row', 'column']).ngroups)} cell(s) are given more "
        f"than once; subject {subjects[rows[first]]!r}, item {items[cols[first]]!r} has {kind}: {answers}. "
        "Keep one row per response, or say what repeated trials count (trials=, --trials first, majority, "
        "mean, counts)",
        "trials",
        example,
    )


def _word(response: float) -> str:
    return "missing" if np.isnan(response) else f"{response:g}"
