"""The evidence of a panel audit, a card each: a claim with its number, a figure, how and what otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.panel import pictures
from irtaudit.panel.associations import estimand_labels
from irtaudit.panel.audit import PanelAudit
from irtaudit.panel.estimands import Association, label, models
from irtaudit.panel.metrics import items_of, shares
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.subsets import chance
from irtaudit.panel.words import (
    COLUMNS,
    FORMATS,
    excluding_zero,
    joined,
    metric_name,
    p_text,
    percent,
    records,
    rho_text,
    span,
)
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import draw
from irtaudit.report.section import Figure, Fold, Section
from irtaudit.stats.proportions import wilson

NAME_COLUMNS = ("x", "y", "column", "benchmark", "of", "first", "second")
MAX_ROWS = 12
"""Rows of a figure as wide as a card; the table has them all."""
SHARED = {
    "nested": "One panel is part of the other; a model in both is drawn for both at once.",
    "overlapping": "The panels share models; one in both is drawn for both at once.",
    "independent": "The panels share no model.",
}
CORRELATION_LABEL = "Spearman correlation, 95 % interval"


def evidence(result: PanelAudit) -> list[Section]:
    """The cards in reading order; a part that the panel cannot answer has none."""
    return [
        *_licences(result),
        *_metrics(result),
        *_redundancy(result),
        *_criteria(result),
        *_structure(result),
        *_small_panels(result),
        *_contrasts(result),
        *_robustness(result),
        *_second_panel(result),
        *_inside(result),
        *_organizations(result),
        *_reliability(result),
    ]


def named(result: PanelAudit, table: pd.DataFrame) -> pd.DataFrame:
    """The table as the page shows it: columns by their labels, nothing twice."""
    known = {name: result.panel.label(name) for name in result.data.columns.index}
    return table.assign(**{c: table[c].replace(known) for c in NAME_COLUMNS if c in table})


def card(result: PanelAudit, *, table: pd.DataFrame | None = None, **parts: Any) -> Section:
    """A section at "evidence" whose table is explained and formatted as in the whole audit."""
    formats = {**FORMATS, **parts.pop("formats", {})}
    shown = None if table is None or table.empty else named(result, table)
    return Section(place="evidence", table=shown, columns=COLUMNS, formats=formats, **parts)


def narrow(figure: Figure) -> Figure:
    """The figure as it is laid out for a phone, which is how wide a card is."""
    return replace(figure, svg=figure.narrow_svg, narrow_svg="")


def pair_names(result: PanelAudit, table: pd.DataFrame) -> list[str]:
    """Names of the pairs in columns ``x, y, given`` for figures and sentences."""
    names = estimand_labels(result.panel, table)
    return [name.removesuffix(f" | {CAPABILITY}").replace(" ~ ", " – ") for name in names]


def intervals(
    names: Sequence[str], table: pd.DataFrame, value: str, xlabel: str, alt: str, caption: str, **more: Any
) -> Figure:
    """Dots with 95 % intervals, as wide as a card; a line at 0 unless others are asked for."""
    columns = table[value], table["low"], table["high"]
    lines = more.pop("lines", {"no relation": 0.0})
    figure = dot_interval_figure(
        list(names),
        *columns,
        lines=lines,
        value_format="+.2f",
        xlabel=xlabel,
        alt=alt,
        caption=caption,
        **more,
    )
    return narrow(figure)


# What each score licenses -----------------------------------------------------------------------------


def _licences(result: PanelAudit) -> list[Section]:
    """A card for each benchmark; one about whose order nothing can be said is a limit."""
    return [_licence(result, row) for row in records(result.verdict.benchmarks)]


def _licence(result: PanelAudit, row: dict[str, Any]) -> Section:
    name, claim = row["benchmark"], row["headline"]
    title, text = (
        f"What {result.data.label(name)} licenses one to say",
        "\n\n".join(result.verdict.details[name]),
    )
    table = result.associations
    raw = (table["given"] == "") & (table["kind"] != "anchors")
    mine = table[raw & ((table["x"] == name) | (table["y"] == name))]
    if mine.empty:
        return Section(place="limit", title=title, claim=claim, text=text)
    threshold = result.plan.thresholds.interchangeable
    partners = [result.panel.label(p) for p in mine["x"].where(mine["x"] != name, mine["y"])]
    figure = intervals(
        partners,
        widened(result, mine),
        "rho",
        CORRELATION_LABEL,
        claim,
        f"How {result.panel.label(name)} goes with capability and with every other score. Lines: "
        f"{over_what(result)}.",
        lines={"unrelated": 0.0, f"interchangeable: {threshold:.2f}": threshold},
        notes=sizes(partners, mine),
    )
    return card(
        result,
        title=title,
        claim=claim,
        text=text,
        figures=[figure],
        how=f"Two scores are interchangeable from a rank correlation of {threshold:.2f}; intervals over "
        "models, and over organizations where these are known, must both lie on one side of it.",
        otherwise="Intervals on the other side of the threshold.",
    )


def widened(result: PanelAudit, table: pd.DataFrame) -> pd.DataFrame:
    """Associations whose ``low, high`` span both intervals, over models and over organizations."""
    own, names = table[["low", "high"]], estimand_labels(result.panel, table)
    clusters = result.clusters.set_index("estimand")[["low", "high"]].reindex(names).set_axis(own.index)
    low, high = (pd.concat([own[end], clusters[end].astype(float)], axis=1) for end in ("low", "high"))
    return table.assign(low=low.min(axis=1), high=high.max(axis=1))


def over_what(result: PanelAudit) -> str:
    """Whose sampling the lines of such a figure show."""
    if result.clusters.empty:
        return "95 % interval over models"
    return "95 % intervals over models and over organizations, both together"


def sizes(names: Sequence[str], table: pd.DataFrame) -> dict[str, str]:
    """Notes for a figure: the n of each row."""
    return {name: f"n = {n}" for name, n in zip(names, table["n"], strict=True)}


# Metric validity --------------------------------------------------------------------------------------


def _metrics(result: PanelAudit) -> list[Section]:
    against = result.metrics.against
    if against.empty:
        return []
    drawn = [(name, one) for name in result.panel.of("benchmark") for one in _metric_figure(result, name)]
    return [
        card(
            result,
            title="Against a policy that never looks",
            claim=_metric_claim(result),
            text="\n\n".join(_recovered(result)),
            figures=[figure for _, figure in drawn[:1]],
            folds=[Fold(title=result.panel.label(name), figures=[figure]) for name, figure in drawn[1:]],
            folds_title="Bars of the other benchmarks",
            how="What a constant policy scores follows from the share of positives in closed form; where "
            "confusion counts are known, the difference has a bootstrap interval over items.",
            otherwise="A metric that credits right answers on both classes, such as balanced accuracy, on "
            "which no constant policy exceeds 50 %.",
            table=against,
            formats=dict.fromkeys(("score", "constant", "difference", "low", "high"), ".3f"),
            caption="Every model against the best constant policy.",
            file="against_constant.csv",
        )
    ]


def _metric_claim(result: PanelAudit) -> str:
    """Which benchmarks' own scores a constant policy reaches, and how many models do better elsewhere."""
    against = result.metrics.against
    own = against.drop_duplicates(["column", "model"])
    ahead = (own["beats"] == "yes").groupby(own["column"], sort=False).agg(["sum", "size"])
    beaten = [result.panel.label(str(name)) for name in ahead.index[ahead["sum"] == 0]]
    said = [f"on {joined(beaten)} a policy that never looks scores as high as any model"] if beaten else []
    said += [
        f"on {result.panel.label(str(name))} {row['sum']} of {models(row['size'])} "
        f"{'is' if row['sum'] == 1 else 'are'} shown to do better than a policy that never looks"
        for name, row in ahead[ahead["sum"] > 0].iterrows()
    ]
    text = "; ".join(said) + "."
    return text[:1].upper() + text[1:]


