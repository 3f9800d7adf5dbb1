"""The one way figures look: size, type, colour; drawn by matplotlib, delivered as small inline SVG.

Black stands for the ink of the page: :func:`figure_to_svg` turns it into ``currentColor``, so one drawing
serves light and dark pages, and a file of its own. Every colour of the palette keeps a contrast of 3:1 on
both. matplotlib is imported when something is drawn, and its global state (pyplot, rcParams) is left alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from irtaudit.report.section import Figure
from irtaudit.report.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

GREY, BLUE, VERMILION, GREEN, PURPLE = "#7a7a7a", "#2b7bba", "#d2601a", "#0d9276", "#a95aa1"

#: Colour of each structure of item response models, the same in every figure.
COLOURS: Mapping[str, str] = MappingProxyType(
    {"baseline": GREY, "unidimensional": BLUE, "exploratory": VERMILION, "confirmatory": GREEN}
)
#: Marker of each structure, so that colour never stands alone.
MARKERS: Mapping[str, str] = MappingProxyType(
    {"baseline": "s", "unidimensional": "o", "exploratory": "D", "confirmatory": "^"}
)
#: Colours and markers for other groups, in order of use: reference group, focal group, ...
SERIES: tuple[str, ...] = (BLUE, VERMILION, GREEN, PURPLE, GREY)
SERIES_MARKERS: tuple[str, ...] = ("o", "D", "^", "v", "s")

CARD_WIDTH, PAGE_WIDTH, PHONE_WIDTH = 3.7, 9.4, 3.5  # inches of 96 px

_STYLE: dict[Any, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": "DejaVu Sans",  # ships with matplotlib, so the layout is the same on every machine
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "axes.unicode_minus": True,
    "svg.fonttype": "none",  # text stays text: sharp, small, in the page's own typeface
    "svg.hashsalt": "irtaudit",
    "text.parse_math": False,  # names may hold dollar signs
}


@contextmanager
def style() -> Iterator[None]:
    """Figure style of the report for everything created inside the block; global settings come back after."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=SERIES)}):
        yield


def draw(
    paint: Callable[[Axes], object],
    *,
    alt: str,
    caption: str,
    width: float = CARD_WIDTH,
    height: float = 2.6,
    phone_height: float | None = None,
) -> Figure:
    """Figure painted by a function that receives axes in the report's style.

    Parameters
    ----------
    paint : callable
        Draws on the `matplotlib.axes.Axes` it is given.
    alt, caption : str
        The finding in one sentence; what to see.
    width, height : float
        Inches. A card is `CARD_WIDTH` wide, the main picture `PAGE_WIDTH`.
    phone_height : float, optional
        Height of a second layout `PHONE_WIDTH` wide, painted by the same function, for wide figures.

    Returns
    -------
    Figure
    """
    return Figure(
        svg=_painted(paint, width, height),
        alt=alt,
        caption=caption,
        narrow_svg="" if phone_height is None else _painted(paint, PHONE_WIDTH, phone_height),
    )


def _painted(paint: Callable[[Axes], object], width: float, height: float) -> str:
    from matplotlib.figure import Figure as Canvas

    with style():
        canvas = Canvas(figsize=(width, height), layout="constrained")
        paint(canvas.add_subplot())
        return figure_to_svg(canvas)


def figure_to_svg(canvas: Canvas) -> str:
    """SVG element of a matplotlib figure, ready to stand inside a page or as a file of its own.

    The same figure gives the same bytes. Prolog, metadata and page-wide style rules are left out; black
    becomes ``currentColor``; text keeps its size and takes the typeface of the page; identifiers that
    nothing refers to are dropped and the others carry a digest of the drawing, so that figures share a page.

    Parameters
    ----------
    canvas : matplotlib.figure.Figure

    Returns
    -------
    str
    """
    buffer = StringIO()
    with style():
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
    return _tidy(buffer.getvalue())


