"""``irtaudit audit``: does one score describe these responses?"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli import keeps_work
from irtaudit.cli.reading import PLACE, WORDS, reading_options
from irtaudit.words import panel_size

if TYPE_CHECKING:
    from irtaudit.audit import AuditResult, Progress
    from irtaudit.data.responses import ResponseMatrix
    from irtaudit.dimensionality.plan import IrtPlan
    from irtaudit.irt.backend import Backend

PRESETS = ("default", "paper", "quick")
PLACES = {
    "responses": "data.responses",
    "items": "data.items",
    "subjects": "data.subjects",
    "subject_column": "data.subject_column",
    "item_column": "data.item_column",
    "response_column": "data.response_column",
    "pass_at": "data.pass_at",
    "sweep": "data.sweep",
    "layout": "data.layout",
    "trials": "data.trials",
    "task": "data.task",
    "metric": "data.metric",
    "target": "data.target",
    "unscored": "data.unscored",
    "incomplete": "data.incomplete",
    "model_table": "data.models",
    "claim": "reading",
    "cluster": "cluster",
    "seed": "seed",
    "models": "models.names",
    "factors": "models.names",
    "groups": "groups",
    "heldout": "splits.heldout",
    "preset": "fit.preset",
    "restarts": "fit.restarts",
}
"""Options that say what a plan says, and the key at which it does."""
DEMO_FACTORS = ("repo",)
DEMO_GROUPS = ("developer:OpenAI,Anthropic",)
DEMO_CLAIM = "SWE-bench Verified score = one coding ability"


@click.command()
@click.argument("responses", metavar="RESPONSES", type=PLACE, required=False)
@click.option("--plan", metavar="FILE", type=PLACE, help="Plan, as `irtaudit plan init` writes it.")
@click.option("--demo", is_flag=True, help="Audit the bundled SWE-bench Verified panel instead of a file.")
@click.option("--items", metavar="FILE", type=PLACE, help="Table that describes the items, a row each.")
@click.option("--subjects", metavar="FILE", type=PLACE, help="Table that describes the subjects, a row each.")
@click.option(
    "--factors",
    metavar="COLUMN",
    multiple=True,
    help="Item column; adds the model with one dimension per category. Repeatable.",
)
@click.option(
    "--models",
    metavar="LIST",
    help="Names with commas between; default: 1PL, 2PL and 3PL of one dimension, 2 to 4 free dimensions "
    "(fewer in a panel too small for them, and it says so).",
)
@click.option(
    "--group",
    "groups",
    metavar="COLUMN:A,B",
    multiple=True,
    help="Subject column and two values: compare these models item by item, A as reference. Repeatable.",
)
@click.option("--claim", metavar="TEXT", type=WORDS, help="The reading under test, in your words.")
@click.option("--cluster", metavar="COLUMN", help="Subject column that names families; default: developer.")
@click.option("--preset", type=click.Choice(PRESETS), default="default", show_default=True)
@click.option(
    "--restarts", type=click.IntRange(min=1), default=20, show_default=True, help="Per model and split."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=2026, show_default=True, help="Of splits and fits."
)
@click.option("--heldout", metavar="MASK", type=PLACE, help="Your own held-out cells: split, subject, item.")
@reading_options
@click.option(
    "--sweep", metavar="LIST", help="Other scores to pass from: the comparison at each, as .5,.75,.9."
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes; default: one per core where it pays.")
@click.option(
    "--backend",
    type=click.Choice(("loky", "dask", "ray")),
    default="loky",
    show_default=True,
    help="Where fits run: this machine's processes or a cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of a running dask or ray cluster; default: start one.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:<number>.")
@click.option(
    "--out", type=PLACE, default=Path("irtaudit-report"), show_default=True, help="Folder to write."
)
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
@click.option("--json", "as_json", is_flag=True, help="Print what audit.json holds.")
def command(
    responses: Path | None,
    plan: Path | None,
    demo: bool,
    out: Path,
    quiet: bool,
    as_json: bool,
    workers: int | None,
    device: str,
    backend: Backend,
    scheduler: str | None,
    **_asked: Any,
) -> None:
    """Audit the responses in RESPONSES and write a report: does one score describe them?

    RESPONSES is a wide table (a row per subject, a column per item), a long one (a row per response), or
    py-irt's JSON lines; 1 is a pass, 0 a fail, nothing is not observed. It may also be logs of HELM, Inspect
    AI, lm-evaluation-harness or SWE-bench: a file, a folder, a quoted glob (see irtaudit describe). The
    folder --out receives report.html, audit.json, tables and figures. Finished fits are kept there: an
    interrupted audit goes on when the same command is given again.

    With --plan the plan says what is asked, data included; every other option that says otherwise is a
    deviation, and stands in the report.
    """
    context = click.get_current_context()
    flags = {
        name: value for name, value in context.params.items() if name in PLACES and _given(context, name)
    }
    _refuse_contradictions(responses, plan, demo, flags)

    from irtaudit.audit import run_plan
    from irtaudit.data.outputs import check_folder, keep_apart
    from irtaudit.dimensionality.plan import IrtPlan, default_plan
    from irtaudit.dimensionality.planned import Planned, deviations, override, read_planned
    from irtaudit.irt.backend import parallel_backend
    from irtaudit.plan import read_plan
    from irtaudit.present import summary, write_audit

    filed, folder = (read_plan(plan, IrtPlan), plan.parent) if plan else (default_plan(), Path())
    used = override(filed, _changes(filed, flags, folder, demo))
    check_folder(out, "audit")
    keep_apart(out, _inputs(used, folder))
    keeps_work(out / "fits")
    matrix = _demo() if demo else read_planned(used, folder)
    planned = Planned(filed, str(plan), deviations(filed, used, matrix.sha256)) if plan else None
    on_cluster = parallel_backend(backend, address=scheduler, workers=workers)
    with on_cluster, progress_bars(silent=quiet or as_json) as progress:
        result = run_plan(
            used,
            matrix,
            folder=folder,
            planned=planned,
            optional=_by_default(filed, flags),
            workers=workers if backend == "loky" else None,
            device=device,
            out=out,
            progress=progress,
        )
    again = reproducing_command(context)
    report = write_audit(result, out, command=again)
    if as_json:
        click.echo(json.dumps(summary(result, again) | {"report": str(report)}, indent=1, allow_nan=False))
    elif quiet:
        click.echo(result.verdict.word)
    else:
        _tell(result, report)


_NOTHING_GIVEN = "Give a file of responses, or --demo to see an audit of 134 coding agents."


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _refuse_contradictions(
    responses: Path | None, plan: Path | None, demo: bool, flags: Mapping[str, Any]
) -> None:
    if demo and (responses or plan):
        raise click.UsageError("Give a file of responses, a plan, or --demo; not both.")
    if not (demo or responses or plan):
        raise click.UsageError(_NOTHING_GIVEN)
    if demo and any(PLACES[name].startswith("data.") for name in flags):
        raise click.UsageError("--demo brings its own data; leave out the options that describe a file.")


def _inputs(plan: IrtPlan, folder: Path) -> list[Path]:
    """Files and folders that a run of the plan reads."""
    data = plan.data
    named = (data.responses, data.items, data.subjects, data.models, plan.splits.heldout)
    return [folder / name for name in named if name]


def _demo() -> ResponseMatrix:
    from irtaudit.data.bundled import load_swebench_verified

    return load_swebench_verified()


def _changes(filed: IrtPlan, flags: Mapping[str, Any], folder: Path, demo: bool) -> dict[str, Any]:
    """What the options make of a plan, by its keys; paths as seen from the plan."""
    demonstrated = {"claim": DEMO_CLAIM, "factors": DEMO_FACTORS, "groups": DEMO_GROUPS}
    options = {**(demonstrated if demo else {}), **flags}
    factors = [f"confirmatory_{column}_2pl" for column in options.pop("factors", ())]
    models = options.pop("models", None)
    given = models is not None
    names = [name.strip() for name in models.split(",")] if given else list(filed.models.names)
    if "groups" in options:
        options["groups"] = _groups(options["groups"])
    if "sweep" in options:
        options["sweep"] = _cut_offs(options["sweep"])
    changes = {
        PLACES[name]: os.path.relpath(value, folder)
        if isinstance(value, Path) and folder != Path()
        else value
        for name, value in options.items()
    }
    changes = {key: str(value) if isinstance(value, Path) else value for key, value in changes.items()}
    added = [one for one in dict.fromkeys(factors) if one not in names]
    return changes | ({"models.names": [*names, *added]} if given or factors else {})


def _by_default(filed: IrtPlan, flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Models that nobody asked for by name."""
    from irtaudit.dimensionality.plan import DEFAULT_MODELS

    named = "models" in flags or "names" in filed.models.model_fields_set
    return () if named else DEFAULT_MODELS


