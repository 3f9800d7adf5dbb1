from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from irtaudit.report import figures
from irtaudit.report.curves import small_curves
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import COLOURS, SERIES, figure_to_svg, prefix_ids

SAID = {"alt": "It rises.", "caption": "A line."}
HOSTILE = ["<script>alert(1)</script>", '"><img onerror=x>', "$\\frac{1}{0}$", "a\x00b", "模型 🙂", "שלום"]


def line(axes) -> None:
    axes.plot([0, 1], [0, 1])
    axes.fill_between([0, 1], 0, 1, color="black")
    axes.set_title("bold", weight="bold")


def dots(**changes):
    fields = {
        "labels": ["m1", "m2", "m3"],
        "values": [0.26, 0.32, 0.35],
        "lows": [0.25, 0.31, np.nan],
        "highs": [0.27, 0.33, np.nan],
        "groups": ["confirmatory", "unidimensional", "baseline"],
        "lines": {"best one-dimensional": 0.32, "item means": 0.54},
        "xlabel": "log-loss",
        **SAID,
    }
    return dot_interval_figure(**{**fields, **changes})


def words(svg: str) -> list[str]:
    return [
        "".join(element.itertext())
        for element in ElementTree.fromstring(svg).iter()
        if element.tag.endswith("}text")
    ]


# Colour


