"""Item and subject tables: matched by name, typed as written, lacking and unknown names counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.data import ResponseMatrix, read_covariates, read_responses, with_covariates
from irtaudit.errors import DataError

NAMES = pd.Index(["m1", "m2", "m3"], dtype=object, name="subject")


def table(tmp_path: Path, text: str, name: str = "models.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "model,developer,size\nm3,C,07\nm1,A,NA\nm2,,1e3\n",
        "developer,model,size\nC,m3,07\nA,m1,null\nNaN,m2,1e3\n",
        "\ufeffwho\tdeveloper\tsize\r\nm3\tC\t07\r\nm1\tA\t\r\nm2\tna\t1e3\r\n",
    ],
)
def test_rows_are_matched_by_name_and_text_stays_text(tmp_path: Path, text: str) -> None:
    found, notes = read_covariates(table(tmp_path, text), NAMES, "subject")
    assert found.index.equals(NAMES)
    assert found.fillna("-")["developer"].tolist() == ["A", "-", "C"]
    assert found.fillna("-")["size"].tolist() == ["-", "1e3", "07"]
    assert notes == ()


def test_parquet_columns_keep_their_type(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "model": pd.Categorical(["m2", "m1", "m3"]),
            "size": [7, 8, 9],
            "open": [True, False, True],
            "share": [0.5, None, 1.0],
            "developer": pd.Categorical(["A", "B", "A"]),
        }
    )
    frame.to_parquet(tmp_path / "models.parquet")
    found, _ = read_covariates(tmp_path / "models.parquet", NAMES, "subject")
    assert found["size"].tolist() == [8, 7, 9]
    assert found["open"].tolist() == [False, True, True]
    assert found["developer"].tolist() == ["B", "A", "A"]
    assert np.isnan(found["share"].iloc[0])
    assert pd.api.types.is_integer_dtype(found["size"])


def test_lacking_names_are_nan_and_both_kinds_of_difference_are_counted(tmp_path: Path) -> None:
    path = table(tmp_path, "model,developer\nm1,A\nm9,X\nm8,Y\n")
    found, notes = read_covariates(path, NAMES, "subject")
    assert found.fillna("-")["developer"].tolist() == ["A", "-", "-"]
    assert notes == (
        f"2 of 3 subjects are not described in {path}: 'm2', 'm3'",
        f"2 subject(s) in {path} have no responses and were ignored: 'm9', 'm8'",
    )


def test_names_that_look_like_formulas_match_as_we_write_them(tmp_path: Path) -> None:
    names = pd.Index(["@cf/llama", "m1"], dtype=object)
    found, notes = read_covariates(
        table(tmp_path, "model,developer\n'@cf/llama,Meta\nm1,'=A\n"), names, "subject"
    )
    assert found["developer"].tolist() == ["Meta", "=A"]
    assert notes == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,developer\nx,A\ny,B\n", "describes none of the 3 subjects.*'x', 'y'.*'m1', 'm2', 'm3'"),
        ("model,developer\nm1,A\nm2,B\nm1,C\n", "subject 'm1' is described twice .'line 2', 'line 4'"),
        ("model,developer,developer\nm1,A,B\n", "column.s. 'developer' given twice"),
        ("model,developer\nm1,A,B\n", "line 2: 3 fields where the header has 2"),
        ("model,developer\n", "no rows"),
        ("", "is empty"),
    ],
)
def test_a_table_that_describes_nothing_or_twice_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_covariates(table(tmp_path, text), NAMES, "subject")


def test_read_responses_attaches_both_tables_and_carries_the_notes(tmp_path: Path) -> None:
    responses = table(tmp_path, "model,q2,q1\nm2,1,0\nm1,0,1\n", "responses.csv")
    items = table(tmp_path, "item,domain\nq1,cyber\n", "items.csv")
    subjects = table(tmp_path, "model,developer\nm1,A\nm2,B\n")
    matrix = read_responses(responses, items=items, subjects=subjects)
    assert matrix.items["domain"].fillna("-").tolist() == ["cyber", "-"]
    assert matrix.subjects["developer"].tolist() == ["A", "B"]
    assert len(matrix.notes) == 1
    assert "1 of 2 items are not described" in matrix.notes[0]
    assert matrix.select(items=["q1"]).notes == matrix.notes
    assert matrix.sha256 == read_responses(responses).sha256


def test_new_covariates_replace_the_old_and_leave_its_argument_alone(tmp_path: Path) -> None:
    before = ResponseMatrix.from_array(
        [[1.0], [0.0]], subjects=pd.DataFrame({"old": [1, 2]}, index=["m1", "m2"])
    )
    after = with_covariates(before, subjects=table(tmp_path, "model,developer\nm2,B\nm1,A\n"))
    assert after.subjects.columns.tolist() == ["developer"]
    assert after.subjects["developer"].tolist() == ["A", "B"]
    assert before.subjects.columns.tolist() == ["old"]
