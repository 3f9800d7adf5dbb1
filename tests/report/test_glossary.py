from __future__ import annotations

import re

import pytest

from irtaudit.report.glossary import GLOSSARY, explainer, term_id


def marked(text: str, glossary=GLOSSARY) -> list[str]:
    return re.findall(r"<button[^>]*>([^<]*)</button>", explainer(glossary)(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Held-out log-loss of two thetas", ["Held-out", "log-loss", "thetas"]),
        ("DIF, but not dif or DIFFERENT", ["DIF"]),
        ("theta_i, hyper-theta, log-losses", []),
        ("theta and theta again", ["theta"]),
        ("factor correlations", ["factor correlations"]),
        ("Nothing here.", []),
    ],
)
def test_the_first_use_of_a_term_is_marked(text, words):
    assert marked(text) == words


def test_one_explainer_marks_a_term_once_over_all_its_texts():
    explain = explainer(GLOSSARY)
    assert "popovertarget" in explain("theta")
    assert explain("theta") == "theta"


def test_text_around_terms_is_escaped():
    button = '<button type="button" class="term" popovertarget="term-theta">theta</button>'
    assert explainer(GLOSSARY)("<i>theta</i> & more") == f"&lt;i&gt;{button}&lt;/i&gt; &amp; more"


def test_without_terms_nothing_is_marked():
    assert marked("theta", {}) == []


def test_every_term_has_an_identifier_of_its_own_and_one_line():
    assert len({term_id(term) for term in GLOSSARY}) == len(GLOSSARY)
    assert all("\n" not in line and line.endswith(".") and len(line) <= 95 for line in GLOSSARY.values())


@pytest.mark.parametrize("term", ["theta", "log-loss", "DIF", "eigenvalue"])
def test_the_words_the_specification_names_are_explained(term):
    assert term in GLOSSARY


def test_a_possessive_stays_with_its_term():
    shown = explainer(GLOSSARY)("left of the margin's line")
    assert shown.endswith("</button>&#39;s</span> line")
    assert "kept" not in explainer(GLOSSARY)("a margin sways")


def test_a_term_stays_on_one_line_with_the_marks_around_it():
    shown = explainer(GLOSSARY)("Two scales (theta), one <b>.")
    assert '<span class="kept">(<button' in shown
    assert "</button>),</span> one &lt;b&gt;." in shown
