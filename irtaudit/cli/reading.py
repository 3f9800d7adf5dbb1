"""Options that say how responses are read; the same for every command that reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

LAYOUTS = ("wide", "long", "py-irt", "helm", "inspect", "lm-eval", "swe-bench")
TRIALS = ("first", "majority", "mean", "counts")

_NAMES = {"model_table": "models"}


class _Place(click.Path):
    """A path that is not empty: an unset shell variable must not mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "":
            self.fail("it is empty; expected a file or folder.", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A number within bounds; what is no number (nan) or has no end (inf) is neither."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class _Words(click.ParamType):
    """Text that says something."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text."""
        if not value.strip():
            self.fail("it is blank; say it in words, or leave the option out.", param, ctx)
        return value


WORDS = _Words()
"""The type of the reading under test."""
PLACE = _Place(path_type=Path)
"""The type of every argument and option that names a file or folder."""
_OPTIONS = (
    click.option(
        "--from", "layout", type=click.Choice(LAYOUTS), help="What the data is, if it could be two things."
    ),
    click.option("--subject-column", metavar="NAME", help="Column of the subjects, if not recognised."),
    click.option("--item-column", metavar="NAME", help="Column of the items of a long table, likewise."),
    click.option("--response-column", metavar="NAME", help="Column of a long table's responses, likewise."),
    click.option("--pass-at", type=float, metavar="SCORE", help="Scores from SCORE on pass; 1.0 full marks."),
    click.option(
        "--trials",
        type=click.Choice(TRIALS),
        help="What counts of repeated trials: the first, more than half, their mean (with --pass-at), or how "
        "many pass (counts).",
    ),
    click.option("--task", metavar="NAME", help="Of logs: the task (HELM: scenario) to read; default all."),
    click.option("--metric", metavar="NAME", help="Of logs: the score to read, where a task has several."),
    click.option("--target", metavar="TEXT", help="Of logs: only items with this target (XSTest: unsafe)."),
    click.option(
        "--unscored",
        type=click.Choice(("missing", "fail")),
        help="Of logs: what a sample is that broke off or has no score; default missing.",
    ),
    click.option(
        "--incomplete",
        type=click.Choice(("keep", "drop")),
        help="Whether subjects that lack items are kept; default keep.",
    ),
    click.option("--model-table", metavar="FILE", type=PLACE, help="Your table of model, developer, access."),
)

force_option = click.option("--force", is_flag=True, help="Replace a file that is there already.")
size_option = click.option(
    "--max-bytes", type=click.IntRange(min=1), metavar="N", help="Refuse what unpacks to more; default 1 GiB."
)
"""For commands without a plan: a limit that guards this machine, not a choice about the data."""


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; `given` turns them into keyword arguments of `read_responses`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were used, named as `read_responses` names them."""
    return {_NAMES.get(name, name): value for name, value in options.items() if value is not None}
