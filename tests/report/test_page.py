from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import report_sample
from html_check import Page

from irtaudit.errors import StorageError
from irtaudit.report.page import PARTS, render_report, write_report
from irtaudit.report.section import VERDICT_WORDS, Figure, Fold, Quote, Section, Verdict
from irtaudit.report.text import typeset

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd()",
    "\u202egnp.exe",
    "a\x00b\ud800",
    "{{ 7 * 7 }}{% raw %}",
    "שלום 模型 🙂",
)


def drawing(svg: str = '<svg><path id="a"/></svg>', alt: str = "It rises.") -> Figure:
    return Figure(svg=svg, alt=alt, caption="A line.")


def hostile(name: str) -> list[Section]:
    frame = pd.DataFrame({name: [name, "b"], "x": [1.0, 2.0]}, index=pd.Index([name, "b"], name="subject"))
    return [
        Section(
            place="answer",
            claim=name,
            title=name,
            text=name,
            verdict=Verdict(reading=name, word="inconclusive", holds_for={name: name}),
        ),
        Section(
            place="evidence",
            claim=name,
            how=name,
            otherwise=name,
            title=name,
            text=name,
            figures=[Figure(svg="<svg/>", alt=name, caption=name)],
            facts={name: name},
        ),
        Section(
            place="explore",
            claim=name,
            table=frame,
            columns={name: name},
            caption=name,
            file=name,
            folds_title=name,
            folds=[Fold(title=name, text=name, quotes=[Quote(text=name, source=name)])],
        ),
    ]


@pytest.fixture(scope="module")
def sample() -> Page:
    return Page(render_report(report_sample.sections(), title="Sample", command="irtaudit audit x.csv"))


PAGES = {
    "sample": lambda: render_report(report_sample.sections(), command="irtaudit audit x.csv"),
    "nothing": lambda: render_report([]),
    "words alone": lambda: render_report([Section(place="limit", claim="The group is small.")]),
    "two answers": lambda: render_report([report_sample.answer(), report_sample.answer()]),
    "empty table": lambda: render_report(
        [Section(place="explore", claim="No item is left.", table=pd.DataFrame({"item": [], "x": []}))]
    ),
    **{f"hostile {i}": (lambda name=name: render_report(hostile(name), title=name, command=name))
       for i, name in enumerate(HOSTILE)},
}  # fmt: skip


@pytest.fixture(scope="module", params=PAGES)
def page(request) -> Page:
    return Page(PAGES[request.param]())


# What every page keeps to


def test_elements_close_in_order(page):
    assert page.problems == []


def test_identifiers_are_unique_and_every_reference_finds_one(page):
    ids = page.with_attribute("id")
    assert len(ids) == len(set(ids))
    targets = page.with_attribute("popovertarget") + page.with_attribute("aria-labelledby")
    targets += [href[1:] for href in page.with_attribute("href") if href.startswith("#")]
    targets += re.findall(r"url\(#([^)]*)\)", page.source)
    assert set(targets) <= set(ids)


