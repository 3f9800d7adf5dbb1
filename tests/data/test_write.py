"""Writing: every layout gives back the same names and cells, whatever the names, and nothing half-written."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from irtaudit.data import ResponseMatrix, load_swebench_verified, read_responses, write_responses
from irtaudit.data.files import (
    atomic_path,
    atomic_write,
    escape_formula,
    make_folder,
    unescape_formula,
    write_csv,
)
from irtaudit.data.read import Layout
from irtaudit.data.write import FORMATS
from irtaudit.errors import PlanError, StorageError

SUFFIX = {"csv": ".csv", "tsv": ".tsv", "parquet": ".parquet", "irt": ".jsonl"}
HOSTILE = [
    "=1+1",
    '=HYPERLINK("http://x.invalid")',
    "+1",
    "-1",
    "@cf/meta/llama",
    "\tx",
    "\rx",
    "\nx",
    "'",
    "'quoted'",
    "'=1",
    "''=1",
    "'''-",
    '"',
    '""',
    'a"b',
    "a,b",
    "a;b",
    "a\tb",
    "a\nb",
    "a\r\nb",
    "a\rb",
    " leading",
    "trailing ",
    "NA",
    "nan",
    "null",
    "True",
    "1",
    "0.5",
    "01",
    "subject",
    "item",
    "response",
    "model",
    "score",
    "{",
    "[",
    "#x",
    "\ufeffx",
    "é",
    "e\u0301",
    "模型",
    "🤖",
    "a\u2028b",
    "a\x85b",
    "\x1b[31m",
    "<script>",
    "\\n",
    "a\\",
]
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda name: bool(name.strip()))


@st.composite
def matrices(draw: st.DrawFn) -> ResponseMatrix:
    subjects = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    items = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    shape = (len(subjects), len(items))
    cells = draw(arrays(float, shape, elements=st.sampled_from([0.0, 1.0, np.nan])))
    return ResponseMatrix.from_array(cells, subjects=subjects, items=items)


def layout_of(format: str) -> Layout:
    return "py-irt" if format == "py-irt" else "wide" if format.startswith("wide") else "long"


def assert_same(found: ResponseMatrix, matrix: ResponseMatrix) -> None:
    expected = matrix.sorted()
    assert found.subjects.index.tolist() == expected.subjects.index.tolist()
    assert found.items.index.tolist() == expected.items.index.tolist()
    np.testing.assert_array_equal(found.responses, expected.responses)
    assert found.sha256 == matrix.sha256


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=50)
@given(matrix=matrices(), packed=st.sampled_from(["", ".gz"]))
def test_every_format_gives_back_the_same_matrix(format: str, packed: str, matrix: ResponseMatrix) -> None:
    packed = "" if format.endswith("parquet") else packed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"out{SUFFIX[format.rpartition('-')[2]]}{packed}"
        assert write_responses(matrix, path, format) == format
        assert_same(read_responses(path, layout=layout_of(format)), matrix)
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_of_all_hostile_names_and_cells_gives_itself_back(tmp_path: Path, format: str) -> None:
    rng = np.random.default_rng(2)
    cells = rng.choice([0.0, 1.0, np.nan], size=(len(HOSTILE), len(HOSTILE)))
    cells[3] = np.nan
    cells[:, 5] = np.nan
    matrix = ResponseMatrix.from_array(cells, subjects=HOSTILE, items=HOSTILE[::-1])
    path = tmp_path / f"out{SUFFIX[format.rpartition('-')[2]]}"
    write_responses(matrix, path, format)
    assert_same(read_responses(path, layout=layout_of(format)), matrix)


@pytest.mark.parametrize("format", FORMATS)
def test_real_data_goes_through_each_format_without_being_told_which(tmp_path: Path, format: str) -> None:
    matrix = load_swebench_verified()
    matrix = matrix.select(subjects=matrix.subjects.index[:20])
    write_responses(matrix, tmp_path / "out", format)
    assert_same(read_responses(tmp_path / "out"), matrix)


@pytest.mark.parametrize("format", [format for format in FORMATS if format.endswith("sv")])
def test_no_cell_of_a_text_table_begins_like_a_formula(tmp_path: Path, format: str) -> None:
    matrix = ResponseMatrix.from_array(np.eye(len(HOSTILE)), subjects=HOSTILE, items=HOSTILE)
    path = tmp_path / "out"
    write_responses(matrix, path, format)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, delimiter="\t" if format.endswith("tsv") else ","))
    assert "'=1+1" in {cell for row in rows for cell in row}
    assert not [
        cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    ]


def test_pandas_reads_what_we_write(tmp_path: Path) -> None:
    cells = np.array([[1.0, np.nan], [0.0, 1.0]])
    matrix = ResponseMatrix.from_array(cells, subjects=["m,1", "m2"], items=["a", "b"])
    write_responses(matrix, tmp_path / "wide.csv")
    write_responses(matrix, tmp_path / "wide.parquet")
    for frame in (
        pd.read_csv(tmp_path / "wide.csv", index_col=0),
        pd.read_parquet(tmp_path / "wide.parquet").set_index("subject"),
    ):
        assert frame.index.tolist() == ["m,1", "m2"]
        np.testing.assert_array_equal(frame.to_numpy(dtype=float), cells)


def test_py_irts_own_reading_of_our_lines(tmp_path: Path) -> None:
    # py_irt.io reads one JSON object a line and takes subject_id and responses; it knows no null
    matrix = ResponseMatrix.from_array([[1.0, np.nan], [0.0, 1.0]], subjects=["m1", "m2"], items=["a", "b"])
    write_responses(matrix, tmp_path / "out.jsonlines")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonlines").read_text().splitlines()]
    assert lines == [
        {"subject_id": "m1", "responses": {"a": 1}},
        {"subject_id": "m2", "responses": {"a": 0, "b": 1}},
    ]


def test_the_same_matrix_gives_the_same_bytes(tmp_path: Path) -> None:
    matrix = load_swebench_verified()
    for name in ("a.csv.gz", "b.csv.gz"):
        write_responses(matrix, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes()[4:8] == bytes(4)  # no time stamp
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"subject,astropy__")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("x.csv", "wide-csv"),
        ("x.CSV", "wide-csv"),
        ("x.csv.gz", "wide-csv"),
        ("x.tsv", "wide-tsv"),
        ("x.parquet", "wide-parquet"),
        ("x.jsonl", "py-irt"),
        ("x.jsonlines.gz", "py-irt"),
    ],
)
def test_the_suffix_says_the_format(tmp_path: Path, name: str, format: str) -> None:
    assert write_responses(ResponseMatrix.from_array([[1.0]]), tmp_path / name) == format


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("x.xlsx", None, "suffix '.xlsx' does not tell the format"),
        ("x", None, "suffix '' does not tell"),
        ("x.csv", "csv", "unknown format 'csv', expected one of wide-csv"),
        ("x.parquet.gz", None, "leave out .gz"),
    ],
)
def test_a_format_that_cannot_be_is_refused(
    tmp_path: Path, name: str, format: str | None, message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        write_responses(ResponseMatrix.from_array([[1.0]]), tmp_path / name, format)
    assert not list(tmp_path.iterdir())


@given(st.text() | st.sampled_from(HOSTILE))
def test_escaping_formulas_is_exact_and_changes_nothing_else(text: str) -> None:
    escaped = escape_formula(text)
    assert unescape_formula(escaped) == text
    assert not escaped.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert escaped in (text, "'" + text)
    assert (escaped == text) == (not text.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r", "\n")))


def test_report_tables_are_safe_and_exact(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "name": ["=1+1", "fine", None],
            "-gap": [-0.1, 1 / 3, np.nan],
            "flag": [True, False, True],
            "kind": pd.Categorical(["@x", "y", "y"]),
            "text": ["a\rb", 'say "hi", twice', "é"],
        }
    )
    before = frame.copy(deep=True)
    write_csv(frame, tmp_path / "t.csv")
    pd.testing.assert_frame_equal(frame, before)
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows == [
        ["name", "'-gap", "flag", "kind", "text"],
        ["'=1+1", "-0.1", "True", "'@x", "a\rb"],
        ["fine", "0.3333333333333333", "False", "y", 'say "hi", twice'],
        ["", "", "True", "y", "é"],
    ]


def test_a_report_table_without_rows_keeps_its_header(tmp_path: Path) -> None:
    write_csv(pd.DataFrame(columns=["axis", "name", "reason"]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == b"axis,name,reason\n"


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    atomic_write(path, "old")

    def fail_half_way() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            assert temporary.parent == tmp_path
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]
    atomic_write(path, b"new")
    assert path.read_text() == "new"


def test_files_are_as_readable_as_any_other_new_file(tmp_path: Path) -> None:
    atomic_write(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    atomic_write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("target", ["nowhere/x.csv", "file/x.csv", "folder", "x" * 300 + ".csv"])
def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"cannot be written|not a regular file"):
        write_responses(ResponseMatrix.from_array([[1.0]]), tmp_path / target, "wide-csv")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_is_made_with_those_above_it_or_refused(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file/x cannot be made"):
        make_folder(tmp_path / "file" / "x")


def test_only_what_exists_and_may_be_replaced_is_replaced() -> None:
    with pytest.raises(StorageError, match="not a regular file"):
        atomic_write("/dev/null", "x")