_REWRITES = (
    (re.compile(r"\A.*?(?=<svg)", re.DOTALL), ""),
    (re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL), ""),
    (re.compile(r"\s*<style[^>]*>\*\{[^}]*\}</style>"), ""),  # "*" would style the whole page
    (re.compile(r"<defs>\s*</defs>\s*"), ""),
    (re.compile(r"(stroke|fill): #000000"), r"\1: currentColor"),
    (re.compile(r"font: ((?:[a-z0-9]+ )*?)([\d.]+px) [^;\"]*"), lambda m: _font(m[1], m[2])),
    (
        re.compile(r"\A<svg"),
        '<svg fill="currentColor" font-family="system-ui, sans-serif"'
        ' stroke-linejoin="round" stroke-linecap="butt"',
    ),
)


def _tidy(svg: str) -> str:
    for pattern, replacement in _REWRITES:
        svg = pattern.sub(replacement, svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", svg)
    return prefix_ids(svg.strip(), "f" + hashlib.sha256(svg.encode()).hexdigest()[:8])


def _font(traits: str, size: str) -> str:
    weights = [trait for trait in traits.split() if trait == "bold" or trait.isdigit()]
    italic = "; font-style: italic" if "italic" in traits else ""
    return f"font-size: {size}" + "".join(f"; font-weight: {weight}" for weight in weights) + italic


def prefix_ids(svg: str, prefix: str) -> str:
    """The SVG with every identifier, and every reference to one, led by `prefix` and a hyphen."""
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)


@dataclass(frozen=True)
class _Dot:
    """A row of a dot plot, ready to draw."""

    label: str
    group: str
    value: float
    low: float
    high: float
    shown: str
    bold: bool


@dataclass(frozen=True)
class _Layout:
    """How a dot plot uses its width: labels left of the axes, or each above its dot."""

    width: float
    row: float
    heading: float
    label_above: bool
    longest: int


_WIDE = _Layout(width=PAGE_WIDTH, row=0.26, heading=0.34, label_above=False, longest=56)
_PHONE = _Layout(width=PHONE_WIDTH, row=0.40, heading=0.32, label_above=True, longest=40)
_LINE_ROW = 0.19  # inches for the label of a vertical line


def dot_interval_figure(
    labels: Sequence[str],
    values: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    *,
    alt: str,
    caption: str,
    xlabel: str,
    groups: Sequence[str] | None = None,
    lines: Mapping[str, float] | None = None,
    emphasis: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    value_format: str = ".3f",
    from_zero: bool = False,
) -> Figure:
    """Values as dots with intervals, one row each, labelled in place; a wide and a phone layout.

    Parameters
    ----------
    labels : sequence of str
        Names of the rows, top down within their group.
    values, lows, highs : array_like of shape (n_rows,)
        Dots and the ends of their intervals. A value that is NaN leaves its row without a dot, ends that are
        NaN leave the interval out.
    alt, caption, xlabel : str
        The finding in one sentence; what to see; quantity and unit. Where the axis starts above zero, the
        label says so.
    groups : sequence of str, optional
        Group of each row; groups stand under a heading each, in order of first appearance. The structures
        of `COLOURS` have their own colours, other groups take those of `SERIES`.
    lines : mapping of str to float, optional
        Labelled vertical lines: baselines, a margin, zero.
    emphasis : sequence of str
        Labels to print in bold: the challengers.
    notes : mapping of str to str, optional
        Words beside the value of a row, by label: "failed fit".
    value_format : str
        Format specification of the printed values.
    from_zero : bool
        Start the axis at zero.

    Returns
    -------
    Figure
    """
    columns = (np.asarray(column, dtype=float) for column in (values, lows, highs))
    dots = [
        _Dot(
            label=printable(label),
            group=printable(group),
            value=value,
            low=low,
            high=high,
            shown=_shown(value, value_format, printable((notes or {}).get(label, ""))),
            bold=label in emphasis,
        )
        for label, group, value, low, high in zip(labels, groups or [""] * len(labels), *columns, strict=True)
    ]
    marks = {printable(name): float(x) for name, x in (lines or {}).items() if np.isfinite(x)}
    svgs = (_dot_plot(layout, dots, marks, xlabel, from_zero) for layout in (_WIDE, _PHONE))
    return Figure(svg=next(svgs), narrow_svg=next(svgs), alt=alt, caption=caption)


def _shown(value: float, value_format: str, note: str) -> str:
    number = _signed(value, value_format) if np.isfinite(value) else ""
    return " · ".join(part for part in (note, number) if part)


