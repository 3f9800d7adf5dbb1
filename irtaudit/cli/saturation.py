"""``irtaudit saturation``: which of several data sets still tell these models apart?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli.audit import reproducing_command
from irtaudit.cli.reading import PLACE, Number, given, reading_options

if TYPE_CHECKING:
    import pandas as pd

NO_INTERVAL = "no interval: one model does not tell how models vary"


@click.command()
@click.argument("paths", metavar="RESPONSES...", type=PLACE, nargs=-1, required=True)
@click.option(
    "--each-task",
    "tasks",
    multiple=True,
    metavar="NAME",
    help="Of logs: take this task as a data set of its own. Repeatable.",
)
@click.option(
    "--threshold",
    type=Number(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Mean pass rate from which a data set is called saturated.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the bootstrap.")
@click.option("--out", type=PLACE, metavar="DIR", help="Also write a report and the table there.")
@click.option("--json", "as_json", is_flag=True, help="Print the table for programs.")
@reading_options
def command(
    paths: tuple[Path, ...],
    tasks: tuple[str, ...],
    threshold: float,
    seed: int,
    out: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Screen data sets for saturation, before anything else is done with them.

    Each of RESPONSES is a data set of its own, in any layout that audit reads. Where nearly every model
    passes nearly every item there is little left to tell models apart, and an audit of the score would rest
    on few items and few models. Per data set: the mean of the models' pass rates with a 95 % interval over
    models, the share of items that are constant, and of models above 90 %. The options hold for all.
    """
    from irtaudit.data.outputs import check_folder, keep_apart
    from irtaudit.data.read import read_responses
    from irtaudit.dimensionality.saturation import saturation

    if out is not None:
        check_folder(out, "saturation")
        keep_apart(out, (*paths, reading["model_table"]))
    options = given(reading)
    if tasks and "task" in options:
        raise click.UsageError("--task and --each-task both name tasks; give one of them.")
    named = [
        (name if task is None else f"{name}, {task}" if len(paths) > 1 else task, path, task)
        for name, path in zip(_names(paths), paths, strict=True)
        for task in tasks or (None,)
    ]
    matrices = {
        name: read_responses(path, **(options if task is None else options | {"task": task}))
        for name, path, task in named
    }
    table = saturation(matrices, threshold=threshold, seed=seed)
    report = _written(table, out) if out is not None else None
    if as_json:
        from irtaudit.report.export import json_text

        click.echo(json_text({"threshold": threshold, "data": table.to_dict("records")}), nl=False)
        return
    _tell(table)
    if report is not None:
        click.echo(f"Report: {report}")


def _names(paths: Sequence[Path]) -> list[str]:
    """The files' names without their ending; where two would be the same, the whole paths."""
    stems = [path.name.partition(".")[0] or str(path) for path in paths]
    return [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]


def _written(table: pd.DataFrame, out: Path) -> Path:
    from irtaudit.data.files import write_csv
    from irtaudit.data.outputs import filling
    from irtaudit.dimensionality.present_structure import present_saturation
    from irtaudit.report.page import write_report

    again = reproducing_command(click.get_current_context())
    with filling(out, "saturation"):
        write_csv(table, out / "saturation.csv")
        return write_report(present_saturation(table), out, title="Saturation", command=again)


def _tell(table: pd.DataFrame) -> None:
    from irtaudit.dimensionality.present_structure import saturation_claim
    from irtaudit.words import by_number, counted

    width = max(len(str(name)) for name in table["data"])
    for _, row in table.iterrows():
        known = row["low"] == row["low"]
        interval = f"{row['low']:.1%} to {row['high']:.1%}" if known else NO_INTERVAL
        click.echo(
            f"{row['data']:<{width}}  {click.style(row['reading'], bold=True)}: {row['pass_rate']:.1%} pass "
            f"({interval}); {row['constant_items']:.1%} of {row['items']:,} items "
            f"are constant, {row['models_above']:.0%} of "
            f"{counted(row['models'], 'model')} {by_number(row['models'], 'passes', 'pass')} more than 90 %"
        )
    click.echo(saturation_claim(table))
