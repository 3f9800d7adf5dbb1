"""The audit as sections of a report: from the answer down to every quoted line in its surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtaudit.protocol.audit import Finding, ProtocolAudit, TraceResult
from irtaudit.protocol.calibration import Calibration
from irtaudit.protocol.cues import RULES
from irtaudit.protocol.results import (
    IntervalKind,
    detectors_table,
    findings_table,
    incidence_table,
    is_same_model,
    models_table,
    reason_of,
    refused_table,
    repairs_table,
    states_table,
    traces_table,
)
from irtaudit.protocol.taxonomy import EXPOSURE_NAMES, EXPOSURES
from irtaudit.protocol.validation import STATES
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import BLUE, draw
from irtaudit.report.section import Figure, Fold, Quote, Section, VerdictWord
from irtaudit.report.section import Verdict as ReportVerdict
from irtaudit.report.text import printable
from irtaudit.stats.clustered import BY_CLUSTERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_FOLDS = 300
MAX_LABEL = 32  # characters of a name in a drawing

GLOSSARY: Mapping[str, str] = {
    "exposure": "A way in which the protocol puts the answer, or control over the score, within reach.",
    "mislead": "The credited score rests on an exposure and is still read as the capability.",
    "candidate": "A place in a run that a rule found worth judging; not a label.",
    "chain": "Pointers from exposure over use and submission to credit; each quote is checked.",
    "gap": "Score with the exposure minus score without it, for one run with a fair comparison.",
    "unsupported": "The judge said positive, but the chain does not hold.",
    "abstained": "The judge said that it cannot tell.",
    "no_candidate": "No rule found anything to judge; that is not proof of a clean run.",
    "triage": "Mechanical rules that see copies and scoring gaps alone.",
    "Wilson": "Interval of a share that stays between 0 and 1 (Wilson 1927).",
    "Newcombe": "Interval of the difference of two shares (Newcombe 1998).",
}

_COLUMNS: Mapping[str, str] = {
    "run_id": "Name of the run; a link opens its evidence.",
    "state": "What became of it: positive, negative, unsupported, invalid, abstained or no_candidate.",
    "exposures": "Exposures of its positive findings.",
    "exposure": "One of the seven exposure values.",
    "source": "Part of the protocol the exposure comes from.",
    "engagement": "What the agent did: none, passive, active, engineered.",
    "mislead": "Whether the credited score rests on it: no, partial, yes.",
    "confidence": "As the judge states it; see the reliability curve for what it is worth.",
    "score": "As the grader recorded it.",
    "credited": "Whether that is more than a submission without merit gets.",
    "gap": "Credited score minus score without the exposure; only where a fair comparison was kept.",
    "gap_note": "How its interval was obtained, or why there is no gap.",
    "runs": "Number of runs.",
    "tasks": "Different tasks among them.",
    "positive": "Runs whose score misleads.",
    "rate": "Positive runs over all runs; undecided ones count as negative.",
    "low": "Lower end of the 95 % interval.",
    "high": "Upper end of the 95 % interval.",
    "deff": "Design effect of repeated runs per task; 1 where each task was run once.",
    "undecided": "Runs that are unsupported, invalid, abstained or without candidate.",
    "rate_if_all_positive": "The rate if every undecided run were positive.",
    "self_judged": "Whether the judge is the model that made the run.",
    "dropped": "Candidates beyond the cap, which were not judged.",
    "cue": "Exposure that the rules looked for.",
    "rules": "Rules that saw it, with versions.",
    "broken_rules": "Rules of validation that the judge's answer breaks.",
    "undecided_as": "How undecided runs are counted in this row.",
    "constant": "Score of the better policy that never looks: flag everything, or nothing.",
    "above_low": "Lower end of the interval of estimate minus constant.",
    "above_high": "Upper end of the interval of estimate minus constant.",
    "candidate_recall": "Share of planted cases that the rules find.",
    "pipeline_recall": "Share of planted cases whose run comes out positive.",
    "fisher_p": "Fisher's exact test, two-sided.",
    "fisher_p_holm": "The same, adjusted over all pairs (Holm).",
    "mcnemar_p": "Exact McNemar test on tasks both models ran once.",
}
_FORMATS: Mapping[str, str] = {
    **dict.fromkeys(("rate", "low", "high", "rate_if_all_positive", "gap", "score"), ".3f"),
    **dict.fromkeys(("rate_a", "rate_b", "difference", "estimate", "constant"), ".3f"),
    **dict.fromkeys(("fisher_p", "fisher_p_holm", "mcnemar_p"), ".4f"),
    **dict.fromkeys(("deff", "confidence"), ".2f"),
}


@dataclass(frozen=True)
class Verdict:
    """The answer in one word, and one sentence of why."""

    word: VerdictWord
    why: str


def verdict_of(audit: ProtocolAudit, tolerance: float = 0.05, interval: IntervalKind = "wilson") -> Verdict:
    """Whether the scores support the reading that they show the intended capability.

    Parameters
    ----------
    audit : ProtocolAudit
    tolerance : float
        Share of misleading scores that the reading can bear.
    interval : {"wilson", "clopper-pearson"}

    Returns
    -------
    Verdict
        "not supported" where the interval of some benchmark lies above the tolerance, or a picked run is
        positive; "supported" where all lie below it, undecided runs counted as positive unless no rule saw
        anything, and the judge sees every exposure; "nothing to measure" where no run was credited.
    """
    if not any(trace.credited for trace in audit.traces):
        return Verdict("nothing to measure", _no_credit(audit))
    rows = incidence_table(audit, interval)
    rows = rows[(rows["kind"] == "any") & (rows["model"] == "all")]
    picked = rows["cohort_sampling"] == "suspicious_subset"
    why = _why(audit, rows)
    if (rows["low"] > tolerance).any() or (picked & (rows["positive"] > 0)).any():
        return Verdict("not supported", why)
    settled = all(trace.state in ("negative", "no_candidate") for trace in audit.traces)
    sees_all = set(audit.judge.sees) == set(EXPOSURE_NAMES)
    if settled and sees_all and not picked.any() and (rows["high"] <= tolerance).all():
        return Verdict("supported", why)
    return Verdict("inconclusive", f"{why} {_what_would_settle(audit, tolerance, sees_all, settled)}")


def _no_credit(audit: ProtocolAudit) -> str:
    unscored = sum(not trace.scored for trace in audit.traces)
    if unscored == len(audit.traces):
        return "No run has a recorded score, so none can be shown to mislead."
    more = f", and {unscored:,} of {len(audit.traces):,} have no recorded score" if unscored else ""
    return f"No run was credited{more}, so no score can be shown to mislead."


def _why(audit: ProtocolAudit, rows: pd.DataFrame) -> str:
    runs, positive = len(audit.traces), sum(trace.state == "positive" for trace in audit.traces)
    said = f"{positive} of {runs} runs earned their score through an exposure, with evidence at every step"
    if len(rows) == 1 and np.isfinite(rows["low"].iloc[0]):
        row = rows.iloc[0]
        over = _interval_over(row["runs"], row["tasks"], row["method"])
        said += f" ({row['rate']:.1%}, 95 % interval{over} {row['low']:.1%} to {row['high']:.1%})"
    if (rows["cohort_sampling"] == "suspicious_subset").all():
        said += "; the runs were picked, so this is not a prevalence"
    return said + "."


def _interval_over(runs: int, tasks: int, method: str) -> str:
    """What an interval counts where tasks were repeated, so that its runs are not independent."""
    if tasks == runs:
        return ""
    if method == BY_CLUSTERS:
        return f", which counts {_n(tasks, 'task')} instead of {_n(runs, 'run')},"
    return f", which allows for repeated runs of {_n(tasks, 'task')},"


def _what_would_settle(audit: ProtocolAudit, tolerance: float, sees_all: bool, settled: bool) -> str:
    if not sees_all:
        unseen = ", ".join(_in_words(name for name in EXPOSURE_NAMES if name not in audit.judge.sees))
        return f"The judge {audit.judge.name} cannot see {unseen}; one that can would settle more."
    if not settled:
        return "A person, or another judge, would have to decide the undecided runs."
    needed = int(np.ceil(1.96**2 * (1 - tolerance) / tolerance))
    return f"About {needed:,} runs without a positive would settle it at a tolerance of {tolerance:.0%}."


def present(
    audit: ProtocolAudit,
    *,
    reading: str = "The scores show the intended capability",
    tolerance: float = 0.05,
    interval: IntervalKind = "wilson",
    probe: pd.DataFrame | None = None,
    calibration: Calibration | None = None,
    spent: Mapping[str, object] | None = None,
) -> list[Section]:
    """Sections of the report.

    Parameters
    ----------
    audit : ProtocolAudit
    reading : str
        The reading under test, in the user's words.
    tolerance, interval
        As in :func:`verdict_of`.
    probe : DataFrame, optional
        From :func:`irtaudit.protocol.probe.recall_probe`.
    calibration : Calibration, optional
    spent : mapping, optional
        Requests, tokens and cost of the judge.

    Returns
    -------
    list of Section
    """
    incidence = incidence_table(audit, interval)
    return [
        _answer(audit, reading, tolerance, interval),
        *_picture(incidence, tolerance),
        *_chains(audit),
        *_exposures(audit, incidence),
        *_gaps(audit),
        *_models(audit),
        *_calibration(calibration),
        *_probe(probe, audit),
        *_mending(audit),
        *_limits(audit, probe),
        _runs(audit),
        _incidence_section(audit, incidence),
        _findings(audit),
        *_method(audit, spent or {}),
    ]


def _answer(audit: ProtocolAudit, reading: str, tolerance: float, interval: IntervalKind) -> Section:
    verdict = verdict_of(audit, tolerance, interval)
    benchmarks = list(dict.fromkeys(trace.header.benchmark for trace in audit.traces))
    return Section(
        place="answer",
        claim=verdict.why,
        verdict=ReportVerdict(
            reading=reading,
            word=verdict.word,
            holds_for={
                "Runs": f"{len(audit.traces):,} of {_listed(benchmarks)}",
                "Models": _listed(list(dict.fromkeys(trace.header.model for trace in audit.traces))),
                "Judge": _judge_name(audit) + (" (triage)" if audit.judge.name == "rules" else ""),
                "Tolerance": f"{tolerance:.0%} of scores may mislead",
            },
        ),
    )


def _judge_name(audit: ProtocolAudit) -> str:
    judge = audit.judge
    return f"{judge.name}, {judge.model}" if judge.model else judge.name


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _picture(incidence: pd.DataFrame, tolerance: float) -> list[Section]:
    rows = incidence[(incidence["kind"] == "any") & (incidence["model"] == "all")].sort_values(
        "rate", ascending=False, kind="stable"
    )
    shown = rows.head(30)
    labels = [f"{row.benchmark} ({row.positive} of {row.runs})" for row in shown.itertuples()]
    picked = shown["note"] != ""
    hit = int((rows["positive"] > 0).sum())
    claim = (
        f"Scores rest on an exposure on {hit} of {len(rows)} benchmarks."
        if hit
        else "No score was shown to rest on an exposure."
    )
    drawing = dot_interval_figure(
        labels,
        shown["rate"],
        shown["low"],
        shown["high"],
        groups=["picked runs, no interval" if p else "all or randomly drawn runs" for p in picked],
        lines={"tolerance": tolerance},
        from_zero=True,
        value_format=".0%",
        xlabel="Share of runs whose score rests on an exposure"
        + ("" if picked.all() else ", with 95 % interval"),
        alt=claim,
        caption=_reading_of(shown),
    )
    return [Section(place="picture", claim=claim, figures=[drawing])]


def _reading_of(shown: pd.DataFrame) -> str:
    """What a row shows: which have no interval, and whether one counts tasks instead of runs."""
    said = ["Each dot is a benchmark; undecided runs count as negative."]
    if (shown["note"] != "").any():
        said.append("Picked runs say nothing about how common this is, so they carry no interval.")
    if (shown["method"] == BY_CLUSTERS).any():
        said.append("Where tasks were repeated and results are few, the interval counts tasks, not runs.")
    return " ".join(said)


def _chains(audit: ProtocolAudit) -> list[Section]:
    states = states_table(audit)
    positive = [one for one in audit.findings if one.state == "positive"]
    rejected = [one for one in audit.findings if one.state in ("unsupported", "invalid")]
    left_open = sum(one.state == "abstained" for one in audit.findings)
    told = [
        f"{_n(len(positive), 'finding')} {'has' if len(positive) == 1 else 'have'} a complete chain from "
        "exposure to credit, every quote where its pointer says",
        f"{_n(len(rejected), 'answer')} of the judge {'was' if len(rejected) == 1 else 'were'} rejected",
        *([f"the judge left {_n(left_open, 'candidate')} open"] if left_open else []),
    ]
    claim = "; ".join(told) + "." if audit.findings else "No rule found anything to judge."
    return [
        Section(
            place="evidence",
            title="States of the runs",
            claim=claim,
            table=states,
            columns=_COLUMNS,
            caption="Runs by benchmark and state; the states are never added up into one another.",
            file="states.csv",
            how="Rules find candidates, the judge labels each alone, a program holds every quote against the "
            "files of the bundle.",
            otherwise="A missing link, a quote that does not stand there, or a score without credit: the "
            "finding would be unsupported or invalid.",
        )
    ]


def _exposures(audit: ProtocolAudit, incidence: pd.DataFrame) -> list[Section]:
    rows = incidence[incidence["kind"] == "exposure"]
    if rows.empty:
        return []
    totals = rows[rows["model"] == "all"].groupby("name", sort=False)["positive"].sum()
    totals = totals.sort_values(ascending=False, kind="stable")
    return [
        Section(
            place="evidence",
            title="Where it comes from",
            claim=_most_frequent(totals),
            figures=[_exposure_bars(totals, len(audit.traces))],
            how="Exposures of the positive findings; a run with several counts for each.",
            otherwise="Positive findings through other exposures, or none at all.",
        )
    ]


def _most_frequent(totals: pd.Series) -> str:
    most = int(totals.iloc[0])
    top = [str(name) for name in totals.index[totals == most]]
    named = _listed(_in_words(top), 7)
    if len(top) == 1:
        return f"The most frequent exposure is {named} ({_n(most, 'run')}): {EXPOSURES[top[0]].boundary}."
    return f"The most frequent exposures are {named} ({_n(most, 'run')} each)."


def _in_words(names: Iterable[object]) -> list[str]:
    """Values of a taxonomy as words: "generator regularity"."""
    return [str(name).replace("_", " ") for name in names]


def _exposure_bars(totals: pd.Series, runs: int) -> Figure:
    names = _in_words(totals.index)[::-1]
    values = [int(value) for value in totals][::-1]

    def paint(axes: Axes) -> None:
        axes.bar_label(axes.barh(range(len(names)), values, height=0.55, color=BLUE), padding=3)
        axes.set(yticks=range(len(names)), yticklabels=names, xticks=[], xlabel="runs")
        axes.margins(x=0.12)

    return draw(
        paint,
        alt=f"{names[-1]} accounts for {values[-1]} of {runs} runs.",
        caption="Runs that are positive through each exposure.",
        height=0.6 + 0.34 * len(names),
    )


def _small_dots(
    labels: Sequence[str],
    frame: pd.DataFrame,
    columns: tuple[str, str, str],
    xlabel: str,
    alt: str,
    caption: str,
) -> Figure:
    """Values with intervals in the width of a card; `columns` are value, low and high."""
    values, low, high = (frame[column].to_numpy(dtype=float)[::-1] for column in columns)
    reach = np.nan_to_num(np.vstack([values - low, high - values]))

    def paint(axes: Axes) -> None:
        rows = range(len(values))
        axes.axvline(0, color="black", lw=0.8)
        axes.errorbar(values, rows, xerr=reach, fmt="o", color=BLUE, elinewidth=2)
        for row, value in zip(rows, values, strict=True):
            axes.annotate(f"{value:.3f}", (value, row), (0, 5), textcoords="offset points", ha="center")
        axes.set(
            yticks=list(rows),
            yticklabels=[_short(label) for label in labels][::-1],
            ylim=(-0.6, len(values) - 0.2),
            xlabel=xlabel,
        )
        axes.margins(x=0.12)

    return draw(paint, alt=alt, caption=caption, height=0.8 + 0.42 * len(values))


def _short(name: str) -> str:
    """A name as it fits beside a drawing."""
    shown = printable(name)
    return shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL - 1]}…"


def _gaps(audit: ProtocolAudit) -> list[Section]:
    rows = traces_table(audit)
    rows = rows[rows["state"] == "positive"]
    if rows.empty:
        return []
    known = rows[rows["gap"].notna()].sort_values("gap", ascending=False, kind="stable")
    shown = rows[["run_id", "score", "gap", "gap_share", "gap_low", "gap_high", "gap_note"]]
    claim = (
        f"In {len(known)} of {_n(len(rows), 'positive run')} a fair comparison was kept; the score is worse "
        f"by {_range(known['gap'])} without the exposure."
        if len(known)
        else f"No gap can be computed ({_n(len(rows), 'positive run')}): no fair comparison was kept."
    )
    few = known.head(20)
    figures = [
        _small_dots(
            list(few["run_id"]),
            few,
            ("gap", "gap_low", "gap_high"),
            "score with the exposure minus without it",
            claim,
            "Each dot is one run; runs are never averaged into a gap of the benchmark.",
        )
    ]
    return [
        Section(
            place="evidence",
            title="What the exposure is worth",
            claim=claim,
            figures=figures if len(known) else [],
            table=shown,
            columns=_COLUMNS,
            formats=_FORMATS,
            caption="Gaps of the positive runs, and why the others have none.",
            file="gaps.csv",
            how="Computed from the score record and the comparison alone, never from what a judge says.",
            otherwise="The same score without the exposure: a gap of zero.",
        )
    ]


def _range(values: pd.Series) -> str:
    low, high = f"{values.min():.3f}", f"{values.max():.3f}"
    return low if low == high else f"{low} to {high}"


def _models(audit: ProtocolAudit) -> list[Section]:
    pairs = models_table(audit)
    if pairs.empty:
        return []
    told = pairs[pairs["fisher_p_holm"] < 0.05]
    row = pairs.iloc[int(pairs["difference"].abs().to_numpy().argmax())]
    apart = (
        f"{len(told)} of {len(pairs)} pairs of models differ" if len(told) else "No pair of models differs"
    )
    return [
        Section(
            place="evidence",
            title="Models beside each other",
            claim=f"{apart} (Fisher, Holm, 5 %); the largest difference is {row['difference']:.3f} "
            f"(95 % interval {row['low']:.3f} to {row['high']:.3f}).",
            table=pairs,
            columns=_COLUMNS,
            formats=_FORMATS,
            caption="Pairs of models on the same benchmark.",
            file="models.csv",
            how="Newcombe interval and Fisher's exact test on all runs, McNemar's on shared tasks.",
            otherwise="Intervals on one side of zero.",
        )
    ]


def _calibration(calibration: Calibration | None) -> list[Section]:
    if calibration is None:
        return []
    frame = calibration.metrics
    primary = frame[frame["undecided_as"] == "negative"].set_index("metric")
    f1 = primary.loc["f1"]
    beats = "beats" if f1["above_low"] > 0 else "does not beat"
    counts = calibration.counts
    return [
        Section(
            place="evidence",
            title="Against human labels",
            claim=f"F1 is {f1['estimate']:.3f} (95 % interval {f1['low']:.3f} to {f1['high']:.3f}), which "
            f"{beats} the constant policy “{f1['policy']}” with {f1['constant']:.3f}.",
            table=frame,
            columns=_COLUMNS,
            formats=dict.fromkeys(("estimate", "low", "high", "constant", "above_low", "above_high"), ".3f"),
            caption="Every metric beside the constant policy that never looks.",
            file="calibration.csv",
            facts={name: f"{value}" for name, value in counts.items()},
            figures=_reliability(calibration.reliability),
            how="Positive against every other state, on labelled runs; ambiguous ones count in no metric.",
            otherwise="An interval of the difference from the constant policy that lies above zero."
            if beats != "beats"
            else "An interval of the difference from the constant policy that reaches zero.",
        )
    ]


def _reliability(curve: pd.DataFrame) -> list[Figure]:
    if curve.empty:
        return []
    return [
        _small_dots(
            [f"{row.confidence:.2f} ({row.runs} runs)" for row in curve.itertuples()],
            curve,
            ("right", "low", "high"),
            "share of calls that are right",
            "How often calls are right, by stated confidence.",
            "Rows are stated confidence; it can be trusted where dots lie at what was stated.",
        )
    ]


def _probe(probe: pd.DataFrame | None, audit: ProtocolAudit) -> list[Section]:
    if probe is None:
        return []
    total = probe[probe["exposure"] == "all"].iloc[0]
    return [
        Section(
            place="evidence",
            title="Recall probe",
            claim=f"Of {total['planted']} planted cases the rules find {total['found']} "
            f"({total['candidate_recall']:.1%}, 95 % interval {total['candidate_low']:.1%} to "
            f"{total['candidate_high']:.1%}); {total['positive']} come out positive with this judge.",
            table=probe,
            columns=_COLUMNS,
            formats={name: ".3f" for name in probe.columns if name.endswith(("recall", "low", "high"))},
            caption="Planted cases by exposure; the two stages apart.",
            file="recall_probe.csv",
            how=f"Known cases planted in clean runs and audited by the judge {audit.judge.name}.",
            otherwise="Planted cases that no rule finds; cases nobody thought of are not among them.",
        )
    ]


def _mending(audit: ProtocolAudit) -> list[Section]:
    repairs, detectors = repairs_table(audit), detectors_table(audit)
    said = [
        Section(
            place="evidence",
            title="What to run next",
            claim="Detectors recommended for "
            + _listed([f"{kind} protocols" for kind in _in_words(detectors["protocol_kind"])])
            + ".",
            table=detectors,
            columns=_COLUMNS,
            caption="By kind of protocol, as the HackDetect paper recommends.",
            file="detectors.csv",
            how="The kind of protocol stands in each manifest.",
            otherwise="Other kinds of protocol.",
        )
    ]
    if repairs.empty:
        return said
    return [
        Section(
            place="evidence",
            title="What to mend",
            claim=_asked_most(repairs),
            table=repairs,
            columns=_COLUMNS,
            caption="Repairs of the positive findings.",
            file="repairs.csv",
            how="The judge names a repair; only those that belong to the exposure are accepted.",
            otherwise="No positive finding.",
        ),
        *said,
    ]


def _asked_most(repairs: pd.DataFrame) -> str:
    top = repairs[repairs["runs"] == repairs["runs"].max()]
    runs = _n(int(top["runs"].iloc[0]), "run")
    if len(top) == 1:
        return f"The repair asked for most often is to {top['asks_for'].iloc[0]} ({runs})."
    if len(top) == len(repairs):
        return f"{len(repairs)} repairs are asked for, each in {runs}."
    return f"{len(repairs)} repairs are asked for, {len(top)} of them most often, each in {runs}."


def _limits(audit: ProtocolAudit, probe: pd.DataFrame | None) -> list[Section]:
    traces = audit.traces
    unfilled = sorted({name for trace in traces for name in trace.header.unfilled})
    dropped = sum(sum(trace.dropped.values()) for trace in traces)
    same = sum(is_same_model(audit.judge.model, trace.header.model) for trace in traces)
    undecided = sum(trace.state in ("unsupported", "invalid", "abstained") for trace in traces)
    quiet = sum(trace.state == "no_candidate" for trace in traces)
    unscored = sum(not trace.scored for trace in traces)
    beyond = sum(bool(trace.findings) for trace in traces) - MAX_FOLDS
    picked = sum(trace.header.cohort_sampling == "suspicious_subset" for trace in traces)
    faults = sum(one.answer is None and one.record is None for one in audit.findings)
    unseen = [name for name in EXPOSURE_NAMES if name not in audit.judge.sees]
    notes: list[tuple[object, str, str]] = [
        (
            unseen,
            "The rules judge is triage.",
            f"It never labels {', '.join(_in_words(unseen))} positive; those are left open.",
        ),
        (
            undecided,
            f"{_runs_are(undecided)} undecided.",
            "They count as negative in the rate and as positive in its upper bound.",
        ),
        (
            quiet,
            f"{_runs_are(quiet)} without a candidate.",
            "A shortcut that no rule knows would be among them.",
        ),
        (
            picked,
            f"{_runs_are(picked)} in the audit because they looked suspicious.",
            "Their rate is not a prevalence.",
        ),
        (
            unscored,
            f"{_runs_are(unscored)} without a recorded score.",
            "Whether such a score misleads cannot be told. `irtaudit bundles convert --scores` takes scores "
            "from a table.",
        ),
        (faults, f"{_n(faults, 'candidate')} got no answer.", "The same command again asks only for these."),
        (
            beyond > 0,
            f"The evidence of {_n(beyond, 'run')} is not on this page.",
            "evidence.csv and findings.jsonl have all of it.",
        ),
        (same, f"{_runs_are(same)} judged by the model that made them.", "Let another model judge them."),
        (dropped, f"{_n(dropped, 'candidate')} beyond the cap not judged.", "Raise --cap to judge them."),
        (unfilled, "Converted logs leave things out.", f"Their sources did not say: {', '.join(unfilled)}."),
        (
            audit.refused,
            f"{_n(len(audit.refused), 'bundle')} could not be read.",
            "They are in no rate; refused.csv says why.",
        ),
        (
            probe is None,
            "The recall of this audit was not measured on these runs.",
            "--probe plants known cases in the clean ones.",
        ),
    ]
    return [Section(place="limit", claim=claim, text=text) for applies, claim, text in notes if applies]


def _n(n: int, what: str) -> str:
    """A number of things: "1 run", "2 runs"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _runs_are(n: int) -> str:
    return f"{_n(n, 'run')} {'is' if n == 1 else 'are'}"


