"""The one pipeline of the main audit: screen, split, fit, compare, judge, describe, compare groups.

The command line and the experiments both run it; whatever it finds it returns, and
:func:`irtaudit.present.write_audit` puts it into a folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data.covariates import columns_there
from irtaudit.data.files import as_path
from irtaudit.data.outputs import claim_folder
from irtaudit.data.responses import ResponseMatrix, check_matrix
from irtaudit.data.screen import merge_small_factors, missingness_warnings, screen
from irtaudit.data.splits import Splits, check_splits, make_splits
from irtaudit.data.trials import refuse_counts
from irtaudit.dif.audit import COMPARISON, compare_groups
from irtaudit.dif.groups import Groups
from irtaudit.dif.options import DifOptions
from irtaudit.dif.result import DifResult
from irtaudit.dif.scopes import with_scopes
from irtaudit.dimensionality.baselines import additive_baselines
from irtaudit.dimensionality.compare import (
    Comparison,
    check_one_dimension,
    compare,
    strongest_unidimensional,
)
from irtaudit.dimensionality.followup import Followed, follow, followup_models, subset
from irtaudit.dimensionality.gates import Power, judge_with_gates, unplaced
from irtaudit.dimensionality.plan import (
    CLAIM,
    DEFAULT_MODELS,
    Followup,
    Group,
    IrtPlan,
    Ruling,
    Splitting,
    check_panel,
)
from irtaudit.dimensionality.planned import Planned, override, planned_splits, read_planned
from irtaudit.dimensionality.structure import Structure, describe_structure
from irtaudit.dimensionality.sweep import Cut, check_cut_offs
from irtaudit.dimensionality.tables import correlations_table
from irtaudit.dimensionality.trials import trial_notes
from irtaudit.dimensionality.verdict import Verdict, check_challengers
from irtaudit.errors import DataError, FitError, PlanError, check_kind, check_whole
from irtaudit.irt.presets import MOST_RESTARTS, get_preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec, check_models, spec_from_name, too_large
from irtaudit.words import counted, panel_size

KIND = "audit"
SEED = 2026
SMALL_POOL, SMALL_TEST = 20, 10
"""With fewer models or items the report warns."""
CLUSTER = "developer"
"""Subject column that names families of related models, where the user names none."""
Progress = Callable[[str, int, int], None]
"""Called with the name of the stage and the numbers of fits done and in all."""


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Everything one audit found.

    Attributes
    ----------
    data : ResponseMatrix
        As given.
    matrix : ResponseMatrix
        As screened: what was analysed.
    dropped : DataFrame
        ``axis, name, reason`` of what the screen dropped.
    splits : Splits
        Of the screened matrix.
    fits : mapping of str to FitResult
        Every model, fitted to the training responses of each split.
    full : mapping of str to FitResult
        The best one-dimensional model and the confirmatory ones, fitted to every observed response.
    comparison : Comparison
    verdict : Verdict
    power : Power or None
        How often the rule would find several dimensions in a panel like this; None where it does not matter.
    correlations : DataFrame
        Factor correlations with two intervals, see `irtaudit.dimensionality.tables.correlations_table`.
    claim : str
        The reading under test.
    settings : mapping
        What the numbers depend on, see :func:`write_audit`.
    notes : tuple of str
        What a reader should know about the data.
    seconds : float
        Wall time of the run, without fits that were found finished.
    followups : tuple of Followed
        The comparison once more without some items.
    planned : Planned or None
        The plan that the run follows, and how it departs from it; None: none was given.
    sweep : tuple of Cut
        The answer at other cut-offs between pass and fail.
    structure : Structure or None
        Eigenvalues, the one-factor test, fit and reliability; None where they were not asked for, or cells
        count several trials.
    dif : DifResult or None
        Comparisons of groups of models; None where none was asked for.
    left_out : tuple of str
        Optional models that the screened panel cannot carry; a note says so too.
    """

    data: ResponseMatrix
    matrix: ResponseMatrix
    dropped: pd.DataFrame
    splits: Splits
    fits: Mapping[str, FitResult]
    full: Mapping[str, FitResult]
    comparison: Comparison
    verdict: Verdict
    power: Power | None
    correlations: pd.DataFrame
    claim: str
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    seconds: float
    followups: tuple[Followed, ...] = ()
    planned: Planned | None = None
    sweep: tuple[Cut, ...] = ()
    structure: Structure | None = None
    dif: DifResult | None = None
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = panel_size(self.matrix.n_subjects, self.matrix.n_items, "subject")
        models = counted(len(self.fits), "model")
        return f"AuditResult({self.claim!r}: {self.verdict.word}, {size}, {models})"


