from __future__ import annotations

import base64

import numpy as np
import pandas as pd
import pytest

from irtaudit.report.table import Cell, file_name, view
from irtaudit.report.text import csv_text


def shown(values, **formats) -> list[str]:
    return [row[0].text for row in view(pd.DataFrame({"x": values}), {}, formats).rows]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, 1234567], ["1", "1,234,567"]),
        ([3.0, np.nan], ["3", "–"]),
        ([0.25796, 0.47015], ["0.258", "0.470"]),
        ([-0.5, 2.25], ["−0.500", "2.250"]),
        ([25080.22, -12026.234], ["25,080.2", "−12,026.2"]),
        ([0.00638, 0.00286], ["0.00638", "0.00286"]),
        ([0.0000213, 0.00001], ["2.13e−05", "1.00e−05"]),
        ([0.00002, 0.9, 0.0], ["<0.001", "0.900", "0.000"]),
        ([-0.00002, 0.9], [">−0.001", "0.900"]),
        ([np.inf, -np.inf, 0.5], ["∞", "−∞", "0.500"]),
        ([True, False], ["yes", "no"]),
        (["a", None], ["a", "–"]),
        ([None, None], ["–", "–"]),
        ([pd.NA, 3], ["–", "3"]),
        ([pd.Timestamp("2026-01-02"), pd.NaT], ["2026-01-02 00:00:00", "–"]),
        ([[1, 2], [3]], ["[1, 2]", "[3]"]),
    ],
)
def test_cells_show_readable_digits(values, texts):
    assert shown(values) == texts


def test_a_format_of_the_author_wins():
    assert shown([0.123], x=".1%") == ["12.3%"]


def test_a_number_is_sorted_by_all_its_digits():
    (row,) = view(pd.DataFrame({"a": ["m"], "x": [0.123456789]}), {}, {}).rows
    assert row == (Cell("m"), Cell("0.123", "0.123456789"))


def test_nullable_integers_with_gaps_are_numbers():
    (first, second) = view(pd.DataFrame({"x": pd.array([7, None], dtype="Int64")}), {}, {}).rows
    assert (first[0], second[0]) == (Cell("7", "7.0"), Cell("–"))


def test_columns_carry_their_notes_and_a_named_index_leads():
    frame = pd.DataFrame({"log_loss": [0.3]}, index=pd.Index(["1pl"], name="model"))
    columns = view(frame, {"log_loss": "Mean surprise."}, {}).columns
    assert [(c.name, c.note, c.numeric) for c in columns] == [
        ("model", "", False),
        ("log loss", "Mean surprise.", True),
    ]


def test_the_download_is_the_csv_of_the_frame():
    frame = pd.DataFrame({"name": ["=cmd()", "é"], "x": [1.5, np.nan]})
    head, _, data = view(frame, {}, {}).download.partition(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(data).decode("utf-8") == csv_text(frame)


@pytest.mark.parametrize(
    ("wanted", "fallback", "name"),
    [
        ("comparison.csv", "", "comparison.csv"),
        ("", "Item fit", "item_fit.csv"),
        ("../../etc/passwd", "", "etc_passwd.csv"),
        ("", "…", "table.csv"),
        ("a" * 200, "", "a" * 60 + ".csv"),
    ],
)
def test_a_download_has_a_safe_name(wanted, fallback, name):
    assert file_name(wanted, fallback) == name
