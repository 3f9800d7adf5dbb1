"""What an audit hands to the report: plain sentences, numbers and drawings, no HTML.

Each audit's ``present.py`` turns its result into a list of :class:`Section`; lists from several audits
concatenate, and :func:`irtaudit.report.page.write_report` puts every section at its place on the page.
All text is plain text: the page escapes it, explains the words of its glossary, and lays it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import pandas as pd

Place = Literal["answer", "picture", "evidence", "limit", "explore", "method"]
VerdictWord = Literal["supported", "not supported", "inconclusive", "nothing to measure"]

PLACES: tuple[Place, ...] = get_args(Place)
VERDICT_WORDS: tuple[VerdictWord, ...] = get_args(VerdictWord)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing with the words that replace and explain it.

    Attributes
    ----------
    svg : str
        An ``<svg>`` element, as made by :func:`irtaudit.report.figures.figure_to_svg`.
    alt : str
        The finding in one sentence, for readers who do not see the drawing.
    caption : str
        What to see in it.
    narrow_svg : str
        The same drawing laid out for a phone (about 360 px wide); empty: `svg` serves every width.
    """

    svg: str
    alt: str
    caption: str
    narrow_svg: str = ""

    def __post_init__(self) -> None:
        _require(self.svg.lstrip().startswith("<svg"), "Figure.svg must be one <svg> element")
        _require(not self.narrow_svg or self.narrow_svg.lstrip().startswith("<svg"), "Figure.narrow_svg too")
        _require(self.alt.strip() and self.caption.strip(), "a Figure needs alt text and a caption")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer to the reading under test; the sentence of why is the section's claim.

    Attributes
    ----------
    reading : str
        The reading in the user's words: "HarmBench score = harmful refusal".
    word : str
        One of `VERDICT_WORDS`.
    holds_for : mapping of str to str
        What the answer holds for, in reading order: pool, data, version, plan hash.
    """

    reading: str
    word: VerdictWord
    holds_for: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self.reading.strip(), "a Verdict needs the reading under test")
        _require(self.word in VERDICT_WORDS, f"verdict {self.word!r} is none of {', '.join(VERDICT_WORDS)}")


@dataclass(frozen=True, kw_only=True)
class Quote:
    """Words found in the audited material, and where they stand."""

    text: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Detail a reader opens on demand: the curve of one item, the quoted evidence of one run.

    A row of the section's table whose first cell equals `title` links to the fold.
    """

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()
    quotes: Sequence[Quote] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """One thing the report says, and everything that backs it.

    Attributes
    ----------
    place : str
        Where it stands: "answer" (first screen), "picture", "evidence" (a card), "limit", "explore" (a table
        to sort and filter) or "method".
    claim : str
        The finding in one sentence with its number, unit and interval.
    title : str
        A few words above the claim: "Held-out comparison".
    text : str
        More to say; blank lines separate paragraphs.
    verdict : Verdict or None
        Of a section at "answer", and of no other.
    figures : sequence of Figure
    table : DataFrame or None
        The numbers behind the claim. A named index becomes the first column, which heads each row.
    columns : mapping of str to str
        One line per column of `table` that says what it holds (index names included). It may describe
        columns the table lacks, so that a room keeps one dictionary for all its tables.
    formats : mapping of str to str
        Format specifications by column, ".1%" say; other numbers get sensible digits of their own.
    extremes : sequence of str
        Number columns of `table` in which the largest value is set bold and the smallest underlined; values
        that look the same as printed count as ties.
    caption : str
        What to see in the table.
    file : str
        Name of the table as a download, "comparison.csv"; empty: made from the title or claim.
    how : str
        How it was obtained, in one line; evidence needs it.
    otherwise : str
        What would have made it come out the other way; evidence needs it.
    folds : sequence of Fold
        Details on demand.
    folds_title : str
        What the folds are: "Item response curves".
    facts : mapping of str to str
        Names and values to list, of seeds, versions or hashes, say.

    Raises
    ------
    ValueError
        When a part that its place requires is missing.
    """

    place: Place
    claim: str
    title: str = ""
    text: str = ""
    verdict: Verdict | None = None
    figures: Sequence[Figure] = ()
    table: pd.DataFrame | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    extremes: Sequence[str] = ()
    caption: str = ""
    file: str = ""
    how: str = ""
    otherwise: str = ""
    folds: Sequence[Fold] = ()
    folds_title: str = "Details"
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self.place in PLACES, f"place {self.place!r} is not one of {', '.join(PLACES)}")
        _require(self.claim.strip(), f"a section at {self.place!r} needs a claim")
        _require(
            (self.verdict is not None) == (self.place == "answer"),
            "a section at 'answer' carries a verdict, and no other does",
        )
        if self.place == "evidence":
            _require(
                self.how.strip() and self.otherwise.strip(), f"evidence needs how and otherwise: {self.claim}"
            )
        if self.place == "picture":
            _require(self.figures, "a section at 'picture' needs a figure")


def _require(holds: object, message: str) -> None:
    if not holds:
        raise ValueError(message)
