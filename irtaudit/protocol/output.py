"""What a run of the audit leaves behind: protocol.json, tables, answers, and files for other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from irtaudit._version import __version__
from irtaudit.data.files import atomic_write, make_folder, write_csv
from irtaudit.protocol.audit import ProtocolAudit
from irtaudit.protocol.calibration import Calibration
from irtaudit.protocol.interchange import answers_jsonl, finding_record, findings_jsonl, scout_validation
from irtaudit.protocol.present import Verdict, verdict_of
from irtaudit.protocol.results import IntervalKind, tables
from irtaudit.report.export import json_text, plain

SCHEMA_VERSION = 1
OPTIONAL_TABLES = ("recall_probe", "calibration", "reliability")


def write_results(
    audit: ProtocolAudit,
    folder: Path,
    *,
    interval: IntervalKind = "wilson",
    tolerance: float = 0.05,
    probe: pd.DataFrame | None = None,
    calibration: Calibration | None = None,
    spent: Mapping[str, Any] | None = None,
    reading: str = "",
    command: str = "",
) -> None:
    """Write every file but the report.

    ``protocol.json``; ``traces, findings, evidence, states, incidence, models, repairs, detectors, refused``,
    and where there are such ``recall_probe, calibration, reliability`` as ``.csv``; ``findings.jsonl``;
    ``answers.jsonl`` for the judge "replay"; ``scout_validation.csv``.

    Raises
    ------
    StorageError
        If one of them cannot be written.
    """
    make_folder(folder)
    frames = tables(audit, interval)
    if probe is not None:
        frames["recall_probe"] = probe
    if calibration is not None:
        frames |= {"calibration": calibration.metrics, "reliability": calibration.reliability}
    for name, frame in frames.items():
        write_csv(frame, folder / f"{name}.csv")
    write_csv(scout_validation(audit), folder / "scout_validation.csv")
    atomic_write(folder / "findings.jsonl", findings_jsonl(audit))
    atomic_write(folder / "answers.jsonl", answers_jsonl(audit))
    summary = summary_of(
        audit,
        frames,
        tolerance=tolerance,
        interval=interval,
        calibration=calibration,
        spent=spent,
        reading=reading,
        command=command,
    )
    atomic_write(folder / "protocol.json", json_text(summary))


def summary_of(
    audit: ProtocolAudit,
    frames: Mapping[str, pd.DataFrame],
    *,
    tolerance: float,
    interval: IntervalKind,
    calibration: Calibration | None = None,
    spent: Mapping[str, Any] | None = None,
    reading: str = "",
    command: str = "",
) -> dict[str, Any]:
    """The content of ``protocol.json``: every number of the report, JSON-ready; NaN becomes null."""
    verdict: Verdict = verdict_of(audit, tolerance, interval)
    return {
        "schema_version": SCHEMA_VERSION,
        "irtaudit": __version__,
        "command": command,
        "verdict": {
            "word": verdict.word,
            "claim": reading,
            "why": verdict.why,
            "tolerance": tolerance,
            "interval": interval,
        },
        "judge": {
            "name": audit.judge.name,
            "model": audit.judge.model,
            "prompt_sha256": audit.judge.prompt_sha256,
            "sees": list(audit.judge.sees),
        },
        "rules": list(audit.rules),
        "spent": dict(spent or {}),
        "calibration_counts": None if calibration is None else calibration.counts,
        "tables": {
            name: plain(frame)
            for name, frame in frames.items()
            if name not in ("findings", "evidence", "traces")
        },
        "traces": [
            {**row, "findings": [finding_record(trace, one) for one in trace.findings]}
            for row, trace in zip(plain(frames["traces"]), audit.traces, strict=True)
        ],
    }
