"""A plan to start from: what the data offer, every rule with its default, and why one would change it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from irtaudit.data.covariates import columns_there
from irtaudit.data.read import read_responses
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import merge_small_factors, screen
from irtaudit.dimensionality.plan import (
    CLAIM,
    DEFAULT_MODELS,
    IrtPlan,
    check_panel,
    default_plan,
    paper_grid,
)
from irtaudit.errors import DataError, PlanError
from irtaudit.irt.spec import ModelSpec, spec_from_name, too_large
from irtaudit.plan import make_plan, toml_text

Grid = Literal["default", "paper"]
MAX_FACTORS = 12
"""Categories up to which an item column is proposed as the factors of a model."""
MIN_GROUP = 8
"""Models that both groups of a proposed comparison must have."""
FULL_MARKS = 1.0


def plan_template(
    path: str | Path,
    *,
    items: str | Path | None = None,
    subjects: str | Path | None = None,
    factors: Sequence[str] = (),
    grid: Grid = "default",
    folder: str | Path = ".",
) -> tuple[str, tuple[str, ...]]:
    """A commented plan for a response matrix, to be edited.

    Item columns become confirmatory models: those named, or else all with 2 to `MAX_FACTORS` categories. The
    two largest groups of the subject column ``developer`` become a comparison, and the hash of the data is
    noted. The text is a valid plan as it stands.

    Parameters
    ----------
    path : path
        Responses, any file or folder that `read_responses` reads; scores pass with full marks.
    items, subjects : path, optional
        Tables that describe items and subjects.
    factors : sequence of str
        Item columns whose categories are the factors of a model; default: see above.
    grid : {"default", "paper"}
        Which models: six, or every one of the source paper's tables.
    folder : path
        Where the plan will stand: paths in it are relative to that.

    Returns
    -------
    text : str
    notes : tuple of str
        What was guessed, and what the data lack.

    Raises
    ------
    DataError, StorageError
        If the responses cannot be read, or a column of `factors` cannot be the factors of a model.
    PlanError
        If there is no such column.
    """
    matrix, pass_at = _read(path, items, subjects)
    columns = _named(matrix.items, factors) if factors else factor_columns(matrix.items)
    files = {
        name: _beside(file, folder)
        for name, file in (("responses", path), ("items", items), ("subjects", subjects))
    }
    text = "\n".join(
        [
            *_head(path, matrix.subjects),
            *_data(matrix, files, pass_at),
            *_models(matrix, columns, grid),
            *_rules(matrix),
        ]
    )
    make_plan(tomllib.loads(text), IrtPlan, where="the plan template")
    return text + "\n", _notes(matrix, columns, pass_at)


def _named(items: pd.DataFrame, factors: Sequence[str]) -> list[str]:
    """The columns asked for, each once; refused where they cannot be factors."""
    for column in factors:
        if column not in items:
            raise PlanError(f"There is no item column {column!r}; {columns_there(items, 'item')}.")
        if merge_small_factors(items[column])[0].nunique() < 2:
            raise DataError(
                f"The item column {column!r} cannot be the factors of a model: that takes two categories of "
                f"three items or more, the small ones merged. Name another with --factors."
            )
    return list(dict.fromkeys(factors))


def _notes(matrix: ResponseMatrix, columns: Sequence[str], pass_at: float | None) -> tuple[str, ...]:
    guessed = "responses are scores: the plan guesses that only full marks pass (data.pass_at)"
    refused = _refusal(matrix)
    bare = "no item column can be the factors of a model; name a table of the items with --items"
    return (
        *matrix.notes,
        *((guessed,) if pass_at is not None else ()),
        *(() if columns else (bare,)),
        *((f"an audit refuses these data as they are: {refused}",) if refused else ()),
    )


def _refusal(matrix: ResponseMatrix) -> str | None:
    """Why an audit of the matrix would end before it began; None: it would not."""
    try:
        check_panel(screen(matrix).matrix)
    except DataError as error:
        return str(error)
    return None


def _read(
    path: str | Path, items: str | Path | None, subjects: str | Path | None
) -> tuple[ResponseMatrix, float | None]:
    """The matrix, and the pass rule that it needed."""
    try:
        return read_responses(path, items=items, subjects=subjects), None
    except DataError as error:
        if "pass_at" not in str(error):
            raise
    return read_responses(path, items=items, subjects=subjects, pass_at=FULL_MARKS), FULL_MARKS


def _beside(file: str | Path | None, folder: str | Path) -> str | None:
    """The file as seen from the folder, with forward slashes."""
    return None if file is None else Path(os.path.relpath(file, folder)).as_posix()


def _head(path: str | Path, subjects: pd.DataFrame) -> list[str]:
    return [
        f"# A plan for the audit of {_one_line(Path(path).name)}: edit it before you look at any result.",
        "# Then: irtaudit audit --plan plan.toml --out DIR. Its hash, that of the data, and every flag that",
        "# overrides the plan stand in the report.",
        "",
        'kind = "irt"',
        "schema_version = 1",
        f"title = {toml_text(Path(path).stem + ', audited')}",
        "# The reading under test, in your words. It heads the report.",
        f"reading = {toml_text(CLAIM)}",
        "# Where an independent registry holds this plan, if one does: https://... or a DOI. Only then is it",
        "# called preregistered; reports name the address and say that it was not checked.",
        'registration = ""',
        "# Splits, restarts, nulls and intervals all derive from this.",
        "seed = 2026",
        *_cluster(subjects),
    ]


def _data(matrix: ResponseMatrix, files: dict[str, str | None], pass_at: float | None) -> list[str]:
    rule = (
        f"pass_at = {pass_at}  # scores from here on pass; 1.0: full marks alone. A guess: is it your rule?"
        if pass_at is not None
        else "# pass_at = 1.0  # the pass rule, where responses are scores: from here on a response passes"
    )
    return [
        "",
        "# Paths are relative to this file.",
        "[data]",
        *(
            f"{name} = {toml_text(file)}" if file is not None else f'# {name} = "..."  # table, a row each'
            for name, file in files.items()
        ),
        rule,
        f"# {matrix.n_subjects} models x {matrix.n_items} items; other names or responses are a deviation.",
        f'sha256 = "{matrix.sha256}"',
    ]


def _models(matrix: ResponseMatrix, columns: Sequence[str], grid: Grid) -> list[str]:
    factors = tuple(f"confirmatory_{column}_2pl" for column in columns)
    names = (*DEFAULT_MODELS, *factors) if grid == "default" else paper_grid(columns)
    large = _too_large(names, matrix, columns)
    names = tuple(name for name in names if name not in large)
    factors = tuple(name for name in factors if name in names)
    return [
        "",
        "# unidimensional_2pl, exploratory_3d_2pl, confirmatory_<item column>_2pl; 1pl, 2pl or 3pl.",
        "# Confirmatory: a dimension per category of the column. Exploratory: found from the data.",
        *(
            []
            if columns
            else ["# No item column has 2 to 12 categories of three items: none is confirmatory."]
        ),
        *([f"# Too large for what the screen keeps of this panel: {', '.join(large)}."] if large else []),
        "[models]",
        "names = [",
        *(f"  {toml_text(name)}," for name in names),
        "]",
        "# Which of them could show that one dimension is too few. Default: every confirmatory one, and",
        "# exploratory ones up to four dimensions. More of them cost power: intervals widen with them.",
        "# challengers = [" + ", ".join(map(toml_text, factors or ("exploratory_2d_2pl",))) + "]",
        *_followup(matrix.items, columns),
    ]


def _too_large(names: Sequence[str], matrix: ResponseMatrix, columns: Sequence[str]) -> tuple[str, ...]:
    """Those of the models that an audit of the matrix would refuse."""
    if _refusal(matrix) is not None:
        return ()
    kept = screen(matrix).matrix
    merged = matrix.items.assign(
        **{column: merge_small_factors(matrix.items[column])[0] for column in columns}
    )
    specs = [spec_from_name(name, merged) for name in names]
    return tuple(spec.name for spec in too_large(specs, kept.n_subjects, kept.n_items))


def factor_columns(items: pd.DataFrame) -> list[str]:
    """Item columns that can be the factors of a model: fewest categories first.

    Parameters
    ----------
    items : DataFrame
        Item table.
    """
    sizes = {}
    for column in items:
        if isinstance(column, str) and column.strip():
            try:
                labels = merge_small_factors(items[column])[0]
                n_factors = ModelSpec.confirmatory("2pl", labels).dims
            except (DataError, PlanError):
                continue
            if n_factors <= MAX_FACTORS:
                sizes[column] = n_factors
    return sorted(sizes, key=sizes.__getitem__)


def _followup(items: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    column = columns[0] if columns else "category"
    largest = str(items[column].value_counts().index[0]) if columns else "..."
    return [
        "",
        "# The comparison once more without some items: does the answer rest on them?",
        "# [[followups]]",
        f"# name = {toml_text(f'without {largest}')}",
        f"# column = {toml_text(column)}",
        f"# leave_out = [{toml_text(largest)}]",
    ]


def _rules(matrix: ResponseMatrix) -> list[str]:
    plan = default_plan()
    splits, fit, verdict = plan.splits, plan.fit, plan.verdict
    return [
        "",
        "[splits]",
        f"n_splits = {splits.n_splits}  # each holds out other responses at random",
        f"test_fraction = {splits.test_fraction}",
        "stratified = false  # true: the same share of passes as of fails is held out",
        '# heldout = "mask.csv"  # your own held-out cells instead: columns split, subject, item',
        "",
        "[fit]",
        f'preset = "{fit.preset}"  # or "paper" (2,000 plain epochs), "quick" (a first look)',
        f"restarts = {fit.restarts}  # random starts per model and split; training likelihood chooses one",
        "",
        "# Where the verdict draws its lines (these are the defaults).",
        "[verdict]",
        f"margin_share = {verdict.margin_share}  # smallest gain that counts, of what one dimension gains",
        f'min_power = {verdict.min_power}  # that "supported" asks for',
        f"power_correlation = {verdict.power_correlation}  # correlation of the factors that power is about",
        *_groups(matrix.subjects),
    ]


def _cluster(subjects: pd.DataFrame) -> list[str]:
    known = "developer" in subjects
    says = "" if known else " None is known: models are taken as unrelated."
    return [
        f"# Subject column that names families of related models.{says}",
        f'{"" if known else "# "}cluster = "developer"',
    ]


def _groups(subjects: pd.DataFrame) -> list[str]:
    """The two largest developers, as a comparison to confirm or delete."""
    counts = subjects["developer"].value_counts() if "developer" in subjects else pd.Series(dtype=int)
    counts = counts[~counts.index.isin(["unknown", "other"])]
    found = len(counts) > 1 and counts.iloc[1] >= MIN_GROUP
    first, second = (str(counts.index[0]), str(counts.index[1])) if found else ("...", "...")
    lines = [
        "[[groups]]",
        'column = "developer"',
        f"reference = {toml_text(first)}",
        f"focal = {toml_text(second)}",
    ]
    says = "A guess: the two largest developers. " if found else ""
    return [
        "",
        "# Groups of models whose items are compared at equal ability (differential item functioning), under",
        f"# the single score and under each factor. {says}Repeatable.",
        *(lines if found else _commented(lines)),
    ]


def _commented(lines: Iterable[str]) -> list[str]:
    return [f"# {line}" for line in lines]


def _one_line(text: str) -> str:
    return toml_text(text)[1:-1]
