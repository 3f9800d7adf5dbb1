"""The page as readers meet it: in a browser, on a phone and on a large screen, with and without script."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import report_sample
from test_page import HOSTILE, hostile

from irtaudit.report.page import write_report
from irtaudit.report.section import Section

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The text of an element line by line as it is laid out.
LINES = """element => {
  const lines = [], range = document.createRange(), walk = document.createTreeWalker(element, 4);
  for (let node; (node = walk.nextNode()); ) for (let at = 0; at < node.length; at++) {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const top = Math.round(range.getBoundingClientRect().top);
    if (!lines.length || lines.at(-1).top !== top) lines.push({ top, text: "" });
    lines.at(-1).text += node.data[at];
  }
  return lines.map((line) => line.text);
}"""
PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1600, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None and not os.environ.get("CI"):
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed (Debian: apt-get install chromium)")
    assert found, "continuous integration needs a Chromium: the page must be opened in one"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, headless=True, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> str:
    return report_sample.write_sample(tmp_path_factory.mktemp("sample")).as_uri()


@pytest.fixture
def visit(browser) -> Iterator:
    """Opens a page; at the end nothing may have been complained about or fetched."""
    contexts, complaints = [], []

    def open_page(address: str, **settings):
        context = browser.new_context(**{"viewport": DESKTOP, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: request.url.startswith(("data:", address)) or complaints.append(request.url),
        )
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def column(page, table: str, at: int) -> list[str]:
    return page.locator(f"{table} tbody tr:not([hidden]) > :nth-child({at})").all_inner_texts()


@pytest.fixture
def items(visit, sample):
    page = visit(sample)
    table = "#" + page.locator(".table", has=page.locator("a[download='items.csv']")).get_attribute("id")
    return page, table


@pytest.mark.parametrize(
    ("width", "script"), [(320, True), (360, True), (360, False), (800, True), (1600, True), (1600, False)]
)
def test_the_page_never_scrolls_sideways(visit, sample, width, script):
    page = visit(sample, viewport={"width": width, "height": 800}, java_script_enabled=script)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_long_note_leaves_its_row_readable(visit, tmp_path, viewport):
    note = "predicts worse than one dimension, by 0.0123 nats, more than twice the SD over splits of both"
    names = pd.Index(["m1", "m2"], name="model")
    table = pd.DataFrame({f"column {i}": [0.5, 0.25] for i in range(16)}, index=names)
    section = Section(place="explore", claim="Two models.", table=table.assign(note=["", note]))
    page = visit(write_report([section], tmp_path).as_uri(), viewport=viewport)
    plain, noted = (row.bounding_box()["height"] for row in page.locator("tbody tr").all())
    assert plain < noted < 2.5 * plain


def test_model_names_break_between_words_alone(visit, tmp_path):
    names = pd.Index(["confirmatory_functional_category_2pl"], name="model")
    table = pd.DataFrame({f"column {i}": [0.5] for i in range(9)}, index=names)
    section = Section(place="explore", claim="One model.", table=table)
    page = visit(write_report([section], tmp_path).as_uri(), viewport=PHONE)
    lines = page.locator("tbody th").evaluate(LINES)
    assert len(lines) > 1
    assert all(line.endswith("_") for line in lines[:-1])


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_claim_and_answer_stand_on_the_first_screen(visit, sample, viewport):
    page = visit(sample, viewport=viewport)
    for part in ("h1", ".verdict", ".why", ".holds"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= viewport["height"]


@pytest.mark.parametrize(
    ("viewport", "layout"), [(PHONE, "narrow"), (DESKTOP, "wide")], ids=["phone", "desktop"]
)
def test_the_picture_shows_the_layout_for_the_screen_in_readable_type(visit, sample, viewport, layout):
    page = visit(sample, viewport=viewport)
    assert [page.locator(f".drawing.{name}").is_visible() for name in ("wide", "narrow")] == [
        layout == "wide",
        layout == "narrow",
    ]
    heights = page.locator(f".drawing.{layout} text").evaluate_all(
        "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    )
    assert min(heights) >= 10.5


def test_a_click_sorts_and_a_second_click_turns_the_order(items):
    page, table = items
    head = page.locator(f"{table} thead th", has_text="dif log odds")
    for order, largest_first in (("descending", True), ("ascending", False)):
        head.locator(".sort").click()
        assert head.get_attribute("aria-sort") == order
        numbers = [text.replace("\u2212", "-") for text in column(page, table, 9)]
        defined = [float(text) for text in numbers if text != "–"]
        assert defined == sorted(defined, reverse=largest_first)
        assert 0 < len(defined) < 500
        assert set(numbers[len(defined) :]) == {"–"}  # what is not defined comes last, either way
    page.locator(f"{table} thead th").first.locator(".sort").click()
    assert page.locator(f"{table} [aria-sort]").count() == 1
    assert column(page, table, 1) == [f"item_{i:03d}" for i in range(500)]


def test_sorting_works_by_keyboard(items):
    page, table = items
    page.locator(f"{table} .filter input").focus()
    for _ in ("the download", "the box that scrolls", "the first heading"):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "sort"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert column(page, table, 1)[0] == "item_499"


def test_filtering_keeps_the_rows_with_every_word_and_counts_them(items):
    page, table = items
    box, count = page.locator(f"{table} .filter input"), page.locator(f"{table} output")
    assert count.inner_text() == "500 rows"
    box.fill("COPYRIGHT yes")
    rows = page.locator(f"{table} tbody tr:not([hidden])").all_inner_texts()
    assert rows
    assert all("copyright" in row and "yes" in row for row in rows)
    assert count.inner_text() == f"{len(rows)} of 500 rows"
    box.fill("-0.7")
    assert any(
        "\u22120.7" in row for row in page.locator(f"{table} tbody tr:not([hidden])").all_inner_texts()
    )
    box.fill("no such row")
    assert count.inner_text() == "0 of 500 rows"
    box.fill("")
    assert count.inner_text() == "500 rows"


def test_a_large_table_stays_quick(items):
    page, table = items
    milliseconds = page.evaluate(
        """(table) => {
          const start = performance.now();
          document.querySelector(table + " .sort").click();
          document.querySelector(table).getBoundingClientRect();
          return performance.now() - start;
        }""",
        table,
    )
    assert milliseconds < 1000


def test_the_download_is_the_table(items):
    page, table = items
    with page.expect_download() as started:
        page.locator(f"{table} a[download]").click()
    assert started.value.suggested_filename == "items.csv"
    read = pd.read_csv(Path(started.value.path()), index_col="item")
    (section,) = (s for s in report_sample.sections() if s.file == "items.csv")
    pd.testing.assert_frame_equal(read, section.table)


def test_a_table_wider_than_the_screen_scrolls_in_its_box_and_says_so(visit, sample):
    page = visit(sample, viewport=PHONE)
    wide = page.locator(".table", has=page.locator("a[download='items.csv']"))
    assert wide.locator(".overflow").is_visible()
    assert wide.locator(".scroll").evaluate("node => node.scrollWidth > node.clientWidth")
    small = page.locator(".table", has=page.locator("a[download='runs.csv']"))
    assert small.locator(".overflow").count() == 0
    page.set_viewport_size({"width": 2000, "height": 900})
    abilities = page.locator(".table", has=page.locator("a[download='abilities.csv']"))
    abilities.locator(".overflow").wait_for(state="hidden")


def test_a_term_opens_by_key_and_closes_by_escape(visit, sample):
    page = visit(sample)
    term = page.locator(".why .term", has_text="log-loss")
    tip = page.locator("#" + term.get_attribute("popovertarget"))
    assert not tip.is_visible()
    for _ in range(40):
        page.keyboard.press("Tab")
        if term.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    assert tip.is_visible()
    assert "Mean surprise" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_column_note_opens_by_touch_within_the_screen(visit, sample):
    page = visit(sample, viewport=PHONE, has_touch=True)
    note = page.locator(".table .note:visible").first
    note.tap()
    tip = page.locator("#" + note.get_attribute("popovertarget"))
    box = tip.bounding_box()
    assert tip.is_visible()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]


def test_a_term_opens_under_the_mouse_and_closes_when_it_leaves(visit, sample):
    page = visit(sample)
    term = page.locator(".why .term").first
    tip = page.locator("#" + term.get_attribute("popovertarget"))
    term.hover()
    tip.wait_for(state="visible")
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")


def test_a_row_opens_its_fold(items):
    page, table = items
    link = page.locator(f"{table} tbody a").nth(4)
    fold = page.locator(link.get_attribute("href"))
    assert not fold.locator("figure").is_visible()
    link.click()
    fold.locator("figure").wait_for(state="visible")


CONTRASTS = """() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const c = numbers(getComputedStyle(node).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.body.querySelectorAll("*:not(script)")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || node.closest("svg") || !node.checkVisibility()) continue;
    const lights = [numbers(getComputedStyle(node).color), ground(node)].map(luminance).sort((a, b) => b - a);
    found.push([(lights[0] + 0.05) / (lights[1] + 0.05), node.textContent.slice(0, 40)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_stand_out_from_their_ground(visit, sample, scheme):
    page = visit(sample, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    page.locator(".term").first.click()
    found = page.evaluate(CONTRASTS)
    assert len(found) > 500
    assert found[0][0] >= 4.5, found[:3]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(253, 252, 250)", "dark": "rgb(20, 23, 27)"}[scheme]


def test_the_ink_of_drawings_follows_the_scheme(visit, sample):
    inks = {
        scheme: visit(sample, color_scheme=scheme)
        .locator(".drawing.wide text")
        .first.evaluate("text => getComputedStyle(text).fill")
        for scheme in ("light", "dark")
    }
    assert inks == {"light": "rgb(28, 33, 39)", "dark": "rgb(231, 228, 222)"}


def test_the_page_is_complete_without_script(visit, sample):
    page = visit(sample, java_script_enabled=False)
    assert page.locator("table").count() == sum(s.table is not None for s in report_sample.sections())
    for text in ("item_499", "simulated-model-80"):
        assert page.locator("tbody th", has_text=text).is_visible()
    assert page.locator(".filter, .sort").count() == 0
    page.locator(".numbers summary").first.click()
    assert page.locator(".numbers table").first.is_visible()
    page.locator(".why .term").first.click()
    assert page.locator(".tip:popover-open").is_visible()
    with page.expect_download():
        page.locator("a[download='items.csv']").click()


def test_print_shows_tables_notes_and_words_on_white(visit, sample):
    page = visit(sample)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".numbers table").first.is_visible()
    assert page.locator(".notes .tip").last.is_visible()
    assert page.locator(".glossary dl").is_visible()
    assert not page.locator(".filter, .download, nav").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".scroll").last.evaluate("node => getComputedStyle(node).maxHeight") == "none"
    assert page.locator(".verdict").evaluate("node => getComputedStyle(node).color") == "rgb(0, 0, 0)"


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_hostile_and_endless_names_do_nothing(visit, tmp_path, viewport):
    names = [*HOSTILE, "x" * 300, "long words " * 60]
    sections: list[Section] = [section for name in names for section in hostile(name)]
    page = visit(write_report(sections, tmp_path, title=names[0]).as_uri(), viewport=viewport)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert page.title() == names[0]


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_page_of_nothing_opens(visit, tmp_path, viewport):
    page = visit(write_report([], tmp_path, title="Nothing").as_uri(), viewport=viewport)
    assert page.locator("h1").inner_text() == "Nothing"
