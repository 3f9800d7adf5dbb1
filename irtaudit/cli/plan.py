"""``irtaudit plan``: write a plan to start from."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from irtaudit.cli.reading import PLACE, force_option

KINDS = {"irt": "irtaudit.dimensionality.template", "panel": "irtaudit.panel.template"}
"""Audits that have a plan, and the module whose ``plan_template(path)`` gives one for a file, with notes."""
NEXT = {
    "irt": "irtaudit audit --plan {plan} --out DIR",
    "panel": "irtaudit panel {source} --plan {plan} --out DIR",
}
"""The command that runs such a plan."""


@click.group()
def command() -> None:
    """Write down what an audit asks before it runs."""


@command.command("init")
@click.argument("source", metavar="FILE", type=PLACE)
@click.option("--kind", type=click.Choice(list(KINDS)), required=True, help="Which audit the plan is for.")
@click.option("--items", metavar="FILE", type=PLACE, help="Table of the items (irt).")
@click.option("--subjects", metavar="FILE", type=PLACE, help="Table of the subjects (irt).")
@click.option(
    "--factors",
    metavar="COLUMN",
    multiple=True,
    help="Item column whose categories are the factors of a model (irt). Repeatable; default: every column "
    "with 2 to 12 categories of three items or more.",
)
@click.option(
    "--grid",
    type=click.Choice(("default", "paper")),
    help="Models of the plan (irt): six, or every one of the source paper's tables.",
)
@click.option(
    "--out",
    type=PLACE,
    default=Path("plan.toml"),
    show_default=True,
    help="File to write; - prints it.",
)
@force_option
def init(source: Path, kind: str, out: Path, force: bool, **asked: Any) -> None:
    """Write a commented plan for the data in FILE.

    It holds a guess of what every column is and the default of every rule, and is valid as it stands; read
    it, correct the guesses, and only then look at the data.
    """
    from irtaudit.data.files import atomic_write
    from irtaudit.data.outputs import check_file, keep_apart

    if str(out) != "-":
        check_file(out, force=force)
        keep_apart(out, (source, asked["items"], asked["subjects"]))
    details = {name: value for name, value in asked.items() if value}
    if kind != "irt" and details:
        raise click.UsageError(f"--{next(iter(details))} belongs to --kind irt.")
    if kind == "irt":
        details["folder"] = Path() if str(out) == "-" else out.parent
    text, notes = import_module(KINDS[kind]).plan_template(source, **details)
    for note in notes:
        click.echo(f"irtaudit: note: {note}", err=True)
    if str(out) == "-":
        click.echo(text, nl=False)
        return
    atomic_write(out, text)
    click.echo(f"{out}: the plan ({kind}) for {source}. Read it, correct its guesses, then run")
    click.echo("  " + NEXT[kind].format(source=shlex.quote(str(source)), plan=shlex.quote(str(out))))