def _recovered(result: PanelAudit) -> list[str]:
    counts, against = result.metrics.counts, result.metrics.against
    said = []
    for row in records(counts[counts["origin"] != "given"])[:3]:
        mine = against[(against["column"] == row["column"]) & (against["model"] == row["model"])]
        f1, balanced = (mine[mine["metric"] == m].iloc[0] for m in ("f1", "balanced_accuracy"))
        said.append(
            f"The published F1 and specificity of {row['model']} fit one set of counts only: "
            f"{row['tp']} of {row['tp'] + row['fn']} positives found, {row['fp']} of "
            f"{row['fp'] + row['tn']} negatives flagged. Its F1 of {f1['score']:.3f} exceeds the constant "
            f"policy's {f1['constant']:.3f} by {f1['difference']:.3f} (95 % interval "
            f"{span(f1['low'], f1['high'])}); its balanced accuracy is {balanced['score']:.3f}."
        )
    return said


def _metric_figure(result: PanelAudit, name: str) -> list[Figure]:
    described, scores = result.plan.columns[name], shares(result.panel, name)
    rows = result.metrics.against
    rows = rows[(rows["column"] == name) & (rows["metric"] == described.metric)]
    if rows.empty or scores is None:
        return []
    constant, policy = float(rows["constant"].median()), str(rows["policy"].iloc[0])
    items = items_of(result.panel, described).reindex(scores.index)
    limits = None
    if described.metric in ("recall", "specificity", "accuracy") and items.notna().all():
        low, high = wilson(scores * items, items)
        limits = pd.DataFrame({"low": low, "high": high}, index=scores.index)
    title, metric = result.panel.label(name), metric_name(str(described.metric))
    beaten = int((scores > constant).sum())
    return [
        draw(
            pictures.bars(scores, constant, policy, f"{pictures.short(title)} ({metric})", limits),
            alt=f"{beaten} of {len(scores)} models score above {constant:.2f}, the score of a policy that "
            "never looks.",
            caption=f"{title}. Dashed: {policy}. Grey bars do not exceed it"
            + ("; lines are 95 % intervals over items." if limits is not None else "."),
            height=0.9 + 0.17 * len(scores),
        )
    ]