def _runs(audit: ProtocolAudit) -> Section:
    frame = traces_table(audit).set_index("run_id")
    shown = frame[
        [
            "benchmark",
            "task_id",
            "model",
            "state",
            "exposures",
            "engagement",
            "mislead",
            "score",
            "gap",
            "candidates",
        ]
    ]
    ordered = sorted(audit.traces, key=lambda trace: STATES.index(trace.state))
    counted = sum(bool(trace.findings) for trace in audit.traces)
    return Section(
        place="explore",
        title="Runs",
        claim=f"{len(audit.traces):,} runs, {counted:,} of them with something to judge.",
        table=shown,
        columns=_COLUMNS,
        formats=_FORMATS,
        caption="Every run; names link to the evidence.",
        file="traces.csv",
        folds_title="Evidence, run by run",
        folds=[_fold(trace) for trace in ordered if trace.findings][:MAX_FOLDS],
    )


def _fold(trace: TraceResult) -> Fold:
    parts = [
        f"State: {trace.state}. Score {trace.score} on {trace.header.task_id} by {trace.header.model}. "
        + (f"Gap {trace.gap.raw:.3f}." if trace.gap.raw is not None else f"No gap: {trace.gap.reason}.")
    ]
    parts += [_said(one) for one in trace.findings]
    quotes = [quote for one in trace.findings for quote in _quotes(one)]
    return Fold(title=trace.header.run_id, text="\n\n".join(parts), quotes=quotes[:60])