def run_audit(
    matrix: ResponseMatrix,
    *,
    models: Sequence[str | ModelSpec] | None = None,
    optional: Collection[str] = (),
    factors: Sequence[str] = (),
    splits: Splits | None = None,
    splitting: Splitting | None = None,
    claim: str = CLAIM,
    cluster: str | None = None,
    challengers: Sequence[str] | None = None,
    ruling: Ruling | None = None,
    followups: Sequence[Followup] = (),
    groups: Sequence[Group] = (),
    planned: Planned | None = None,
    structured: bool = True,
    preset: str = "default",
    n_restarts: int = 20,
    seed: int = SEED,
    workers: int | None = None,
    device: str = "auto",
    out: Path | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Audit a response matrix: does one score describe it?

    Parameters
    ----------
    matrix : ResponseMatrix
        Where its cells count trials, the models are binomial, and what is made for one response a cell is
        left out, see `irtaudit.dimensionality.trials.trial_notes`.
    models : sequence of str or ModelSpec
        Names as in `irtaudit.irt.spec`, resolved against the items that the screen keeps; a ModelSpec must
        be written for those. Default: `DEFAULT_MODELS`, all of them optional.
    optional : collection of str
        Models that are left out, with a note, where they have more dimensions than the screened panel can
        carry; others are refused then.
    factors : sequence of str
        Item columns; each adds the confirmatory 2PL with one dimension per category. Categories of fewer
        than three items are merged.
    splits : Splits, optional
        Held-out cells of `matrix`; default random ones with seeds ``seed``, ``seed + 1``, ...
    splitting : Splitting, optional
        How random splits are drawn; default five of 20 %.
    claim : str
        The reading under test, in the user's words.
    cluster : str, optional
        Subject column that names the family of each model; default `CLUSTER` where there is such a column,
        else models are taken as unrelated.
    challengers : sequence of str, optional
        Models that could show that one dimension is too few; default those of
        `irtaudit.dimensionality.verdict.judge`.
    ruling : Ruling, optional
        Where the verdict draws its lines; default those of the package.
    followups : sequence of Followup
        The comparison once more without some items.
    groups : sequence of Group
        Pairs of groups of models whose items are compared at equal ability, under the single score and under
        each factor of the confirmatory models.
    planned : Planned, optional
        The plan that this run follows, for the report.
    structured : bool
        Also describe eigenvalues, fit and reliability.
    preset : str
    n_restarts : int
    seed : int
        Names the splits and the noise of every fit.
    workers, device
        As in `irtaudit.irt.fit.fit`.
    out : Path, optional
        Folder of the audit: finished fits are kept in its ``fits`` and found again.
    progress : callable, optional

    Returns
    -------
    AuditResult

    Raises
    ------
    DataError, PlanError, FitError, StorageError
        PlanError also when groups are to be compared on counts of trials, or `out` holds an audit of other
        data or settings, or files of the user's; see `irtaudit.data.outputs`.
    """
    from irtaudit.irt.fit import fit_all

    started = time.monotonic()
    check_matrix(matrix)
    seed, n_restarts = check_whole("seed", seed), check_whole("n_restarts", n_restarts, 1, MOST_RESTARTS)
    if splits is not None:
        check_splits(splits)
    for what, given in (("models", models), ("factors", factors), ("challengers", challengers)):
        if given is not None:
            check_kind(what, given, (list, tuple), "a list of names")
    out = None if out is None else as_path("out", out)
    check_kind("claim", claim, str, "the reading under test, in words")
    if not claim.strip():
        raise PlanError("The reading under test is blank; say it in words: Score = one ability.")
    if groups:
        refuse_counts(matrix, COMPARISON)
    screened = screen(matrix)
    kept = screened.matrix
    check_panel(kept)
    family = _family(kept, cluster)
    pairs = _pairs(kept, groups)
    specs, notes = model_specs(kept.items, DEFAULT_MODELS if models is None else models, factors)
    needless = set(DEFAULT_MODELS if models is None else optional) - set(challengers or ())
    large = too_large(specs, kept.n_subjects, kept.n_items)
    left_out = tuple(spec.name for spec in large if spec.name in needless)
    specs = [spec for spec in specs if spec.name not in left_out]
    ruling = ruling or Ruling()
    cells = _drawn(kept, splitting or Splitting(), seed) if splits is None else splits.align(matrix, kept)
    parts = [_part(followup, kept, cells) for followup in followups]
    for part, models_of_it in ((kept, specs), *((part, chosen) for _, part, _, chosen in parts)):
        check_one_dimension(spec.name for spec in models_of_it)
        check_models(models_of_it, part.n_subjects, part.n_items)
    check_challengers(challengers or (), {spec.name: spec.dims for spec in specs})
    settings = _settings(kept, specs, cells, preset, n_restarts, seed) | {"cluster": family}
    options: dict[str, Any] = {
        "n_restarts": n_restarts,
        "preset": preset,
        "seed": seed,
        "workers": workers,
        "device": device,
        "store": claim_folder(out, KIND, settings) / "fits" if out is not None else None,
    }
    fits = fit_all(kept, specs, cells, progress=_stage(progress, "Held-out comparison"), **options)
    names = next(iter(fits.values())).splits
    comparison = compare(fits, baselines=additive_baselines(kept, cells, names), matrix=kept, splits=cells)
    best = strongest_unidimensional(comparison.table, comparison.failed)[0]
    described = [spec for spec in specs if spec.structure == "confirmatory" or spec.name == best]
    full = (
        fit_all(kept, described, progress=_stage(progress, "Fits to every response"), **options)
        if described
        else {}
    )
    verdict, power = judge_with_gates(
        comparison,
        fits,
        full,
        kept,
        cells,
        clusters=None if family is None else kept.subjects[family].tolist(),
        challengers=challengers,
        rule=ruling.rule,
        correlation=ruling.power_correlation,
        seed=seed,
        workers=workers,
        progress=_stage(progress, "Power of the verdict"),
    )
    followed = [
        follow(
            followup,
            part,
            held,
            fit_all(part, chosen, held, progress=_stage(progress, f"Follow-up: {followup.name}"), **options),
        )
        for followup, part, held, chosen in parts
    ]
    structure = None
    if structured and kept.trials is None:
        rotated = _exploratory(specs, verdict.challengers, comparison.table)
        structure = describe_structure(
            kept,
            full,
            verdict.best,
            exploratory=fit_all(kept, rotated, progress=_stage(progress, "Loadings"), **options)
            if rotated
            else None,
            seed=seed,
            workers=workers,
            device=device,
            progress=_stage(progress, "Simulated panels with one dimension"),
        )
    compared, matching = None, with_scopes(full.values())
    if pairs and not matching:
        notes.append("the groups were not compared: no model of this audit gives an ability to match them on")
    if pairs and matching:
        compared = compare_groups(
            kept,
            matching,
            pairs,
            cluster=family,
            options=DifOptions(seed=seed),
            verdict=verdict.word,
            progress=progress,
        )
    return AuditResult(
        data=matrix,
        matrix=kept,
        dropped=screened.dropped,
        splits=cells,
        fits=fits,
        full=full,
        comparison=comparison,
        verdict=verdict,
        power=power,
        correlations=correlations_table(full, kept, seed=seed, workers=workers),
        claim=claim,
        settings=settings,
        notes=(
            *matrix.notes,
            *notes,
            *_too_few_for(kept, left_out),
            *_small(kept),
            *missingness_warnings(kept),
            *trial_notes(kept, full.get(str(verdict.best))),
        ),
        seconds=time.monotonic() - started,
        followups=tuple(followed),
        planned=planned,
        structure=structure,
        dif=compared,
        left_out=left_out,
    )


def run_plan(
    plan: IrtPlan,
    matrix: ResponseMatrix,
    *,
    folder: Path | None = None,
    planned: Planned | None = None,
    optional: Collection[str] = (),
    structured: bool = True,
    workers: int | None = None,
    device: str = "auto",
    out: Path | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Audit a response matrix as a plan says.

    Parameters
    ----------
    plan : IrtPlan
        As it is to be run.
    matrix : ResponseMatrix
        See `irtaudit.dimensionality.planned.read_planned`.
    folder : Path, optional
        That paths in the plan are relative to; default the current one.
    planned : Planned, optional
        The plan as filed, where that is another one, with its deviations; default: this one, without any.
    optional, structured, workers, device, out, progress
        As in :func:`run_audit`.

    Returns
    -------
    AuditResult
    """
    cut_offs = check_cut_offs(plan.data.sweep, plan.data.pass_at) if plan.data.sweep else ()
    result = run_audit(
        matrix,
        models=plan.models.names,
        optional=optional,
        splits=planned_splits(plan, folder or Path(), matrix),
        splitting=plan.splits,
        claim=plan.reading,
        cluster=plan.cluster,
        challengers=plan.models.challengers,
        ruling=plan.verdict,
        followups=plan.followups,
        groups=plan.groups,
        planned=planned,
        structured=structured,
        preset=plan.fit.preset,
        n_restarts=plan.fit.restarts,
        seed=plan.seed,
        workers=workers,
        device=device,
        out=out,
        progress=progress,
    )
    running = {"folder": folder, "optional": optional, "workers": workers, "device": device}
    cuts = tuple(
        _cut_off(at, result)
        if at == plan.data.pass_at
        else _other_cut_off(at, plan, out, _cut_progress(progress, at), running)
        for at in cut_offs
    )
    return replace(result, sweep=cuts)


def _other_cut_off(
    pass_at: float,
    plan: IrtPlan,
    out: Path | None,
    progress: Progress | None,
    running: Mapping[str, Any],
) -> Cut:
    """The same audit of the scores cut elsewhere; what cannot be audited is a cut with its reason."""
    alone = {"data.sweep": [], "data.sha256": "", "followups": [], "groups": []}
    once = override(plan, alone | {"data.pass_at": pass_at})
    matrix = read_planned(once, running["folder"] or Path())
    store = out / "sweep" / f"{pass_at:g}" if out is not None else None
    try:
        return _cut_off(
            pass_at, run_plan(once, matrix, structured=False, out=store, progress=progress, **running)
        )
    except (DataError, FitError, PlanError) as error:
        return Cut(pass_at, matrix.pass_rate, matrix.n_items, None, str(error))


def _cut_off(pass_at: float, result: AuditResult) -> Cut:
    kept = result.matrix
    return Cut(pass_at, kept.pass_rate, kept.n_items, result.verdict)


def _cut_progress(progress: Progress | None, pass_at: float) -> Progress | None:
    if progress is None:
        return None
    return lambda stage, done, total: progress(f"Pass from {pass_at:g}: {stage}", done, total)


def _pairs(matrix: ResponseMatrix, groups: Sequence[Group]) -> list[Groups]:
    """The groups to compare, refused before anything is fitted if the models are not there."""
    pairs = [Groups(one.column, one.reference, one.focal) for one in groups]
    for pair in pairs:
        pair.sides(matrix.subjects)
    return pairs


def _part(
    followup: Followup, matrix: ResponseMatrix, splits: Splits
) -> tuple[Followup, ResponseMatrix, Splits, list[ModelSpec]]:
    """What a follow-up analyses: its items, their held-out cells, its models."""
    part, held = subset(followup, matrix, splits)
    return followup, part, held, model_specs(part.items, followup_models(followup, part.items), ())[0]


def _too_few_for(matrix: ResponseMatrix, left_out: Sequence[str]) -> list[str]:
    if not left_out:
        return []
    return [
        f"{panel_size(matrix.n_subjects, matrix.n_items)} are too few for {' and '.join(left_out)}, "
        "which an audit compares by default: left out, as a model needs more models and items than it has "
        "dimensions"
    ]


def _exploratory(
    specs: Sequence[ModelSpec], challengers: Sequence[str], table: pd.DataFrame
) -> list[ModelSpec]:
    """The exploratory challengers, the best predictor first: their loadings are rotated."""
    losses = table.set_index("model")["log_loss"]
    found = [spec for spec in specs if spec.structure == "exploratory" and spec.name in challengers]
    return sorted(found, key=lambda spec: float(losses[spec.name]))


def _small(matrix: ResponseMatrix) -> list[str]:
    if matrix.n_subjects >= SMALL_POOL and matrix.n_items >= SMALL_TEST:
        return []
    return [
        f"{panel_size(matrix.n_subjects, matrix.n_items)} are a small panel: expect wide intervals, and "
        "most questions to stay open"
    ]


def _drawn(matrix: ResponseMatrix, splitting: Splitting, seed: int) -> Splits:
    return make_splits(
        matrix,
        n_splits=splitting.n_splits,
        test_fraction=splitting.test_fraction,
        stratified=splitting.stratified,
        seed=seed,
    )


def _family(matrix: ResponseMatrix, column: str | None) -> str | None:
    """The subject column that names families: the one asked for, or the usual one where there is it."""
    if column is None:
        return (
            CLUSTER if CLUSTER in matrix.subjects and not unplaced(matrix.subjects[CLUSTER]).all() else None
        )
    if column not in matrix.subjects:
        there = columns_there(matrix.subjects, "subject")
        raise PlanError(f"There is no subject column {column!r} to name families; {there}.")
    if unplaced(matrix.subjects[column]).all():
        raise PlanError(f"Subject column {column!r} is blank for every model, so it names no families.")
    return column


def model_specs(
    items: pd.DataFrame, models: Sequence[str | ModelSpec], factors: Sequence[str]
) -> tuple[list[ModelSpec], list[str]]:
    """Models by name, plus a confirmatory 2PL for each factor column.

    Parameters
    ----------
    items : DataFrame
        Item table of the screened matrix.
    models : sequence of str or ModelSpec
    factors : sequence of str
        Columns of `items`.

    Returns
    -------
    specs : list of ModelSpec
        Without repetitions, in the order given.
    notes : list of str
        Which small categories were merged.
    """
    named = [*models, *(f"confirmatory_{column}_2pl" for column in factors)]
    table, notes = _merged(items, [name for name in named if isinstance(name, str)])
    specs = [spec if isinstance(spec, ModelSpec) else spec_from_name(spec, table) for spec in named]
    return list({spec.name: spec for spec in specs}.values()), notes


_CONFIRMATORY = re.compile(r"\s*confirmatory_(.+)_[123]pl\s*")


def _merged(items: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Item table whose columns named by confirmatory models have no small category."""
    matches = [_CONFIRMATORY.fullmatch(name) for name in names]
    columns = dict.fromkeys(match[1] for match in matches if match and match[1] in items)
    merged = {column: _merged_labels(items[column]) for column in columns}
    table = items.assign(**{column: labels for column, (labels, _) in merged.items()})
    return table, [note for _, note in merged.values() if note]


def _merged_labels(labels: pd.Series) -> tuple[pd.Series, str | None]:
    """The labels without small categories; a column that has no other is refused by its own names."""
    merged, note = merge_small_factors(labels)
    if labels.nunique() > 1 and merged.nunique() == 1:
        raise DataError(
            f"The {labels.nunique()} categories of the item column {labels.name!r} have one or two items "
            "each, too few for a dimension of their own; name a column with at least two larger categories."
        )
    return merged, note


def _stage(progress: Progress | None, name: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(name, done, total) if progress else None


# What an audit depends on ----------------------------------------------------------------------------


def _settings(
    matrix: ResponseMatrix,
    specs: Sequence[ModelSpec],
    splits: Splits,
    preset: str,
    n_restarts: int,
    seed: int,
) -> dict[str, Any]:
    """What the numbers of an audit depend on, the number of workers not."""
    return {
        "data": matrix.sha256,
        "models": {spec.name: _digest(json.dumps(asdict(spec), sort_keys=True).encode()) for spec in specs},
        "held_out": _digest(np.packbits(splits.test).tobytes()),
        "split_seeds": list(splits.seeds),
        "preset": get_preset(preset).name,
        "n_restarts": n_restarts,
        "seed": seed,
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
