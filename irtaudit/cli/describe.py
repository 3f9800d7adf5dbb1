"""``irtaudit describe``: what is this file, and what to run next?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli.reading import PLACE, given, reading_options, size_option

if TYPE_CHECKING:
    from irtaudit.data.describe import Description


@click.command()
@click.argument("path", metavar="PATH", type=PLACE)
@click.option("--json", "as_json", is_flag=True, help="Print it for programs.")
@reading_options
@size_option
def command(path: Path, as_json: bool, **reading: Any) -> None:
    """Say what PATH is, what is in it, and which command to run next.

    PATH is a file, a folder or a quoted glob: responses in any layout, evaluation logs, retained runs and
    agents' logs, a table of scores, the folder of a finished audit, a saved fit. Nothing is written.
    """
    from irtaudit.data.describe import describe
    from irtaudit.protocol.describe import describe_runs

    options = given(reading)
    runs = None if options.keys() - {"max_bytes"} else describe_runs(path)  # they are about responses
    description = runs or describe(path, **options)
    (_tell_programs if as_json else _tell)(description)


def _tell(found: Description) -> None:
    click.echo(f"{found.path}: {click.style(found.kind, bold=True)}")
    width = max((len(name) for name in found.facts), default=0)
    for name, value in found.facts.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        click.echo(f"  {name:<{width}}  {shown}")
    for option, why in found.undecided.items():
        click.echo(f"  to decide ({option}): {why}")
    for note in found.notes:
        click.echo(f"  note: {note}")
    if found.undecided and found.matrix is not None:
        click.echo("  The numbers above hold for the options in the next line; choose your own.")
    click.echo(f"Next: {found.next}")


def _tell_programs(found: Description) -> None:
    content = {
        "path": found.path,
        "kind": found.kind,
        "facts": dict(found.facts),
        "undecided": dict(found.undecided),
        "notes": list(found.notes),
        "data_sha256": found.matrix.sha256 if found.matrix is not None else None,
        "next": found.next,
    }
    click.echo(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))
