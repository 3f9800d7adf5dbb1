"""The panel audit in the reader's words: its tables become sections of the report."""

from __future__ import annotations

import pandas as pd

from irtaudit._version import __version__
from irtaudit.panel import pictures
from irtaudit.panel.audit import PanelAudit
from irtaudit.panel.estimands import capability, models
from irtaudit.panel.evidence import CORRELATION_LABEL, evidence, named, over_what, pair_names, sizes, widened
from irtaudit.panel.metrics import decimals
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.words import COLUMNS, FORMATS, comparisons, percent, records, rho_text, span
from irtaudit.plan import plan_sha256
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import PAGE_WIDTH, draw
from irtaudit.report.section import Section
from irtaudit.report.section import Verdict as Answer

MAX_SCATTERS = 9
PLURAL = {"anchor": "anchors", "benchmark": "benchmarks", "criterion": "criteria"}


def title(result: PanelAudit) -> str:
    """Title of the page."""
    return result.plan.title or f"{result.data.source or 'Scores'}, audited"


def present(result: PanelAudit) -> list[Section]:
    """Sections of the report that show a panel audit.

    Parameters
    ----------
    result : PanelAudit

    Returns
    -------
    list of Section
        A part that the panel cannot answer has no section of evidence; one at "limit" says so.
    """
    return [
        _answer(result),
        *_agreement(result),
        *_against_capability(result),
        *evidence(result),
        *_limits(result),
        _scores(result),
        *_tables(result),
        *_method(result),
    ]


# The answer and its pictures --------------------------------------------------------------------------


def _answer(result: PanelAudit) -> Section:
    plan, organizations = result.plan, result.data.organizations
    roles = result.data.columns["role"].value_counts()
    columns = [f"{n} {PLURAL[str(role)] if n > 1 else role}" for role, n in roles.items()]
    makers = "" if organizations is None else f" of {organizations.nunique()} organizations"
    return Section(
        place="answer",
        claim=result.verdict.because,
        text=_what_settles(result),
        verdict=Answer(
            reading=plan.reading,
            word=result.verdict.word,
            holds_for={
                "Models": f"{models(result.data.n_models)}{makers}",
                "Columns": ", ".join(columns),
                "Data": f"{result.data.source or 'scores'}, sha256 {result.data.sha256[:16]}…",
                "Plan": f"{plan.standing}, sha256 {plan_sha256(plan)[:16]}…",
                "Version": f"irtaudit {__version__}",
            },
        ),
    )


def _what_settles(result: PanelAudit) -> str:
    every = result.verdict.standings
    left = every[every["standing"] == "open"]
    needed = left["n_to_settle"].dropna()
    if left.empty or needed.empty:
        return ""
    return (
        f"{len(left)} of {comparisons(len(every))} stay open on this panel. About {needed.max():.0f} models "
        "would settle all of them, if their correlations stay what they are."
    )


def _agreement(result: PanelAudit) -> list[Section]:
    every = result.associations
    rows = every[(every["given"] == "") & every["kind"].isin(["between", "capability"])]
    if rows.empty:
        return []
    rows = rows.sort_values("kind", kind="stable")
    threshold = result.plan.thresholds.interchangeable
    standing = result.verdict.standings["standing"]
    above, below = int((standing == "above").sum()), int((standing == "below").sum())
    claim = (
        f"Of {comparisons(len(standing))}, {above or 'none'} reach{'es' if above == 1 else ''} the agreement "
        f"from which one score could stand for the other; {below or 'none'} clearly "
        f"fall{'s' if below == 1 else ''} short of it, the others are open."
    )
    headings = {"between": "Two benchmarks", "capability": "Capability and a score"}
    names, wide = pair_names(result, rows), widened(result, rows)
    figure = dot_interval_figure(
        names,
        rows["rho"],
        wide["low"],
        wide["high"],
        groups=[headings[kind] for kind in rows["kind"]],
        lines={"unrelated": 0.0, f"could stand for each other: {threshold:.2f}": threshold},
        notes=sizes(names, rows),
        value_format="+.2f",
        xlabel=CORRELATION_LABEL,
        alt=claim,
        caption="Each dot says how alike two scores order the same models; its line is what a panel of this "
        f"size leaves open ({over_what(result)}). A line that ends left of the dashed threshold rules out "
        "that the two are interchangeable; one that crosses zero does not even show that they are related.",
    )
    return [
        Section(
            place="picture",
            title="Agreement of scores",
            claim=claim,
            figures=[figure],
            table=named(result, result.verdict.standings),
            columns=COLUMNS,
            formats=FORMATS,
            caption="Every pair against the threshold, over models and over organizations.",
            file="standings.csv",
        )
    ]


