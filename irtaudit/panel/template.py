"""A plan to start from: every column of a table with a guess of what it is, every rule with its default."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.panel import model_names, name_column, numbers
from irtaudit.data.tables import Table, parse_table
from irtaudit.errors import DataError
from irtaudit.panel.plan import READING, PanelPlan, Resampling, Thresholds
from irtaudit.plan import make_plan, toml_text

ANCHORS = re.compile(
    r"mmlu|gpqa|arc|hellaswag|bbh|gsm|math|aime|truthfulqa|winogrande|musr|ifeval|livebench|elo|capability",
    re.I,
)
WORSE = re.compile(r"attack|asr|harmful|violation|error|toxic|fail|leak|compliance|hallucinat|false", re.I)
ORGANIZATION = re.compile(r"organi[sz]ation|developer|provider|vendor|company|maker|lab|org", re.I)
MAX_COLUMNS = 1_000
COUNT = re.compile(r"(?P<name>.+)_(?P<part>tp|fp|fn|tn|valid|n|items)", re.I)


class _Guess(NamedTuple):
    """What is guessed about a table's columns, and why others do not take part."""

    model: str
    organization: str | None
    scores: dict[str, pd.Series]
    extras: dict[str, dict[str, str]]
    left_out: dict[str, str]


def plan_template(path: str | Path, max_bytes: int = MAX_BYTES) -> tuple[str, tuple[str, ...]]:
    """A commented plan for a score table, to be edited.

    Anchors, orientation, organizations, counts (``<benchmark>_tp`` ...), shares of valid outputs
    (``<benchmark>_valid``) and numbers of items (``<benchmark>_n``) are guessed from names and marked as
    guesses. The text is a valid plan as it stands.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet, a row per model.
    max_bytes : int
        Refuse files that unpack to more.

    Returns
    -------
    text : str
        The plan, TOML.
    notes : tuple of str
        Which columns it leaves out, and why.

    Raises
    ------
    DataError
        If it is no such table, has more than `MAX_COLUMNS` columns, or none holds numbers that differ.
    """
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    if len(table.names) > MAX_COLUMNS:
        raise DataError(
            f"{path} has {len(table.names):,} columns, expected a column per benchmark, {MAX_COLUMNS} at "
            "most; where they are single items, `irtaudit audit` reads the table"
        )
    guess = _guessed(table)
    if not guess.scores:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in list(guess.left_out.items())[:5])
        raise DataError(f"{path}: no column holds numbers that differ between models ({reasons})")
    text = "\n".join([*_head(Path(path), guess), *_columns(guess), *_rules()]) + "\n"
    make_plan(tomllib.loads(text), PanelPlan, where="the plan template")
    return text, tuple(f"left out {name!r}: {why}" for name, why in guess.left_out.items())


def _guessed(table: Table) -> _Guess:
    model = table.names[name_column(table)]
    names = model_names(table, model)
    columns = [c for c in dict.fromkeys(table.names) if c != model]
    organization = next((c for c in columns if ORGANIZATION.fullmatch(c.strip())), None)
    read = {c: _read(table, c, names) for c in columns if c != organization}
    numeric = {c: values for c, values in read.items() if not isinstance(values, str)}
    counted = {c: found for c in numeric if (found := COUNT.fullmatch(c)) and found["name"] in numeric}
    extras: dict[str, dict[str, str]] = {}
    for column, found in counted.items():
        extras.setdefault(found["name"], {})[found["part"].lower()] = column
    scores = {c: v for c, v in numeric.items() if c not in counted and v.nunique() > 1}
    flat = {c: "the same for every model that has one" for c in numeric if c not in {*counted, *scores}}
    unread = {c: reason for c, reason in read.items() if isinstance(reason, str)}
    return _Guess(model, organization, scores, extras, {**unread, **flat})


def _read(table: Table, column: str, names: pd.Index) -> pd.Series | str:
    """The numbers of a column, or why it has none."""
    try:
        values = pd.Series(numbers(table, column, names), index=names)
    except DataError as error:
        return str(error).partition("column ")[2].partition(": ")[2] or str(error)
    return "empty" if values.isna().all() else values


def _head(path: Path, guess: _Guess) -> list[str]:
    organization = (
        [f"organization = {toml_text(guess.organization)}"]
        if guess.organization is not None
        else ['# organization = "..."  # column of who made a model; none is recognised']
    )
    return [
        f"# A plan for the panel audit of {path.name}: edit it before you look at any relationship.",
        "# Check every guess below; then: irtaudit panel " + path.name + " --plan plan.toml --out DIR",
        "",
        'kind = "panel"',
        "schema_version = 1",
        f"title = {toml_text(path.stem + ', audited')}",
        "# The reading under test, in your words. It heads the report.",
        f"reading = {toml_text(READING)}",
        "# Where an independent registry holds this plan, if one does: https://... or a DOI. Only then is it",
        "# called preregistered; reports name the address and say that it was not checked.",
        'registration = ""',
        "# Everything random derives from this.",
        "seed = 2026",
        "",
        f"model = {toml_text(guess.model)}",
        *organization,
        "",
        "# The score columns that take part; delete the others. Roles:",
        '#   "anchor"     measures capability (knowledge, reasoning), the same way for every model',
        '#   "benchmark"  is audited; give it its construct: benchmarks of one construct should agree',
        '#   "criterion"  is a held-out outcome that a score might predict',
        *(["# Left out, because they hold no scores:"] if guess.left_out else []),
        *(f"#   {_one_line(name)}: {_one_line(why)}" for name, why in guess.left_out.items()),
    ]


