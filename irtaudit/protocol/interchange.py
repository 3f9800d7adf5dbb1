"""Findings for other tools: Inspect Scout's validation CSV, and JSON lines."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from irtaudit.protocol.audit import Finding, ProtocolAudit, TraceResult
from irtaudit.protocol.results import reason_of


def scout_validation(audit: ProtocolAudit) -> pd.DataFrame:
    """Decided runs as Inspect Scout reads a validation set.

    Returns
    -------
    DataFrame
        ``id`` (the run; of a converted Inspect log the sample's uuid) and ``target``: "true" where the score
        misleads, "false" where it was judged not to. Undecided runs are left out.
    """
    decided = [trace for trace in audit.traces if trace.state in ("positive", "negative")]
    return pd.DataFrame(
        {
            "id": [trace.header.run_id for trace in decided],
            "target": ["true" if trace.state == "positive" else "false" for trace in decided],
        }
    )


def findings_jsonl(audit: ProtocolAudit) -> str:
    """One JSON object a line and candidate: state, answer, broken rules, evidence in its context."""
    lines = [
        json.dumps(finding_record(trace, one), ensure_ascii=False)
        for trace in audit.traces
        for one in trace.findings
    ]
    return "".join(f"{line}\n" for line in lines)


def finding_record(trace: TraceResult, finding: Finding) -> dict[str, Any]:
    """A finding as JSON-ready values."""
    return {
        "run_id": finding.run_id,
        "bundle_sha256": trace.sha256,
        "candidate": {
            "id": finding.candidate.id,
            "cue": finding.candidate.exposure,
            "rules": list(finding.candidate.rules),
            "window": finding.candidate.window,
            "pointers": [pointer.model_dump(mode="json") for pointer in finding.candidate.pointers],
        },
        "state": finding.state,
        "reason": reason_of(finding),
        "broken_rules": [{"rule": one.rule, "says": one.says} for one in finding.failures],
        "answer": None if finding.answer is None else finding.answer.model_dump(mode="json"),
        "reads": [
            {"path": read.path, "start": read.start, "end": read.end, "refused": read.refused}
            for read in finding.reads
        ],
        "context": [
            {"link": one.link, "path": one.pointer.path, "text": one.context} for one in finding.quotes
        ],
    }


def answers_jsonl(audit: ProtocolAudit) -> str:
    """The answers as they were given, for the judge "replay"."""
    records = [finding.record for finding in audit.findings if finding.record is not None]
    return "".join(f"{record.model_dump_json()}\n" for record in records)