def _signed(value: float, value_format: str = "g") -> str:
    return format(value, value_format).replace("-", "\N{MINUS SIGN}")


def _dot_plot(
    layout: _Layout, dots: Sequence[_Dot], marks: Mapping[str, float], xlabel: str, from_zero: bool
) -> str:
    groups = list(dict.fromkeys(dot.group for dot in dots))
    headings = sum(bool(group) for group in groups)
    depth = layout.row * len(dots) + layout.heading * headings + _LINE_ROW * len(marks)

    def paint(axes: Axes) -> None:
        _paint_axis(axes, dots, marks, depth, xlabel, from_zero)
        y = _LINE_ROW * len(marks)
        for order, group in enumerate(groups):
            if group:
                y += layout.heading
                _paint_label(axes, layout, y - layout.heading * 0.35, group, "bold", _colour(group, order))
            for dot in (dot for dot in dots if dot.group == group):
                _paint_dot(axes, layout, y, dot, _colour(group, order), _marker(group, order))
                y += layout.row
        _paint_lines(axes, marks, depth)

    return _painted(paint, layout.width, depth + 0.6)


def _colour(group: str, order: int) -> str:
    return COLOURS.get(group, SERIES[order % len(SERIES)])


def _marker(group: str, order: int) -> str:
    return MARKERS.get(group, SERIES_MARKERS[order % len(SERIES_MARKERS)])


def _paint_axis(
    axes: Axes, dots: Sequence[_Dot], marks: Mapping[str, float], depth: float, xlabel: str, from_zero: bool
) -> None:
    drawn = [x for dot in dots for x in (dot.value, dot.low, dot.high) if np.isfinite(x)] + list(
        marks.values()
    )
    low, high = (min(drawn), max(drawn)) if drawn else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5
    start = 0.0 if from_zero and low >= 0 else low - pad
    cut = "" if start <= 0 <= high + pad else " (the axis does not start at zero)"
    axes.set(xlim=(start, high + pad), ylim=(depth, 0), yticks=[], xlabel=printable(xlabel) + cut)
    axes.spines["left"].set_visible(False)


def _paint_label(
    axes: Axes, layout: _Layout, y: float, text: str, weight: str, colour: str = "black"
) -> None:
    short = text if len(text) <= layout.longest else text[: layout.longest - 1] + "…"
    at, side = (0.0, "left") if layout.label_above else (-0.012, "right")
    axes.text(
        at, y, short, ha=side, va="center", color=colour, weight=weight, transform=axes.get_yaxis_transform()
    )


def _paint_dot(axes: Axes, layout: _Layout, y: float, dot: _Dot, colour: str, marker: str) -> None:
    text_y = y + layout.row * (0.28 if layout.label_above else 0.5)
    line_y = y + layout.row * (0.68 if layout.label_above else 0.5)
    weight = "bold" if dot.bold else "normal"
    beside = (1.0, "right") if layout.label_above else (1.012, "left")
    _paint_label(axes, layout, text_y, dot.label, weight)
    axes.text(
        beside[0],
        text_y,
        dot.shown,
        ha=beside[1],
        va="center",
        weight=weight,
        transform=axes.get_yaxis_transform(),
    )
    axes.axhline(line_y, color="black", alpha=0.12, linewidth=0.6)
    axes.hlines(line_y, dot.low, dot.high, color=colour, linewidth=2.2, alpha=0.6)
    axes.plot([dot.value], [line_y], marker, color=colour, markersize=6.5)


def _paint_lines(axes: Axes, marks: Mapping[str, float], depth: float) -> None:
    """Vertical lines, each up to a label of its own row; the leftmost is highest, so most run free."""
    ordered = sorted(marks.items(), key=lambda mark: mark[1])
    start, end = axes.get_xlim()
    texts = []
    for row, (name, x) in enumerate(ordered):
        side, gap = ("left", 4) if x - start < 0.6 * (end - start) else ("right", -4)
        at = (x, _LINE_ROW * (row + 0.5))
        texts.append(
            axes.annotate(name, at, (gap, 0), textcoords="offset points", ha=side, va="center", fontsize=8.5)
        )
    canvas = axes.get_figure(root=True)
    assert canvas is not None  # axes always live on one
    canvas.draw_without_rendering()
    spans = [text.get_window_extent().transformed(axes.transData.inverted()) for text in texts]
    for row, (_, x) in enumerate(ordered):
        # A line pauses where it would cross the label of another.
        clear = [r for r in range(row, len(spans)) if r == row or not spans[r].x0 < x < spans[r].x1]
        pieces = [(_LINE_ROW * r, _LINE_ROW * (r + 1)) for r in clear] + [(_LINE_ROW * len(spans), depth)]
        for top, bottom in pieces:
            axes.plot([x, x], [top, bottom], color="black", linewidth=0.9, dashes=(4, 2.5), alpha=0.75)