def _one_line(text: str) -> str:
    return toml_text(text)[1:-1]


def _columns(guess: _Guess) -> list[str]:
    anchors = [name for name in guess.scores if ANCHORS.search(name)]
    if len(anchors) == len(guess.scores):
        anchors = []
    labels = [name.replace("_", " ").replace("~", "-").strip() for name in guess.scores]
    lines: list[str] = []
    for (name, values), text in zip(guess.scores.items(), labels, strict=True):
        label = text if text and labels.count(text) == 1 else name
        explained = name not in anchors and not any(line.startswith("construct") for line in lines)
        lines += _column(name, label, values, name in anchors, guess.extras.get(name, {}), explained)
    return lines


def _column(
    name: str, title: str, values: pd.Series, anchor: bool, extra: dict[str, str], explained: bool
) -> list[str]:
    worse = not anchor and WORSE.search(name) is not None
    scale = _scale(values)
    label = toml_text(title)
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)
    lines = [
        "",
        f"[columns.{key}]",
        f'role = "{"anchor" if anchor else "benchmark"}"  # a guess from the name',
        f"label = {label}",
        *([] if anchor else [f"construct = {label}  # what it is meant to measure"]),
        'measures = ""  # ends the sentence "ranks models by ..."',
        f'higher_is = "{"worse" if worse else "better"}"{"  # a guess from the name" if worse else ""}',
        f"scale = {scale}"
        if scale
        else "# scale = [0, 1]  # lowest and highest score there is: to be checked",
        *_extra_lines(extra),
    ]
    return [*lines, *(_FURTHER if explained else [])]


_FURTHER = [
    "# What else may be said of a benchmark, here and below:",
    "# items = 100  # items behind each score, or the column that says so",
    '# metric = "f1"  # or recall, specificity, balanced_accuracy, ...: against policies that never look',
    "# positives = 301  # labels of the benchmark, for those",
    "# negatives = 270",
    '# counts = { tp = "...", fp = "...", fn = "...", tn = "..." }  # columns of confusion counts',
    '# published = { f1 = "...", specificity = "..." }  # or columns from which counts follow',
    '# valid = "..."  # column of the share of outputs that could be parsed',
    '# regrade = "..."  # column of the same benchmark by a second grader',
    '# halves = ["...", "..."]  # columns of two halves of it',
    '# responses = "items.csv"  # responses to its single items, a row per model',
]


def _scale(values: pd.Series) -> str:
    """The scale that the numbers suggest: shares or percentages; "" otherwise."""
    if values.min() < 0 or values.max() > 100:
        return ""
    return "[0, 1]" if values.max() <= 1 else "[0, 100]" if values.min() > 1 else ""


def _extra_lines(extra: dict[str, str]) -> list[str]:
    """Keys whose columns the table has by their names."""
    lines = []
    items = extra.get("n") or extra.get("items")
    if items:
        lines.append(f"items = {toml_text(items)}")
    if {"tp", "fp", "fn", "tn"} <= extra.keys():
        counts = ", ".join(f"{part} = {toml_text(extra[part])}" for part in ("tp", "fp", "fn", "tn"))
        lines.append(f"counts = {{ {counts} }}")
    if "valid" in extra:
        lines.append(f"valid = {toml_text(extra['valid'])}")
    return lines


def _rules() -> list[str]:
    return [
        "",
        "# Where the rules draw their lines (these are the defaults).",
        "[thresholds]",
        *_defaults(Thresholds()),
        "",
        "[resampling]",
        *_defaults(Resampling()),
        "",
        "# Tests that are read together. Each kind (between, capability, criterion, contrasts, groups,",
        "# panels) is a family of its own unless you join them.",
        "[multiplicity]",
        'method = "holm"',
        '# families = { main = ["criterion", "contrasts"] }',
        "",
        "# Differences between correlations. By default capability with every pair of criteria, or of",
        "# benchmarks where there are no criteria; any such entry replaces them all.",
        "# [[contrasts]]",
        '# of = "capability"',
        '# first = "..."',
        '# second = "..."',
    ]


_NOTES = {
    "valid_output": "smallest share of parseable outputs; below it a model is left out of a benchmark",
    "interchangeable": "rank correlation from which one score may stand for another",
    "effect": "rank correlation worth finding, for power",
    "loading": "positive control: loading of every anchor on the first component",
    "negative_share": "negative control: share of shuffled panels within the null",
    "convergent": "convergent control: correlation of columns of one construct",
    "convergent_n": "fewest models for that, for the components and for any verdict",
    "first_component": "share of variance from which the factor structure may be read",
    "redundancy_drop": "or drop of the median correlation once capability is held constant",
    "small_panel_effect": "correlation that a small panel should not show by chance",
    "bootstrap": "draws of models, and of whole organizations",
    "permutations": "shuffles for p-values",
    "horn": "null panels of parallel analysis",
    "negative_control": "shuffled panels of the negative control",
    "matched": "subsets of a second panel with the first one's organizations",
    "subsets": "most small panels of a size; random ones where there are more",
    "subset_sizes": "sizes of small panels",
}


def _defaults(part: Thresholds | Resampling) -> Iterable[str]:
    for name, value in part.model_dump().items():
        shown = list(value) if isinstance(value, tuple) else value
        yield f"{name} = {shown}  # {_NOTES[name]}"
