"""The dot plot that carries a verdict: values with intervals, row by row, named in place."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from irtaudit.report.figures import (
    COLOURS,
    MARKERS,
    PAGE_WIDTH,
    PHONE_WIDTH,
    SERIES,
    SERIES_MARKERS,
    painted,
    signed,
)
from irtaudit.report.section import Figure
from irtaudit.report.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import BboxBase


@dataclass(frozen=True)
class _Dot:
    """A row of the plot, ready to draw."""

    label: str
    group: str
    value: float
    low: float
    high: float
    shown: str
    weight: str


@dataclass(frozen=True)
class _Layout:
    """How a plot uses its width, in inches and characters: labels left of the axes, or above each dot."""

    width: float
    row: float
    heading: float
    label_above: bool
    label_length: int
    line_length: int


_WIDE = _Layout(width=PAGE_WIDTH, row=0.26, heading=0.34, label_above=False, label_length=56, line_length=96)
_PHONE = _Layout(width=PHONE_WIDTH, row=0.40, heading=0.32, label_above=True, label_length=40, line_length=44)
MOST_TICKS = 8
TICK_GAP = 6.0
"""Free space between the labels of two ticks, in pixels (100 to the inch)."""
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
        The finding in one sentence; what to see; quantity and unit. Where the axis does not reach zero, a
        line below it says so.
    groups : sequence of str, optional
        Group of each row; groups stand under a heading each, in order of first appearance. The structures
        of `figures.COLOURS` have their own colours, other groups take those of `figures.SERIES`.
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
    bold, notes = set(emphasis), notes or {}
    columns = (np.asarray(column, dtype=float) for column in (values, lows, highs))
    dots = [
        _Dot(
            printable(label),
            printable(group),
            value,
            low,
            high,
            shown=_shown(value, value_format, printable(notes.get(label, ""))),
            weight="bold" if label in bold else "normal",
        )
        for label, group, value, low, high in zip(
            labels, [""] * len(labels) if groups is None else groups, *columns, strict=True
        )
    ]
    marks = {printable(name): float(x) for name, x in (lines or {}).items() if np.isfinite(x)}
    limits = _limits(dots, marks, from_zero)
    return Figure(
        svg=_plot(_WIDE, dots, marks, limits, xlabel),
        narrow_svg=_plot(_PHONE, dots, marks, limits, xlabel),
        alt=alt,
        caption=caption,
    )


def _shown(value: float, spec: str, note: str) -> str:
    number = signed(value, spec) if np.isfinite(value) else ""
    return " · ".join(part for part in (note, number) if part)


def _limits(dots: Sequence[_Dot], marks: Mapping[str, float], from_zero: bool) -> tuple[float, float]:
    """Ends of the axis: everything drawn, and a little more."""
    drawn = [*(x for dot in dots for x in (dot.value, dot.low, dot.high) if np.isfinite(x)), *marks.values()]
    low, high = (min(drawn), max(drawn)) if drawn else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5
    return 0.0 if from_zero and low >= 0 else low - pad, high + pad


def _plot(
    layout: _Layout,
    dots: Sequence[_Dot],
    marks: Mapping[str, float],
    limits: tuple[float, float],
    xlabel: str,
) -> str:
    head = _LINE_ROW * len(marks)
    headings, rows, depth = _placed(layout, dots, head)
    strips = [(y + 0.48 * layout.row, y + 0.88 * layout.row) for _, y in rows]
    below = textwrap.wrap(printable(xlabel), layout.line_length)
    below += [] if limits[0] <= 0 <= limits[1] else ["(the axis does not reach zero)"]

    def paint(axes: Axes) -> None:
        axes.set(xlim=limits, ylim=(depth, 0), yticks=[], xlabel="\n".join(below))
        axes.spines["left"].set_visible(False)
        for order, (group, y) in enumerate(headings.items()):
            if group:
                _label(axes, layout, y + 0.65 * layout.heading, group, "bold", _colour(group, order))
        for dot, y in rows:
            order = list(headings).index(dot.group)
            _paint_dot(axes, layout, y, dot, _colour(dot.group, order), _marker(dot.group, order))
        _paint_lines(axes, marks, strips if layout.label_above else [(head, depth)])
        _space_ticks(axes)

    return painted(paint, layout.width, depth + 0.38 + 0.16 * len(below))


def _placed(
    layout: _Layout, dots: Sequence[_Dot], head: float
) -> tuple[dict[str, float], list[tuple[_Dot, float]], float]:
    """Where the headings and rows begin below the top, and where the last row ends, in inches."""
    headings: dict[str, float] = {}
    rows = []
    y = head
    for group in dict.fromkeys(dot.group for dot in dots):
        headings[group] = y
        y += layout.heading if group else 0.0
        for dot in dots:
            if dot.group == group:
                rows.append((dot, y))
                y += layout.row
    return headings, rows, max(y, layout.row)


def _colour(group: str, order: int) -> str:
    return COLOURS.get(group, SERIES[order % len(SERIES)])


def _marker(group: str, order: int) -> str:
    return MARKERS.get(group, SERIES_MARKERS[order % len(SERIES_MARKERS)])


def _label(axes: Axes, layout: _Layout, y: float, text: str, weight: str, colour: str = "black") -> None:
    short = text if len(text) <= layout.label_length else text[: layout.label_length - 1] + "…"
    x, side = (0.0, "left") if layout.label_above else (-0.018, "right")
    across = axes.get_yaxis_transform()
    axes.text(x, y, short, ha=side, va="center", color=colour, weight=weight, transform=across)


def _paint_dot(axes: Axes, layout: _Layout, y: float, dot: _Dot, colour: str, marker: str) -> None:
    text_y, dot_y = (y + layout.row * part for part in ((0.28, 0.68) if layout.label_above else (0.5, 0.5)))
    x, side = (1.0, "right") if layout.label_above else (1.012, "left")
    across = axes.get_yaxis_transform()
    _label(axes, layout, text_y, dot.label, dot.weight)
    axes.text(x, text_y, dot.shown, ha=side, va="center", weight=dot.weight, transform=across)
    axes.axhline(dot_y, color="black", alpha=0.12, linewidth=0.6)
    axes.hlines(dot_y, dot.low, dot.high, color=colour, linewidth=2.2, alpha=0.6)
    axes.plot([dot.value], [dot_y], marker, color=colour, markersize=5.5, clip_on=False, zorder=3)


def _space_ticks(axes: Axes) -> None:
    """As many ticks as have room for their labels."""
    canvas = axes.get_figure(root=True)
    assert canvas is not None  # axes always live on one
    for most in range(MOST_TICKS, 1, -1):
        axes.locator_params(axis="x", nbins=most)
        canvas.draw_without_rendering()
        spans = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        if all(left.x1 + TICK_GAP < right.x0 for left, right in pairwise(spans)):
            return


def _paint_lines(axes: Axes, marks: Mapping[str, float], strips: Sequence[tuple[float, float]]) -> None:
    """Vertical lines through the strips, each up to a label in a row of its own; the leftmost is highest."""
    ordered = sorted(marks.items(), key=lambda mark: mark[1])
    spans = _line_labels(axes, ordered)
    dashed: dict[str, Any] = {
        "color": "black",
        "linewidth": 0.9,
        "dashes": (4, 2.5),
        "alpha": 0.75,
        "zorder": 1.5,
    }
    for row, (_, x) in enumerate(ordered):
        # A line pauses where it would cross the label of another.
        clear = [r for r in range(row, len(spans)) if r == row or not spans[r].x0 < x < spans[r].x1]
        for top, bottom in [*((_LINE_ROW * r, _LINE_ROW * (r + 1)) for r in clear), *strips]:
            axes.plot([x, x], [top, bottom], **dashed)


def _line_labels(axes: Axes, ordered: Sequence[tuple[str, float]]) -> list[BboxBase]:
    """Labels of vertical lines, and where each stands in units of the axes."""
    start, end = axes.get_xlim()
    texts = []
    for row, (name, x) in enumerate(ordered):
        side, gap = ("left", 4) if x - start < 0.6 * (end - start) else ("right", -4)
        at = (x, _LINE_ROW * (row + 0.5))
        texts.append(axes.annotate(name, at, (gap, 0), textcoords="offset points", ha=side, va="center"))
    canvas = axes.get_figure(root=True)
    assert canvas is not None  # axes always live on one
    canvas.draw_without_rendering()
    return [text.get_window_extent().transformed(axes.transData.inverted()) for text in texts]