def _groups(texts: Sequence[str]) -> list[dict[str, str]]:
    from irtaudit.dif.groups import parse_groups

    return [asdict(parse_groups(text)) for text in texts]


def _cut_offs(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--sweep is {text!r}, expected scores, such as .5,.75,.9") from None


@contextmanager
def progress_bars(silent: bool) -> Iterator[Progress | None]:
    """One line per stage on stderr with the time left; nothing where no one watches.

    Parameters
    ----------
    silent : bool
        Show nothing in any case.
    """
    if silent or not sys.stderr.isatty():
        with _quiet_warnings():
            yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with _quiet_warnings(), Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, completed=done)
            bars.update(tasks[stage], completed=done)

        yield show


@contextmanager
def _quiet_warnings() -> Iterator[None]:
    """What did not converge is told after the run, and in the report."""
    import warnings

    from irtaudit.errors import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _tell(result: AuditResult, report: Path) -> None:
    verdict = result.verdict
    click.echo(f"{result.claim}: {click.style(verdict.word, bold=True)}")
    click.echo(f"  {verdict.because}")
    gain = verdict.conditions["detail"].iloc[0]
    margin = f"; the margin is {verdict.margin:.4f}" if verdict.margin > 0 else ""
    click.echo(f"  One dimension against item means: {gain}{margin}.")
    click.echo(f"  What would change it? {verdict.what_would_change}")
    if result.sweep:
        from irtaudit.dimensionality.sweep import sweep_sentence

        click.echo(f"  {sweep_sentence(result.sweep)}")
    if result.dif:
        from irtaudit.dif.result import comparisons
        from irtaudit.dif.words import flag_lines

        for line in (line for part in comparisons(result.dif) for line in flag_lines(part)):
            click.echo(f"  {line}")
    for one in result.planned.deviations if result.planned else ():
        click.echo(
            f"irtaudit: deviation from the plan: {one.key} is {one.used!r}, not {one.planned!r}", err=True
        )
    if result.left_out:
        few = panel_size(result.matrix.n_subjects, result.matrix.n_items)
        click.echo(f"irtaudit: note: {few} are too few for {', '.join(result.left_out)}: left out", err=True)
    for name, fit in {**result.fits, **result.full}.items():
        for note in fit.warnings:
            click.echo(f"irtaudit: warning: {name}: {note}", err=True)
    click.echo(f"Report: {report}")


def reproducing_command(ctx: click.Context) -> str:
    """The command with the options that were given, without those that only change what it prints.

    Parameters
    ----------
    ctx : click.Context
        Of the command that runs.
    """
    words = ["irtaudit", ctx.info_name or ctx.command.name or ""]
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if not given or parameter.name in ("quiet", "as_json"):
            continue
        value = ctx.params[parameter.name or ""]
        for one in value if isinstance(value, tuple) else (value,):
            flag = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
            words += flag if one is True else [*flag, str(one)]
    return shlex.join(words)
