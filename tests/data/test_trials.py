"""Repeated trials become one response by the stated rule, as a loop over the cells would have it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtaudit.data import read_responses
from irtaudit.data.trials import RULES, Trials, reduce_trials
from irtaudit.errors import DataError, PlanError

SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, math.nan])


def by_hand(scores: list[float], rule: Trials, pass_at: float) -> float:
    seen = [score for score in scores if not math.isnan(score)]
    if not seen:
        return math.nan
    if rule == "first":
        return float(seen[0] >= pass_at)
    if rule == "majority":
        return float(2 * sum(score >= pass_at for score in seen) > len(seen))
    if rule == "counts":
        return sum(score >= pass_at for score in seen) / len(seen)
    return float(math.fsum(seen) / len(seen) >= pass_at)


@pytest.mark.parametrize("rule", RULES)
@given(
    trials=st.lists(st.tuples(st.integers(0, 4), SCORES), max_size=30),
    pass_at=st.sampled_from([0.25, 0.5, 1.0]),
)
def test_the_rules_are_what_they_say(rule: Trials, trials: list[tuple[int, float]], pass_at: float) -> None:
    cell = np.array([cell for cell, _ in trials], dtype=np.intp)
    score = np.array([score for _, score in trials], dtype=np.float64)
    expected = [by_hand([s for c, s in trials if c == cell], rule, pass_at) for cell in range(5)]
    responses, counts = reduce_trials(cell, score, 5, rule, pass_at)
    np.testing.assert_array_equal(responses, expected)
    scored = [sum(c == cell and not math.isnan(s) for c, s in trials) for cell in range(5)]
    assert (counts is None) if rule != "counts" else (counts.tolist() == scored)  # type: ignore[union-attr] # there


def test_a_mean_that_rounds_just_below_the_cut_off_passes() -> None:
    tenths = np.array([0.1, 0.2, 0.3])
    assert sum(tenths) / 3 > 0.2  # and the sum of the reversed is not
    cells = np.zeros(3, dtype=np.intp)
    for order in (tenths, tenths[::-1]):
        assert reduce_trials(cells, order, 1, "mean", 0.2)[0].tolist() == [1.0]
    assert reduce_trials(cells, np.array([0.1, 0.2, 0.29]), 1, "mean", 0.2)[0].tolist() == [0.0]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,item,score\na,q1,1\na,q1,0\na,q1,0\na,q2,1\na,q2,0\nb,q1,\nb,q1,0.5\nb,q2,1\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("rule", "pass_at", "expected"),
    [
        ("first", 1.0, [[1, 1], [0, 1]]),
        ("majority", 1.0, [[0, 0], [0, 1]]),
        ("mean", 0.5, [[0, 1], [1, 1]]),
        ("mean", 0.3, [[1, 1], [1, 1]]),
    ],
)
def test_a_long_table_with_repeated_cells(
    long: Path, rule: Trials, pass_at: float, expected: list[list[int]]
) -> None:
    assert read_responses(long, trials=rule, pass_at=pass_at).responses.tolist() == expected


def test_without_a_rule_repeated_cells_are_refused(long: Path) -> None:
    with pytest.raises(DataError, match=r"3 cell\(s\) are given more than once.*--trials first, majority"):
        read_responses(long, pass_at=1.0)


def test_rules_that_cannot_be(long: Path) -> None:
    with pytest.raises(PlanError, match="expected one of first, majority, mean, counts"):
        read_responses(long, trials="median", pass_at=1.0)  # type: ignore[arg-type] # the mistake under test
    with pytest.raises(PlanError, match=r"trials is 'mean'.*--pass-at"):
        read_responses(long, trials="mean")
    with pytest.raises(DataError, match=r"line 8, column 'score': found '0\.5', between 0 and 1"):
        read_responses(long, trials="first")