def test_headings_descend_by_one_level(page):
    levels = [int(heading.tag[1]) for heading in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_has_named_columns_and_rows(page):
    scopes = [th.attributes.get("scope") for th in page.all("th")]
    assert set(scopes) <= {"col", "row"}
    assert scopes.count("row") == sum(1 for _ in page.all("tr")) - len(page.all("table"))
    assert all("aria-labelledby" in table.attributes for table in page.all("table"))


def test_nothing_is_fetched(page):
    refs = [
        v for name in ("href", "src", "action", "data", "poster", "srcset") for v in page.with_attribute(name)
    ]
    assert all(ref.startswith(("#", "data:")) for ref in refs)
    outside = re.sub(r"data:[^\"]*", "", page.source)
    assert not re.search(r"https?://|@import|url\((?!#)", re.sub(r">[^<]*<", "><", outside))


def test_the_policy_lets_this_script_run_and_no_other(page):
    (policy,) = (m.attributes["content"] for m in page.all("meta") if "http-equiv" in m.attributes)
    (script,) = page.all("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_no_element_carries_a_script(page):
    assert not [key for element in page.elements for key in element.attributes if key.startswith("on")]
    assert len(page.all("script")) == 1
    assert not page.all("img", "iframe", "object", "embed", "form")


def test_the_page_says_its_language_and_opens_with_a_way_past_the_head(page):
    assert page.all("html")[0].attributes["lang"] == "en"
    assert page.all("a")[0].attributes == {"class": "skip", "href": "#content"}
    assert page.source.startswith("<!doctype html>")
    assert len(page.all("main")) == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_they_are(name):
    page = Page(render_report(hostile(name), title=name, command=name))
    expected = re.sub("[\x00\ud800\u202e]", "\ufffd", name)
    assert page.all("h1")[0].text == expected
    assert page.all("title")[0].text == expected
    assert page.all("code")[0].text == expected
    assert any(th.text == expected for th in page.all("th"))
    assert any(element.attributes.get("aria-label") == expected for element in page.elements)
    page.source.encode("utf-8")


# Order and content


def test_parts_stand_in_the_order_of_the_specification_whatever_the_input():
    reversed_page = Page(render_report(report_sample.sections()[::-1]))
    assert [h.text for h in reversed_page.all("h2")] == [*PARTS.values(), "Words used here"]
    assert reversed_page.all("h1")[0].text == "HarmBench score = harmful refusal"


def test_sections_of_one_place_keep_their_order(sample):
    claims = [typeset(s.claim) for s in report_sample.sections() if s.place == "evidence"]
    shown = [heading.text for heading in sample.all("h3")]
    assert [text for text in shown if text in claims] == claims


@pytest.mark.parametrize("word", VERDICT_WORDS)
def test_the_answer_has_word_shape_and_colour(word):
    section = Section(place="answer", claim="Why.", verdict=Verdict(reading="r", word=word))
    source = render_report([section])
    assert f"<strong>{word}</strong>" in source
    assert f'<header class="answer {word.replace(" ", "-")}">' in source
    assert f".{word.replace(' ', '-')} {{ --verdict:" in source


def test_the_four_shapes_differ():
    shapes = set()
    for word in VERDICT_WORDS:
        source = render_report([Section(place="answer", claim="W.", verdict=Verdict(reading="r", word=word))])
        shapes.add(re.search(r'<svg class="icon".*?</svg>', source)[0])
    assert len(shapes) == 4


def test_every_drawing_states_its_finding(sample):
    drawings = [e for e in sample.elements if "drawing" in (e.attributes.get("class") or "").split()]
    figures = [figure for section in report_sample.sections() for figure in section.figures]
    assert len(drawings) > len(figures)  # the picture has a phone layout as well
    assert all(d.attributes["role"] == "img" and d.attributes["aria-label"] for d in drawings)
    assert len(sample.all("figcaption")) == len(sample.all("figure"))


def test_evidence_says_how_and_what_else_could_have_come_out(sample):
    labels = [dt.text for dt in sample.all("dt")]
    evidence = [section for section in report_sample.sections() if section.place == "evidence"]
    assert labels.count("How this was obtained") == len(evidence)
    assert labels.count("What would have made it come out the other way") == len(evidence)


def test_tables_hold_every_row_and_offer_themselves_as_csv(sample):
    tables = [s.table for s in report_sample.sections() if s.table is not None]
    assert len(sample.all("table")) == len(tables)
    assert len(sample.all("tr")) == sum(len(table) + 1 for table in tables)
    links = [a for a in sample.all("a") if "download" in a.attributes]
    assert len(links) == len(tables)
    assert "comparison.csv" in [a.attributes["download"] for a in links]


def test_a_row_named_like_a_fold_links_to_it(sample):
    (fold,) = (d for d in sample.all("details") if d.text.strip().startswith("run-1"))
    assert [a.text for a in sample.all("a") if a.attributes["href"] == f"#{fold.attributes['id']}"] == [
        "run-1"
    ]


def test_folds_of_one_title_have_identifiers_of_their_own():
    folds = [Fold(title="run", text="first"), Fold(title="run", text="second")]
    page = Page(render_report([Section(place="explore", claim="Two runs.", folds=folds)]))
    ids = page.with_attribute("id")
    assert len(ids) == len(set(ids))


def test_terms_used_are_explained_at_the_end_and_others_are_not():
    page = Page(
        render_report([Section(place="limit", claim="theta is wide.")], glossary={"wide": "Not narrow."})
    )
    assert [dt.text for dt in page.all("dt")] == ["theta", "wide"]


def test_the_command_that_makes_the_page_again_stands_last(sample):
    assert sample.all("pre")[0].text == "irtaudit audit x.csv"


def test_the_command_is_shown_without_other_method():
    assert Page(render_report([], command="irtaudit audit")).all("code")[0].text == "irtaudit audit"


# Drawings


def test_one_drawing_twice_gets_two_sets_of_names():
    figure = drawing('<svg><path id="a"/><use href="#a"/></svg>')
    section = Section(place="picture", claim="Twice.", figures=[figure, figure])
    page = Page(render_report([section]))
    assert page.problems == []
    assert len(set(page.with_attribute("id"))) == len(page.with_attribute("id"))


@pytest.mark.parametrize(
    "svg",
    [
        "<svg><script>alert(1)</script></svg>",
        '<svg onload="alert(1)"/>',
        "<svg><style>*{color:red}</style></svg>",
        '<svg><a href="javascript:alert(1)"><path/></a></svg>',
        '<svg><use href="https://example.org/a.svg#a"/></svg>',
        '<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="http://example.org/a.png"/></svg>',
        "<svg><foreignObject/></svg>",
        '<svg><rect style="fill: url(https://example.org/a)"/></svg>',
    ],
)
def test_a_drawing_that_runs_or_fetches_is_refused(svg):
    with pytest.raises(ValueError, match="no drawing needs"):
        render_report([Section(place="picture", claim="A drawing.", figures=[drawing(svg)])])


def test_a_broken_drawing_is_refused():
    with pytest.raises(ValueError, match="not well formed"):
        render_report([Section(place="picture", claim="A drawing.", figures=[drawing("<svg><g></svg>")])])


# Files


def test_the_same_sections_give_the_same_bytes_in_another_process():
    code = (
        "import report_sample; from irtaudit.report.page import render_report; "
        "print(render_report(report_sample.sections()), end='')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parent)}
    environment["PYTHONIOENCODING"] = "utf-8"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert other.stdout.decode("utf-8") == render_report(report_sample.sections())


def test_a_folder_receives_report_html_and_a_file_name_is_kept(tmp_path):
    sections = [Section(place="limit", claim="The group is small.")]
    assert write_report(sections, tmp_path / "new" / "folder") == tmp_path / "new" / "folder" / "report.html"
    written = write_report(sections, tmp_path / "other.html", title="Other")
    assert written.read_text(encoding="utf-8") == render_report(sections, title="Other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "other.html"]


def test_a_page_that_cannot_be_replaced_leaves_nothing_half_written(tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StorageError, match=r"report\.html"):
        write_report([], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_full_disk_leaves_the_old_page(tmp_path, monkeypatch):
    path = write_report([], tmp_path, title="Old")
    old = path.read_text(encoding="utf-8")

    def write_half(self, text, **_):
        self.write_bytes(text.encode()[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_half)
    with pytest.raises(StorageError, match="No space left"):
        write_report([], tmp_path, title="New")
    assert path.read_text(encoding="utf-8") == old
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the report"):
        write_report([], tmp_path / "file" / "folder")
