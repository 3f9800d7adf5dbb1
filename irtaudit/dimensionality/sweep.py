"""Where graded scores are cut into pass and fail: the headline comparison at other cut-offs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.dimensionality.verdict import Verdict
from irtaudit.errors import PlanError

SWEEP = [
    "pass_at",
    "pass_rate",
    "items",
    "verdict",
    "best_unidimensional",
    "challenger",
    "difference",
    "low",
    "high",
    "margin",
    "reason",
]
"""Columns of ``sweep.csv``."""


@dataclass(frozen=True, eq=False)
class Cut:
    """The answer when scores from `pass_at` on pass.

    Attributes
    ----------
    pass_at : float
    pass_rate : float
        Of the responses that were analysed.
    n_items : int
        That the screen kept.
    verdict : Verdict or None
        By the rule of the audit; None: there is none, see `reason`.
    reason : str
        Why there is no verdict.
    """

    pass_at: float
    pass_rate: float
    n_items: int
    verdict: Verdict | None
    reason: str = ""


def check_cut_offs(cut_offs: Sequence[float], pass_at: float | None) -> tuple[float, ...]:
    """Cut-offs of a sweep, sorted and without repetitions, that of the audit among them.

    Raises
    ------
    PlanError
        If one is not above 0 and at most 1, or the audit has no cut-off of its own.
    """
    wrong = [cut for cut in cut_offs if not 0 < cut <= 1]
    if wrong:
        raise PlanError(f"A sweep over {wrong[0]:g}: expected scores above 0 and at most 1.")
    if pass_at is None:
        raise PlanError("A sweep needs the cut-off that the audit itself is about: say it with --pass-at.")
    return tuple(sorted({*map(float, cut_offs), float(pass_at)}))


def sweep_table(cuts: Sequence[Cut]) -> pd.DataFrame:
    """One row per cut-off.

    Returns
    -------
    DataFrame
        Columns `SWEEP`: ``pass_at``; ``pass_rate`` and number of ``items`` analysed; the ``verdict``'s word;
        the challenger that gains most over the ``best_unidimensional`` model, with ``difference, low, high``
        and ``margin`` as in `Verdict.evidence`; ``reason`` where there is no verdict.
    """
    return pd.DataFrame([_row(cut) for cut in cuts], columns=SWEEP)


def _row(cut: Cut) -> dict[str, Any]:
    row: dict[str, Any] = {"pass_at": cut.pass_at, "pass_rate": cut.pass_rate, "items": cut.n_items}
    row |= {"reason": cut.reason or None, "difference": np.nan}
    if cut.verdict is None:
        return row
    row |= {
        "verdict": cut.verdict.word,
        "best_unidimensional": cut.verdict.best,
        "margin": cut.verdict.margin,
    }
    evidence = cut.verdict.evidence
    if len(evidence) == 0:
        return row
    strongest = evidence.sort_values("difference").iloc[-1]
    return row | {name: strongest[name] for name in ("challenger", "difference", "low", "high")}


def sweep_sentence(cuts: Sequence[Cut]) -> str:
    """Say whether the verdict depends on the cut-off."""
    words = {cut.pass_at: cut.verdict.word for cut in cuts if cut.verdict is not None}
    without = [f"{cut.pass_at:g}" for cut in cuts if cut.verdict is None]
    lacking = f" At {', '.join(without)} there is no verdict." if without else ""
    if len(words) < 2:
        return f"There are verdicts at {len(words)} of {len(cuts)} cut-offs: nothing to compare.{lacking}"
    if len(set(words.values())) == 1:
        word, where = next(iter(words.values())), _listed(list(words))
        return f"The verdict does not depend on the cut-off: it is '{word}' at each of {where}.{lacking}"
    said = "; ".join(
        f"'{word}' at {_listed([cut for cut, other in words.items() if other == word])}"
        for word in dict.fromkeys(words.values())
    )
    return f"The verdict depends on the cut-off: it is {said}.{lacking}"


def _listed(cut_offs: Sequence[float]) -> str:
    *others, last = [f"{cut:g}" for cut in cut_offs]
    return f"{', '.join(others)} and {last}" if others else last