# Between scores ---------------------------------------------------------------------------------------


def _redundancy(result: PanelAudit) -> list[Section]:
    rows = result.associations[result.associations["kind"] == "between"]
    headline = result.redundancy
    if rows.empty or not np.isfinite(headline.raw):
        return []
    claim = f"Benchmarks of distinct constructs correlate at {headline.raw:.2f} in size (median)"
    if np.isfinite(headline.given_capability):
        claim += f", and at {headline.given_capability:.2f} once capability is held constant"
    claim += f"; {headline.n_pairs} pair{'s' if headline.n_pairs != 1 else ''}."
    ways = ["rank_pearson", "rank_spearman", "value_pearson", "value_spearman"]
    signs = result.conventions[ways].round(9).map(np.sign)
    differing = pair_names(result, result.conventions[signs.nunique(axis=1) > 1])
    names = [name.replace(" – ", " and ") for name in differing]
    text = (
        "“Partial rank correlation” is computed in four ways, and for "
        f"{joined(names)} they differ even in sign. The primary one correlates what capability leaves of the "
        "ranks; all four stand in a table below."
        if names
        else ""
    )
    return [
        card(
            result,
            title="Are benchmarks redundant?",
            claim=claim,
            text=text,
            figures=[
                intervals(
                    pair_names(result, rows),
                    rows,
                    "rho",
                    "Spearman correlation, 95 % interval",
                    claim,
                    "Pairs of benchmarks, and what is left of their agreement once capability is held "
                    "constant.",
                    groups=["capability held constant" if g else "as they are" for g in rows["given"]],
                )
            ],
            how="Spearman correlations; given capability, Pearson correlations of rank residuals with n − 3 "
            f"degrees of freedom; p corrected over the family ({result.plan.multiplicity.method}).",
            otherwise="A high median that falls once capability is held constant: benchmarks that agree "
            "because they all measure capability.",
            table=rows,
            caption="Pairs of benchmarks, raw and given capability.",
            file="between.csv",
        )
    ]


