"""Paints the figures of a panel audit on axes it is given; what they say is written in evidence.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.report.figures import BLUE, GREEN, GREY, SERIES, SERIES_MARKERS, VERMILION, signed

Paint = Callable[[Any], None]
"""Receives matplotlib axes, which only present.py and report/ may name."""
NAMED = 3
"""Points of a scatter that carry a name."""
DASHED: dict[str, Any] = {"color": "black", "linewidth": 0.9, "dashes": (4, 2.5), "alpha": 0.75}
LONGEST = 32
"""Characters of a name in a figure."""
WIDE = 6.0  # inches from which small figures stand side by side


def short(name: object) -> str:
    """A name as far as a figure has room for it."""
    text = str(name)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def beside(paints: Sequence[Paint]) -> Paint:
    """Several small figures as one: side by side where the page is wide, below each other on a phone."""

    def paint(axes: Any) -> None:
        canvas = axes.figure
        axes.remove()
        columns = min(len(paints), 3) if canvas.get_figwidth() >= WIDE else 1
        rows = -(-len(paints) // columns)
        for order, one in enumerate(paints):
            one(canvas.add_subplot(rows, columns, order + 1))

    return paint


def scatter(x: pd.Series, y: pd.Series, xlabel: str, ylabel: str, rho: float) -> Paint:
    """One score against capability; the models farthest from the middle are named."""

    def paint(axes: Any) -> None:
        axes.plot(x, y, "o", color=BLUE, markersize=5, alpha=0.85, markeredgewidth=0)
        across, up = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
        named: list[str] = []
        for name in (across**2 + up**2).sort_values(ascending=False).index:
            clear = all(abs(up[name] - up[other]) > 0.4 for other in named)
            if clear and len(named) < NAMED:
                named.append(name)
        for name in named:
            side = -1 if across[name] > 0 else 1
            place = {"ha": "right" if side < 0 else "left", "va": "bottom", "fontsize": 7.5}
            axes.annotate(short(name), (x[name], y[name]), (4 * side, 2), textcoords="offset points", **place)
        axes.set_title(f"{short(ylabel)}: rho {signed(rho, '+.2f')}, n = {len(x)}", loc="left", fontsize=9)
        axes.set(xlabel=xlabel)
        axes.margins(0.09)

    return paint


def bars(scores: pd.Series, line: float, line_name: str, xlabel: str, limits: pd.DataFrame | None) -> Paint:
    """Scores as horizontal bars, best on top, with the score of a policy that never looks as a line."""
    ordered = scores.sort_values()

    def paint(axes: Any) -> None:
        places, top = np.arange(len(ordered)), len(ordered) - 0.4
        axes.barh(places, ordered, color=np.where(ordered > line, BLUE, GREY), height=0.68, linewidth=0)
        if limits is not None:
            ends = limits.reindex(ordered.index)
            axes.hlines(places, ends["low"], ends["high"], color="black", linewidth=1.2)
        axes.plot([line, line], [-0.6, top], color=VERMILION, linewidth=1.6, dashes=(4, 2))
        right = line > 0.5 * max(float(ordered.max()), line)
        name = {"ha": "right" if right else "left", "va": "bottom", "fontsize": 8, "color": VERMILION}
        axes.text(line, top + 0.1, f"{line_name} {line:.2f}", **name)
        axes.set(xlabel=xlabel, ylim=(-0.7, top + 1.2), xlim=(0, max(1.0, float(ordered.max()) * 1.02)))
        axes.set_yticks(places, [short(name) for name in ordered.index], fontsize=7.5)
        axes.tick_params(axis="y", length=0)

    return paint


def subset_histogram(
    rho: NDArray[np.float64], null: NDArray[np.float64], full: float, threshold: float, size: int
) -> Paint:
    """Correlations in small panels as bars, chance as an outline, the whole panel as a line."""

    def paint(axes: Any) -> None:
        edges = np.linspace(-1, 1, 21)
        shares = [np.histogram(v[np.isfinite(v)], edges)[0] / v.size for v in (rho, null)]
        middles = (edges[1:] + edges[:-1]) / 2
        strong = np.abs(middles) >= threshold
        axes.bar(middles, shares[0], width=0.088, color=np.where(strong, VERMILION, BLUE), linewidth=0)
        axes.stairs(shares[1], edges, color="black", linewidth=1.3)
        top, right = 1.15 * max(share.max() for share in shares), full < 0.2
        axes.plot([full, full], [0, top], **DASHED)
        place = {"ha": "left" if right else "right", "va": "top", "fontsize": 8}
        text, at = f"all models {signed(full, '+.2f')}", (5 if right else -5, -1)
        axes.annotate(text, (full, top), at, textcoords="offset points", **place)
        axes.set(xlabel=f"Spearman correlation in panels of {size}", ylabel="share of panels", ylim=(0, top))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")

    return paint


def scree(table: pd.DataFrame) -> Paint:
    """Eigenvalues of both matrices above the null's mean and 95 %, named at their right ends."""

    def paint(axes: Any) -> None:
        pearson = table[table["matrix"] == "Pearson"]
        at = pearson["component"].to_numpy()
        axes.fill_between(at, pearson["null_mean"], pearson["null_q95"], color=GREY, alpha=0.35, linewidth=0)
        ends = [("chance, to 95 %", float(pearson["null_q95"].iloc[-1]), "black")]
        for order, (name, rows) in enumerate(table.groupby("matrix", sort=False)):
            axes.plot(at, rows["eigenvalue"], f"{SERIES_MARKERS[order]}-", color=SERIES[order])
            ends.append((str(name), float(rows["eigenvalue"].iloc[-1]), SERIES[order]))
        highest = float(table["eigenvalue"].max())
        _stacked_names(axes, float(at[-1]), ends, gap=0.075 * highest)
        axes.set(xlabel="component", ylabel="eigenvalue", xticks=at, ylim=(0, 1.06 * highest))
        axes.set_xlim(at[0] - 0.2, at[-1] + 0.42 * (at[-1] - at[0]))

    return paint


