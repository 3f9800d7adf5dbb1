"""``irtaudit panel``: is a safety score capability in disguise, and may one stand for another?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli.reading import PLACE

if TYPE_CHECKING:
    from irtaudit.panel.audit import PanelAudit, Progress

_NOTHING_GIVEN = "Give a table of scores, or --demo to see an audit of 18 models on three safety benchmarks."
_NO_PLAN = (
    "Give the plan of the audit (--plan). `irtaudit plan init {panel} --kind panel` writes one: "
    "what each column is, and where the rules draw their lines."
)


@click.command()
@click.argument("panel", metavar="PANEL", type=PLACE, required=False)
@click.option("--demo", is_flag=True, help="Audit the bundled table of 18 models instead of a file.")
@click.option(
    "--plan", metavar="FILE", type=PLACE, help="Plan of the audit, as `irtaudit plan init` writes it."
)
@click.option("--against", metavar="PANEL2", type=PLACE, help="A second panel with the same columns.")
@click.option(
    "--out", type=PLACE, default=Path("irtaudit-report-panel"), show_default=True, help="Folder to write."
)
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
@click.option("--json", "as_json", is_flag=True, help="Print what panel.json holds.")
def command(
    panel: Path | None,
    demo: bool,
    plan: Path | None,
    against: Path | None,
    out: Path,
    quiet: bool,
    as_json: bool,
) -> None:
    """Audit the table of scores in PANEL and write a report: may one score stand for another?

    PANEL is a CSV, TSV or Parquet table with a row per model and a column per score. The plan says what each
    column is: an anchor of capability, an audited benchmark with its construct, a held-out criterion. The
    folder --out receives report.html, panel.json, a CSV of every table, and figures.
    """
    if demo == (panel is not None):
        raise click.UsageError("Give a table of scores, or --demo; not both." if demo else _NOTHING_GIVEN)
    if demo and plan is not None:
        raise click.UsageError("--demo brings its own plan; leave out --plan.")
    if panel is not None and plan is None:
        raise click.UsageError(_NO_PLAN.format(panel=shlex.quote(str(panel))))

    from irtaudit.data.outputs import check_folder, filling, keep_apart
    from irtaudit.panel.write import summary, write_panel
    from irtaudit.report.export import json_text

    check_folder(out, "panel")
    keep_apart(out, (panel, against))
    with _progress(silent=quiet or as_json) as progress:
        result = _audited(panel, plan, against, progress)
    again = _reproducing(panel, plan, against, out)
    with filling(out, "panel"):
        report = write_panel(result, out, command=again)
    if as_json:
        click.echo(json_text(summary(result, again) | {"report": str(report)}), nl=False)
    elif quiet:
        click.echo(result.verdict.word)
    else:
        _tell(result, report)


def _audited(
    path: Path | None, plan_path: Path | None, against: Path | None, progress: Progress | None
) -> PanelAudit:
    from irtaudit.panel.audit import audit_panel
    from irtaudit.panel.plan import PanelPlan
    from irtaudit.panel.read import demo, read_codes, read_item_responses, read_planned_panel
    from irtaudit.plan import read_plan

    if path is None or plan_path is None:
        panel, plan, folder = *demo(), Path()
    else:
        plan, folder = read_plan(plan_path, PanelPlan), plan_path.parent
        panel = read_planned_panel(path, plan)
    return audit_panel(
        panel,
        plan,
        against=None if against is None else read_planned_panel(against, plan),
        responses=read_item_responses(plan, folder),
        codes=read_codes(plan, folder),
        progress=progress,
    )


def _reproducing(panel: Path | None, plan: Path | None, against: Path | None, out: Path) -> str:
    words: list[Any] = ["irtaudit", "panel", *([panel, "--plan", plan] if panel is not None else ["--demo"])]
    words += ["--against", against] if against is not None else []
    return shlex.join(map(str, [*words, "--out", out]))


@contextmanager
def _progress(silent: bool) -> Iterator[Progress | None]:
    """The stage that runs, on one line of stderr; nothing where no one watches."""
    if silent or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("Reading") as status:
        yield lambda stage, number, total: status.update(f"{stage} ({number + 1} of {total})")


def _tell(result: PanelAudit, report: Path) -> None:
    from irtaudit.panel.evidence import second_panel_claim

    verdict = result.verdict
    click.echo(f"{result.plan.reading}: {click.style(verdict.word, bold=True)}")
    click.echo(f"  {verdict.because}")
    for headline in verdict.benchmarks["headline"]:
        click.echo(f"  - {headline}")
    if result.comparison is not None:
        click.echo(f"  {second_panel_claim(result)}")
    for warning in result.warnings:
        click.echo(f"irtaudit: warning: {warning}", err=True)
    click.echo(f"Report: {report}")
