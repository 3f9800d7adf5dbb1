"""Counts of trials: how many of how many pass, from the file to the matrix and back."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.data import read_responses
from irtaudit.data.describe import describe
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import screen
from irtaudit.data.splits import make_splits
from irtaudit.data.write import write_responses
from irtaudit.errors import DataError, PlanError

ROWS = "model,item,score\na,q1,1\na,q1,0\na,q1,0\na,q2,1\na,q2,0\nb,q1,\nb,q1,0.5\nb,q2,1\nb,q3,\n"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def counted(runs: Path) -> ResponseMatrix:
    return read_responses(runs, trials="counts", pass_at=1.0)


def test_rows_of_a_cell_are_counted(counted: ResponseMatrix) -> None:
    assert counted.trials is not None
    assert counted.n_trials.tolist() == [[3, 2, 0], [1, 1, 0]]
    assert counted.passes.tolist() == [[1, 1, 0], [0, 1, 0]]
    np.testing.assert_array_equal(counted.responses, [[1 / 3, 1 / 2, np.nan], [0, 1, np.nan]])
    assert counted.pass_rate == 3 / 7
    assert "7 trials" in repr(counted)


def test_the_cut_off_is_for_each_trial(runs: Path) -> None:
    assert read_responses(runs, trials="counts", pass_at=0.5).passes.tolist() == [[1, 1, 0], [1, 1, 0]]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_long_tables_hold_counts(counted: ResponseMatrix, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"counts.{suffix}"
    write_responses(counted, path, f"long-{suffix}")
    for trials in (None, "counts"):
        again = read_responses(path, trials=trials)
        assert again.sha256 == counted.sha256
        np.testing.assert_array_equal(again.n_trials, counted.n_trials)
        np.testing.assert_array_equal(again.responses, counted.responses)
    assert read_responses(path, trials="majority").responses.tolist()[0][:2] == [0, 0]
    assert read_responses(path, trials="mean", pass_at=1 / 3).responses.tolist()[0][:2] == [1, 1]
    with pytest.raises(PlanError, match="which trial was first is not known"):
        read_responses(path, trials="first")


@pytest.mark.parametrize("format", ["wide-csv", "wide-parquet", "py-irt"])
def test_other_layouts_refuse_counts(counted: ResponseMatrix, tmp_path: Path, format: str) -> None:
    path = tmp_path / "out"
    with pytest.raises(PlanError, match=r"2 cell\(s\) count several trials.*long-csv.*--trials majority"):
        write_responses(counted, path, format)
    assert not path.exists()


def test_counts_of_one_cell_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("model,item,passes,trials\na,q,3,4\na,q,1,2\nb,q,0,4\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"given more than once.*0\.75 at line 2, 0\.5 at line 3.*counts"):
        read_responses(path)
    added = read_responses(path, trials="counts")
    assert (added.passes.tolist(), added.n_trials.tolist()) == ([[4], [0]], [[6], [4]])
    found = describe(path)
    assert found.next.endswith("--trials counts")
    assert found.facts["trials"] == "10, 4 to 6 a cell"


@pytest.mark.parametrize(
    "cells", ["5,4", "-1,4", "1.5,4", "x,4", "1,", ",4", "1,0", "nan,2", "1,1e30", "1e300,1e300"]
)
def test_what_is_no_count_is_refused(tmp_path: Path, cells: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"model,item,passes,trials\na,q,3,4\nb,q,{cells}\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"counts\.csv, line 3: found .* passes at most trials"):
            read_responses(path)


def test_one_trial_a_cell_is_the_data_it_always_was(tmp_path: Path) -> None:
    path = tmp_path / "once.csv"
    path.write_text("model,item,score\na,q1,1\na,q2,0\nb,q2,1\n", encoding="utf-8")
    plain, counts = read_responses(path), read_responses(path, trials="counts")
    assert counts.trials is None
    assert counts.sha256 == plain.sha256
    np.testing.assert_array_equal(counts.responses, plain.responses)


def test_the_hash_is_of_the_counts_whatever_their_order(counted: ResponseMatrix) -> None:
    shuffled = counted.select(subjects=["b", "a"], items=["q3", "q2", "q1"])
    assert shuffled.sha256 == counted.sha256
    doubled = replace(counted, trials=counted.n_trials * 2)
    np.testing.assert_array_equal(doubled.responses, counted.responses)
    assert doubled.sha256 != counted.sha256


@pytest.mark.parametrize(
    ("responses", "trials", "says"),
    [
        ([[0.4]], [[2]], r"0\.4 of 2 trial"),
        ([[1.5]], [[2]], r"1\.5 of 2"),
        ([[0.5]], [[0]], r"0\.5 of 0"),
        ([[np.nan]], [[2]], "nan of 2"),
        ([[0.5]], [[1]], r"0\.5 of 1"),
        ([[0.5]], [[2.5]], "no counts"),
        ([[0.5]], [[-2]], "no counts"),
        ([[0.5]], [[np.nan]], "no counts"),
        ([[0.5]], [[np.inf]], "no counts"),
        ([[0.5]], [2], r"of shape \(1,\)"),
        ([[0.5]], [["2"]], "expected whole numbers"),
        ([[0.5]], None, r"none of 0, 1, NaN"),
    ],
)
def test_shares_are_of_their_trials(responses: object, trials: object, says: str) -> None:
    with pytest.raises(DataError, match=says):
        ResponseMatrix.from_array(responses, trials=trials)  # type: ignore[arg-type] # some are the mistake


def test_nothing_can_be_changed() -> None:
    given = np.array([[2, 3], [4, 5]])
    matrix = ResponseMatrix.from_array([[0.5, 0], [1, 0.4]], trials=given)
    given[:] = 9
    assert matrix.n_trials.tolist() == [[2, 3], [4, 5]]
    for array in (matrix.trials, matrix.n_trials, matrix.passes, matrix.responses):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1  # type: ignore[index] # trials are there


def test_a_screen_drops_what_every_trial_agrees_on() -> None:
    matrix = ResponseMatrix.from_array(
        [[0.25, 1, 0, 0.5], [0.25, 1, 0, np.nan], [0.25, 1, 0, 0]],
        trials=[[4, 4, 4, 2], [4, 4, 4, 0], [4, 4, 4, 1]],
    )
    kept = screen(matrix)
    assert kept.dropped["name"].tolist() == ["item_2", "item_3"]
    assert kept.matrix.n_trials.tolist() == [[4, 2], [4, 0], [4, 1]]


def test_splits_hold_out_whole_cells() -> None:
    rng = np.random.default_rng(0)
    trials = rng.integers(1, 6, (20, 30))
    matrix = ResponseMatrix.from_array(rng.binomial(trials, 0.4) / trials, trials=trials)
    splits = make_splits(matrix, n_splits=2, stratified=True)
    shares = [(matrix.responses[cells] > 0.5).mean() for cells in splits.test]
    assert splits.test.sum(axis=(1, 2)).tolist() == [120, 120]
    np.testing.assert_allclose(shares, (matrix.responses > 0.5).mean(), atol=1 / 120)


def test_a_description_counts_trials(runs: Path) -> None:
    found = describe(runs, trials="counts", pass_at=1.0)
    assert found.facts["trials"] == "7, 1 to 3 a cell"
    assert found.facts["responses"] == "4 of 6 cells, 2 missing"
    assert found.facts["pass rate"] == "42.9%, subjects 40.0% to 50.0%"
    assert "subjects that answered as another did" not in found.facts


def test_subjects_of_equal_shares_are_not_alike_unless_the_counts_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"model": ["a", "b", "c"], "item": "q", "passes": [1, 2, 2], "trials": [2, 4, 4]})
    path = tmp_path / "counts.parquet"
    frame.to_parquet(path)
    assert describe(path).facts["subjects that answered as another did"] == "1 ('c')"


def test_covariates_and_names_leave_counts_alone(counted: ResponseMatrix, tmp_path: Path, runs: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("item,topic\nq1,x\nq2,y\nq3,y\n", encoding="utf-8")
    again = read_responses(runs, items=table, trials="counts", pass_at=1.0)
    assert again.sha256 == counted.sha256
    assert again.items["topic"].tolist() == ["x", "y", "y"]
