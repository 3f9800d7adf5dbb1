"""The one way figures look: size, type, colour; drawn by matplotlib, delivered as small inline SVG.

Black stands for the ink of the page: :func:`figure_to_svg` turns it into ``currentColor``, so one drawing
serves light and dark pages, and a file of its own. Every colour of the palette keeps a contrast of 3:1 on
both. matplotlib is imported when something is drawn, and its global state (pyplot, rcParams) is left alone.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from irtaudit.report.section import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

INK, GREY = "#000000", "#7a7a7a"
BLUE, VERMILION, GREEN, PURPLE = "#2d62bf", "#c2501f", "#1aa473", "#bd68a4"

#: Colour of each structure of item response models, the same in every figure.
COLOURS: Mapping[str, str] = MappingProxyType(
    {"baseline": INK, "unidimensional": BLUE, "exploratory": VERMILION, "confirmatory": GREEN}
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

    with warnings.catch_warnings(), mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=SERIES)}):
        # The typeface here only measures; the page shows the text in one that has the glyph.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
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
        svg=painted(paint, width, height),
        alt=alt,
        caption=caption,
        narrow_svg="" if phone_height is None else painted(paint, PHONE_WIDTH, phone_height),
    )


def painted(paint: Callable[[Axes], object], width: float, height: float) -> str:
    """SVG of one layout of :func:`draw`."""
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
    (re.compile(r"; font-family: [^;\"]*"), ""),
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


def signed(value: float, spec: str = "g") -> str:
    """The formatted number with a true minus sign."""
    return format(value, spec).replace("-", "\N{MINUS SIGN}")
