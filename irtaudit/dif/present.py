"""Test 2 in the reader's words: group comparisons become sections of the report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit

from irtaudit.dif.options import LEVEL, SCREENS
from irtaudit.dif.power import SHIFTS, TARGET
from irtaudit.dif.result import DifResult, column_of, comparisons, flags_lost, overlap, with_rows
from irtaudit.dif.scopes import SINGLE
from irtaudit.dif.words import (
    COLUMNS,
    FORMATS,
    LARGE,
    SCREEN_NAMES,
    answer,
    best_shift,
    decisive,
    flag_counts,
    groups_in_words,
    heading,
    headline,
    item_sentence,
    pair,
    single_scope,
)
from irtaudit.report.curves import small_curves
from irtaudit.report.figures import CARD_WIDTH, GREY, PAGE_WIDTH, SERIES, SERIES_MARKERS, draw
from irtaudit.report.section import Figure, Fold, Section
from irtaudit.report.section import Verdict as Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

READING = "Equally able models of both groups pass each item equally often"
MAX_FOLDS = 100
"""Items per comparison that get curves of their own on the page: flagged ones first, then by p-value."""
SMALL_GROUP = 20
LABELLED = 5
"""Items that are named in a scatter plot."""
STRONGEST = 8
"""Items in the plot of cut-offs."""


def present(result: DifResult, *, mapped: bool = True) -> list[Section]:
    """Sections of the report that show group comparisons: evidence, limits, tables and method.

    Parameters
    ----------
    result : DifResult
    mapped : bool
        With a card that shows the effect on every item; the picture of a page of its own does so already.

    Returns
    -------
    list of Section
    """
    sections: list[Section] = []
    for part in comparisons(result):
        single = single_scope(part)
        sections.append(_groups(result, part))
        if not part.items["testable"].any():
            continue
        sections += [
            *([_map(result, part)] if mapped else []),
            *([_single(result, single)] if single is not None else []),
            *_scoped(result, part),
            *_families(result, part),
            *_power(result, part),
            *_control(result, part),
            _items(result, part),
        ]
    return [*sections, *_limits(result), _flag_table(result), _method(result)]


def present_alone(result: DifResult, holds_for: Mapping[str, str], claim: str = READING) -> list[Section]:
    """Sections of a report on group comparisons alone, its answer and picture included.

    Parameters
    ----------
    result : DifResult
    holds_for : mapping of str to str
        What the answer holds for: pool, data, version.
    claim : str
        The reading under test.

    Returns
    -------
    list of Section
    """
    found = answer(result)
    head = Section(
        place="answer",
        claim=found.because,
        text=f"What would change this answer? {found.what_would_change}",
        verdict=Answer(reading=claim, word=found.word, holds_for=holds_for),
    )
    several = len(comparisons(result)) > 1
    return [head, *_picture(result), *present(result, mapped=several)]


# Who is compared ---------------------------------------------------------------------------------------


def _groups(whole: DifResult, part: DifResult) -> Section:
    table = part.groups[part.groups["scope"] == part.groups["scope"].iloc[0]]
    reference, focal = (row for _, row in table.iterrows())
    gap = 100 * abs(reference["mean"] - focal["mean"])
    claim = (
        f"{reference['n_models']} {reference['level']} models pass {reference['mean']:.1%} of the items on "
        f"average, {focal['n_models']} {focal['level']} models {focal['mean']:.1%}. These {gap:.1f} points "
        "may all be ability: they are not DIF."
    )
    return Section(
        place="evidence",
        title=heading(whole, part, "Who is compared"),
        claim=claim,
        text="DIF asks something else: do models of both groups that are equally able pass the same item "
        "equally often? Where they do not, the item measures something besides ability.",
        figures=[
            draw(
                partial(_paint_groups, table=table),
                alt=claim,
                caption="Dot: mean of the group's models; thick line: one standard deviation to either side; "
                "thin line: from the lowest to the highest.",
                height=1.5,
            )
        ],
        table=part.groups.drop(columns=["comparison"]),
        columns=COLUMNS,
        formats=FORMATS,
        caption="Pass rates over models, and abilities, by group and scope.",
        how="Means over models, before any matching.",
        otherwise="Nothing: this describes the groups and tests nothing.",
    )


def _paint_groups(axes: Axes, table: pd.DataFrame) -> None:
    for at, (_, row) in enumerate(table.iterrows()):
        low, high = max(row["mean"] - row["sd"], 0), min(row["mean"] + row["sd"], 1)
        axes.plot([row["min"], row["max"]], [at, at], color=SERIES[at], linewidth=1)
        axes.plot([low, high], [at, at], color=SERIES[at], linewidth=4, solid_capstyle="butt")
        axes.plot(row["mean"], at, SERIES_MARKERS[at], color=SERIES[at], markersize=8)
    names = [f"{row['level']} ({row['n_models']})" for _, row in table.iterrows()]
    axes.set(yticks=[0, 1], yticklabels=names, ylim=(1.6, -0.6), xlim=(0, 1))
    axes.set_xlabel("share of items passed")


# What is flagged ---------------------------------------------------------------------------------------


def _picture(result: DifResult) -> list[Section]:
    """The first comparison that has anything to show."""
    part = next((part for part in comparisons(result) if part.items["testable"].any()), None)
    if part is None:
        return []
    shown = single_scope(part) or part
    return [
        Section(
            place="picture",
            title=heading(result, part, "Every item at equal ability"),
            claim=_map_claim(shown),
            figures=[_scatter(shown, wide=True)],
        )
    ]


def _map(whole: DifResult, part: DifResult) -> Section:
    shown = single_scope(part) or part
    return Section(
        place="evidence",
        title=heading(whole, part, "Every item at equal ability"),
        claim=_map_claim(shown),
        figures=[_scatter(shown, wide=False)],
        how=_how(shown),
        otherwise="Dots further from zero, or nearer to it, than items of this difficulty get by chance.",
    )


def _map_claim(part: DifResult) -> str:
    """Where the groups stand over all items, at equal ability."""
    items = part.items[part.items["screen"] == headline(part.options)[-1]]
    reference, focal = pair(part)
    effect = items["effect"].dropna()
    return (
        f"At equal ability {(effect > 0).sum()} of {len(effect)} items are easier for {reference} and "
        f"{(effect < 0).sum()} for {focal} models; half of them by less than {effect.abs().median():.2f} "
        f"logits (odds of {np.exp(effect.abs().median()):.1f} to 1)."
    )


def _flag_claim(part: DifResult) -> str:
    """How many items the headline screens flag, and how many of these relatives could explain."""
    items = part.items[part.items["screen"].isin(headline(part.options)) & part.items["flag_family"]]
    n, testable = _count(items), part.flags["n_testable"].max()
    return (
        f"{n or 'None'} of {testable} testable items stand{'s' if n < 2 else ''} out at equal ability"
        f"{_among_relatives(items)}."
    )


def _count(items: pd.DataFrame) -> int:
    return len(items[["scope", "item"]].drop_duplicates())


def _among_relatives(flagged: pd.DataFrame) -> str:
    """What becomes of flagged items under the cluster-aware null, to follow their number."""
    if flagged["flag_family_cluster"].isna().all():
        return ""
    n = _count(flagged)
    kept = _count(flagged[flagged["flag_family_cluster"].fillna(False).astype(bool)])
    if n == 1:
        still = "it still does" if kept else "it no longer does"
    else:
        still = f"{kept or 'none'} still do{'es' if kept < 2 else ''}"
    return f"; {still} when families of models are allowed for"


def _flag_text(part: DifResult) -> str:
    """The same screen by screen, and what chance alone would give."""
    flags, screens = part.flags, headline(part.options)
    shared = overlap(part)
    text = flag_counts(flags, screens)
    if len(screens) > 1 and len(shared):
        text += f"; {shared['both'].sum()} by both"
    return text + ". Without DIF, a screen would flag any item at all in one audit of twenty."


def _scatter(part: DifResult, *, wide: bool) -> Figure:
    """Effect against pass rate of every item, by the headline screen that flags most."""
    flags = part.flags[part.flags["screen"].isin(headline(part.options))].set_index("screen")
    screen = str(flags["family_flags"].idxmax())
    items = part.items[(part.items["screen"] == screen) & part.items["testable"]]
    n_flagged = int(items["flag_family"].sum())
    paint = partial(_paint_scatter, items=items, part=part, labelled=wide)
    return draw(
        paint,
        alt=f"{n_flagged} of {len(items)} items stand out from the others at equal ability.",
        caption="Each dot is an item: how hard it is, and how far the groups are apart on it at equal "
        f"ability ({SCREEN_NAMES[screen]}). Zero is no DIF. {'Named and coloured' if wide else 'Coloured'}: "
        "flagged. Dots far out without a colour rest on few passes or fails and are no further out than "
        "chance takes them.",
        width=PAGE_WIDTH if wide else CARD_WIDTH,
        height=3.6 if wide else 2.8,
        phone_height=3.4 if wide else None,
    )


def _paint_scatter(axes: Axes, items: pd.DataFrame, part: DifResult, labelled: bool) -> None:
    reference, focal = pair(part)
    rate = (items["pass_rate_reference"] + items["pass_rate_focal"]) / 2
    flagged = items["flag_family"].to_numpy(dtype=bool)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.plot(rate[~flagged], items["effect"][~flagged], ".", color=GREY, alpha=0.6, markersize=4)
    for favoured, at in ((reference, 0), (focal, 1)):
        chosen = flagged & (items["favours"] == favoured).to_numpy()
        axes.plot(rate[chosen], items["effect"][chosen], SERIES_MARKERS[at], color=SERIES[at])
    if labelled:
        for index in items[flagged].nsmallest(LABELLED, "p_family").index:
            spot, name = (rate[index], items["effect"][index]), str(items["item"][index])
            offset, side = ((6, 3), "left") if spot[0] < 0.7 else ((-6, 3), "right")
            axes.annotate(name, spot, offset, textcoords="offset points", ha=side)
    size = 1.15 * float(items["effect"].abs().max() or 1.0)
    axes.set(xlim=(0, 1), ylim=(-size, size))
    axes.set_xlabel("share of the models that pass")
    axes.set_ylabel("difference at equal ability (logits)")
    for height, side, level in ((0.98, "top", reference), (0.02, "bottom", focal)):
        axes.text(0.02, height, f"easier for {level}", transform=axes.transAxes, va=side, color=GREY)


def _single(whole: DifResult, part: DifResult) -> Section:
    strongest = _strongest(part)
    first = _item_table(part).iloc[0]
    curve = _curve(
        part,
        first,
        caption=f"{first['item']}, "
        f"{'the clearest flag' if first['flagged_by'] else 'which comes closest to a flag'}: "
        "a curve per group, and the shares observed within ability bands. Without DIF the curves coincide.",
    )
    n_flagged, testable = strongest["item"].nunique(), part.flags["n_testable"].max()
    return Section(
        place="evidence",
        title=heading(whole, part, "DIF under the single score"),
        claim=_flag_claim(part),
        text="\n\n".join([_flag_text(part), *_clearest(whole, part, strongest)]),
        figures=[curve],
        table=_named(strongest, part) if n_flagged else None,
        columns=_named_columns(part),
        formats=_named_formats(part),
        caption="Every flag of any screen over all items together, clearest first.",
        how=_how(part),
        otherwise=f"Differences that stay below what the largest of {testable} testable items "
        "reaches by chance in one simulated audit of twenty."
        if n_flagged
        else f"A difference larger than what the largest of {testable} testable items reaches by "
        "chance in one simulated audit of twenty.",
    )


def _clearest(whole: DifResult, part: DifResult, strongest: pd.DataFrame) -> list[str]:
    """The clearest flag in words, and how to take it."""
    if strongest.empty:
        return []
    said = [
        f"The clearest: {item_sentence(strongest.iloc[0], pair(part))}. The largest of many differences is "
        "partly luck: expect less among other models."
    ]
    if whole.verdict == "not supported":
        said.append(
            "Test 1 says that one score does not describe these responses. Then a difference in a second "
            "ability looks like DIF: these flags are read as DIF or multidimensionality."
        )
    return said


def _strongest(part: DifResult) -> pd.DataFrame:
    flagged = part.items[part.items["flag_family"]].sort_values("p_family", kind="stable")
    columns = ["item", "scope", "screen", "favours", "pass_rate_reference", "pass_rate_focal", "effect", "se"]
    table = flagged[[*columns, "p_family", "p_family_cluster", "reading"]]
    return table.drop(columns=["scope"] if table["scope"].nunique() < 2 else [])


def _group_columns(part: DifResult) -> dict[str, str]:
    """Pass rates by the names of the groups: column of ``dif.csv`` to column on the page."""
    reference, focal = pair(part)
    return {"pass_rate_reference": f"{reference} pass", "pass_rate_focal": f"{focal} pass"}


def _named(table: pd.DataFrame, part: DifResult) -> pd.DataFrame:
    """A table of items for readers: groups and screens by their names."""
    shown = table.rename(columns=_group_columns(part))
    return shown.assign(screen=shown["screen"].map(SCREEN_NAMES)) if "screen" in shown else shown


def _named_columns(part: DifResult) -> dict[str, str]:
    levels = zip(_group_columns(part).values(), pair(part), strict=True)
    return COLUMNS | {name: f"Share of the {level} models that pass." for name, level in levels}


def _named_formats(part: DifResult) -> dict[str, str]:
    return FORMATS | dict.fromkeys(_group_columns(part).values(), ".0%")


def _how(part: DifResult) -> str:
    o = part.options
    matched = "fitted ability" if o.match == "theta" else "number of items passed"
    if not o.n_simulations:
        return f"Chi-square tests within strata of equal {matched}; over all items by Holm's procedure."
    return (
        f"Groups matched on {matched}; each statistic against {o.n_simulations:,} matrices simulated from "
        "the fitted model, in which the group makes no difference."
    )


# Scopes ------------------------------------------------------------------------------------------------


def _scoped(whole: DifResult, part: DifResult) -> list[Section]:
    scoped = with_rows(part, lambda table: table["scope"] != SINGLE)
    if scoped.flags.empty:
        return []
    screens = headline(part.options)
    lost = flags_lost(part, SINGLE)
    lost = lost[lost["screen"].isin(screens) & (lost["single_flags"] > 0)]
    names = list(dict.fromkeys(column_of(scoped.flags["scope"])))
    n_scopes = scoped.flags["scope"].nunique()
    found = scoped.items[scoped.items["screen"].isin(screens) & scoped.items["flag_family"]]
    n = _count(found)
    claim = (
        f"Matched within the {n_scopes} scopes of {' and '.join(names)} instead of over one score, "
        f"{n or 'no'} item{'s' if n > 1 else ''} stand{'s' if n < 2 else ''} out{_among_relatives(found)}."
    )
    text = [
        f"{flag_counts(scoped.flags, screens)}, each scope with a cut-off of its own: of {n_scopes} scopes "
        f"without DIF at least one flags something in {1 - (1 - LEVEL) ** n_scopes:.0%} of audits.",
        *(_lost_sentence(row) for _, row in lost.iterrows()),
    ]
    text.append(
        "Matching within a scope estimates ability from the scope's own items, so it can absorb real "
        "differences between the groups in that scope: flags that go are consistent with an aggregation "
        "effect but do not show that the groups are alike."
    )
    strongest = _strongest(scoped)
    figure = draw(
        partial(_paint_scopes, flags=part.flags, screens=screens),
        alt=claim,
        caption="Items flagged over all items of a scope together. Each scope has an ability of its own.",
        height=1.1 + 0.32 * part.flags["scope"].nunique(),
    )
    return [
        Section(
            place="evidence",
            title=heading(whole, part, "DIF under scoped scores"),
            claim=claim,
            text="\n\n".join(text),
            figures=[figure],
            table=_named(strongest, part) if len(strongest) else None,
            columns=_named_columns(part),
            formats=_named_formats(part),
            caption="Every flag of any screen within a scope.",
            how=f"As under the single score, with one ability for each level of {' and '.join(names)}.",
            otherwise="Other differences on single items once each scope has an ability of its own.",
        )
    ]


def _lost_sentence(row: pd.Series) -> str:
    n, kept, gained = row["single_flags"], row["kept"], row["gained"]
    name = SCREEN_NAMES[row["screen"]]
    return (
        f"{name[0].upper()}{name[1:]}: of {n} flag{'s' if n > 1 else ''} under the single score {kept} "
        f"stay{'s' if kept == 1 else ''} and {row['lost']} go{'es' if row['lost'] == 1 else ''} when models "
        f"are matched within {row['scopes']}; {gained} {'is' if gained == 1 else 'are'} new."
    )


def _paint_scopes(axes: Axes, flags: pd.DataFrame, screens: list[str]) -> None:
    names = list(flags["scope"].unique())
    columns = {name.partition(":")[0] for name in names if ":" in name}
    shown = [name.partition(":")[2] or name if len(columns) == 1 else name for name in names]
    for at, screen in enumerate(screens):
        counts = flags[flags["screen"] == screen].set_index("scope")["family_flags"].reindex(names)
        places = np.arange(len(names)) + 0.22 * (at - (len(screens) - 1) / 2)
        axes.hlines(places, 0, counts, color=SERIES[at], linewidth=2)
        axes.plot(counts, places, SERIES_MARKERS[at], color=SERIES[at], label=SCREEN_NAMES[screen])
    most = max(float(flags["family_flags"].max()), 1.0)
    axes.set(yticks=range(len(names)), yticklabels=[_short(name) for name in shown])
    axes.set_xlim(-0.03 * most, 1.1 * most)
    axes.invert_yaxis()
    axes.set_xlabel("flagged items")
    axes.set_xticks(range(0, int(most) + 1, max(1, int(most) // 5)))
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), fontsize=8)


# Relatives ---------------------------------------------------------------------------------------------


def _families(whole: DifResult, part: DifResult) -> list[Section]:
    shown = single_scope(part) or part
    family = shown.families.iloc[0] if len(shown.families) else None
    if family is None or np.isnan(family["sd"]):
        return []
    flags = shown.flags[shown.flags["screen"].isin(headline(part.options))]
    screen = str(flags.set_index("screen")["family_flags"].idxmax())
    cut = flags[flags["screen"] == screen].iloc[0]
    plain, kept = int(flags["family_flags"].sum()), int(flags["family_cluster_flags"].sum())
    claim = (
        f"Models of one {family['cluster']} resemble each other on single items: they move together with an "
        f"SD of {family['sd']:.2f} logits. {_kept_sentence(plain, kept)}"
    )
    items = shown.items[(shown.items["screen"] == screen) & shown.items["testable"]]
    return [
        Section(
            place="evidence",
            title=heading(whole, part, "Family resemblance"),
            claim=claim,
            text="Models of one family share base models, data or scaffolds, so what one of them does on an "
            "item, others do as well: they are not independent witnesses. A flag that goes here is not "
            "distinguishable from family resemblance.",
            figures=[
                draw(
                    partial(_paint_cutoffs, items=items.nlargest(STRONGEST, "statistic"), cut=cut),
                    alt=claim,
                    caption=f"The largest differences by {SCREEN_NAMES[screen]}. A dot is flagged when it "
                    "lies right of the dashed line; right of the solid line it is, even among relatives.",
                    height=2.9,
                )
            ],
            how=f"Column {family['cluster']}: {family['n_related']} models in {family['n_families']} "
            "families of two or more. The SD comes from products of residuals of relatives; the "
            "cluster-aware null draws a normal shift for each family and item.",
            otherwise="Relatives that are more alike, beyond what their abilities tell."
            if kept
            else "Groups further apart on an item than relatives alone would take them.",
        )
    ]


def _kept_sentence(plain: int, kept: int) -> str:
    if not plain:
        return "There is no flag that this could explain."
    flags = f"{kept} of {plain} flag{'s' if plain > 1 else ''}"
    return f"Allowing for that, {flags} remain{'s' if kept == 1 else ''}."


def _paint_cutoffs(axes: Axes, items: pd.DataFrame, cut: pd.Series) -> None:
    places = np.arange(len(items))
    axes.hlines(places, 0, items["statistic"], color=GREY, linewidth=1)
    axes.plot(items["statistic"], places, "o", color=SERIES[0])
    for name, dashes in (("family_cutoff", (4, 2.5)), ("family_cluster_cutoff", (None, None))):
        axes.axvline(cut[name], color="black", linewidth=1, dashes=dashes)
    axes.set(yticks=places, yticklabels=[_short(str(name)) for name in items["item"]], xlim=(0, None))
    axes.invert_yaxis()
    axes.set_xlabel("size of the difference")


def _short(name: str, length: int = 22) -> str:
    return name if len(name) <= length else "…" + name[1 - length :]


# What could have been seen -----------------------------------------------------------------------------


def _power(whole: DifResult, part: DifResult) -> list[Section]:
    shown = single_scope(part) or part
    scope = shown.flags["scope"].iloc[0]
    power = shown.power[shown.power["scope"] == scope]
    if power.empty:
        return []
    screens = headline(part.options)
    flags = shown.flags[shown.flags["scope"] == scope].set_index("screen")
    sizes = flags.iloc[0]
    claim = (
        f"With {sizes['n_reference']} against {sizes['n_focal']} models, {_needed(flags, screens)} to be "
        "flagged with a chance of 80 %."
    )
    return [
        Section(
            place="evidence",
            title=heading(whole, part, "What could have been seen"),
            claim=claim,
            text="A shift of one logit multiplies the odds of passing by 2.7, one of five logits by 150. "
            f"What testers of people call a large difference is {LARGE:.2f} logits. An item that is not "
            "flagged may still be shifted by less than this.",
            figures=[
                draw(
                    partial(_paint_power, power=power),
                    alt=claim,
                    caption="Chance that a shift of one item is flagged over all items together, on average "
                    "over items; dashed: 80 %. Very easy and very hard items fare worse than this, middling "
                    "ones better.",
                    height=3.2,
                )
            ],
            table=power.pivot(index="shift", columns="screen", values="power")[
                list(flags.index)
            ].reset_index(),
            columns=COLUMNS | {screen: f"Power of the {name}." for screen, name in SCREEN_NAMES.items()},
            formats={**FORMATS, **dict.fromkeys(SCREENS, ".2f"), "shift": ".1f"},
            caption="Power by size of the shift, for every screen.",
            how=f"{part.options.n_power} simulated matrices per shift, at the cut-offs of this audit, "
            "abilities and groups as they are; the groups' logits move apart by the shift.",
            otherwise="Larger groups see smaller shifts, and so does a search over fewer items.",
        )
    ]


def _needed(flags: pd.DataFrame, screens: list[str]) -> str:
    parts = []
    for screen in screens:
        shift = flags["smallest_shift"][screen]
        reach = f"more than {SHIFTS[-1]:g} logits" if np.isnan(shift) else f"{shift:.1f} logits"
        parts.append(f"{reach} ({SCREEN_NAMES[screen]})")
    return f"an item must be shifted by {' or '.join(parts)}"


def _paint_power(axes: Axes, power: pd.DataFrame) -> None:
    power = power[power["screen"] != "logistic_nonuniform"]  # it looks for another kind of DIF
    for at, (screen, curve) in enumerate(power.groupby("screen", sort=False)):
        x, y = [0.0, *curve["shift"]], [0.0, *curve["power"]]
        axes.plot(
            x, y, marker=SERIES_MARKERS[at], markersize=3.5, color=SERIES[at], label=SCREEN_NAMES[str(screen)]
        )
    axes.axhline(TARGET, color="black", linewidth=0.8, dashes=(4, 2.5))
    axes.set(ylim=(0, 1), xlim=(0, None), yticks=[0, 0.5, TARGET, 1])
    axes.set_xlabel("shift of the item (logits)")
    axes.set_ylabel("chance of a flag")
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1))


# The negative control ----------------------------------------------------------------------------------


def _control(whole: DifResult, part: DifResult) -> list[Section]:
    shown = single_scope(part) or part
    scope = shown.flags["scope"].iloc[0]
    if shown.control.empty:
        return []
    flags = shown.flags[shown.flags["scope"] == scope].set_index("screen")
    first = headline(part.options)[0]
    row = flags.loc[first]
    n = int(shown.control["draw"].nunique())
    claim = (
        f"{row['item_flags']} items stand out for themselves between the real groups; between random groups "
        f"of the same models it is {row['control_item_flags']:.0f} (95 % of {n} deals: "
        f"{row['control_item_flags_low']:.0f} to {row['control_item_flags_high']:.0f}), by "
        f"{SCREEN_NAMES[first]}."
    )
    outside = not row["control_item_flags_low"] <= row["item_flags"] <= row["control_item_flags_high"]
    return [
        Section(
            place="evidence",
            title=heading(whole, part, "Random groups"),
            claim=claim,
            text="This is the negative control: the same models, dealt at random into groups of the same "
            "sizes, where there is nothing to find. One item in twenty stands out for itself by chance. More "
            "between the real groups mean that the groups differ on items, even where no single item can be "
            "named with confidence; that may be family resemblance, which dealing at random takes apart.",
            figures=[
                draw(
                    partial(_paint_control, flags=flags),
                    alt=claim,
                    caption="Line: 95 % of random deals, with their median; filled mark: the real groups.",
                    height=0.9 + 0.3 * len(flags),
                )
            ],
            table=flags.rename(index=SCREEN_NAMES)[
                [
                    *("item_flags", "control_item_flags"),
                    *("control_item_flags_low", "control_item_flags_high"),
                    *("family_flags", "control_family_rate"),
                ]
            ].reset_index(),
            columns=COLUMNS,
            formats=FORMATS,
            caption="Flags in the real groups and in random ones.",
            how=f"The compared models dealt {n} times into groups of the same sizes, each deal with a null "
            "of its own.",
            otherwise="Real groups that differ on no more items than random ones do."
            if outside
            else "Real groups that differ on more items than random ones do.",
        )
    ]


def _paint_control(axes: Axes, flags: pd.DataFrame) -> None:
    places = np.arange(len(flags))
    axes.hlines(
        places,
        flags["control_item_flags_low"],
        flags["control_item_flags_high"],
        color=GREY,
        linewidth=3,
        alpha=0.7,
    )
    axes.plot(flags["control_item_flags"], places, "|", color="black", markersize=9)
    axes.plot(flags["item_flags"], places, "D", color=SERIES[1])
    most = float(flags[["item_flags", "control_item_flags_high"]].to_numpy().max())
    axes.set(yticks=places, yticklabels=[SCREEN_NAMES[str(name)] for name in flags.index])
    axes.set_xlim(0, 1.1 * most + 1)
    axes.set_ylim(len(flags) - 0.4, -0.6)
    axes.set_xlabel("items flagged for themselves")


# Look for yourself -------------------------------------------------------------------------------------


def _items(whole: DifResult, part: DifResult) -> Section:
    shown = single_scope(part) or part
    table = _item_table(shown)
    reference, focal = pair(part)
    folds = [_fold(shown, row) for _, row in table.head(MAX_FOLDS).iterrows()]
    return Section(
        place="explore",
        title=heading(whole, part, "Items by group"),
        claim=f"Every item, {reference} against {focal}: flagged ones first, then by p-value.",
        table=_named(table.drop(columns=[] if table["scope"].nunique() > 1 else ["scope"]), part),
        columns=_named_columns(part)
        | {
            "p_family": "Smallest family-wise p of any screen.",
            "flagged_by": "Screens that flag the item over all items together.",
        },
        formats=_named_formats(part),
        caption=f"Effect and p by {SCREEN_NAMES[headline(part.options)[-1]]}; the first {len(folds)} items "
        "have curves below. All screens and columns are in dif.csv.",
        file="dif_items.csv",
        folds=folds,
        folds_title="Item curves by group",
    )


def _item_table(part: DifResult) -> pd.DataFrame:
    """One row per item and scope: flagged first, then by p-value."""
    items, keys = part.items, ["item", "scope"]
    table = items[items["screen"] == headline(part.options)[-1]].set_index(keys)
    table = table[["pass_rate_reference", "pass_rate_focal", "favours", "effect", "p"]]
    flagged = items[items["flag_family"]].groupby(keys)
    table = table.assign(
        p_family=items.groupby(keys)["p_family"].min(),
        flagged_by=flagged["screen"].agg(lambda names: ", ".join(SCREEN_NAMES[name] for name in names)),
        reading=flagged["reading"].agg(lambda words: "; ".join(dict.fromkeys(words))),
    )
    table[["flagged_by", "reading"]] = table[["flagged_by", "reading"]].astype(object).fillna("")
    order = table.assign(unflagged=table["flagged_by"] == "").sort_values(["unflagged", "p_family", "p"])
    return table.loc[order.index].reset_index()


def _fold(part: DifResult, row: pd.Series) -> Fold:
    figure = _curve(
        part,
        row,
        caption="Curves: logistic regression on ability, one per group. Points: observed shares within "
        "ability "
        "bands. Without DIF the curves coincide.",
    )
    return Fold(title=str(row["item"]), figures=[figure])


def _curve(part: DifResult, row: pd.Series, caption: str) -> Figure:
    """Chance of passing an item by ability, one curve per group, with the shares observed in each band."""
    curve, bands = (
        table[(table["scope"] == row["scope"]) & (table["item"] == row["item"])]
        for table in (part.curves, part.bands[part.bands["responses"] > 0])
    )
    fitted, (reference, focal) = curve.iloc[0], pair(part)
    low, high = bands["ability"].min(), bands["ability"].max()
    margin = 0.15 * (high - low) or 1.0
    x = np.linspace(np.floor(low - margin), np.ceil(high + margin), 61)
    logits = fitted["intercept"] + fitted["slope"] * (x - fitted["centre"]) / fitted["scale"]
    sides = {reference: 0.5, focal: -0.5}
    by_role = dict(iter(bands.groupby("role")))
    points = {
        level: (by_role[role]["ability"], by_role[role]["passes"] / by_role[role]["responses"])
        for level, role in ((reference, "reference"), (focal, "focal"))
        if role in by_role
    }
    return small_curves(
        x,
        {level: expit(logits + side * fitted["group"]) for level, side in sides.items()},
        points=points,
        alt=f"Chance of passing {row['item']} by ability, {reference} and {focal} models.",
        caption=caption,
        xlabel="ability (theta)" if part.options.match == "theta" else "items passed",
        ylabel="chance of passing",
    )


# What this does not show, and how it was done ----------------------------------------------------------


def _limits(result: DifResult) -> list[Section]:
    said = [
        *_size_limits(result),
        *_overlap_limits(result),
        *_several_limits(result),
        *_family_limits(result),
        *_dimension_limits(result),
        *_item_limits(result),
    ]
    said.append(
        (
            "DIF is about items, not about who is better.",
            "A flag says that an item measures something besides ability; it does not say what, nor which "
            "group deserves it. Groups chosen by developer differ in many other ways as well.",
        )
    )
    return [Section(place="limit", claim=claim, text=text) for claim, text in said]


def _size_limits(result: DifResult) -> list[tuple[str, str]]:
    said = []
    sizes = result.groups.drop_duplicates(["comparison", "role"])
    small = sizes[sizes["n_models"] < SMALL_GROUP]
    if len(small):
        names = ", ".join(f"{row['level']} ({row['n_models']})" for _, row in small.iterrows())
        said.append(
            (
                f"Groups are small: {names}.",
                f"With fewer than {SMALL_GROUP} models in a group one model more or less can make or unmake "
                "a flag.",
            )
        )
    shift = best_shift(result)
    if len(result.power) and not shift <= LARGE:
        found = f"not even a shift of {SHIFTS[-1]:g}" if np.isnan(shift) else f"only a shift of {shift:.1f}"
        said.append(
            (
                "No flag does not mean no DIF.",
                f"With a power of 80 %, {found} logits would have been flagged on an average item; testers "
                f"of people call {LARGE:.2f} logits large.",
            )
        )
    return said


def _overlap_limits(result: DifResult) -> list[tuple[str, str]]:
    """Ability bands in which one group stands alone."""
    said = []
    for part in comparisons(result):
        bands = (single_scope(part) or part).bands
        held = bands.groupby(["scope", "band", "role"])["responses"].max().unstack("role").fillna(0) > 0
        alone = int((~held.all(axis=1)).sum())
        if alone and result.options.bands != "score":
            said.append(
                (
                    f"In {alone} of {len(held)} ability bands {' or '.join(pair(part))} models stand alone.",
                    "There is no equally able model of the other group: Mantel-Haenszel compares nothing, "
                    "and the other screens trust the item response model.",
                )
            )
    return said


def _several_limits(result: DifResult) -> list[tuple[str, str]]:
    n = result.flags["comparison"].nunique()
    if n < 2:
        return []
    return [
        (
            f"{n} comparisons are more chances for a false flag than one.",
            f"Each has a cut-off of its own: without DIF at least one of {n} independent ones flags "
            f"something in {1 - (1 - LEVEL) ** n:.0%} of audits.",
        )
    ]


def _family_limits(result: DifResult) -> list[tuple[str, str]]:
    if not result.options.n_simulations:
        return [("Relatives count as independent models.", result.notes[0])]
    families = result.families
    if families.empty or families["sd"].isna().all():
        return [
            (
                "Relatives count as independent models.",
                "No family has two models, so how alike relatives are cannot be estimated; name a column "
                "of families.",
            )
        ]
    own = families[families["cluster"] == column_of(families["comparison"])]
    if own.empty:
        return []
    return [
        (
            "Each group stands for one family.",
            f"No column of families was named, so {own['cluster'].iloc[0]} is taken for one: an item stays "
            "flagged only if its groups are further apart than groups of this kind usually are on an item. "
            "A column that names base models or scaffolds would tell resemblance from DIF better.",
        )
    ]


def _dimension_limits(result: DifResult) -> list[tuple[str, str]]:
    if result.verdict is not None or SINGLE not in set(result.flags["scope"]):
        return []
    return [
        (
            "A second ability can look like DIF.",
            "Whether one score describes these responses was not tested here (irtaudit audit does): where "
            "it does not, groups that differ in a second ability are flagged without any DIF.",
        )
    ]


def _item_limits(result: DifResult) -> list[tuple[str, str]]:
    items = decisive(result).items
    reasons = items[~items["testable"]].drop_duplicates(["comparison", "scope", "item"])
    if reasons.empty:
        return []
    counts = ", ".join(f"{reason} ({n})" for reason, n in reasons["reason"].value_counts().items())
    return [
        (
            f"{len(reasons)} items are not testable.",
            f"Not testable is not the same as free of DIF. Reasons: {counts}.",
        )
    ]


def _flag_table(result: DifResult) -> Section:
    return Section(
        place="explore",
        title="Flags by screen",
        claim="Every comparison, scope and screen: how many items are flagged, by which rule.",
        table=result.flags,
        columns=COLUMNS,
        formats=FORMATS,
        caption="Item flags are expected by chance on one item in twenty; the headline is family flags.",
        file="dif_flags.csv",
    )


def _method(result: DifResult) -> Section:
    o = result.options
    bands = "every score its own stratum" if o.bands == "score" else f"{o.bands} bands of equally many models"
    null = (
        f"{o.n_simulations:,} matrices from the fitted model of the scope, groups fixed, "
        f"abilities {'estimated anew in each' if o.rematch else 'fixed'}; level {LEVEL}"
        if o.n_simulations
        else "none; classical tests"
    )
    return Section(
        place="method",
        title="How groups were compared",
        claim="Each item is screened for itself; what counts as a flag comes from matrices without DIF.",
        text="\n\n".join(result.notes),
        facts={
            "Comparisons": groups_in_words(result),
            "Matching": f"{o.match}{', purified' if o.purify else ''}; Mantel-Haenszel within {bands}",
            "Screens": ", ".join(SCREEN_NAMES[name] for name in o.screens),
            "Logistic penalty": f"{o.penalty:g} on ability and group, times the square of the coefficient "
            "over 2",
            "Null": null,
            "Families": ", ".join(result.families["cluster"].unique()) or "none",
            "Random groups": f"{o.n_control} deals",
            "Power": f"{o.n_power} matrices per shift",
            "Seed": str(o.seed),
        },
    )
