"""``irtaudit build-panel``: from evaluation logs to a table of scores."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from irtaudit.cli.reading import PLACE, force_option

KINDS = ("helm", "inspect", "lm-eval", "swe-bench")


@click.command()
@click.argument("logs", metavar="LOGS...", nargs=-1, required=True, type=PLACE)
@click.option("--out", type=PLACE, required=True, help="CSV file to write.")
@click.option(
    "--from",
    "--kind",
    "kind",
    type=click.Choice(KINDS),
    help="Which tool wrote the logs; by default the files say.",
)
@click.option("--metric", metavar="NAME", help="Which score; by default the likeliest, and it is told.")
@click.option(
    "--positive",
    metavar="LABEL",
    multiple=True,
    help="Label of the positive class, for confusion counts (unsafe, yes, ...). Repeatable.",
)
@click.option("--models", metavar="FILE", type=PLACE, help="Table: model, developer, access.")
@force_option
def command(
    logs: tuple[Path, ...],
    out: Path,
    force: bool,
    kind: str | None,
    metric: str | None,
    positive: tuple[str, ...],
    models: Path | None,
) -> None:
    """Make a table of scores from evaluation logs: a row per model, a column per benchmark.

    LOGS are files, folders or quoted globs of Inspect, HELM, lm-evaluation-harness or SWE-bench. Beside each
    score stand the number of items, the share of valid answers, and confusion counts where answers and
    targets are two labels. `irtaudit plan init` and `irtaudit panel` read the table.
    """
    from irtaudit.data.files import write_csv
    from irtaudit.data.outputs import check_file, keep_apart
    from irtaudit.data.panel_logs import panel_from_logs
    from irtaudit.data.read_logs import read_logs

    check_file(out, force=force)
    keep_apart(out, (*logs, models))
    read = [read_logs(path, kind) for path in logs]  # type: ignore[arg-type]  # click checked the choice
    table, notes = panel_from_logs(read, metric=metric, positive=positive, models=models)
    write_csv(table, out)
    for note in notes:
        click.echo(f"irtaudit: note: {note}", err=True)
    scores = [name for name in table if f"{name}_n" in table]
    click.echo(f"{out}: {len(table)} models x {len(scores)} scores")
    click.echo(f"  irtaudit plan init {shlex.quote(str(out))} --kind panel")
