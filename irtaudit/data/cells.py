"""From what a cell says to 1, 0 or not observed."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.tables import MISSING
from irtaudit.data.undecided import UndecidedError
from irtaudit.errors import DataError, PlanError

EXPECTED = "expected 0, 1, true, false, pass, fail, or nothing, NA, NaN, null for a missing response"
CUT_OFF = "say from which score on a response passes (pass_at=, --pass-at; 1.0 counts only full marks)"

_WORDS = {"true": 1.0, "pass": 1.0, "false": 0.0, "fail": 0.0} | dict.fromkeys(MISSING, np.nan)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)


def check_pass_at(pass_at: float | None) -> None:
    """Raise PlanError unless `pass_at` is None or above 0 and at most 1."""
    if pass_at is not None and not (isinstance(pass_at, Real) and 0 < pass_at <= 1):
        raise PlanError(f"pass_at is {pass_at!r}, expected a score above 0 and at most 1")


def scores(values: NDArray[Any]) -> NDArray[np.float64]:
    """Scores of cells, any shape: numbers, words as 0 or 1, NaN for missing, inf for what cannot be read.

    Numbers outside [0, 1] are returned as they are; the caller refuses them together with inf.
    """
    if values.dtype != object:
        return values.astype(np.float64)
    codes, distinct = pd.factorize(values.ravel())
    known = np.array(
        [_score(value) for value in distinct] + [np.nan]
    )  # code -1, None and NaN, takes the last
    return known[codes].reshape(values.shape)


def unreadable(score: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Cells that are neither missing nor a score in [0, 1]."""
    return ~(np.isnan(score) | ((score >= 0) & (score <= 1)))


def fractional(score: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Cells strictly between fail and pass, which need an explicit cut-off."""
    return (score > 0) & (score < 1)


def binarise(score: NDArray[np.float64], pass_at: float | None) -> NDArray[np.float64]:
    """1 where the score is at least `pass_at`, 0 where it is less, NaN where it is missing."""
    return score if pass_at is None else np.where(np.isnan(score), np.nan, score >= pass_at)


def responses(
    values: NDArray[Any], pass_at: float | None, place: Callable[[int], str]
) -> NDArray[np.float64]:
    """Responses of a flat array of cells; a DataError says what stands at `place(position)` that is none."""
    return binarise(checked_scores(values, pass_at, place), pass_at)


def checked_scores(
    values: NDArray[Any], pass_at: float | None, place: Callable[[int], str]
) -> NDArray[np.float64]:
    """Scores of a flat array of cells, 0 and 1 alone without `pass_at`; a DataError names the first other."""
    score = scores(values)
    wrong = np.flatnonzero(unreadable(score))
    if len(wrong):
        raise DataError(f"{place(int(wrong[0]))}: found {shown(values[wrong[0]])}, {EXPECTED}")
    fractions = np.flatnonzero(fractional(score))
    if pass_at is None and len(fractions):
        raise UndecidedError(
            f"{place(int(fractions[0]))}: found {shown(values[fractions[0]])}, between 0 and 1: {CUT_OFF}",
            "pass_at",
            1.0,
        )
    return score


def shown(value: object) -> str:
    """A cell for a message, cut off if it is long."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:60] + "..."


def _score(value: object) -> float:
    if not isinstance(value, str):
        # beyond these bounds the value is refused anyway, and a huge integer does not fit a float
        return float(value) if isinstance(value, int | float) and -1 <= value <= 2 else np.inf
    text = value.strip().lower()
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if _NUMBER.fullmatch(text) else np.inf