def _said(finding: Finding) -> str:
    head = f"Candidate {finding.candidate.id} ({', '.join(finding.candidate.rules)}): {finding.state}."
    answer = finding.answer
    if answer is None:
        return f"{head} {reason_of(finding)}"
    said = (
        f" {answer.exposure}, engagement {answer.agent_engagement}, mislead {answer.mislead}, "
        f"confidence {answer.confidence:.2f}. {answer.rationale}"
    )
    drift = answer.capability_drift
    if drift is not None and drift.measured:
        said += f" Meant: {drift.intended}. Measured: {drift.measured}."
    why = reason_of(finding)
    return " ".join((head + said + (f" Why it is {finding.state}: {why}." if why else "")).split())


def _quotes(finding: Finding) -> list[Quote]:
    found = []
    for one in finding.quotes:
        pointer = one.pointer
        span = f"{pointer.start}" if pointer.start == pointer.end else f"{pointer.start} to {pointer.end}"
        where = f"{pointer.path}, {pointer.unit} {span}"
        found.append(Quote(text=pointer.quote, source=f"{one.link}: {where}"))
        found.append(Quote(text=one.context, source=f"around it: {where}"))
    return found


def _incidence_section(audit: ProtocolAudit, incidence: pd.DataFrame) -> Section:
    return Section(
        place="explore",
        title="Incidence",
        claim="How often scores mislead, by benchmark, model, source and exposure.",
        table=incidence,
        columns=_COLUMNS,
        formats=_FORMATS,
        caption="Rates with intervals; picked cohorts have none. Names link to the runs behind them.",
        file="incidence.csv",
        folds_title="Runs behind the rates",
        folds=[_runs_of(audit, benchmark) for benchmark in dict.fromkeys(incidence["benchmark"])][:MAX_FOLDS],
    )


