"""Several trials of one cell: reduced to one response by a stated rule, or counted."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.cells import CUT_OFF, binarise
from irtaudit.data.responses import ResponseMatrix, check_matrix
from irtaudit.errors import PlanError

Trials = Literal["first", "majority", "mean", "counts"]
RULES: tuple[Trials, ...] = get_args(Trials)
ROUNDING = 1e-12
"""How far below the cut-off a mean may be from rounding alone."""

JUST_MORE_THAN_HALF = 0.5 + 2 * ROUNDING
WORDS: dict[Trials, str] = {
    "first": "the first trial that has a score counts",
    "majority": "a cell passes when more than half of its scored trials do; a tie is a fail",
    "mean": "a cell passes when the mean of its scored trials reaches the cut-off",
    "counts": "a cell counts how many of its scored trials pass; the models are binomial",
}


def check_trials(rule: str | None, pass_at: float | None) -> None:
    """Raise PlanError if there is no such rule, or the mean has no cut-off."""
    if rule is not None and rule not in RULES:
        raise PlanError(f"trials is {rule!r}, expected one of {', '.join(RULES)}")
    if rule == "mean" and pass_at is None:
        raise PlanError(f"trials is 'mean', which gives scores between 0 and 1: {CUT_OFF}")


def refuse_counts(matrix: ResponseMatrix, what: str, instead: str = "") -> None:
    """Raise PlanError if cells count several trials, which `what` is not made for; `instead` helps, too.

    What is no matrix at all is a DataError.
    """
    check_matrix(matrix)
    if matrix.trials is not None:
        raise PlanError(
            f"{what} takes one response a cell, but {int((matrix.trials > 1).sum())} cell(s) count several "
            f"trials; {instead}read the data with another rule (trials='majority', --trials majority)"
        )


def reduce_trials(
    cell: NDArray[np.integer], score: NDArray[np.float64], size: int, rule: Trials, pass_at: float | None
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """One response for each cell.

    Parameters
    ----------
    cell : (trial,) array
        Number of the cell that each trial is of; trials of a cell stand in their order.
    score : (trial,) array
        Score of each trial in [0, 1]; NaN where it has none.
    size : int
        Number of cells.
    rule : {"first", "majority", "mean", "counts"}
        See `WORDS`.
    pass_at : float or None
        A trial (first, majority, counts) or the mean passes from this score on; None only where scores are 0
        and 1.

    Returns
    -------
    responses : (cell,) array
        1, 0, or NaN where no trial has a score; with the rule counts the share of trials that pass.
    trials : (cell,) array or None
        With the rule counts, the number of scored trials.
    """
    scored = ~np.isnan(score)
    cell, value = cell[scored], score[scored]
    if rule == "first":
        found = np.full(size, np.nan)
        found[cell[::-1]] = value[::-1]  # the last one written is the first trial
        return binarise(found, pass_at), None
    if rule != "mean":
        value = binarise(value, pass_at)
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=value, minlength=size)
    return reduce_counts(total, count, rule, pass_at)


def reduce_counts(
    total: NDArray[Any], count: NDArray[Any], rule: Trials, pass_at: float | None
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """As `reduce_trials`, from sum and number of the scores of each cell; majority and counts sum passes.

    Raises
    ------
    PlanError
        If the rule is first, which sums do not tell.
    """
    if rule == "first":
        raise PlanError("trials is 'first', but the data counts passes: which trial was first is not known")
    mean = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    if rule == "counts":
        return mean, count.astype(np.int64)
    if rule == "majority":
        pass_at = JUST_MORE_THAN_HALF
    return binarise(mean, None if pass_at is None else pass_at - ROUNDING), None
