"""A plan to start from: every column of a table with a guess of what it is, every rule with its default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
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
COUNT = re.compile(r"(?P<name>.+)_(?P<part>tp|fp|fn|tn|valid|n|items)", re.I)


class _Guess(NamedTuple):
    """What is guessed about a table's columns."""

    model: str
    organization: str | None
    scores: dict[str, pd.Series]
    extras: dict[str, dict[str, str]]


def plan_template(path: str | Path, max_bytes: int = MAX_BYTES) -> str:
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

    Raises
    ------
    DataError
        If it is no such table, or none of its columns holds numbers that differ.
    """
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    guess = _guessed(table)
    if not guess.scores:
        raise DataError(
            f"{path}: no column holds numbers that differ between models; there is nothing to audit"
        )
    text = "\n".join([*_head(Path(path), guess), *_columns(guess), *_rules()]) + "\n"
    _check(text)
    return text


def _check(text: str) -> None:
    import tomllib

    make_plan(tomllib.loads(text), PanelPlan, where="the plan template")


def _guessed(table: Table) -> _Guess:
    model = table.names[name_column(table)]
    names = model_names(table, model)
    numeric: dict[str, pd.Series] = {}
    for column in dict.fromkeys(table.names):
        if column != model and table.names.count(column) == 1:
            values = _numeric(table, column, names)
            if values is not None:
                numeric[column] = values
    known = {c: found for c in numeric if (found := COUNT.fullmatch(c)) and found["name"] in numeric}
    extras: dict[str, dict[str, str]] = {}
    for column, found in known.items():
        extras.setdefault(found["name"], {})[found["part"].lower()] = column
    scores = {c: v for c, v in numeric.items() if c not in known and v.nunique() > 1}
    others = [c for c in table.names if c not in numeric and c != model]
    organization = next((c for c in others if ORGANIZATION.fullmatch(c.strip())), None)
    return _Guess(model, organization, scores, extras)


def _numeric(table: Table, column: str, names: pd.Index) -> pd.Series | None:
    try:
        values = numbers(table, column, names)
    except DataError:
        return None
    return None if np.isnan(values).all() else pd.Series(values, index=names)


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
        "# Address of an independent timestamp, if this plan has one: only then is it called preregistered.",
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
    ]


def _columns(guess: _Guess) -> list[str]:
    anchors = [name for name in guess.scores if ANCHORS.search(name)]
    if len(anchors) == len(guess.scores):
        anchors = []
    return [
        line
        for name, values in guess.scores.items()
        for line in _column(name, values, name in anchors, guess)
    ]


def _column(name: str, values: pd.Series, anchor: bool, guess: _Guess) -> list[str]:
    worse = not anchor and WORSE.search(name) is not None
    scale = _scale(values)
    lines = [
        "",
        f"[columns.{toml_text(name)}]",
        f'role = "{"anchor" if anchor else "benchmark"}"  # a guess from the name',
        f"label = {toml_text(name)}",
        *([] if anchor else [f"construct = {toml_text(name)}  # what it is meant to measure"]),
        'measures = ""  # ends the sentence "ranks models by ..."',
        f'higher_is = "{"worse" if worse else "better"}"{"  # a guess from the name" if worse else ""}',
        f"scale = {scale}"
        if scale
        else "# scale = [0, 1]  # lowest and highest possible score, to have it checked",
    ]
    return [*lines, *_extra_lines(guess.extras.get(name, {}), anchor)]


def _scale(values: pd.Series) -> str:
    """The scale that the numbers suggest: shares or percentages; "" otherwise."""
    if values.min() < 0 or values.max() > 100:
        return ""
    return "[0, 1]" if values.max() <= 1 else "[0, 100]" if values.min() > 1 else ""


def _extra_lines(extra: dict[str, str], anchor: bool) -> list[str]:
    items = extra.get("n") or extra.get("items")
    lines = [
        f"items = {toml_text(items)}" if items else "# items = 100  # items behind each score, or a column"
    ]
    if anchor:
        return lines
    if {"tp", "fp", "fn", "tn"} <= extra.keys():
        counts = ", ".join(f"{part} = {toml_text(extra[part])}" for part in ("tp", "fp", "fn", "tn"))
        lines.append(f"counts = {{ {counts} }}")
    else:
        lines.append(
            '# metric = "f1"  # or recall, specificity, balanced_accuracy, ...: against constant policies'
        )
        lines.append("# positives = 301  # labels of the benchmark, for those")
        lines.append("# negatives = 270")
    valid = extra.get("valid")
    lines.append(
        f"valid = {toml_text(valid)}"
        if valid
        else '# valid = "..."  # column of the share of parseable outputs'
    )
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
        "# Tests that are read together. Each kind (between, capability, criterion, contrasts, groups) is a",
        "# family of its own unless you join them.",
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


def _defaults(part: Thresholds | Resampling) -> Iterable[str]:
    for name, value in part.model_dump().items():
        yield f"{name} = {list(value) if isinstance(value, tuple) else value}"
