"""``irtaudit plan``: write a plan to start from."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

KINDS = {"panel": "irtaudit.panel.template"}
"""Audits that have a plan, and the module whose ``plan_template(path)`` gives one for a file, with notes."""


@click.group()
def command() -> None:
    """Write down what an audit asks before it runs."""


@command.command("init")
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(list(KINDS)), required=True, help="Which audit the plan is for.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("plan.toml"),
    show_default=True,
    help="File to write; - prints it.",
)
@click.option("--force", is_flag=True, help="Replace a plan that is there already.")
def init(source: Path, kind: str, out: Path, force: bool) -> None:
    """Write a commented plan for the data in FILE.

    It holds a guess of what every column is and the default of every rule, and is valid as it stands; read
    it, correct the guesses, and only then look at the data.
    """
    from irtaudit.data.files import atomic_write
    from irtaudit.errors import PlanError

    text, notes = import_module(KINDS[kind]).plan_template(source)
    for note in notes:
        click.echo(f"irtaudit: note: {note}", err=True)
    if str(out) == "-":
        click.echo(text, nl=False)
        return
    if out.exists() and not force:
        raise PlanError(f"{out} exists; --force replaces it, --out names another file")
    atomic_write(out, text)
    click.echo(f"{out}: a {kind} plan for {source}. Read it, correct its guesses, then run")
    click.echo(f"  irtaudit {kind} {source} --plan {out} --out DIR")