def _stacked_names(axes: Any, x: float, ends: list[tuple[str, float, str]], gap: float) -> None:
    """Names right of the ends of lines, moved apart by at least `gap`."""
    lowest = -np.inf
    for name, y, colour in sorted(ends, key=lambda end: end[1]):
        lowest = max(y, lowest + gap)
        place = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": colour}
        axes.annotate(name, (x, lowest), (9, 0), **place)


def loadings(table: pd.DataFrame, names: Sequence[str], threshold: float) -> Paint:
    """Loadings on the first component, Pearson and Spearman, with the line the anchors must reach."""

    def paint(axes: Any) -> None:
        places = np.arange(len(table))[::-1]
        axes.axvline(0, color="black", linewidth=0.8)
        axes.axvline(threshold, **DASHED)
        for order, matrix in enumerate(("pearson", "spearman")):
            shift, colour = 0.13 * (1 - 2 * order), SERIES[order]
            axes.hlines(places + shift, 0, table[matrix], color=colour, linewidth=1.2, alpha=0.5)
            axes.plot(table[matrix], places + shift, SERIES_MARKERS[order], color=colour)
            at, name = (float(table[matrix].iloc[0]), places[0] + shift), matrix.capitalize()
            place = {"textcoords": "offset points", "va": "center", "fontsize": 7.5, "color": colour}
            axes.annotate(name, at, (7, 0), **place)
        axes.set(xlim=(-1.05, 1.35), ylim=(-0.6, len(table) - 0.4), xlabel="loading on the first component")
        axes.set_yticks(places, [short(name) for name in names])
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
        axes.tick_params(axis="y", length=0)

    return paint


def residual_strips(table: pd.DataFrame) -> Paint:
    """Capability-adjusted ranks by organization, ordered by their median."""
    order = table.groupby("organization")["residual_rank"].median().sort_values()
    counts = table["organization"].value_counts()

    def paint(axes: Any) -> None:
        for place, (name, median) in enumerate(order.items()):
            values = table.loc[table["organization"] == name, "residual_rank"]
            axes.plot(values, np.full(len(values), place), "o", color=BLUE, alpha=0.75, markeredgewidth=0)
            axes.plot([median, median], [place - 0.28, place + 0.28], color="black", linewidth=1.8)
        axes.axvline(0, color="black", linewidth=0.8, alpha=0.5)
        axes.set_yticks(range(len(order)), [f"{short(name)} ({counts[name]})" for name in order.index])
        axes.set(xlabel="ranks above what capability predicts", ylim=(-0.6, len(order) - 0.4))
        axes.tick_params(axis="y", length=0)

    return paint


def coverage_map(seen: pd.DataFrame, excluded: pd.DataFrame, names: Sequence[str]) -> Paint:
    """Which model has which score: filled squares, crosses where a score was excluded."""

    def paint(axes: Any) -> None:
        rows = np.arange(len(seen))[::-1]
        for place, column in enumerate(seen.columns):
            has = seen[column].to_numpy()
            out = seen.index.isin(excluded.loc[excluded["column"] == column, "model"])
            for chosen, marker, size, colour in (
                (has, "s", 6.5, GREEN),
                (~has & ~out, ".", 2.5, GREY),
                (out, "x", 6, VERMILION),
            ):
                across = np.full(int(chosen.sum()), place)
                edge = 1.6 if marker == "x" else 0
                axes.plot(across, rows[chosen], marker, color=colour, markersize=size, markeredgewidth=edge)
            axes.text(place, len(seen) - 0.2, f"n = {has.sum()}", ha="center", fontsize=8)
        axes.set(xlim=(-0.6, len(names) - 0.4), ylim=(-0.7, len(seen) + 0.7))
        axes.set_yticks(rows, [short(name) for name in seen.index], fontsize=7.5)
        axes.set_xticks(
            range(len(names)),
            [short(name) for name in names],
            rotation=25,
            ha="right",
            rotation_mode="anchor",
        )
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)

    return paint
