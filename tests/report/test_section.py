from __future__ import annotations

import dataclasses

import pytest

from irtaudit.report.section import PLACES, VERDICT_WORDS, Figure, Section, Verdict


def test_the_places_and_words_are_those_of_the_specification():
    assert PLACES == ("answer", "picture", "evidence", "limit", "explore", "method")
    assert VERDICT_WORDS == ("supported", "not supported", "inconclusive", "nothing to measure")


@pytest.mark.parametrize("word", ["Supported", "unsupported", "", "maybe"])
def test_a_verdict_in_other_words_is_refused(word):
    with pytest.raises(ValueError, match="none of supported, not supported"):
        Verdict(reading="score = skill", word=word)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"place": "anywhere", "claim": "a"}, "not one of answer, picture"),
        ({"place": "limit", "claim": " "}, "needs a claim"),
        ({"place": "answer", "claim": "a"}, "carries a verdict"),
        (
            {"place": "limit", "claim": "a", "verdict": Verdict(reading="r", word="supported")},
            "no other does",
        ),
        ({"place": "evidence", "claim": "a", "how": "counted"}, "needs how and otherwise"),
        ({"place": "evidence", "claim": "a", "otherwise": "fewer"}, "needs how and otherwise"),
        ({"place": "picture", "claim": "a"}, "needs a figure"),
    ],
)
def test_a_section_that_lacks_what_its_place_needs_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Section(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"svg": "<p>", "alt": "a", "caption": "c"},
        {"svg": "<svg/>", "alt": " ", "caption": "c"},
        {"svg": "<svg/>", "alt": "a", "caption": ""},
        {"svg": "<svg/>", "alt": "a", "caption": "c", "narrow_svg": "no"},
    ],
)
def test_a_figure_without_drawing_or_words_is_refused(fields):
    with pytest.raises(ValueError, match=r"Figure"):
        Figure(**fields)


def test_a_section_cannot_be_changed():
    section = Section(place="limit", claim="The group is small.")
    with pytest.raises(dataclasses.FrozenInstanceError):
        section.claim = "The group is large."