def _criteria(result: PanelAudit) -> list[Section]:
    rows = result.associations
    rows = rows[(rows["kind"] == "criterion") & (rows["given"] == CAPABILITY)]
    if rows.empty:
        return []
    best = rows.loc[[rows["rho"].abs().idxmax()]]
    (top,) = records(best)
    found = excluding_zero(rows[rows["p_adjusted"] < 0.05])
    claim = (
        f"{len(found)} of {len(rows)} scores say something about a held-out outcome beyond capability; the "
        f"strongest is {result.panel.label(top['x'])} for {result.panel.label(top['y'])} (partial rho "
        f"{rho_text(top['rho'])}, 95 % interval {span(top['low'], top['high'])}, n = {top['n']})."
    )
    return [
        card(
            result,
            title="Held-out outcomes",
            claim=claim,
            figures=[
                intervals(
                    [f"{result.panel.label(r['x'])}, n = {r['n']}" for r in records(rows)],
                    rows,
                    "rho",
                    "Partial Spearman correlation given capability, 95 % interval",
                    claim,
                    "Does a score say something about the outcome that capability does not?",
                    groups=[result.panel.label(y) for y in rows["y"]],
                )
            ],
            how="Partial Spearman correlation of each benchmark with each criterion given capability; p "
            f"corrected over the family ({result.plan.multiplicity.method}).",
            otherwise="Intervals that exclude zero after correction.",
            table=rows,
            caption="Every benchmark with every held-out outcome, capability held constant.",
            file="criteria.csv",
        )
    ]


# Structure --------------------------------------------------------------------------------------------


def _structure(result: PanelAudit) -> list[Section]:
    found = result.structure
    if not found.n:
        return []
    names = [result.panel.label(name) for name in found.loadings["column"]]
    loads = [f"{n} {rho_text(v)}" for n, v in zip(names, found.loadings["pearson"], strict=True)]
    eigenvalue, chance_level = (float(found.eigenvalues[c].iloc[0]) for c in ("eigenvalue", "null_q95"))
    may = "may" if result.decision.readable else "may not"
    return [
        card(
            result,
            title="One factor behind the scores?",
            claim=f"By the plan's rule the factor structure {may} be read: {result.decision.why}.",
            text=f"{_retained(result)}{_against_anchors(result)}",
            figures=[
                draw(
                    pictures.scree(found.eigenvalues),
                    alt=f"The first eigenvalue is {eigenvalue:.2f}; chance reaches {chance_level:.2f}.",
                    caption="Components above the grey band carry more than unrelated columns would; its "
                    "lower edge is the mean of chance.",
                ),
                draw(
                    pictures.loadings(found.loadings, names, result.plan.thresholds.loading),
                    alt=f"Loadings on the first component: {', '.join(loads)}.",
                    caption="How each column goes with the first component. Dashed: what anchors must reach.",
                    height=1.1 + 0.4 * len(names),
                ),
            ],
            how=f"Principal components of the {found.n} models with every column; "
            f"{result.plan.resampling.horn:,} null matrices, retained until the first failure; three "
            "controls.",
            otherwise="A smaller first component without a drop in redundancy, or a failed control."
            if result.decision.readable
            else "A first component or a drop as large as the rule asks, with both controls passed.",
            table=result.controls,
            caption="The three controls.",
            file="controls.csv",
        )
    ]


def _retained(result: PanelAudit) -> str:
    said = [
        f"{matrix} {one['mean']} by the mean of chance and {one['q95']} by its 95 %"
        for matrix, one in result.structure.retained.items()
    ]
    share = percent(result.structure.share("Spearman"))
    return (
        f"Components that parallel analysis retains: {'; '.join(said)}. On ranks the first component carries "
        f"{share} of the variance."
    )


def _against_anchors(result: PanelAudit) -> str:
    table = result.structure.loadings
    against = table[(table["pearson"] < 0) & (table["role"] == "benchmark")]
    return "".join(
        f" {result.panel.label(row['column'])} points the other way than the anchors "
        f"({rho_text(row['pearson'])}), in {row['sign_kept']} of {row['left_out_models']} fits without one "
        "model."
        for row in records(against)
    )


