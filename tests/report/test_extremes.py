from __future__ import annotations

import numpy as np
import pandas as pd

from irtaudit.report.page import render_report
from irtaudit.report.section import Section
from irtaudit.report.table import view

TABLE = pd.DataFrame(
    {"score": [0.941, 0.2, np.nan, 0.939, 0.2], "same": [1.0, 1.0, 1.0, 1.0, 1.0], "n": [5, 4, 3, 2, 1]}
)


def marks(column: int, extremes: list[str]) -> list[str]:
    return [row[column].mark for row in view(TABLE, {}, {"score": ".2f"}, extremes).rows]


def test_ties_are_those_of_the_printed_digits() -> None:
    assert marks(0, ["score"]) == ["most", "least", "", "most", "least"]


def test_only_the_named_columns_are_marked_and_only_where_numbers_differ() -> None:
    assert marks(2, ["score"]) == [""] * 5
    assert marks(1, ["same"]) == [""] * 5


def test_the_page_sets_them_bold_and_underlined() -> None:
    section = Section(place="explore", claim="Scores.", table=TABLE, extremes=["n"])
    page = render_report([section])
    assert page.count('class="n most"') == 1
    assert page.count('class="n least"') == 1
    assert ".most { font-weight: 700; }" in page
