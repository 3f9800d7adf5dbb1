"""What an audit leaves behind: sections of the report, tables, the summary, and the folder that holds them.

The names of the files and of their columns are an interface: other programs read them.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from irtaudit._version import __version__
from irtaudit.audit import KIND, AuditResult
from irtaudit.data.files import as_path, atomic_write, make_folder, write_csv
from irtaudit.data.outputs import filling
from irtaudit.data.screen import Screened
from irtaudit.dif.present import READING, present_alone
from irtaudit.dif.present import present as present_groups
from irtaudit.dif.result import DifResult, withdraw
from irtaudit.dif.words import TERMS as GROUP_TERMS
from irtaudit.dif.words import groups_in_words
from irtaudit.dif.words import summary as groups_summary
from irtaudit.dimensionality.followup import followups_table
from irtaudit.dimensionality.nested import lower_alone
from irtaudit.dimensionality.pairwise import pairwise_table
from irtaudit.dimensionality.planned import Planned
from irtaudit.dimensionality.present import TERMS, present, present_followup, sentence
from irtaudit.dimensionality.present_files import present_files
from irtaudit.dimensionality.sweep import Cut, sweep_sentence, sweep_table
from irtaudit.dimensionality.tables import abilities_table, items_table
from irtaudit.dimensionality.trials import trial_facts
from irtaudit.errors import check_kind
from irtaudit.irt.presets import get_preset
from irtaudit.report.export import figure_files, json_text, plain
from irtaudit.report.page import write_report
from irtaudit.report.section import Section
from irtaudit.words import panel_size

SCHEMA_VERSION = 1
SWEEP_COLUMNS = {
    "pass_at": "Scores from here on pass.",
    "pass_rate": "Share of the analysed responses that pass.",
    "items": "Items that the screen keeps.",
    "verdict": "By the rule of this audit.",
    "best_unidimensional": "The best one-dimensional model.",
    "challenger": "The richer model that gains most.",
    "difference": "Log-loss of the best one-dimensional model minus that of the challenger.",
    "low": "Lower end of its interval.",
    "high": "Upper end of its interval.",
    "margin": "The smallest difference that matters.",
    "reason": "Why there is no verdict.",
}
REPORTED_VERSIONS = ("torch", "pyro-ppl", "numpy", "pandas", "scipy")


def sections(result: AuditResult) -> list[Section]:
    """Sections of the report: Test 1, Test 2 where groups are compared, then how it was done."""
    return [
        *present(
            result.comparison,
            result.verdict,
            claim=result.claim,
            holds_for=_holds_for(result),
            full=result.full,
            matrix=result.matrix,
            family=result.settings["cluster"],
            power=result.power,
            correlations=result.correlations,
            structure=result.structure,
            given=result.data,
        ),
        *(present_groups(result.dif) if result.dif else []),
        *map(present_followup, result.followups),
        *_sweep_section(result.sweep),
        *(Section(place="limit", claim=sentence(note).rstrip(".") + ".") for note in result.notes),
        _screening(result),
        *_plan_section(result.planned),
        _settings_section(result),
        present_files(tables(result)),
    ]


def _holds_for(result: AuditResult) -> dict[str, str]:
    kept, given = result.matrix, result.data
    return {
        "Models": f"{kept.n_subjects}{_of(kept.n_subjects, given.n_subjects)}",
        "Items": f"{kept.n_items}{_of(kept.n_items, given.n_items)}",
        "Data": f"{given.source or 'responses'}, sha256 {given.sha256[:16]}…",
        "Version": f"irtaudit {__version__}",
        "Plan": _plan_in_words(result.planned),
    }


def _of(kept: int, given: int) -> str:
    return f" of {given}" if kept != given else ""


def _plan_in_words(planned: Planned | None) -> str:
    if planned is None:
        return "none given: the defaults of this version and what the command says"
    n = len(planned.deviations)
    departs = "no deviation" if not n else f"{n} deviation{'s' if n > 1 else ''}"
    return f"{planned.plan.standing}, sha256 {planned.sha256[:16]}…, {departs}"


def _plan_section(planned: Planned | None) -> list[Section]:
    if planned is None:
        return []
    deviations = pd.DataFrame([asdict(one) for one in planned.deviations], dtype=object).astype(str)
    n = len(deviations)
    return [
        Section(
            place="method",
            title="The plan and every deviation",
            claim=f"The run departs from its plan in {n} way{'s' if n > 1 else ''}."
            if n
            else "The run follows its plan.",
            text=f"The plan is {planned.plan.standing}"
            + (
                "."
                if planned.plan.status == "preregistered"
                else ": it names no registration, so only its authors know when it was written."
            ),
            facts={"File": planned.file, "sha256 of the plan, defaults filled in": planned.sha256},
            table=deviations if n else None,
            columns={"key": "Key of the plan.", "planned": "What it says.", "used": "What the run did."},
            caption="Every deviation.",
            file="deviations.csv",
        )
    ]


def _sweep_section(cuts: Sequence[Cut]) -> list[Section]:
    if not cuts:
        return []
    return [
        Section(
            place="evidence",
            title="Other cut-offs between pass and fail",
            claim=sweep_sentence(cuts),
            how="The scores are cut anew, screened, and audited by the same rule with the same seeds.",
            otherwise="A verdict that changes with the cut-off is about the cut-off, not the models alone.",
            table=sweep_table(cuts),
            columns=SWEEP_COLUMNS,
            caption="The answer at every cut-off, and the challenger that gains most.",
            file="sweep.csv",
        )
    ]


def _screening(result: AuditResult) -> Section:
    dropped, kept = result.dropped, result.matrix
    axes = dropped["axis"].value_counts()
    said = " and ".join(f"{n} of {getattr(result.data, f'n_{axis}s')} {axis}s" for axis, n in axes.items())
    return Section(
        place="method",
        title="Data and screening",
        claim=f"{said} are dropped: nothing is to be learned from them." if said else "Nothing is dropped.",
        text=f"Analysed are {int(kept.totals()[1]):,} responses of {kept.n_subjects} models to "
        f"{kept.n_items} items; {kept.pass_rate:.1%} pass.",
        table=dropped if len(dropped) else None,
        columns={"axis": "Subject or item.", "reason": "Why it cannot be analysed."},
        caption="What the screen dropped, and why.",
        file="dropped.csv",
    )


def _settings_section(result: AuditResult) -> Section:
    settings, rows = result.settings, result.comparison.by_split
    seeds = [str(seed) for seed in settings["split_seeds"] if seed is not None]
    share = result.comparison.test_over_train / (1 + result.comparison.test_over_train)
    how = f"seeds {', '.join(seeds)}" if seeds else "given by the user"
    preset = get_preset(settings["preset"])
    return Section(
        place="method",
        title="Models, splits and seeds",
        claim="Everything random has a seed, and the same command gives the same numbers.",
        facts={
            "Models": ", ".join(settings["models"]),
            "Estimation": "Pyro, mean-field stochastic variational inference; predictions at posterior means",
            "Preset": f"{preset.name}: {preset.epochs} epochs of Adam, step size {preset.learning_rate:g}, "
            f"{preset.schedule}",
            "Splits": f"{result.splits.n_splits}, {share:.0%} of the responses held out, {how}",
            "Training responses": f"{rows['train_cells'].mean():,.0f} per split",
            "Restarts": f"{settings['n_restarts']} per model and split; seed {settings['seed']}",
            "Data": f"sha256 {result.data.sha256}",
            "Held-out cells": f"sha256 {settings['held_out']}",
            "Plan": _plan_in_words(result.planned),
            "Versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
            "Time": f"{result.seconds:.0f} s in this run",
        },
    )


def versions() -> dict[str, str]:
    """Versions that the numbers depend on, by package."""
    return {
        "irtaudit": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in REPORTED_VERSIONS},
    }


def write_audit(result: AuditResult, folder: Path, *, command: str = "") -> Path:
    """Write the audit's folder.

    Parameters
    ----------
    result : AuditResult
    folder : Path
        Made when missing. Receives ``audit.json``, ``comparison.csv``, ``comparison_by_split.csv``,
        ``restarts.csv``, ``factor_correlations.csv``, ``abilities.csv``, ``pairwise.csv``, ``items.csv``,
        ``followups.csv`` and ``sweep.csv`` (where there are any), ``dropped.csv``, ``eigenvalues.csv``,
        ``local_dependence.csv``, ``item_fit.csv``, ``person_fit.csv``, ``predictive_checks.csv``,
        ``reliability.csv``, ``information.csv``, ``loadings.csv``, ``congruence.csv``,
        ``rotated_correlations.csv`` (where an exploratory model challenges), ``dif.csv``, ``dif_flags.csv``
        and the other tables of `irtaudit.dif.result.DifResult.files` (where groups are compared),
        ``figures/*.svg`` and ``report.html``; each file is complete or as it was.
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
    PlanError
        When the folder holds an audit of other data or settings.
    """
    check_kind("result", result, AuditResult, "an AuditResult, as irtaudit.run_audit returns it")
    folder = as_path("folder", folder)
    with filling(folder, KIND, result.settings):
        page = sections(result)
        written = tables(result)
        for name, table in written.items():
            write_csv(table, folder / f"{name}.csv")
        withdraw(folder, written)
        _write_figures(page, folder / "figures")
        atomic_write(folder / "audit.json", json_text(summary(result, command)))
        title = f"{_title(result)}, audited"
        return write_report(page, folder, title=title, command=command, glossary={**GROUP_TERMS, **TERMS})


def write_dif(
    found: DifResult,
    screened: Screened,
    folder: Path,
    *,
    notes: Sequence[str] = (),
    claim: str = READING,
    command: str = "",
) -> Path:
    """Write the folder of a comparison of groups that stands alone.

    Parameters
    ----------
    found : DifResult
    screened : Screened
        The responses that were compared, and what was dropped from them.
    folder : Path
        Made when missing. Receives ``dif.json``, the tables of `irtaudit.dif.result.DifResult.files`,
        ``dropped.csv``, ``figures/*.svg`` and ``report.html``; each file is complete or as it was.
    notes : sequence of str
        What limits the answer, a sentence each.
    claim : str
        The reading under test.
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
    PlanError
        When the folder holds what irtaudit did not write.
    """
    matrix = screened.matrix
    holds_for = {
        "Groups": groups_in_words(found),
        "Data": f"{matrix.source or 'responses'}: {panel_size(matrix.n_subjects, matrix.n_items)}, "
        f"sha256 {matrix.sha256[:16]}…",
        "Version": f"irtaudit {__version__}",
    }
    limits = [
        Section(place="limit", claim=f"{note[:1].upper()}{note[1:]}".rstrip(".") + ".") for note in notes
    ]
    page = [*present_alone(found, holds_for, claim), *limits]
    heading = {"schema_version": 1, "kind": "dif", "data_sha256": matrix.sha256, "command": command}
    with filling(folder, "dif"):
        for name, table in {**found.files, "dropped": screened.dropped}.items():
            write_csv(table, folder / f"{name}.csv")
        withdraw(folder, found.files)
        _write_figures(page, folder / "figures")
        content = heading | groups_summary(found) | {"report": str(folder / "report.html")}
        atomic_write(folder / "dif.json", json_text(content))
        title = f"{Path((matrix.source or 'Responses').partition(',')[0]).name}: groups compared"
        return write_report(page, folder, title=title, command=command, glossary=GROUP_TERMS)


def _title(result: AuditResult) -> str:
    return (result.data.source or "Responses").partition(",")[0]


def tables(result: AuditResult) -> dict[str, pd.DataFrame]:
    """The tables of an audit by the stem of their file name."""
    return {
        "comparison": result.comparison.table,
        "comparison_by_split": result.comparison.by_split,
        "restarts": result.comparison.restarts,
        "factor_correlations": result.correlations,
        "abilities": abilities_table(result.full, result.settings["seed"]),
        "items": items_table(result.full, result.matrix),
        "pairwise": pairwise_table(result.full),
        "dropped": result.dropped,
        **({"followups": followups_table(result.followups)} if result.followups else {}),
        **({"sweep": sweep_table(result.sweep)} if result.sweep else {}),
        **(result.structure.tables if result.structure else {}),
        **(result.dif.files if result.dif else {}),
    }


def _write_figures(page: Sequence[Section], folder: Path) -> None:
    make_folder(folder)
    for name, svg in figure_files(page).items():
        atomic_write(folder / name, svg)


def summary(result: AuditResult, command: str = "") -> dict[str, Any]:
    """The audit for programs: what ``audit.json`` holds.

    Parameters
    ----------
    result : AuditResult
    command : str
        The command that reproduces it.

    Returns
    -------
    dict
        JSON types only; what is undefined is None. ``verdict.reading`` is the verdict's word.
    """
    verdict, comparison, kept = result.verdict, result.comparison, result.matrix
    content = {
        "schema_version": SCHEMA_VERSION,
        "kind": "irt",
        "data": {
            "sha256": result.data.sha256,
            "n_subjects": result.data.n_subjects,
            "n_items": result.data.n_items,
            "source": result.data.source,
            "analysed": {
                "sha256": kept.sha256,
                "n_subjects": kept.n_subjects,
                "n_items": kept.n_items,
                "n_responses": int(kept.totals()[1]),
                "pass_rate": kept.pass_rate,
                "trials": trial_facts(kept, result.full.get(str(verdict.best))),
            },
            "notes": list(result.notes),
        },
        "plan": _plan_content(result.planned),
        "command": command,
        "settings": dict(result.settings),
        "seeds": {
            "splits": list(result.splits.seeds),
            "fits": result.settings["seed"],
            "restarts": list(range(result.settings["n_restarts"])),
        },
        "versions": versions(),
        "verdict": {
            "reading": verdict.word,
            "claim": result.claim,
            "because": verdict.because,
            "what_would_change": verdict.what_would_change,
            "best_unidimensional": verdict.best,
            "gain": verdict.gain._asdict(),
            "margin": verdict.margin,
            "challengers": list(verdict.challengers),
            "evidence": verdict.evidence,
            "conditions": verdict.conditions,
        },
        "comparison": comparison.table,
        "reference": comparison.reference,
        "paired": comparison.paired,
        "nested_findings": comparison.findings,
        "lower_likelihoods": lower_alone(comparison.table, comparison.findings),
        "failed_fits": list(comparison.failed),
        "left_out_models": list(result.left_out),
        "factor_correlations": result.correlations,
        "power": asdict(result.power) if result.power else None,
        "followups": followups_table(result.followups),
        "sweep": sweep_table(result.sweep),
        "structure": result.structure.summary if result.structure else None,
        "dif": groups_summary(result.dif) if result.dif else None,
        "warnings": {name: list(fit.warnings) for name, fit in {**result.fits, **result.full}.items()},
        "seconds": result.seconds,
    }
    return dict(plain(content))


def _plan_content(planned: Planned | None) -> dict[str, Any] | None:
    if planned is None:
        return None
    return {
        "sha256": planned.sha256,
        "status": planned.plan.status,
        "standing": planned.plan.standing,
        "file": planned.file,
        "content": planned.plan.model_dump(mode="json"),
        "deviations": [asdict(one) for one in planned.deviations],
    }