def _small_panels(result: PanelAudit) -> list[Section]:
    table = result.small.table
    if table.empty:
        return []
    nearest = records(table[table["rho"].abs() == table["rho"].abs().min()])
    row = nearest[(len(nearest) - 1) // 2]
    pair = label(result.panel, Association(row["x"], row["y"])).replace(" ~ ", " and ")
    which = f"all {row['subsets']:,}" if row["complete"] else f"{row['subsets']:,} random"
    claim = (
        f"Of {which} panels of {row['size']} of these models, {percent(row['share'])} show a correlation of "
        f"±{row['threshold']:.1f} or stronger between {pair}, which correlate at {rho_text(row['rho'])} over "
        f"all {row['n']}; unrelated scores would in {percent(row['null_share'])}."
    )
    rho, null = result.small.draws[row["x"], row["y"], row["size"]], chance(result.plan, row["size"]).rho
    return [
        card(
            result,
            title="What a small panel would have shown",
            claim=claim,
            figures=[
                draw(
                    pictures.subset_histogram(rho, null, row["rho"], row["threshold"], row["size"]),
                    alt=claim,
                    caption=f"Bars: panels of {row['size']} models, orange where they reach "
                    f"±{row['threshold']:.1f}. Outline: unrelated scores. A strong correlation in a panel "
                    "this small says little.",
                )
            ],
            how=f"Subsets of the models ({which}); chance: {row['null_method']}, no ties.",
            otherwise="Small panels that scatter closely around the value of all models.",
            table=table,
            caption="Subsets of every size, for every pair of benchmarks.",
            file="small_panels.csv",
        )
    ]


# Differences and robustness ---------------------------------------------------------------------------


def _contrasts(result: PanelAudit) -> list[Section]:
    table = result.contrasts
    if table.empty:
        return []
    (row,) = records(table.loc[[table["p"].idxmin()]])
    of, first, second = (result.panel.label(row[part]) for part in ("of", "first", "second"))
    clear = int((table["p_adjusted"] < 0.05).sum())
    claim = (
        f"{clear or 'None'} of {len(table)} differences between correlations "
        f"{'is' if clear == 1 else 'are'} shown, once corrected for their number. The clearest: {of} goes "
        f"with {second} at {rho_text(row['rho_second'])} and with {first} at {rho_text(row['rho_first'])}, a "
        f"difference of {rho_text(row['difference'])} (95 % interval {span(row['low'], row['high'])}, "
        f"{p_text(row['p'])}, n = {row['n']})."
    )
    return [
        card(
            result,
            title="Differences between correlations",
            claim=claim,
            figures=[
                intervals(
                    [
                        f"{result.panel.label(r['second'])} − {result.panel.label(r['first'])}"
                        for r in records(table)
                    ],
                    table,
                    "difference",
                    "Difference of two correlations that share models, 95 % interval",
                    claim,
                    "Left of zero: the first-named score goes less with the heading than the second-named.",
                    lines={"no difference": 0.0},
                    groups=[
                        f"{result.panel.label(r['of'])}, given capability"
                        if r["given"]
                        else result.panel.label(r["of"])
                        for r in records(table)
                    ],
                )
            ],
            how=f"Paired bootstrap over models, {result.plan.resampling.bootstrap:,} draws, the composite "
            "ranked anew in each; two-sided p with a floor of 2 / (B + 1).",
            otherwise="An interval on one side of zero.",
            table=table,
            caption="Every planned contrast.",
            file="contrasts.csv",
        )
    ]


def _robustness(result: PanelAudit) -> list[Section]:
    table, clusters = result.left_out, result.clusters
    if table.empty:
        return []
    flips = table[table["sign_flips"] > 0]["left_out"].value_counts()
    claim = (
        f"The sign of {flips.get('model', 0)} of {table['estimand'].nunique()} estimates depends on a single "
        "model"
    )
    makers = table[table["left_out"] == "organization"]
    claim += f", that of {flips.get('organization', 0)} on a single organization." if len(makers) else "."
    shown = makers if len(makers) else table
    raw = shown[~shown["estimand"].str.contains(r"\||\(", regex=True)].head(MAX_ROWS)
    names = [str(name).replace(" ~ ", " – ") for name in raw["estimand"]]
    ranges = raw.rename(columns={"lowest": "low", "highest": "high"})
    one = "organization" if len(makers) else "model"
    return [
        card(
            result,
            title="Without one model, without one organization",
            claim=claim,
            text=_cluster_text(result),
            figures=[
                intervals(
                    names,
                    ranges,
                    "estimate",
                    f"Spearman correlation; lines: range without one {one}",
                    claim,
                    f"Lines that cross zero: without one {one} the sign changes.",
                )
            ]
            if len(raw)
            else [],
            how="Every estimate again without each model and without each organization; organizations drawn "
            f"{result.plan.resampling.bootstrap:,} times.",
            otherwise="Ranges that stay on one side of zero.",
            table=clusters if len(clusters) else table,
            caption="Every estimate when whole organizations are drawn."
            if len(clusters)
            else "Range of every estimate without one model.",
            file="clusters.csv" if len(clusters) else "left_out.csv",
        )
    ]


def _cluster_text(result: PanelAudit) -> str:
    clusters = result.clusters
    if clusters.empty:
        return ""
    n, clear = int(clusters["n_clusters"].max()), len(excluding_zero(clusters))
    why = (
        "below 20 organizations the interval is the estimate ± t × SD of the draws, because percentiles are "
        "too narrow"
        if (clusters["rule"] == "t").any()
        else "limits are percentiles of the draws"
    )
    return (
        f"When whole organizations are drawn ({n}), {clear or 'none'} of {len(clusters)} intervals "
        f"exclude{'s' if clear == 1 else ''} zero; {why}."
    )


def second_panel_claim(result: PanelAudit) -> str:
    """How many correlations change between two panels, and which most; "" without a second panel."""
    comparison = result.comparison
    if comparison is None:
        return ""
    table = comparison.changes
    if table.empty:
        return "No correlation can be compared with the second panel."
    (row,) = records(table.loc[table["change"].abs().sort_values().index[::-1]].nsmallest(1, "p"))
    name = label(result.panel, Association(row["x"], row["y"], row["given"] != "")).replace(" ~ ", " and ")
    clear = int((table["p_adjusted"] < 0.05).sum())
    return (
        f"{clear or 'None'} of {len(table)} correlations change{'s' if clear == 1 else ''} between the two "
        f"panels, once corrected for their number; the clearest change is {rho_text(row['change'])} for "
        f"{name} ({rho_text(row['rho_first'])} on {models(row['n_first'])}, {rho_text(row['rho_second'])} on "
        f"{row['n_second']}; 95 % interval {span(row['low'], row['high'])}, {p_text(row['p'])})."
    )


def _second_panel(result: PanelAudit) -> list[Section]:
    comparison, claim = result.comparison, second_panel_claim(result)
    if comparison is None or comparison.changes.empty:
        return []
    table = comparison.changes
    shown, design = table[table["given"] == ""].head(MAX_ROWS), str(table["design"].iloc[0])
    return [
        card(
            result,
            title="A second panel",
            claim=claim,
            text=" ".join([_matched(result), *comparison.notes]).strip(),
            figures=[
                intervals(
                    pair_names(result, shown),
                    shown,
                    "change",
                    "Change of the correlation, second panel minus first, 95 % interval",
                    claim,
                    "Intervals across zero: no change is shown.",
                    lines={"no change": 0.0},
                )
            ],
            how=f"{SHARED[design]} {result.plan.resampling.bootstrap:,} draws; p corrected "
            f"({result.plan.multiplicity.method}).",
            otherwise="An interval of the change that excludes zero.",
            table=table,
            caption="Every correlation in both panels.",
            file="panel_changes.csv",
        )
    ]


def _matched(result: PanelAudit) -> str:
    assert result.comparison is not None  # asked before
    table = result.comparison.matched
    rows = records(table[(table["x"] == CAPABILITY) & (table["given"] == "")])[:3]
    said = [f"{rho_text(r['matched_median'])} with {result.panel.label(r['y'])}" for r in rows]
    if not said:
        return ""
    return (
        "Cut to the first panel's numbers of models per organization, the second gives a median "
        f"correlation of capability of {joined(said)}."
    )


# Organizations ----------------------------------------------------------------------------------------


def _inside(result: PanelAudit) -> list[Section]:
    table, means = result.within, result.within_means
    if table.empty:
        return []
    (row,) = records(table.loc[[table["p"].idxmin()]])
    (mean,) = records(means[means["y"] == row["y"]])
    score = result.panel.label(row["y"])
    claim = (
        f"Capability and {score} correlate at {rho_text(row['rho'])} inside {row['organization']} (n = "
        f"{row['n']}, {p_text(row['p'])}, {row['p_method'].partition(',')[0]}), at "
        f"{rho_text(mean['pooled'])} over all models pooled."
    )
    if mean["organizations"] > 1:
        claim += f" The mean over {mean['organizations']} organizations is {rho_text(mean['mean'])}."
    shown = table.assign(low=np.nan, high=np.nan)
    return [
        card(
            result,
            title="Inside organizations",
            claim=claim,
            figures=[
                intervals(
                    [f"{r['organization']}, n = {r['n']}" for r in records(shown)],
                    shown,
                    "rho",
                    "Spearman correlation with capability inside an organization",
                    claim,
                    "What holds over all models need not hold inside an organization. So few models give no "
                    "interval.",
                    groups=[result.panel.label(y) for y in shown["y"]],
                )
            ],
            how=f"Spearman correlation inside each organization with at least {result.plan.groups.within} "
            "models; exact permutation p up to nine models.",
            otherwise="Correlations inside organizations like the pooled one.",
            table=table,
            caption="Capability and each score inside each organization.",
            file="within_organizations.csv",
        )
    ]


def _organizations(result: PanelAudit) -> list[Section]:
    table = result.groups
    if table.empty:
        return []
    (row,) = records(table.loc[[table["epsilon_squared_df_adjusted"].idxmax()]])
    name = result.panel.label(row["y"])
    different = int((table["p_adjusted"] < 0.05).sum())
    claim = (
        f"Organizations differ beyond capability in {different} of {len(table)} scores; most in {name} "
        f"(df-adjusted epsilon squared {row['epsilon_squared_df_adjusted']:.2f}, {p_text(row['p'])}, "
        f"corrected {p_text(row['p_adjusted'])}, {row['n_groups']} organizations, n = {row['n']})."
    )
    rows = result.residuals[result.residuals["y"] == row["y"]]
    return [
        card(
            result,
            title="Between organizations",
            claim=claim,
            figures=[
                draw(
                    pictures.residual_strips(rows),
                    alt=claim,
                    caption=f"{name}: how far each model ranks above or below what its capability predicts. "
                    "Bars: medians.",
                    height=1.0 + 0.32 * rows["organization"].nunique(),
                )
            ],
            how="Kruskal-Wallis on what capability leaves of the score's ranks, "
            f"{result.plan.resampling.permutations:,} permutations; organizations with at least "
            f"{result.plan.groups.between} models; p corrected ({result.plan.multiplicity.method}).",
            otherwise="Organizations whose models overlap."
            if different
            else "Organizations that lie further apart than shuffled models would.",
            table=table,
            caption="Differences between organizations, score by score.",
            file="organization_differences.csv",
        )
    ]


def _reliability(result: PanelAudit) -> list[Section]:
    said = [*_repeatability(result), *_coders(result)]
    if not said:
        return []
    text = "; ".join(said) + "."
    return [
        card(
            result,
            title="Can the scores be repeated?",
            claim=text[:1].upper() + text[1:],
            how="Whatever the data allow: halves, resampled items, a second grader, coders, and the largest "
            "error that a share over so many items can have.",
            otherwise="Errors close to the spread between models, under which their order is luck.",
            table=result.reliability,
            caption="What is known about the repeatability of each score.",
            file="reliability.csv",
        )
    ]


def _repeatability(result: PanelAudit) -> list[str]:
    table = result.reliability
    words = {
        "worst-case SE / SD": "at worst, the standard error of a score is {} of the spread between models",
        "split-half": "split-half reliability is {}",
        "halves": "the halves' reliability is {}",
        "rank stability": "ranks correlate at {} with ranks on resampled items",
        "second grader": "a second grader agrees at rho {}",
    }
    said = []
    for what, sentence in words.items():
        values = table.loc[table["what"] == what, "value"]
        if len(values):
            show = percent if what.startswith("worst") else (lambda value: f"{value:.2f}")
            ends = [show(v) for v in (values.min(), values.max())]
            said.append(sentence.format(" to ".join(dict.fromkeys(ends))))
    return said


def _coders(result: PanelAudit) -> list[str]:
    found = result.coders
    if found is None or not np.isfinite(found.alpha):
        return []
    return [
        f"{found.n_coders} coders agree on what {found.n_units} columns measure at Krippendorff's alpha "
        f"{found.alpha:.2f} ({found.level})"
    ]
