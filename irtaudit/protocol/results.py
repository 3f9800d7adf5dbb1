"""Tables of an audit: runs, findings, evidence, incidence with intervals, differences between models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest, fisher_exact

from irtaudit.protocol.audit import Finding, ProtocolAudit, TraceResult
from irtaudit.protocol.judges.case import utf8
from irtaudit.protocol.taxonomy import DETECTORS, EXPOSURE_NAMES, EXPOSURES, SOURCES, source_of
from irtaudit.protocol.validation import STATES
from irtaudit.stats.clustered import clustered_proportion
from irtaudit.stats.multiplicity import adjusted
from irtaudit.stats.proportions import clopper_pearson, newcombe

IntervalKind = Literal["wilson", "clopper-pearson"]

NOT_PREVALENCE = "picked runs: not prevalence"
_RELEASE = re.compile(r"-(?:\d{4,}|\d{4}-\d{2}(?:-\d{2})?|latest)$")
_UNDECIDED = ("unsupported", "invalid", "abstained", "no_candidate")


def traces_table(audit: ProtocolAudit) -> pd.DataFrame:
    """One row per run.

    Returns
    -------
    DataFrame
        ``run_id, benchmark, task_id, model, agent, protocol_kind, cohort_sampling, state, exposures, sources,
        engagement, mislead, confidence`` (of the first positive finding), ``score, credited, gap, gap_share,
        gap_low, gap_high, gap_note, events, candidates, dropped, self_judged, bundle_sha256, source``.
    """
    return pd.DataFrame([_trace_row(trace, audit.judge.model) for trace in audit.traces])


def _trace_row(trace: TraceResult, judge_model: str) -> dict[str, Any]:
    header, gap = trace.header, trace.gap
    first = next((one.answer for one in trace.findings if one.state == "positive"), None)
    return {
        "run_id": header.run_id,
        "benchmark": header.benchmark,
        "task_id": header.task_id,
        "model": header.model,
        "agent": header.agent,
        "protocol_kind": header.protocol_kind,
        "cohort_sampling": header.cohort_sampling,
        "state": trace.state,
        "exposures": ", ".join(trace.exposures),
        "sources": ", ".join(dict.fromkeys(EXPOSURES[one].source for one in trace.exposures)),
        "engagement": first.agent_engagement if first else None,
        "mislead": first.mislead if first else None,
        "confidence": first.confidence if first else np.nan,
        "score": np.nan if trace.score is None else trace.score,
        "credited": trace.credited,
        "gap": np.nan if gap.raw is None else gap.raw,
        "gap_share": np.nan if gap.share is None else gap.share,
        "gap_low": np.nan if gap.low is None else gap.low,
        "gap_high": np.nan if gap.high is None else gap.high,
        "gap_note": gap.reason or gap.method,
        "events": trace.n_events,
        "candidates": len(trace.findings),
        "dropped": sum(trace.dropped.values()),
        "self_judged": is_same_model(judge_model, header.model),
        "bundle_sha256": trace.sha256,
        "source": utf8(trace.source),
    }


def is_same_model(judge: str, model: str) -> bool:
    """Whether a judge would judge itself: one name, but for the provider before it and a date after it."""
    one, other = (
        _RELEASE.sub("", re.sub(r"[^a-z0-9]+", "-", name.lower().rpartition("/")[2]))
        for name in (judge, model)
    )
    return bool(one) and one == other


def findings_table(audit: ProtocolAudit) -> pd.DataFrame:
    """One row per candidate.

    Returns
    -------
    DataFrame
        ``run_id, candidate_id, cue, rules, first_event, last_event, state, exposure, source, engagement,
        mislead, confidence, repair_target, intended, measured, broken_rules, reason, rationale, reads,
        requests, tokens_in, tokens_out``. What a judge said stands as it was said, rejected or not.
    """
    columns = list(_finding_row(None)) if not audit.findings else None
    return pd.DataFrame([_finding_row(one) for one in audit.findings], columns=columns)


def _finding_row(finding: Finding | None) -> dict[str, Any]:
    answer = finding.answer if finding else None
    candidate = finding.candidate if finding else None
    window = candidate.window if candidate else None
    drift = answer.capability_drift if answer else None
    return {
        "run_id": finding.run_id if finding else "",
        "candidate_id": candidate.id if candidate else "",
        "cue": candidate.exposure if candidate else "",
        "rules": ", ".join(candidate.rules) if candidate else "",
        "first_event": window[0] if window else np.nan,
        "last_event": window[1] if window else np.nan,
        "state": finding.state if finding else "",
        "exposure": answer.exposure if answer else None,
        "source": source_of(answer.exposure) if answer else None,
        "engagement": answer.agent_engagement if answer else None,
        "mislead": answer.mislead if answer else None,
        "confidence": answer.confidence if answer else np.nan,
        "repair_target": answer.repair_target if answer else None,
        "intended": drift.intended if drift else None,
        "measured": drift.measured if drift else None,
        "broken_rules": ", ".join(dict.fromkeys(f.rule for f in finding.failures)) if finding else "",
        "reason": reason_of(finding) if finding else "",
        "rationale": answer.rationale if answer else None,
        "reads": len(finding.reads) if finding else 0,
        "requests": finding.requests if finding else 0,
        "tokens_in": finding.tokens_in if finding else 0,
        "tokens_out": finding.tokens_out if finding else 0,
    }


def reason_of(finding: Finding) -> str:
    """Why a finding is neither positive nor negative; "" when it is."""
    if finding.failures:
        return "; ".join(f"{one.rule}: {one.says}" for one in finding.failures)
    return (finding.answer.abstain_reason or "") if finding.answer and finding.answer.abstain else ""


def evidence_table(audit: ProtocolAudit) -> pd.DataFrame:
    """One row per pointer of every answer whose pointers hold.

    Returns
    -------
    DataFrame
        ``run_id, candidate_id, state, link, path, unit, start, end, quote, sha256``; `link` is exposure, use,
        submission or credit.
    """
    columns = ["run_id", "candidate_id", "state", "link", "path", "unit", "start", "end", "quote", "sha256"]
    rows = []
    for one in audit.findings:
        for quoted in one.quotes:
            p = quoted.pointer
            where = (quoted.link, p.path, p.unit, str(p.start), str(p.end), p.quote, p.sha256)
            rows.append((one.run_id, one.candidate.id, one.state, *where))
    return pd.DataFrame(rows, columns=columns)


def states_table(audit: ProtocolAudit) -> pd.DataFrame:
    """Runs in each state by benchmark: ``benchmark, cohort_sampling, runs`` and one column per state."""
    rows = []
    for (benchmark, sampling), traces in _groups(audit.traces, _cohort).items():
        row: dict[str, Any] = {"benchmark": benchmark, "cohort_sampling": sampling, "runs": len(traces)}
        rows.append(row | {state: sum(trace.state == state for trace in traces) for state in STATES})
    return pd.DataFrame(rows)


def incidence_table(audit: ProtocolAudit, interval: IntervalKind = "wilson") -> pd.DataFrame:
    """How often scores mislead: by benchmark, by model within benchmark, by source and by exposure.

    Parameters
    ----------
    audit : ProtocolAudit
    interval : {"wilson", "clopper-pearson"}
        Repeated runs of a task get the clustered interval either way.

    Returns
    -------
    DataFrame
        ``benchmark, model`` ("all" or one), ``cohort_sampling, kind`` ("any", "source" or "exposure"),
        ``name, runs, tasks, positive, rate, low, high, method, deff, undecided`` (unsupported, invalid,
        abstained and no_candidate), ``rate_if_all_positive, note``. `rate` counts the undecided as negative.
        A cohort picked for suspicion has no interval.
    """
    rows = []
    for (benchmark, sampling), traces in _groups(audit.traces, _cohort).items():
        models = _groups(traces, lambda trace: trace.header.model)
        several = list(models.items()) if len(models) > 1 else []
        for model, group in [("all", traces), *several]:
            start: dict[str, Any] = {
                "benchmark": benchmark,
                "model": model,
                "cohort_sampling": sampling,
            }
            rows += [start | row for row in _incidence(group, sampling, interval)]
    return pd.DataFrame(rows)


def _incidence(
    traces: Sequence[TraceResult], sampling: str, interval: IntervalKind
) -> Iterable[dict[str, Any]]:
    kinds: list[tuple[str, str, Callable[[TraceResult], bool]]] = [
        ("any", "any", lambda trace: trace.state == "positive"),
        *(("source", name, _from_source(name)) for name in SOURCES),
        *(("exposure", name, _of_exposure(name)) for name in EXPOSURE_NAMES),
    ]
    undecided = sum(trace.state in _UNDECIDED for trace in traces)
    for kind, name, counts in kinds:
        flags = [counts(trace) for trace in traces]
        if kind == "any" or any(flags):
            yield {"kind": kind, "name": name, **_share(traces, flags, undecided, sampling, interval)}


def _from_source(name: str) -> Callable[[TraceResult], bool]:
    return lambda trace: any(EXPOSURES[one].source == name for one in trace.exposures)


def _of_exposure(name: str) -> Callable[[TraceResult], bool]:
    return lambda trace: name in trace.exposures


def _share(
    traces: Sequence[TraceResult],
    flags: Sequence[bool],
    undecided: int,
    sampling: str,
    interval: IntervalKind,
) -> dict[str, Any]:
    tasks: dict[str, list[bool]] = defaultdict(list)
    for trace, flag in zip(traces, flags, strict=True):
        tasks[trace.header.task_id].append(flag)
    runs, positive = len(traces), sum(flags)
    found = clustered_proportion([sum(one) for one in tasks.values()], [len(one) for one in tasks.values()])
    low, high, method = found.low, found.high, found.method
    if interval == "clopper-pearson" and len(tasks) == runs:
        low, high = (float(end) for end in clopper_pearson(positive, runs))
        method = "Clopper-Pearson"
    picked = sampling == "suspicious_subset"
    return {
        "runs": runs,
        "tasks": len(tasks),
        "positive": positive,
        "rate": positive / runs,
        "low": np.nan if picked else low,
        "high": np.nan if picked else high,
        "method": "none" if picked else method,
        "deff": found.deff,
        "undecided": undecided,
        "rate_if_all_positive": min(1.0, (positive + undecided) / runs),
        "note": NOT_PREVALENCE if picked else "",
    }


def models_table(audit: ProtocolAudit) -> pd.DataFrame:
    """Differences between models on the same benchmark, pair by pair; picked cohorts are left out.

    Returns
    -------
    DataFrame
        ``benchmark, model_a, model_b, runs_a, positive_a, rate_a, runs_b, positive_b, rate_b, difference,
        low, high`` (Newcombe), ``fisher_p, fisher_p_holm`` (Fisher's exact test; Holm over all pairs),
        ``shared_tasks, only_a, only_b, mcnemar_p`` (exact, on tasks that both ran once), ``note``.
    """
    rows = []
    for (benchmark, sampling), traces in _groups(audit.traces, _cohort).items():
        models = _groups(traces, lambda trace: trace.header.model)
        if sampling != "suspicious_subset":
            for a, b in combinations(sorted(models), 2):
                rows.append(_pair(benchmark, a, models[a], b, models[b]))
    frame = pd.DataFrame(rows, columns=list(_PAIR_COLUMNS))
    holm = adjusted(frame["fisher_p"].to_numpy(float))
    frame.insert(_PAIR_COLUMNS.index("fisher_p") + 1, "fisher_p_holm", holm)
    return frame


_PAIR_COLUMNS = (
    *("benchmark", "model_a", "model_b", "runs_a", "positive_a", "rate_a", "runs_b", "positive_b", "rate_b"),
    *("difference", "low", "high", "fisher_p", "shared_tasks", "only_a", "only_b", "mcnemar_p", "note"),
)


def _pair(
    benchmark: str, a: str, of_a: Sequence[TraceResult], b: str, of_b: Sequence[TraceResult]
) -> dict[str, Any]:
    (n_a, x_a), (n_b, x_b) = ((len(one), sum(t.state == "positive" for t in one)) for one in (of_a, of_b))
    low, high = newcombe(x_a, n_a, x_b, n_b)
    only_a, only_b, shared = _discordant(of_a, of_b)
    repeated = len(of_a) > len(_once(of_a)) or len(of_b) > len(_once(of_b))
    return {
        "benchmark": benchmark,
        "model_a": a,
        "model_b": b,
        "runs_a": n_a,
        "positive_a": x_a,
        "rate_a": x_a / n_a,
        "runs_b": n_b,
        "positive_b": x_b,
        "rate_b": x_b / n_b,
        "difference": x_a / n_a - x_b / n_b,
        "low": float(low),
        "high": float(high),
        "fisher_p": float(fisher_exact(np.array([[x_a, n_a - x_a], [x_b, n_b - x_b]]))[1]),
        "shared_tasks": shared,
        "only_a": only_a,
        "only_b": only_b,
        "mcnemar_p": float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else np.nan,
        "note": "tasks were repeated: Newcombe and Fisher take runs as independent" if repeated else "",
    }


def _once(traces: Sequence[TraceResult]) -> Mapping[str, TraceResult]:
    """Runs of the tasks that were run a single time."""
    tasks = _groups(traces, lambda trace: trace.header.task_id)
    return {task: group[0] for task, group in tasks.items() if len(group) == 1}


def _discordant(of_a: Sequence[TraceResult], of_b: Sequence[TraceResult]) -> tuple[int, int, int]:
    """Shared tasks positive with one model alone, with the other alone, and all of them."""
    once_a, once_b = _once(of_a), _once(of_b)
    pairs = [(once_a[task].state, once_b[task].state) for task in sorted(once_a.keys() & once_b.keys())]
    flags = [(one == "positive", other == "positive") for one, other in pairs]
    return flags.count((True, False)), flags.count((False, True)), len(flags)


def repairs_table(audit: ProtocolAudit) -> pd.DataFrame:
    """What to mend: ``exposure, source, repair_target, asks_for, runs`` over positive findings."""
    runs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in audit.findings:
        if one.state == "positive" and one.answer and one.answer.repair_target:
            runs[one.answer.exposure, one.answer.repair_target].add(one.run_id)
    rows = [
        (exposure, EXPOSURES[exposure].source, repair, EXPOSURES[exposure].repairs[repair], len(found))
        for (exposure, repair), found in sorted(runs.items())
    ]
    return pd.DataFrame(rows, columns=["exposure", "source", "repair_target", "asks_for", "runs"])


def detectors_table(audit: ProtocolAudit) -> pd.DataFrame:
    """What to run next, by kind of protocol: ``protocol_kind, runs, detectors``."""
    kinds = _groups(audit.traces, lambda trace: trace.header.protocol_kind)
    rows = [(kind, len(group), "; ".join(DETECTORS[kind])) for kind, group in kinds.items()]
    return pd.DataFrame(rows, columns=["protocol_kind", "runs", "detectors"])


def refused_table(audit: ProtocolAudit) -> pd.DataFrame:
    """Bundles that could not be read: ``source, reason``."""
    return pd.DataFrame([(one.source, one.reason) for one in audit.refused], columns=["source", "reason"])


def tables(audit: ProtocolAudit, interval: IntervalKind = "wilson") -> dict[str, pd.DataFrame]:
    """Every table by the name of its file."""
    return {
        "traces": traces_table(audit),
        "findings": findings_table(audit),
        "evidence": evidence_table(audit),
        "states": states_table(audit),
        "incidence": incidence_table(audit, interval),
        "models": models_table(audit),
        "repairs": repairs_table(audit),
        "detectors": detectors_table(audit),
        "refused": refused_table(audit),
    }


def _cohort(trace: TraceResult) -> tuple[str, str]:
    return trace.header.benchmark, trace.header.cohort_sampling


def _groups(traces: Iterable[TraceResult], key: Callable[[TraceResult], Any]) -> dict[Any, list[TraceResult]]:
    """Runs by key, in order of first appearance."""
    groups: dict[Any, list[TraceResult]] = {}
    for trace in traces:
        groups.setdefault(key(trace), []).append(trace)
    return groups
