"""Small plots of probabilities written directly as SVG, so that a page holds hundreds of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from irtaudit.report.figures import SERIES, signed
from irtaudit.report.section import Figure
from irtaudit.report.text import printable

_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 250, 18, 136
_DASHES = ("none", "6 3", "2 3", "9 3 2 3", "12 4")
_SHAPES = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "M0-4L4 0 0 4-4 0z",
    "M0-4L4 3H-4z",
    "M-3-3H3V3H-3z",
    "M0 4L4-3H-4z",
)


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
    """Item response curves of one item, with observed proportions; series differ by colour, dash and shape.

    Parameters
    ----------
    x : array_like of shape (n_points,)
        Common abscissa, theta say, ascending.
    curves : mapping of str to array_like of shape (n_points,)
        Probabilities by name, at most five.
    alt, caption, xlabel, ylabel : str
        The finding in one sentence; what to see; what the axes are.
    points : mapping of str to (x, y), optional
        Observed proportions by the name of their curve; those outside the range of `x` are left out.

    Returns
    -------
    Figure
    """
    grid = np.asarray(x, dtype=float)
    names = list(dict.fromkeys([*curves, *(points or {})]))
    start, end = float(grid[0]), float(grid[-1])

    def place(px: ArrayLike, py: ArrayLike) -> Iterable[tuple[float, float]]:
        across, up = np.asarray(px, dtype=float), np.asarray(py, dtype=float)
        drawn = np.isfinite(up) & (across >= start) & (across <= end)
        at_x = _LEFT + (_RIGHT - _LEFT) * (across[drawn] - start) / (end - start)
        at_y = _BOTTOM - (_BOTTOM - _TOP) * up[drawn]
        return zip(at_x.round(1).tolist(), at_y.round(1).tolist(), strict=True)

    parts = [_axes(start, end, xlabel, ylabel)]
    for name, y in curves.items():
        path = " ".join(f"{px},{py}" for px, py in place(grid, y))
        parts.append(f'<polyline points="{path}" fill="none" {_stroke(names.index(name))}/>')
    for name, (px, py) in (points or {}).items():
        at = names.index(name)
        shape = f'<path d="{_SHAPES[at]}" fill="{SERIES[at]}" transform="translate'
        parts += [f'{shape}({cx} {cy})"/>' for cx, cy in place(px, py)]
    if len(names) > 1:
        early = [np.asarray(y, dtype=float)[: max(len(grid) // 3, 1)] for y in curves.values()]
        parts += _key(names, top=all(np.nanmax(y) < 0.6 for y in early))
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 172" width="260" height="172" '
        'fill="currentColor" font-family="system-ui, sans-serif" font-size="11">' + "".join(parts) + "</svg>"
    )
    return Figure(svg=svg, alt=alt, caption=caption)


def _stroke(at: int) -> str:
    return f'stroke="{SERIES[at]}" stroke-width="2" stroke-dasharray="{_DASHES[at]}"'


def _axes(start: float, end: float, xlabel: str, ylabel: str) -> str:
    heights = [(p, _BOTTOM - (_BOTTOM - _TOP) * p) for p in (0, 0.5, 1)]
    middle = (_LEFT + _RIGHT) / 2
    across = [(_LEFT, start), (middle, (start + end) / 2), (_RIGHT, end)]
    return (
        "".join(
            f'<path d="M{_LEFT} {y:g}H{_RIGHT}" stroke="currentColor" stroke-opacity="{0.12 if p else 0.5}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end">{p:g}</text>'
            for p, y in heights
        )
        + "".join(
            f'<text x="{px:g}" y="{_BOTTOM + 14}" text-anchor="middle">{signed(t)}</text>' for px, t in across
        )
        + f'<text x="{middle:g}" y="{_BOTTOM + 30}" text-anchor="middle">{escape(printable(xlabel))}</text>'
        f'<text x="0" y="9">{escape(printable(ylabel))}</text>'
    )


def _key(names: list[str], top: bool) -> list[str]:
    """Names with a piece of their line, where the curves leave room: top left, or bottom right."""
    x, y = (_LEFT + 6, _TOP + 12) if top else (_RIGHT - 96, _BOTTOM + 2 - 13 * len(names))
    return [
        f'<path d="M{x} {y + 13 * at - 4}h18" {_stroke(at)}/>'
        f'<text x="{x + 23}" y="{y + 13 * at}">{escape(printable(name))}</text>'
        for at, name in enumerate(names)
    ]
