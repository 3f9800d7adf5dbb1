"""The folder of a panel audit: one page, one JSON file, a CSV for every table, figures."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from irtaudit._version import __version__
from irtaudit.data.files import atomic_write, make_folder, write_csv
from irtaudit.panel.audit import PanelAudit
from irtaudit.panel.present import present, title
from irtaudit.panel.words import TERMS
from irtaudit.plan import plan_sha256
from irtaudit.report.export import figure_files, json_text, plain
from irtaudit.report.page import write_report

SCHEMA_VERSION = 1


def write_panel(result: PanelAudit, folder: Path, *, command: str = "") -> Path:
    """Write the audit's folder.

    Parameters
    ----------
    result : PanelAudit
    folder : Path
        Made when missing. Receives ``panel.json``, a CSV for each of :func:`tables`, ``figures/*.svg`` and
        ``report.html``; each file is complete or as it was.
    command : str
        The command that reproduces the folder, for the report.

    Returns
    -------
    Path
        ``report.html``.

    Raises
    ------
    StorageError
        When a file cannot be written.
    """
    make_folder(folder / "figures")
    page = present(result)
    for name, table in tables(result).items():
        write_csv(table, folder / f"{name}.csv")
    for name, svg in figure_files(page).items():
        atomic_write(folder / "figures" / name, svg)
    atomic_write(folder / "panel.json", json_text(summary(result, command)))
    return write_report(page, folder, title=title(result), command=command, glossary=TERMS)


def tables(result: PanelAudit) -> dict[str, pd.DataFrame]:
    """The tables of an audit by the stem of their file name; those without a row are left out."""
    scores = result.panel.scores.reset_index()
    if result.panel.organizations is not None:
        scores.insert(1, "organization", result.panel.organizations.to_numpy())
    every = {
        "scores": scores,
        "excluded": result.screened.excluded,
        "verdicts": result.verdict.benchmarks,
        "standings": result.verdict.standings,
        "counts": result.metrics.counts,
        "metrics": result.metrics.metrics,
        "constant_policies": result.metrics.baselines,
        "against_constant": result.metrics.against,
        "associations": result.associations,
        "conventions": result.conventions,
        "sensitivity": result.sensitivity,
        "eigenvalues": result.structure.eigenvalues,
        "loadings": result.structure.loadings,
        "controls": result.controls,
        "small_panels": result.small.table,
        "contrasts": result.contrasts,
        "left_out": result.left_out,
        "clusters": result.clusters,
        "within_organizations": result.within,
        "within_organizations_means": result.within_means,
        "organization_differences": result.groups,
        "residual_ranks": result.residuals,
        "reliability": result.reliability,
        "coverage": result.coverage,
        "concordance": result.concordance,
        "not_tested": result.not_tested,
    }
    if result.coders is not None:
        every["coders"] = result.coders.codes
    if result.comparison is not None:
        every |= {"panel_changes": result.comparison.changes, "matched_panels": result.comparison.matched}
    return {name: table for name, table in every.items() if len(table)}


def summary(result: PanelAudit, command: str = "") -> dict[str, Any]:
    """The audit for programs: what ``panel.json`` holds.

    Returns
    -------
    dict
        JSON types only; what is undefined is None. ``verdict.reading`` is the verdict's word; ``tables``
        holds the rows of every CSV.
    """
    coders = result.coders
    content = {
        "schema_version": SCHEMA_VERSION,
        "kind": "panel",
        "data": {
            "source": result.data.source,
            "sha256": result.data.sha256,
            "n_models": result.data.n_models,
            "columns": result.data.columns.rename_axis("column").reset_index(),
            "warnings": list(result.warnings),
        },
        "plan": {
            "sha256": plan_sha256(result.plan),
            "status": result.plan.status,
            "standing": result.plan.standing,
            "content": result.plan.model_dump(mode="json", by_alias=True),
        },
        "command": command,
        "seed": result.plan.seed,
        "versions": versions(),
        "verdict": {
            "reading": result.verdict.word,
            "claim": result.plan.reading,
            "because": result.verdict.because,
        },
        "redundancy": {**result.redundancy._asdict(), "drop": result.redundancy.drop},
        "structure": {
            "retained": result.structure.retained,
            "composite_agreement": result.structure.composite_agreement,
            "decision": asdict(result.decision),
        },
        "coders": None if coders is None else {k: v for k, v in coders._asdict().items() if k != "codes"},
        "second_panel_notes": [] if result.comparison is None else list(result.comparison.notes),
        "tables": tables(result),
        "seconds": result.seconds,
    }
    found: dict[str, Any] = plain(content)
    return found


def versions() -> dict[str, str]:
    """Versions that the numbers depend on, by package."""
    named = {name: version(name) for name in ("numpy", "pandas", "scipy")}
    return {"irtaudit": __version__, "python": platform.python_version(), **named}
