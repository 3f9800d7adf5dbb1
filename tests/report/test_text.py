from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtaudit.report.text import csv_text, printable, prose, typeset

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=()), max_size=20), min_size=1, max_size=8))
def test_no_text_reaches_a_spreadsheet_as_a_formula(texts):
    frame = pd.DataFrame({"cell": texts}, index=pd.Index(texts, name="=name"))
    for row in read(csv_text(frame)):
        assert not any(cell.startswith(FORMULA_STARTS) for cell in row)


def test_numbers_keep_their_sign_and_every_digit():
    frame = pd.DataFrame({"gain": [-0.1234567890123, np.nan], "n": [-3, 4]})
    assert csv_text(frame) == "gain,n\n-0.1234567890123,-3\n,4\n"


def test_text_that_would_compute_gets_an_apostrophe_and_other_text_stays():
    frame = pd.DataFrame({"name": ["=cmd()", "-1", "plain", "a=b", None]})
    assert [row[0] for row in read(csv_text(frame))] == ["name", "'=cmd()", "'-1", "plain", "a=b", ""]


def test_a_named_index_is_written_and_an_unnamed_one_is_not():
    named = pd.DataFrame({"x": [1]}, index=pd.Index(["m"], name="subject"))
    assert csv_text(named) == "subject,x\nm,1\n"
    assert csv_text(pd.DataFrame({"x": [1]}, index=["m"])) == "x\n1\n"


def test_columns_of_one_name_stay_apart():
    frame = pd.DataFrame([[1, 2]], columns=["x", "x"])
    assert csv_text(frame) == "x,x\n1,2\n"


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"x": []})])
def test_empty_frames_are_written(frame):
    assert csv_text(frame).strip() == ",".join(frame.columns)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ud800", "\u202e", "\u2066", "\x7f"])
def test_what_no_page_can_show_becomes_a_mark(character):
    assert printable(f"a{character}b") == "a\ufffdb"


@pytest.mark.parametrize("text", ["tab\tline\nend", "שלום", "模型", "é", "🙂"])
def test_letters_of_any_script_stay(text):
    assert printable(text) == text


def test_signs_stay_with_their_numbers():
    nbsp = "\N{NO-BREAK SPACE}"
    assert typeset("95 % of 5 % (p = .03), p < 0.05") == (
        f"95{nbsp}% of 5{nbsp}% (p{nbsp}={nbsp}.03), p{nbsp}<{nbsp}0.05"
    )
    minus = "\N{MINUS SIGN}"
    assert typeset("(-1,212.4 against -3) -x a-1 -1") == f"({minus}1,212.4 against {minus}3) -x a-1 {minus}1"
    assert typeset("-1") == "-1"  # a name
    assert typeset("map = 3, up % x, p = q") == "map = 3, up % x, p = q"


def test_long_names_may_break_after_an_underscore_and_are_escaped():
    assert prose("confirmatory_category_2pl") == "confirmatory_<wbr>category_<wbr>2pl"
    assert prose("_a <b> c_") == "_a &lt;b&gt; c_"
    assert prose("unidimensional_2pl") == "unidimensional_2pl"
