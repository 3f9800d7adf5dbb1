"""The response matrix: what it refuses, what it hashes, what selecting keeps."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtaudit.data import ResponseMatrix, load_swebench_verified
from irtaudit.errors import DataError

CELLS = np.array([[1.0, 0.0, np.nan], [0.0, np.nan, 1.0]])


def named(rows: list[str], columns: list[str], cells: np.ndarray = CELLS) -> ResponseMatrix:
    return ResponseMatrix.from_array(cells, subjects=rows, items=columns)


def test_names_cells_and_observed_stand_where_they_were_put() -> None:
    matrix = named(["b", "a"], ["x", "y", "z"])
    assert (matrix.n_subjects, matrix.n_items) == (2, 3)
    assert list(matrix.subjects.index) == ["b", "a"]
    assert matrix.subjects.index.name == "subject"
    assert matrix.items.index.name == "item"
    np.testing.assert_array_equal(matrix.responses, CELLS)
    np.testing.assert_array_equal(matrix.observed, [[True, True, False], [True, False, True]])


def test_generated_names_sort_in_the_order_of_the_array() -> None:
    matrix = ResponseMatrix.from_array(np.ones((12, 101)))
    for names in (matrix.subjects.index, matrix.items.index):
        assert list(names) == sorted(names)


def test_neither_the_callers_data_nor_the_matrix_can_be_changed_through_the_other() -> None:
    cells = CELLS.copy()
    table = pd.DataFrame({"developer": ["A", "B"]}, index=["a", "b"])
    matrix = ResponseMatrix.from_array(cells, subjects=table)
    cells[0, 0] = 0
    table.loc["a", "developer"] = "C"
    assert matrix.responses[0, 0] == 1
    assert matrix.subjects.loc["a", "developer"] == "A"
    assert table.index.name is None
    subjects, items = matrix.subjects, matrix.items
    subjects.loc["a", "developer"] = "C"
    subjects["access"] = "open"
    items.rename(index={"item_1": "renamed"}, inplace=True)
    assert matrix.subjects.to_dict("list") == {"developer": ["A", "B"]}
    assert "renamed" not in matrix.items.index
    for array in (matrix.responses, matrix.observed):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0


@pytest.mark.parametrize(
    ("rows", "columns", "cells", "message"),
    [
        (["a", "a"], ["x", "y", "z"], CELLS, "subject name 'a' is given twice"),
        (["a", "b"], ["x", "y", "x"], CELLS, "item name 'x' is given twice"),
        (["a", " "], ["x", "y", "z"], CELLS, "subject 2 has an empty name"),
        (["a", "b"], ["x", "y", 3], CELLS, "item 3 is named 3 .int."),
        (["a", "b"], ["x", "y", None], CELLS, "item 3 is named None"),
        (["a", "b\ud800"], ["x", "y", "z"], CELLS, "subject 2 .* cannot be written as UTF-8"),
        (["a", "b\0"], ["x", "y", "z"], CELLS, "subject 2 .* cannot be written as UTF-8"),
        (["a"], ["x", "y", "z"], CELLS, r"shape \(2, 3\).*1 subjects and 3 items.*expected shape \(1, 3\)"),
        (
            ["a", "b"],
            ["x", "y", "z"],
            np.full((2, 3), 0.5),
            "6 cell.s. are none of 0, 1, NaN.*0.5 at subject 'a'",
        ),
        (["a", "b"], ["x", "y", "z"], np.full((2, 3), np.inf), "none of 0, 1, NaN"),
        (["a", "b"], ["x", "y", "z"], np.full((2, 3), "pass"), "not numbers"),
        ([], ["x", "y", "z"], np.empty((0, 3)), "no subjects"),
        (["a", "b"], [], np.empty((2, 0)), "no items"),
        (["a", "b"], ["x"], np.ones(2), "1 dimension"),
    ],
)
def test_what_is_no_response_matrix_is_refused_by_name(
    rows: list[str], columns: list[str], cells: np.ndarray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        named(rows, columns, cells)


def test_booleans_and_integers_are_responses() -> None:
    expected = named(["a"], ["x", "y"], np.array([[1.0, 0.0]]))
    for cells in (np.array([[True, False]]), np.array([[1, 0]]), np.array([[1.0, -0.0]])):
        assert named(["a"], ["x", "y"], cells).sha256 == expected.sha256
        assert named(["a"], ["x", "y"], cells).responses.tobytes() == expected.responses.tobytes()


def test_sha256_of_the_bundled_data_is_that_of_its_definition_computed_without_us() -> None:
    path = Path(str(files("irtaudit.data") / "swebench_verified" / "responses.csv.gz"))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    order = sorted(range(1, len(header)), key=lambda j: header[j])
    rows.sort()
    names = json.dumps([[row[0] for row in rows], [header[j] for j in order]], separators=(",", ":"))
    cells = bytes(int(row[j]) for row in rows for j in order)
    expected = hashlib.sha256(names.encode() + b"\n" + cells).hexdigest()
    assert load_swebench_verified().sha256 == expected


@given(st.randoms(use_true_random=False))
def test_sha256_ignores_order_covariates_and_source(random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    matrix = named(["b", "a"], ["x", "é", "Z"])
    rows, columns = rng.permutation(2), rng.permutation(3)
    shuffled = ResponseMatrix.from_array(
        CELLS[np.ix_(rows, columns)],
        subjects=pd.DataFrame({"developer": ["A", "B"]}, index=matrix.subjects.index[rows]),
        items=matrix.items.index[columns],
        source="elsewhere",
    )
    assert shuffled.sha256 == matrix.sha256


def test_sha256_tells_apart_what_differs() -> None:
    base = named(["a", "b"], ["x", "y", "z"])
    flipped = CELLS.copy()
    flipped[0, 0] = 0
    unseen = CELLS.copy()
    unseen[0, 1] = np.nan
    others = [
        named(["a", "c"], ["x", "y", "z"]),
        named(["a", "b"], ["x", "y", "w"]),
        named(["b", "a"], ["x", "y", "z"]),
        named(["a", "b"], ["x", "y", "z"], flipped),
        named(["a", "b"], ["x", "y", "z"], unseen),
        named(["a", "b", "c"], ["x", "y"], CELLS.reshape(3, 2)),
        named(["a,b"], ["x"], CELLS[:1, :1]),
        named(["a"], ["b,x"], CELLS[:1, :1]),
        named(['a","b'], ["x"], CELLS[:1, :1]),
    ]
    assert len({base.sha256, *(matrix.sha256 for matrix in others)}) == len(others) + 1


def test_selecting_by_mask_and_by_name_agree_and_keep_covariates() -> None:
    subjects = pd.DataFrame({"developer": ["A", "B"]}, index=["a", "b"])
    matrix = ResponseMatrix.from_array(CELLS, subjects=subjects, items=["x", "y", "z"], source="here")
    by_mask = matrix.select(subjects=np.array([False, True]), items=pd.Series([True, False, True]))
    by_name = matrix.select(subjects=["b"], items=["x", "z"])
    for found in (by_mask, by_name):
        np.testing.assert_array_equal(found.responses, [[0.0, 1.0]])
        assert found.subjects["developer"].tolist() == ["B"]
        assert found.source == "here"
    assert matrix.select(items=["z", "x"]).items.index.tolist() == ["z", "x"]


def test_sorting_moves_rows_columns_and_covariates_together() -> None:
    subjects = pd.DataFrame({"developer": ["B", "A"]}, index=["b", "a"])
    found = ResponseMatrix.from_array(CELLS, subjects=subjects, items=["z", "a", "Z"]).sorted()
    assert found.items.index.tolist() == ["Z", "a", "z"]
    assert found.subjects["developer"].tolist() == ["A", "B"]
    np.testing.assert_array_equal(found.responses, CELLS[::-1][:, [2, 1, 0]])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"items": ["x", "nope"]}, "unknown item.s.: 'nope'"),
        ({"subjects": np.array([True])}, "a mask of 1 booleans"),
        ({"subjects": np.array([False, False])}, "no subjects"),
        ({"items": ["x", "x"]}, "given twice"),
        ({"items": "x"}, "'x' selects no items; expected a list"),
        ({"subjects": 1}, "1 selects no subjects; expected a list"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(wanted: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        named(["a", "b"], ["x", "y", "z"]).select(**wanted)  # type: ignore[arg-type]


def test_the_bundled_data_is_what_its_readme_says() -> None:
    matrix = load_swebench_verified()
    assert matrix.responses.shape == (134, 500)
    assert matrix.observed.all()
    assert list(matrix.subjects) == ["developer", "access", "date", "scaffold"]
    assert list(matrix.items) == ["repo"]
    assert not matrix.subjects.isna().any(axis=None)
    assert not matrix.items.isna().any(axis=None)
    assert set(matrix.subjects["access"]) == {"closed_api", "open_weight", "unknown"}
    assert matrix.notes == ()
    pd.to_datetime(matrix.subjects["date"], format="%Y-%m-%d")
    folder = files("irtaudit.data") / "swebench_verified"
    assert (folder / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")


@pytest.mark.parametrize(
    ("agent", "resolved"),
    [("20231010_rag_claude2", 22), ("20231010_rag_gpt35", 2), ("20231010_rag_swellama13b", 6)],
)
def test_bundled_agents_resolve_as_many_tasks_as_the_compilers_table_says(agent: str, resolved: int) -> None:
    # the compilers' own score column (.044, .004, .012 of 500), which the package leaves out
    assert load_swebench_verified().select(subjects=[agent]).responses.sum() == resolved
