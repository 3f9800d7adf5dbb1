"""Reading: the layouts that are recognised, and one clear error for each way a file can be wrong."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irtaudit.data import ResponseMatrix, make_splits, read_responses
from irtaudit.data.read import Layout
from irtaudit.data.tables import ParquetTable
from irtaudit.errors import DataError, IrtAuditError, PlanError

WIDE = "model,q2,q1\nm2,1,0\nm1,,1\n"
LONG = "model,question,score\nm2,q2,1\nm2,q1,0\nm1,q1,1\n"
PYIRT = (
    '{"subject_id": "m2", "responses": {"q2": 1, "q1": 0}}\n{"subject_id": "m1", "responses": {"q1": 1}}\n'
)
EXPECTED = np.array([[1.0, np.nan], [0.0, 1.0]])  # m1, m2 by q1, q2

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "responses.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def parquet(**columns: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def assert_expected(matrix: ResponseMatrix) -> None:
    assert matrix.subjects.index.tolist() == ["m1", "m2"]
    assert matrix.items.index.tolist() == ["q1", "q2"]
    np.testing.assert_array_equal(matrix.responses, EXPECTED)


def test_names_come_back_sorted_and_the_docstring_says_the_way_back(write: Write) -> None:
    matrix = read_responses(write(WIDE))
    table = pd.DataFrame(matrix.responses, matrix.subjects.index, matrix.items.index)
    own = pd.read_csv(io.StringIO(WIDE), index_col=0).astype(float)
    pd.testing.assert_frame_equal(table.reindex(own.index)[own.columns], own, check_names=False)
    again = matrix.select(subjects=own.index, items=own.columns)
    np.testing.assert_array_equal(again.responses, own.to_numpy())
    said = " ".join((read_responses.__doc__ or "").split())
    assert "sorted by name (by code point), whatever their order in the file" in said
    assert "reindex(names)" in said


SAME_DATA = {
    "wide": WIDE,
    "long": LONG,
    "py-irt": PYIRT,
    "wide with tabs": WIDE.replace(",", "\t"),
    "long with tabs": LONG.replace(",", "\t"),
    "wide with semicolons": WIDE.replace(",", ";"),
    "wide with a byte order mark": "\ufeff" + WIDE,
    "py-irt with a byte order mark": "\ufeff" + PYIRT,
    "wide with Windows line ends": WIDE.replace("\n", "\r\n"),
    "py-irt with Windows line ends": PYIRT.replace("\n", "\r\n"),
    "long with Windows line ends and a mark": "\ufeff" + LONG.replace("\n", "\r\n"),
    "wide without a last line end": WIDE.rstrip(),
    "wide with blank lines": WIDE.replace("\n", "\n\n"),
    "py-irt with blank lines": PYIRT.replace("\n", "\n\n"),
    "wide with quotes": 'model,"q2","q1"\n"m2","1","0"\nm1,"",1\n',
    "wide with words": "model,q2,q1\nm2,True,FALSE\nm1,NA,true\n",
    "wide with pass and fail": "model,q2,q1\nm2, pass ,Fail\nm1,null,PASS\n",
    "wide with floats": "model,q2,q1\nm2,1.0,0.00\nm1,nan,1e0\n",
    "long with a missing row": LONG + "m1,q2,NaN\n",
    "long with further columns": "run,model,question,tokens,score\n1,m2,q2,9,1\n1,m2,q1,,0\n2,m1,q1,x,1\n",
    "long in another order": "Score;Item ID;Subject-Id\n1;q2;m2\n0;q1;m2\n1;q1;m1\n",
    "py-irt with null": PYIRT.replace('{"q1": 1}', '{"q1": 1, "q2": null}'),
    "py-irt with booleans and NaN": PYIRT.replace('{"q1": 1}', '{"q1": true, "q2": NaN}'),
    "py-irt with further keys": PYIRT.replace('{"subject', '{"meta": {"a": [1]}, "subject'),
    "wide Parquet of integers": parquet(
        model=["m2", "m1"], q2=pa.array([1, None], pa.int8()), q1=pa.array([0, 1], pa.int64())
    ),
    "wide Parquet of booleans": parquet(model=["m2", "m1"], q2=pa.array([True, None]), q1=[False, True]),
    "wide Parquet of floats": parquet(model=["m2", "m1"], q2=[1.0, float("nan")], q1=[0.0, 1.0]),
    "wide Parquet of text and numbers": parquet(model=["m2", "m1"], q2=["pass", None], q1=[0, 1]),
    "long Parquet": parquet(model=["m2", "m2", "m1"], item=["q2", "q1", "q1"], correct=[True, False, True]),
    "long Parquet of categories": parquet(
        model=pa.array(["m2", "m2", "m1"]).dictionary_encode(), item=["q2", "q1", "q1"], score=[1, 0, 1]
    ),
}


@pytest.mark.parametrize(
    "name", ["responses.csv", "responses.tsv", "responses", "responses.parquet", "x.jsonl"]
)
@pytest.mark.parametrize("kind", SAME_DATA)
def test_content_decides_whatever_the_file_is_called(write: Write, kind: str, name: str) -> None:
    assert_expected(read_responses(write(SAME_DATA[kind], name)))


@pytest.mark.parametrize("kind", [kind for kind, content in SAME_DATA.items() if isinstance(content, str)])
def test_gzip_is_seen_by_content_too(write: Write, kind: str) -> None:
    content = SAME_DATA[kind]
    assert isinstance(content, str)
    assert_expected(read_responses(write(gzip.compress(content.encode()), "responses.csv")))


def test_the_example_of_py_irt(write: Write) -> None:
    lines = """\
{"subject_id": "pedro",    "responses": {"q1": 1, "q2": 0, "q3": 1, "q4": 0}}
{"subject_id": "pinguino", "responses": {"q1": 1, "q2": 1, "q3": 0, "q4": 0}}
{"subject_id": "ken",      "responses": {"q1": 1, "q2": 1, "q3": 1, "q4": 1}}
{"subject_id": "burt",     "responses": {"q1": 0, "q2": 0, "q3": 0, "q4": 0}}
"""
    matrix = read_responses(write(lines))
    assert matrix.subjects.index.tolist() == ["burt", "ken", "pedro", "pinguino"]
    np.testing.assert_array_equal(matrix.responses, [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]])


def test_pandas_reads_the_same_cells(write: Write) -> None:
    rng = np.random.default_rng(4)
    cells = np.where(rng.random((30, 40)) < 0.1, np.nan, rng.random((30, 40)) < 0.6)
    frame = pd.DataFrame(
        cells, index=[f"m{i:02d}" for i in range(30)], columns=[f"q{j:02d}" for j in range(40)]
    )
    path = write(frame.to_csv())
    matrix = read_responses(path)
    pd.testing.assert_frame_equal(
        pd.DataFrame(matrix.responses, matrix.subjects.index, matrix.items.index),
        frame,
        check_names=False,
        check_column_type=False,
        check_index_type=False,
    )
    long = frame.rename_axis("model").reset_index().melt("model", var_name="task", value_name="resolved")
    assert read_responses(write(long.to_csv(index=False))).sha256 == matrix.sha256


def pandas_frame(name: str | None = "model") -> pd.DataFrame:
    return pd.DataFrame(
        {"q2": [1, None], "q1": [0, 1]}, index=pd.Index(["m2", "m1"], name=name), dtype="Int64"
    )


@pytest.mark.parametrize("name", ["model", None, "anything"])
def test_the_index_that_pandas_writes_is_the_column_of_names(tmp_path: Path, name: str | None) -> None:
    """In CSV it comes first, in Parquet last."""
    pandas_frame(name).to_parquet(tmp_path / "x.parquet")
    pandas_frame(name).to_csv(tmp_path / "x.csv")
    assert_expected(read_responses(tmp_path / "x.parquet"))
    assert_expected(read_responses(tmp_path / "x.csv"))


def test_several_index_columns_and_row_numbers_of_pandas(tmp_path: Path) -> None:
    wide = pandas_frame().reset_index()
    long = wide.melt("model", var_name="item", value_name="score").dropna()
    long.set_index(["model", "item"]).to_parquet(tmp_path / "index.parquet")
    long.to_parquet(tmp_path / "numbers.parquet")  # after dropna the row numbers are a column
    wide.to_parquet(tmp_path / "wide.parquet")
    long.to_csv(tmp_path / "long.csv")
    wide.to_csv(tmp_path / "wide.csv")
    for path in tmp_path.iterdir():
        assert_expected(read_responses(path))
    assert_expected(read_responses(tmp_path / "wide.csv", subject_column="model"))


def test_numbers_of_rows_that_were_kept_are_left_out_of_parquet_where_text_comes_first(
    tmp_path: Path,
) -> None:
    wide = pandas_frame().reset_index()
    kept = pd.concat([wide[:0], wide]).set_axis([3, 9])
    kept.to_parquet(tmp_path / "x.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "x.parquet").names
    assert_expected(read_responses(tmp_path / "x.parquet"))
    kept[["q1"]].to_parquet(tmp_path / "bare.parquet")
    assert read_responses(tmp_path / "bare.parquet").subjects.index.tolist() == ["3", "9"]


def test_a_dataframe_is_read_as_its_file_would_be() -> None:
    wide = pandas_frame().reset_index()
    long = wide.melt("model", var_name="item", value_name="score").dropna()
    renamed = long.set_axis(["who", "what", "points"], axis=1)
    for frame in (pandas_frame(), pandas_frame(None), wide, long, long.set_index(["model", "item"])):
        assert_expected(read_responses(frame))
    before = renamed.copy()
    matrix = read_responses(renamed, subject_column="who", item_column="what", response_column="points")
    assert_expected(matrix)
    assert matrix.source == "DataFrame"
    pd.testing.assert_frame_equal(renamed, before)
    graded = long.assign(score=long["score"] / 2)
    with pytest.raises(DataError, match=r"DataFrame, row 1, column 'score': found 0\.5, between 0 and 1"):
        read_responses(graded)
    assert read_responses(graded, pass_at=0.5).sha256 == matrix.sha256
    assert read_responses(pd.concat([long, long]), trials="first").sha256 == matrix.sha256


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (pd.DataFrame({"model": ["a", "b"], "q": [1, "pass"]}), {}, DataError, "column q|several types"),
        (pd.DataFrame([["a", 1, 1]], columns=["model", "q", "q"]), {}, DataError, "Duplicate column names"),
        (
            pd.DataFrame({"model": [], "q": []}),
            {},
            DataError,
            "DataFrame has a header .2 columns. but no rows",
        ),
        (pd.DataFrame(), {}, DataError, "DataFrame"),
        (
            pd.DataFrame({"model": ["a"], "q": [1]}),
            {"layout": "helm"},
            PlanError,
            "a DataFrame holds no helm logs",
        ),
        (
            pd.DataFrame({"model": ["a"], "q": [1]}),
            {"layout": "py-irt"},
            PlanError,
            "a DataFrame holds no py-irt",
        ),
        (pd.DataFrame({"model": ["a"], "q": [1]}), {"task": "t"}, DataError, "DataFrame is read as a table"),
    ],
    ids=["mixed", "twice", "no rows", "nothing", "helm", "py-irt", "task"],
)
def test_what_no_dataframe_can_be(
    frame: pd.DataFrame, options: dict[str, Any], error: type[IrtAuditError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        read_responses(frame, **options)
    assert "\n" not in str(caught.value)


def test_row_numbers_are_left_out_only_where_another_column_names_the_subjects(write: Write) -> None:
    numbered = write(",q1,q2\n0,1,0\n1,0,1\n")
    assert read_responses(numbered).subjects.index.tolist() == ["0", "1"]
    other = write(",model,q1\n5,a,1\n7,b,0\n")
    with pytest.raises(DataError, match=r"column.s. 'model' hold something else"):
        read_responses(other)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_permuted_file_gives_the_same_matrix_and_the_same_splits(write: Write, layout: str) -> None:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.random((9, 11)) < 0.5, index=[f"m{i}" for i in range(9)])
    frame = frame.rename(columns=lambda j: f"q{j}").rename_axis("model").astype(int)
    shuffled = frame.iloc[rng.permutation(9), rng.permutation(11)]
    tables = [table.reset_index() for table in (frame, shuffled)]
    if layout == "long":
        tables = [table.melt("model", var_name="item", value_name="score") for table in tables]
        tables[1] = tables[1].sample(frac=1, random_state=1)
    first, second = (read_responses(write(table.to_csv(index=False))) for table in tables)
    assert first.sha256 == second.sha256
    assert first.items.index.equals(second.items.index)
    np.testing.assert_array_equal(first.responses, second.responses)
    np.testing.assert_array_equal(make_splits(first).test, make_splits(second).test)


@pytest.mark.parametrize(
    ("pass_at", "expected"), [(1.0, [0, 0, 1]), (0.5, [0, 1, 1]), (0.25, [1, 1, 1]), (0.51, [0, 0, 1])]
)
@pytest.mark.parametrize("kind", ["wide", "long", "py-irt", "parquet"])
def test_scores_pass_from_the_cut_off_on(
    write: Write, kind: str, pass_at: float, expected: list[int]
) -> None:
    scores = [0.25, 0.5, 1.0]
    content: str | bytes = {
        "wide": "model,a,b,c\nm,0.25,.5,1.0\n",
        "long": "model,item,score\nm,a,0.25\nm,b,5e-1\nm,c,1\n",
        "py-irt": json.dumps({"subject_id": "m", "responses": dict(zip("abc", scores, strict=True))}),
        "parquet": parquet(model=["m"], **{name: [score] for name, score in zip("abc", scores, strict=True)}),
    }[kind]
    path = write(content)
    with pytest.raises(DataError, match=r"0\.25.*--pass-at"):
        read_responses(path)
    assert read_responses(path, pass_at=pass_at).responses[0].tolist() == expected


@pytest.mark.parametrize("pass_at", [0, -1, 1.01, float("nan"), float("inf"), "half"])
def test_a_cut_off_outside_its_range_is_refused(write: Write, pass_at: Any) -> None:
    with pytest.raises(PlanError, match="pass_at"):
        read_responses(write(WIDE), pass_at=pass_at)


def test_columns_can_be_named(write: Write) -> None:
    path = write("llm family,who,what,ok\nA,m2,q2,1\nA,m2,q1,0\nB,m1,q1,1\n")
    assert_expected(read_responses(path, subject_column="who", item_column="what", response_column="ok"))
    path = write("rank,who,q1\n1,m1,1\n0,m2,0\n")
    assert read_responses(path, subject_column="who").items.index.tolist() == ["q1", "rank"]


def test_what_is_wide_and_long_at_once_is_refused_until_the_caller_says(write: Write) -> None:
    path = write("model,item,score\nm1,1,0\nm2,0,1\n")
    with pytest.raises(DataError, match="wide table and, by its column names, as a long one"):
        read_responses(path)
    assert read_responses(path, layout="wide").items.index.tolist() == ["item", "score"]
    assert read_responses(path, layout="long").items.index.tolist() == ["0", "1"]
    assert read_responses(path, item_column="item").items.index.tolist() == ["0", "1"]


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\r\n\t", "is empty"),
    "only a byte order mark": (b"\xef\xbb\xbf", "not a table"),
    "header only": (b"model,q1,q2\n", "a header .3 columns. but no rows"),
    "one column": (b"model\nm1\nm2\n", "not a table"),
    "prose": (b"These are no responses at all.\n", "not a table"),
    "not UTF-8": ("model,q1\nm1,1\nmod\xe8le,0\n".encode("latin-1"), "line 3: byte 0xe8 is not UTF-8"),
    "UTF-16": (WIDE.encode("utf-16"), "UTF-16"),
    "NUL bytes": (b"model,q1\nm\x001,1\n", "line 2: a NUL byte"),
    "junk": (bytes(range(256)) * 10, "NUL|not UTF-8|not a table"),
    "zip": (b"", "zip archive"),
    "npz": (b"", "zip archive"),
    "npy": (b"\x93NUMPY\x01\x00", "NumPy"),
    "pickle": (pickle.dumps({"a": 1}), "Python pickle, which can run code and is never read"),
    "gzip cut off": (gzip.compress(WIDE.encode() * 50, mtime=0)[:-20], "broken or cut-off gzip"),
    "gzip with a wrong checksum": (
        gzip.compress(WIDE.encode(), mtime=0)[:-8] + b"\0" * 8,
        "broken or cut-off gzip",
    ),
    "gzip in name only": (b"\x1f\x8bnothing of the kind", "broken or cut-off gzip"),
    "Parquet cut off": (parquet(model=["m1"], q=[1])[:-30], "broken or cut-off Parquet"),
    "Parquet without rows": (parquet(model=pa.array([], pa.string()), q=pa.array([], pa.int8())), "no rows"),
    "short row": (b"model,q1,q2\nm1,1,0\nm2,1\n", "line 3: 2 fields where the header has 3"),
    "long row": (b"model,q1,q2\nm1,1,0,1\n", "line 2: 4 fields where the header has 3"),
    "quote left open": (b'model,q1\nm1,1\n"m2,0\n', "line 3: not readable as comma-separated"),
    "text after a quote": (b'model,q1\n"m1"x,1\n', "line 2: not readable as comma-separated"),
    "subject twice": (b"model,q1\nm1,1\nm2,0\nm1,0\n", "subject name 'm1' is given twice .line 2 and line 4"),
    "item twice": (b"model,q1,q2,q1\nm1,1,0,1\n", "item name 'q1' is given twice .column 2 and column 4"),
    "empty subject": (b"model,q1\n,1\n", "line 2: the subject has no name"),
    "empty item": (b"model,q1,\nm1,1,1\n", "column 3: the item has no name"),
    "infinity": (b"model,q1\nm1,1\nm2,inf\n", "line 3 .subject 'm2'., column 'q1': found 'inf'"),
    "number out of range": (b"model,q1\nm1,1\nm2,0\nm3,2\n", "line 4 .subject 'm3'., column 'q1': found '2'"),
    "negative": (b"model,q1\nm1,1\nm2,0\nm3,-1\n", "line 4.*'-1', expected 0, 1, true"),
    "underscored number": (b"model,q1\nm1,1\nm2,0\nm3,0_1\n", "line 4.*'0_1'"),
    "arabic digit": ("model,q1\nm1,1\nm2,0\nm3,\u0661\n".encode(), "line 4"),
    "answer letter": (
        b"model,q1,q2\nm1,1,0\nm2,A,1\nm3,1,1\n",
        "line 3 .subject 'm2'., column 'q1': found 'A'",
    ),
    "line counts through line breaks in names": (
        b'model,q1\n"m\n1",1\n\nm2,0\nm3,x\n',
        "line 6 .subject 'm3'",
    ),
    "covariates in a wide table": (
        b"model,developer,date,q1\nm1,A,20240101,1\nm2,B,20250101,0\n",
        r"column.s. 'developer', 'date' hold something else.*--subjects",
    ),
    "items in rows": (b"item,m1,m2\nq1,1,0\n", "rows look like items.*transpose"),
    "two subject columns": (
        b"model,agent,item,score\nm,a,q,1\nm,a,q2,1\n",
        "subject: 'model', 'agent'; .*--subject-column",
    ),
    "two response columns": (
        b"model,item,score,correct\nm,q,.5,1\nm,r,.5,1\n",
        "response: 'score', 'correct'",
    ),
    "cell twice": (
        b"model,item,score\nm,q,1\nn,q,0\nm,q,1\n",
        "1 cell.s. are given more than once.*'m', item 'q' has the same response: 1 at line 2, 1 at line 4",
    ),
    "cells in conflict": (
        b"model,item,score\nn,q,0\nn,q,0\nm,q,1\nm,q,0\n",
        "2 cell.s..*'m', item 'q' has conflicting responses: 1 at line 4, 0 at line 5",
    ),
    "cell given and missing": (
        b"model,item,score\nm,q,1\nm,q,\n",
        "conflicting responses: 1 at line 2, missing at line 3",
    ),
    "long with an empty subject": (
        b"model,item,score\nm,q,1\n,q,1\n",
        "line 3: the subject has no name .column 'model'",
    ),
    "long with an empty item": (b"model,item,score\nm,q,1\nm, ,1\n", "line 3: the item has no name"),
    "long with a bad response": (
        b"model,item,score\nm,q,1\nm,r,yes\n",
        "line 3, column 'score': found 'yes'",
    ),
    "long with infinity": (b"model,item,score\nm,q,1\nm,r,1e999\n", "line 3, column 'score': found '1e999'"),
    "Parquet out of range": (
        parquet(model=["a", "b", "c"], q=[0, 1, 7]),
        "row 3 .subject 'c'., column 'q': found 7",
    ),
    "Parquet with infinity": (parquet(model=["a", "b", "c"], q=[0, 1, float("inf")]), "row 3.*found inf"),
    "Parquet with a null subject": (parquet(model=["a", None], q=[0, 1]), "row 2: the subject has no name"),
    "Parquet of lists": (parquet(model=["a", "b"], q=[[1], [0]]), "'q' hold something else"),
    "JSON array": (b'[{"subject_id": "m", "responses": {"q": 1}}]', "line 1: expected an object"),
    "JSON of another kind": (b'{"model": "m", "score": 1}', "line 1: expected an object .*subject_id"),
    "broken JSON": (PYIRT.encode() + b'{"subject_id": "m3", "resp\n', "line 3: not JSON"),
    "JSON cut off": (PYIRT.encode()[:-5], "line 2: not JSON"),
    "deep JSON": (b'{"a":' * 100_000, "line 1: not JSON"),
    "long integer in JSON": (b'{"subject_id": "m", "responses": {"q": ' + b"9" * 5000 + b"}}", "line 1"),
    "large integer in JSON": (
        b'{"subject_id": "m", "responses": {"q": ' + b"9" * 400 + b"}}",
        "line 1, item 'q'",
    ),
    "JSON without a name": (b'{"subject_id": null, "responses": {"q": 1}}', "subject_id is None"),
    "JSON with a boolean name": (b'{"subject_id": true, "responses": {"q": 1}}', "subject_id is True"),
    "JSON with an empty item": (b'{"subject_id": "m", "responses": {"": 1}}', "item 1 has an empty name"),
    "JSON with half a character": (b'{"subject_id": "m\\ud800", "responses": {"q": 1}}', "cannot be written"),
    "JSON with a nested response": (
        b'{"subject_id": "m", "responses": {"q": [1]}}',
        r"item 'q': found \[1\]",
    ),
    "JSON with a bad response": (
        b'{"subject_id": "m", "responses": {"q": "yes"}}',
        "line 1, item 'q': found 'yes'",
    ),
    "JSON with infinity": (
        b'{"subject_id": "m", "responses": {"q": Infinity}}',
        "line 1, item 'q': found inf",
    ),
    "JSON without responses": (b'{"subject_id": "m", "responses": {}}', "no items"),
    "JSON with a subject twice": (PYIRT.encode() * 2, "'m2' is given twice .lines 1 and 3"),
    "JSON with an item twice": (
        b'{"subject_id": "m", "responses": {"q": 1, "q": 0}}',
        "line 1: not JSON .'q' is given twice",
    ),
}


def zipped(name: str) -> bytes:
    stream = io.BytesIO()
    if name == "npz":
        np.savez(stream, responses=EXPECTED)
    else:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("responses.csv", WIDE)
    return stream.getvalue()


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_bad_file_gives_one_error_that_names_the_file_and_the_place(
    write: Write, kind: str, packed: bool
) -> None:
    content, message = BAD[kind]
    content = zipped(kind) if kind in ("zip", "npz") else content
    message = "gzip twice" if packed and content.startswith(b"\x1f\x8b") else message
    path = write(gzip.compress(content) if packed else content, "data.csv")
    with pytest.raises(DataError, match=f"(?s){message}") as caught:
        read_responses(path)
    if kind not in ("JSON without responses", "JSON with an empty item", "JSON with half a character"):
        assert "data.csv" in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_missing_file_and_an_empty_folder_are_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_responses(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="is a folder without files"):
        read_responses(tmp_path)


def test_a_gzip_bomb_stops_at_the_limit(write: Write) -> None:
    path = write(gzip.compress(WIDE.encode() + b"\n" * 400_000))
    assert path.stat().st_size < 10_000
    with pytest.raises(
        DataError, match=r"more than 100,000 bytes once decompressed; .*max_bytes=, --max-bytes"
    ):
        read_responses(path, max_bytes=100_000)
    assert_expected(read_responses(path, max_bytes=1_000_000))


def test_a_parquet_bomb_stops_at_the_limit(write: Write) -> None:
    ones = np.ones(1_000_000, dtype=np.int8)
    path = write(parquet(model=pa.array(ones), item=pa.array(ones), score=pa.array(ones)))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="1,000,000 rows x 3 columns"):
        read_responses(path, max_bytes=1_000_000)


@pytest.mark.parametrize("layout", ["long", "py-irt"])
def test_a_matrix_that_would_not_fit_is_refused_before_it_is_made(write: Write, layout: str) -> None:
    if layout == "long":
        content = "model,item,score\n" + "".join(f"m{i},q{i},1\n" for i in range(2000))
    else:
        content = "".join(f'{{"subject_id": "m{i}", "responses": {{"q{i}": 1}}}}\n' for i in range(2000))
    with pytest.raises(DataError, match=r"2,000 subjects and 2,000 items"):
        read_responses(write(content), max_bytes=1_000_000)


@pytest.mark.parametrize("given", ["subject_column", "item_column", "response_column"])
def test_a_named_column_that_is_not_there_is_refused(write: Write, given: str) -> None:
    with pytest.raises(
        DataError, match="no column named 'nope'; its columns are 'model', 'question', 'score'"
    ):
        read_responses(write(LONG), **{given: "nope"})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=f"no columns; leave out {given}"):
        read_responses(write(PYIRT), **{given: "nope"})  # type: ignore[arg-type]


def test_a_long_table_without_a_recognised_role_says_which(write: Write) -> None:
    path = write("model,what,score\nm,q,1\n")
    with pytest.raises(
        DataError, match=r"recognised as the item among 'model', 'what', 'score'.*--item-column"
    ):
        read_responses(path, layout="long")


def test_a_delimiter_that_cannot_be_told_is_refused(write: Write) -> None:
    content = "model;x,q1\nm;1,1\n"
    with pytest.raises(DataError, match="comma and semicolon"):
        read_responses(write(content, "responses.tsv"))
    assert read_responses(write(content, "responses.csv")).subjects.index.tolist() == ["m;1"]


def test_a_hundred_thousand_items_are_read(write: Write) -> None:
    n = 100_000
    names = [f"q{j:06d}" for j in range(n)]
    rows = [",".join(["m1"] + ["1"] * n), ",".join(["m2"] + ["0"] * n)]
    matrix = read_responses(write("\n".join([",".join(["model", *names]), *rows])))
    assert matrix.responses.shape == (2, n)
    assert matrix.responses.sum() == n


def test_a_long_table_of_many_rows_is_read(write: Write) -> None:
    rng = np.random.default_rng(0)
    cells = rng.random((300, 400)) < 0.5
    rows, columns = np.unravel_index(rng.permutation(cells.size), cells.shape)
    frame = pd.DataFrame(
        {"model": rows + 1000, "item": columns + 1000, "score": cells[rows, columns].astype(int)}
    )
    matrix = read_responses(write(frame.to_csv(index=False)))
    np.testing.assert_array_equal(matrix.responses, cells)


CORPUS = [content.encode() if isinstance(content, str) else content for content in SAME_DATA.values()]
CORPUS += [content for content, _ in BAD.values()] + [
    gzip.compress(WIDE.encode(), mtime=0),
    gzip.compress(PYIRT.encode(), mtime=0),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file of ours with a piece cut out and another put in its place."""
    content = draw(st.sampled_from(CORPUS))
    start = draw(st.integers(0, len(content)))
    stop = draw(st.integers(start, min(len(content), start + 12)))
    piece = draw(
        st.binary(max_size=6) | st.sampled_from([b'"', b",", b"\n", b"\r", b"\t", b"{", b"}", b"[", b"NaN"])
    )
    return content[:start] + piece + content[stop:]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=damaged() | st.binary(max_size=60), layout=st.sampled_from([None, "wide", "long", "py-irt"]))
