"""Sentences count one thing as one, and a share has one form."""

import pytest

from irtaudit.words import by_number, counted, panel_size, percent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, "run"), "0 runs"),
        ((1, "run"), "1 run"),
        ((1200, "run"), "1,200 runs"),
        ((1, "family", "families"), "1 family"),
        ((2, "family", "families"), "2 families"),
    ],
)
def test_one_thing_is_one(arguments, words):
    assert counted(*arguments) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0.975, "97.5 %"), (0.8, "80 %"), (0.795, "79.5 %"), (1.0, "100 %"), (0.0, "0 %")]
)
def test_a_share_is_rounded_so_that_a_threshold_is_not_met_by_rounding(share, words):
    assert percent(share) == words


def test_verbs_go_with_their_number():
    assert [by_number(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]


def test_a_panel_of_one_is_no_plural():
    assert panel_size(3, 1) == "3 models x 1 item"
    assert panel_size(1, 3, "subject") == "1 subject x 3 items"