def channels(colour: str) -> np.ndarray:
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.2."""
    dark, light = sorted(channels(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(linear: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Severity 1.0 of Machado, Oliveira and Fernandes (2009), table of the full matrices, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


PAPERS = {"#fdfcfa": "#1c2127", "#14171b": "#e7e4de"}  # paper: ink, as in report.css


def apart(colours: list[str], matrix) -> float:
    """Smallest distance in CIELAB between any two colours, seen through a deficiency of colour vision."""
    seen = [lab(np.clip(np.array(matrix) @ channels(colour), 0, 1)) for colour in colours]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


def test_the_papers_and_inks_are_those_of_the_page():
    style = (Path(figures.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--paper: (#\w{6});.*?--ink: (#\w{6});", style, re.DOTALL)
    assert pairs == list(PAPERS.items())


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("colour", SERIES)
def test_every_colour_stands_out_on_light_and_dark_paper(colour, paper):
    assert contrast(colour, paper) >= 3.0


@pytest.mark.parametrize("ink", PAPERS.values())
@pytest.mark.parametrize("matrix", DEFICIENCIES.values(), ids=DEFICIENCIES)
def test_colours_differ_for_every_kind_of_sight(matrix, ink):
    structures = [ink if colour == figures.INK else colour for colour in COLOURS.values()]
    assert apart(structures, matrix) > 20
    assert apart(list(SERIES[:4]), matrix) > 20


def test_colour_never_stands_alone():
    assert len(set(figures.MARKERS.values())) == len(figures.MARKERS)
    assert figures.MARKERS.keys() == COLOURS.keys()
    assert len(set(figures.SERIES_MARKERS)) == len(SERIES)


# SVG


def test_the_same_drawing_gives_the_same_bytes_in_another_process():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_figures as t; "
        "print(t.figures.draw(t.line, **t.SAID).svg + t.dots().svg, end='')"
    )
    run = [sys.executable, "-c", code, str(Path(__file__).parent)]
    other = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert other == figures.draw(line, **SAID).svg + dots().svg


def test_a_drawing_holds_no_prolog_date_page_style_or_unused_name():
    svg = figures.draw(line, **SAID).svg
    assert svg.startswith("<svg ")
    assert not re.search(r"<\?xml|<!DOCTYPE|<metadata|<style|\d{4}-\d\d-\d\d", svg)
    names = set(re.findall(r' id="([^"]*)"', svg))
    assert names == set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    assert names


def test_black_is_the_ink_of_the_page_and_text_takes_its_typeface():
    svg = figures.draw(line, **SAID).svg
    assert "#000000" not in svg
    assert "stroke: currentColor" in svg
    assert 'fill="currentColor"' in svg.partition(">")[0]
    assert "DejaVu" not in svg
    assert re.search(r"font-weight: (bold|700)[^>]*>bold<", svg)


def test_fonts_in_shorthand_are_read_as_well():
    style = "font: italic bold 9px 'DejaVu Sans', sans-serif; text-anchor: middle"
    tidy = figures._tidy(f'<svg><text style="{style}">x</text></svg>')
    assert 'style="font-size: 9px; font-weight: bold; font-style: italic; text-anchor: middle"' in tidy


def test_two_drawings_share_no_name():
    def other(axes) -> None:
        axes.plot([0, 1], [1, 0])

    ids = [set(re.findall(r' id="([^"]*)"', figures.draw(paint, **SAID).svg)) for paint in (line, other)]
    assert not ids[0] & ids[1]


def test_names_and_references_are_prefixed_together():
    svg = '<svg><path id="a"/><use href="#a" clip-path="url(#a)"/></svg>'
    assert prefix_ids(svg, "p") == '<svg><path id="p-a"/><use href="#p-a" clip-path="url(#p-a)"/></svg>'


def test_drawing_leaves_the_settings_of_matplotlib_alone_and_pyplot_unloaded():
    before = dict(mpl.rcParams)
    figures.draw(line, **SAID)
    assert dict(mpl.rcParams) == before
    code = (
        "import sys, irtaudit.report.page, irtaudit.report.dots; assert 'matplotlib' not in sys.modules; "
        "irtaudit.report.figures.draw(lambda axes: axes.plot([0]), alt='a', caption='c'); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_wide_figure_has_a_phone_layout():
    figure = figures.draw(line, **SAID, width=figures.PAGE_WIDTH, phone_height=3)
    assert figure.svg != figure.narrow_svg
    assert 'width="252pt"' in figure.narrow_svg  # 3.5 inches


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_a_drawing_stay_text(name):
    svgs = [
        dots(labels=[name, "m2", "m3"], groups=["g", name, name], lines={name: 0.3}, xlabel=name).svg,
        small_curves([0, 1], {name: [0, 1], "b": [1, 1]}, xlabel=name, ylabel=name, **SAID).svg,
    ]
    for svg in svgs:
        assert name.replace("\x00", "\ufffd") in words(svg)
        assert {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(svg).iter()} <= {
            "svg", "g", "path", "defs", "use", "text", "clipPath", "rect", "polyline", "tspan",
        }  # fmt: skip


# Dot plots


def test_rows_stand_under_their_groups_with_value_and_note():
    figure = dots(notes={"m2": "failed fit"}, values=[0.26, 0.32, np.nan], emphasis=["m1"])
    for svg in (figure.svg, figure.narrow_svg):
        seen = words(svg)
        for expected in ("confirmatory", "m1", "0.260", "failed fit · 0.320", "m3", "item means"):
            assert expected in seen
        assert "nan" not in "".join(seen).lower()
        assert re.search(r"font-weight: (bold|700)[^>]*>m1<", svg)
        assert not re.search(r"font-weight: (bold|700)[^>]*>m2<", svg)
        assert COLOURS["confirmatory"] in svg


def position(svg: str, word: str) -> tuple[float, float]:
    place = re.search(rf'<text [^>]*x="([-\d.]+)" y="([-\d.]+)"[^>]*>{re.escape(word)}<', svg)
    return float(place[1]), float(place[2])


def test_labels_stay_apart_with_25_models():
    names = [f"confirmatory_functional_category_{i}d_2pl" for i in range(25)]
    figure = dots(
        labels=names,
        values=np.linspace(0.26, 0.5, 25),
        lows=np.linspace(0.25, 0.49, 25),
        highs=np.linspace(0.27, 0.51, 25),
        groups=["confirmatory"] * 12 + ["exploratory"] * 13,
    )
    for svg, least in ((figure.svg, 12), (figure.narrow_svg, 12)):
        heights = sorted(position(svg, name)[1] for name in names)
        assert np.diff(heights).min() >= least  # points, for type of 9
    x, y = position(figure.narrow_svg, names[0])
    assert 0 <= x < 40
    assert y > 0


def test_the_axis_says_when_it_does_not_reach_zero():
    cut = "(the axis does not reach zero)"
    assert cut in words(dots().svg)
    assert cut not in words(dots(from_zero=True).svg)
    assert cut not in words(dots(lines={"no difference": 0}).svg)


@pytest.mark.parametrize("limits", [(-0.0016, 0.0016), (-0.00016, 0.00008), (-12345, 3), (0, 1)])
def test_labels_of_ticks_stay_apart(limits):
    low, high = limits
    figure = dots(values=[np.nan] * 3, lows=[low] * 3, highs=[high] * 3, lines=None, groups=None)
    for svg in (figure.svg, figure.narrow_svg):
        found = re.findall(r'<text [^>]*x="([-\d.]+)"[^>]*>([−\d.]+)</text>', svg)
        places = sorted((float(x), len(text)) for x, text in found)
        assert len(places) >= 2
        # A digit of 8.5 points is 5.4 points wide in the typeface that measures.
        gaps = [right - left - 5.4 * (a + b) / 2 for (left, a), (right, b) in itertools.pairwise(places)]
        assert min(gaps) > 2


def test_a_line_without_a_value_is_left_out():
    assert "margin" not in words(dots(lines={"margin": float("nan")}).svg)


def test_labels_of_close_lines_stand_in_rows_of_their_own():
    svg = dots(lines={"best": 0.3223, "margin": 0.3151, "means": 0.54}).svg
    heights = {name: position(svg, name)[1] for name in ("best", "margin", "means")}
    assert heights["margin"] + 10 < heights["best"] < heights["means"] - 10


@pytest.mark.parametrize("groups", [[], None])
def test_an_empty_dot_plot_is_drawn(groups):
    assert dots(labels=[], values=[], lows=[], highs=[], groups=groups, lines=None).svg.startswith("<svg")


def test_rows_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="zip"):
        dots(groups=["confirmatory"])


# Small curves


def test_curves_run_through_their_points_and_leave_gaps_out():
    svg = small_curves(
        [-2, 0, 2],
        {"OpenAI": [0, 0.5, 1], "Anthropic": [0, np.nan, 1]},
        points={"OpenAI": ([0, 9], [0.5, 0.5])},
        xlabel="theta",
        ylabel="share",
        **SAID,
    ).svg
    paths = re.findall(r'<polyline points="([^"]*)"', svg)
    assert paths == ["38.0,136.0 144.0,77.0 250.0,18.0", "38.0,136.0 250.0,18.0"]
    assert re.findall(r"translate\(([^)]*)\)", svg) == ["144.0 77.0"]
    assert {"−2", "0", "2", "OpenAI", "Anthropic", "theta", "share"} <= set(words(svg))


def test_curves_differ_by_more_than_colour():
    svg = small_curves([0, 1], {"a": [0, 1], "b": [0, 1]}, xlabel="x", ylabel="y", **SAID).svg
    dashes = re.findall(r"<polyline[^>]*stroke-dasharray=\"([^\"]*)\"", svg)
    assert len(set(dashes)) == 2


def test_one_small_curve_takes_less_than_three_kilobytes():
    grid = np.linspace(-3, 3, 41)
    svg = small_curves(grid, {"fit": 1 / (1 + np.exp(-grid))}, xlabel="theta", ylabel="share", **SAID).svg
    assert len(svg) < 3000


def test_figure_to_svg_takes_any_figure_of_matplotlib():
    canvas = mpl.figure.Figure()
    canvas.add_subplot().imshow(np.eye(3))
    assert figure_to_svg(canvas).startswith("<svg")


def test_a_dot_at_the_end_of_the_axis_is_drawn_whole():
    drawn = dots(values=[0.0, 0.5, 1.0], lows=[np.nan] * 3, highs=[np.nan] * 3, lines={}, from_zero=True)
    for svg in (drawn.svg, drawn.narrow_svg):
        groups = [one for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("}g")]
        dotted = [one for one in groups if any(child.tag.endswith("}use") for child in one)]
        assert len(dotted) >= 3
        assert not [one for one in dotted if "clip-path" in one.attrib]