def test_whatever_the_bytes_the_answer_is_a_matrix_or_our_error(
    tmp_path: Path, content: bytes, layout: Layout | None
) -> None:
    path = tmp_path / "fuzz.csv"
    path.write_bytes(content)
    with contextlib.suppress(IrtAuditError):
        matrix = read_responses(path, layout=layout, max_bytes=10_000_000)
        assert matrix.subjects.index.is_monotonic_increasing
        assert matrix.items.index.is_monotonic_increasing


@pytest.mark.parametrize("more", [[], [f"note {i}" for i in range(40)]])
def test_only_the_column_of_that_name_is_taken_from_parquet(tmp_path: Path, more: list[str]) -> None:
    """Arrow takes a dot for a path, so that "model" also means "model.size"."""
    columns = {
        "model.size": ["7b", "8b"],
        "model": ["a", "b"],
        "item": ["q", "q"],
        "correct": [1, 0],
        **{name: ["x", "y"] for name in more},
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    matrix = read_responses(tmp_path / "x.parquet")
    assert matrix.subjects.index.tolist() == ["a", "b"]
    assert matrix.responses.ravel().tolist() == [1.0, 0.0]


def test_names_of_any_type_and_unused_categories_in_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "model": pa.array(["b", "a", "b"])
            .dictionary_encode()
            .cast(pa.dictionary(pa.int8(), pa.string())),
            "item": pa.array([10, 10, 9]),
            "correct": pa.array([True, None, False]),
        }
    )
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["a", "b", "never there"]))
    pq.write_table(table.set_column(0, "model", unused), tmp_path / "x.parquet")
    matrix = read_responses(tmp_path / "x.parquet")
    assert (matrix.subjects.index.tolist(), matrix.items.index.tolist()) == (["a", "b"], ["10", "9"])
    np.testing.assert_array_equal(matrix.responses, [[np.nan, np.nan], [1, 0]])


def test_texts_that_nobody_asks_for_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"model": ["a"], "item": ["q"], "correct": [1], "transcript": ["long"]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    asked: list[list[str]] = []
    read = ParquetTable._read
    monkeypatch.setattr(
        ParquetTable, "_read", lambda self, names: (asked.append(names), read(self, names))[1]
    )
    read_responses(tmp_path / "x.parquet", layout="long")
    assert asked == [["model"], ["item"], ["correct"]]