def small_curves(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    alt: str,
    caption: str,
    xlabel: str,
    ylabel: str,
    points: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> Figure:
    """A small plot of probabilities, written directly as SVG: hundreds of item response curves in one page.

    Parameters
    ----------
    x : array_like of shape (n_points,)
        Common abscissa, theta say, ascending.
    curves : mapping of str to array_like of shape (n_points,)
        Probabilities in [0, 1] by name; a name of its own stands in the colour of its curve.
    alt, caption, xlabel, ylabel : str
        The finding in one sentence; what to see; what the axes are.
    points : mapping of str to (x, y), optional
        Observed proportions by the name of their curve.

    Returns
    -------
    Figure
    """
    grid = np.asarray(x, dtype=float)
    frame = _Frame(float(grid[0]), float(grid[-1]))
    names = list(dict.fromkeys([*curves, *(points or {})]))
    colours = {name: SERIES[i % len(SERIES)] for i, name in enumerate(names)}
    body = [frame.axes(xlabel, ylabel)]
    body += [frame.curve(grid, np.asarray(y, dtype=float), colours[name]) for name, y in curves.items()]
    body += [
        frame.dots(np.asarray(px, dtype=float), np.asarray(py, dtype=float), colours[name])
        for name, (px, py) in (points or {}).items()
    ]
    body += [frame.key(i, name, colours[name]) for i, name in enumerate(names) if len(names) > 1]
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 178" width="260" height="178" '
        'fill="currentColor" font-family="system-ui, sans-serif" font-size="11">' + "".join(body) + "</svg>"
    )
    return Figure(svg=svg, alt=alt, caption=caption)


@dataclass(frozen=True)
class _Frame:
    """Coordinates of a small plot: x from `start` to `end`, y from 0 to 1."""

    start: float
    end: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.start) / ((self.end - self.start) or 1.0)
        return round(40 + 210 * across, 1), round(134 - 118 * y, 1)

    def axes(self, xlabel: str, ylabel: str) -> str:
        ticks = "".join(
            f'<path d="M40 {y}H250" stroke="currentColor" stroke-opacity="{0.5 if p == 0 else 0.12}"/>'
            f'<text x="34" y="{y + 4}" text-anchor="end">{p:g}</text>'
            for p in (0, 0.5, 1)
            for _, y in [self.at(self.start, p)]
        )
        across = "".join(
            f'<text x="{self.at(t, 0)[0]}" y="149" text-anchor="middle">{_signed(t)}</text>'
            for t in (self.start, (self.start + self.end) / 2, self.end)
        )
        titles = (
            f'<text x="145" y="168" text-anchor="middle">{escape(printable(xlabel))}</text>'
            f'<text x="0" y="9">{escape(printable(ylabel))}</text>'
        )
        return ticks + across + titles

    def curve(self, x: np.ndarray, y: np.ndarray, colour: str) -> str:
        path = " ".join(
            "{},{}".format(*self.at(*point)) for point in zip(x, y, strict=True) if point[1] == point[1]
        )
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'

    def dots(self, x: np.ndarray, y: np.ndarray, colour: str) -> str:
        places = [self.at(*point) for point in zip(x, y, strict=True) if np.isfinite(point).all()]
        return "".join(f'<circle cx="{cx}" cy="{cy}" r="3" fill="{colour}"/>' for cx, cy in places)

    def key(self, order: int, name: str, colour: str) -> str:
        return f'<text x="46" y="{28 + 13 * order}" fill="{colour}">{escape(printable(name))}</text>'