def _runs_of(audit: ProtocolAudit, benchmark: str) -> Fold:
    """The runs of a benchmark by state; the table of runs has their evidence."""
    traces = [trace for trace in audit.traces if trace.header.benchmark == benchmark]
    lists = [
        f"{state.replace('_', ' ')}: {_listed([t.header.run_id for t in traces if t.state == state], 40)}."
        for state in STATES
        if any(trace.state == state for trace in traces)
    ]
    return Fold(title=benchmark, text="\n\n".join([*lists, "The table “Runs” leads to their evidence."]))


def _findings(audit: ProtocolAudit) -> Section:
    frame = findings_table(audit)[
        [
            *("run_id", "candidate_id", "cue", "rules", "state", "exposure", "engagement", "mislead"),
            *("confidence", "repair_target", "broken_rules", "reason"),
        ]
    ]
    return Section(
        place="explore",
        title="Candidates",
        claim=f"{len(frame):,} candidates and what became of each.",
        table=frame,
        columns=_COLUMNS,
        formats=_FORMATS,
        caption="One row per candidate.",
        file="findings.csv",
    )


def _method(audit: ProtocolAudit, spent: Mapping[str, object]) -> list[Section]:
    facts = {
        "Judge": _judge_name(audit),
        "Prompt": f"sha256 {audit.judge.prompt_sha256}" if audit.judge.prompt_sha256 else "none",
        "Candidate rules": ", ".join(audit.rules),
        **{name.replace("_", " "): f"{value}" for name, value in spent.items() if value is not None},
    }
    rules = pd.DataFrame(
        [(rule.label, rule.exposure, rule.says) for rule in RULES if rule.label in audit.rules],
        columns=["rule", "exposure", "sees"],
    )
    said = [
        Section(
            place="method",
            title="Judge and rules",
            claim="No run was executed, changed or scored again.",
            facts=facts,
            table=rules,
            columns=_COLUMNS,
            file="rules.csv",
        )
    ]
    if audit.refused:
        said.append(
            Section(
                place="method",
                title="Refused bundles",
                claim=f"{len(audit.refused)} bundles could not be read.",
                table=refused_table(audit),
                file="refused.csv",
            )
        )
    return said