def _against_capability(result: PanelAudit) -> list[Section]:
    every = result.associations
    rows = records(every[every["kind"] == "capability"].head(MAX_SCATTERS))
    if not rows:
        return []
    top = max(rows, key=lambda row: abs(row["rho"]))
    claim = (
        f"Of all scores, capability goes most with {result.panel.label(top['y'])}: rho "
        f"{rho_text(top['rho'])} (95 % interval {span(top['low'], top['high'])}, n = {top['n']}), "
        f"{percent(top['rho'] ** 2)} of its order."
    )
    composite = capability(result.panel)
    paints = []
    for row in rows:
        both = pd.concat([composite, result.panel.scores[row["y"]]], axis=1).dropna()
        x, y = both[CAPABILITY], both[row["y"]]
        paints.append(pictures.scatter(x, y, "capability (SD)", result.panel.label(row["y"]), row["rho"]))
    wide_rows = -(-len(paints) // 3)
    return [
        Section(
            place="picture",
            title="Scores against capability",
            claim=claim,
            text=_composite(result),
            figures=[
                draw(
                    pictures.beside(paints),
                    alt=claim,
                    caption="Each dot is a model. Dots along a rising line would be capability under another "
                    "name.",
                    width=PAGE_WIDTH,
                    height=2.7 * wide_rows,
                    phone_height=2.5 * len(paints),
                )
            ],
        )
    ]


def _composite(result: PanelAudit) -> str:
    anchors = ", ".join(result.panel.label(name) for name in result.panel.of("anchor"))
    agreement = result.structure.composite_agreement
    if len(result.panel.of("anchor")) == 1:
        return f"There is one anchor, {anchors}: capability is what that test measures."
    return (
        f"Capability is the mean of the standardized anchors ({anchors}). Its order and that of the anchors' "
        f"own first component correlate at rho {agreement:.3f}."
    )


# What this does not show ------------------------------------------------------------------------------


def _limits(result: PanelAudit) -> list[Section]:
    said = [*_size_limits(result), *_design_limits(result)]
    return [
        *(Section(place="limit", claim=claim, text=text) for claim, text in said),
        *(Section(place="limit", claim=warning) for warning in result.warnings),
        *_not_tested(result),
    ]


def _size_limits(result: PanelAudit) -> list[tuple[str, str]]:
    table, organizations = result.associations, result.panel.organizations
    said = []
    if len(table) and table["power"].min() < 0.8:
        effect, power = result.plan.thresholds.effect, percent(table["power"].min())
        said.append(
            (
                f"{models(int(table['n'].max()))} are few.",
                f"A correlation of {effect:.2f} would be found with a power of {power}; 80 % needs "
                f"{table['n_needed'].max():.0f} models. What is not shown here is not shown to be absent.",
            )
        )
    n_makers = 0 if organizations is None else organizations.nunique()
    if n_makers == 0:
        said.append(
            (
                "Organizations are unknown.",
                "Models of one maker resemble each other; intervals over models treat them as independent.",
            )
        )
    elif n_makers == 1:
        said.append(("All models come from one organization.", "Nothing says how other makers' models rank."))
    elif n_makers < 20:
        said.append((f"{n_makers} organizations are few clusters.", "Intervals over them are wide."))
    return said


def _design_limits(result: PanelAudit) -> list[tuple[str, str]]:
    panel, plan = result.panel, result.plan
    anchors = len(panel.of("anchor"))
    every = {
        not panel.of("criterion"): (
            "There is no held-out outcome.",
            "Whether a score predicts behaviour elsewhere is not tested.",
        ),
        anchors == 1 and "one": (
            "Capability is one test.",
            "Another anchor might order the models differently.",
        ),
        anchors == 0 and "none": (
            "There is no capability anchor.",
            "How much of a score is capability is not tested.",
        ),
        plan.status == "pre-specified" and "plan": (
            "The plan is pre-specified, not preregistered.",
            "No independent timestamp shows that it was fixed before the scores were seen.",
        ),
    }
    return [text for holds, text in every.items() if holds]


def _not_tested(result: PanelAudit) -> list[Section]:
    table = result.not_tested
    if table.empty:
        return []
    shown = [f"{row['what']}: {row['reason']}" for row in records(table.head(4))]
    more = f" The table names {len(table) - 4} more." if len(table) > 4 else ""
    return [
        Section(
            place="limit",
            title="Not tested",
            claim=f"{len(table)} question{'s' if len(table) > 1 else ''} cannot be asked of this panel.",
            text=f"{'; '.join(shown)}.{more}",
            table=table,
            columns=COLUMNS,
            caption="What was not tested, and why.",
            file="not_tested.csv",
        )
    ]


# Look for yourself, how it was done -------------------------------------------------------------------


def _scores(result: PanelAudit) -> Section:
    panel = result.panel
    labels = {str(name): panel.label(str(name)) for name in panel.scores}
    table = panel.scores.rename(columns=labels)
    if panel.organizations is not None:
        table.insert(0, "organization", panel.organizations)
    benchmarks = panel.of("benchmark")
    if benchmarks:
        table = table.sort_values(labels[benchmarks[-1]], ascending=False, na_position="last")
    coverage = ", ".join(f"{labels[c]} {panel.scores[c].notna().sum()}" for c in labels)
    return Section(
        place="explore",
        title="Scores",
        claim=f"{models(panel.n_models)} and their scores; higher is better or safer in every column.",
        text=f"Models with a score: {coverage}." if coverage else "",
        table=table,
        columns={labels[name]: _column_note(result, name) for name in labels},
        formats={labels[name]: f".{min(decimals(panel.scores[name]), 4)}f" for name in labels},
        extremes=list(labels.values()),
        caption="Every score as audited. Bold: highest of its column; underlined: lowest; ties as printed.",
        file="scores.csv",
    )


def _column_note(result: PanelAudit, name: str) -> str:
    role, construct, flipped = result.panel.columns.loc[name, ["role", "construct", "flipped"]]
    measures = result.plan.columns[name].measures
    ranks = f" Ranks models by {measures}." if measures else ""
    turned = " Turned round: in the file, higher is worse." if flipped else ""
    return f"{str(role).capitalize()}; construct: {construct}.{ranks}{turned}"


def _tables(result: PanelAudit) -> list[Section]:
    wanted = {
        "associations": ("Correlations", "correlations, each at its own n", result.associations),
        "conventions": (
            "Partial correlations, four ways",
            "partial correlations by four conventions",
            result.conventions,
        ),
        "left_out": ("Leaving out", "ranges without one model or organization", result.left_out),
        "clusters": ("Drawing organizations", "estimates with organizations drawn", result.clusters),
        "sensitivity": ("Other versions of the panel", "correlations under other rules", result.sensitivity),
        "metrics": ("Metrics", "metrics from confusion counts", result.metrics.metrics),
        "constant_policies": ("Policies that never look", "scores in closed form", result.metrics.baselines),
        "concordance": ("Concordance", "Kendall's W of the benchmarks' rankings", result.concordance),
    }
    return [
        Section(
            place="explore",
            title=name,
            claim=f"{len(table)} {said}." if len(table) > 1 else f"{said[:1].upper()}{said[1:]}.",
            table=named(result, table),
            columns=COLUMNS,
            formats={**FORMATS, "score": ".3f", "prevalence": ".3f"},
            file=f"{file}.csv",
        )
        for file, (name, said, table) in wanted.items()
        if len(table)
    ]


def _method(result: PanelAudit) -> list[Section]:
    return [*_coverage(result), _settings(result)]


def _coverage(result: PanelAudit) -> list[Section]:
    panel, excluded = result.panel, result.screened.excluded
    seen = panel.scores.notna()
    names = [panel.label(str(name)) for name in seen]
    full = int(seen.all(axis=1).sum()) if names else 0
    out = f"{len(excluded)} score(s) or column(s) are left out" if len(excluded) else "No score is left out"
    drawn = draw(
        pictures.coverage_map(seen, excluded, names),
        alt=f"{full} of {panel.n_models} models have every column.",
        caption="Squares: scored. Dots: not measured. Crosses: left out by the valid-output rule.",
        height=1.3 + 0.17 * panel.n_models,
    )
    return [
        Section(
            place="method",
            title="Coverage and exclusions",
            claim=f"{full} of {panel.n_models} models have every column. {out}.",
            figures=[drawn] if names else [],
            table=named(result, excluded) if len(excluded) else None,
            columns=COLUMNS,
            formats={"value": ".1%"},
            caption="What was left out, and why.",
            file="excluded.csv",
        )
    ]


def _settings(result: PanelAudit) -> Section:
    plan, draws = result.plan, result.plan.resampling
    return Section(
        place="method",
        title="Plan, draws and seed",
        claim="Everything random has a seed, and the same plan on the same data gives the same numbers.",
        facts={
            "Plan": f"{plan.standing}, sha256 {plan_sha256(plan)}",
            "Data": f"sha256 {result.data.sha256}",
            "Seed": str(plan.seed),
            "Draws": f"bootstrap {draws.bootstrap:,}, permutations {draws.permutations:,}, parallel analysis "
            f"{draws.horn:,}, shuffled panels {draws.negative_control:,}",
            "Correlations": "Spearman, midranks; p by asymptotic t with n − 2 − k df; intervals by "
            "percentile bootstrap over models",
            "Multiplicity": plan.multiplicity.method,
            "Time": f"{result.seconds:.1f} s",
        },
    )
