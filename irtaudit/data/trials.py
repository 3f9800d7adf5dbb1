"""Several trials of one cell, reduced to one response by a stated rule."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.cells import CUT_OFF, binarise
from irtaudit.errors import PlanError

Trials = Literal["first", "majority", "mean"]
RULES: tuple[Trials, ...] = get_args(Trials)
ROUNDING = 1e-12
"""How far below the cut-off a mean may be from rounding alone."""

JUST_MORE_THAN_HALF = 0.5 + 2 * ROUNDING
WORDS: dict[Trials, str] = {
    "first": "the first trial that has a score counts",
    "majority": "a cell passes when more than half of its scored trials do; a tie is a fail",
    "mean": "a cell passes when the mean of its scored trials reaches the cut-off",
}


def check_trials(rule: str | None, pass_at: float | None) -> None:
    """Raise PlanError if there is no such rule, or the mean has no cut-off."""
    if rule is not None and rule not in RULES:
        raise PlanError(f"trials is {rule!r}, expected one of {', '.join(RULES)}")
    if rule == "mean" and pass_at is None:
        raise PlanError(f"trials is 'mean', which gives scores between 0 and 1: {CUT_OFF}")


def reduce_trials(
    cell: NDArray[np.integer], score: NDArray[np.float64], size: int, rule: Trials, pass_at: float | None
) -> NDArray[np.float64]:
    """One response for each cell.

    Parameters
    ----------
    cell : (trial,) array
        Number of the cell that each trial is of; trials of a cell stand in their order.
    score : (trial,) array
        Score of each trial in [0, 1]; NaN where it has none.
    size : int
        Number of cells.
    rule : {"first", "majority", "mean"}
        See `WORDS`.
    pass_at : float or None
        A trial (first, majority) or the mean passes from this score on; None only where scores are 0 and 1.

    Returns
    -------
    (cell,) array
        1, 0, or NaN where no trial has a score.
    """
    scored = ~np.isnan(score)
    cell, value = cell[scored], score[scored]
    if rule == "first":
        found = np.full(size, np.nan)
        found[cell[::-1]] = value[::-1]  # the last one written is the first trial
        return binarise(found, pass_at)
    if rule == "majority":
        value, pass_at = binarise(value, pass_at), JUST_MORE_THAN_HALF
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, weights=value, minlength=size)
    mean = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
    return binarise(mean, None if pass_at is None else pass_at - ROUNDING)
