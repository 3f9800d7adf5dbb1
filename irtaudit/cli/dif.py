"""``irtaudit dif``: do equally able models of two groups meet the same items?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli import keeps_work
from irtaudit.cli.audit import PRESETS, progress_bars, reproducing_command
from irtaudit.cli.reading import PLACE, WORDS, Number, given, reading_options, size_option

if TYPE_CHECKING:
    from irtaudit.audit import Progress
    from irtaudit.data.responses import ResponseMatrix
    from irtaudit.dif.options import DifOptions
    from irtaudit.dif.result import DifResult
    from irtaudit.irt.result import FitResult

SCREENS = ("mh", "logistic", "mh_z", "score", "logistic_nonuniform")


@click.command()
@click.argument("responses", metavar="RESPONSES", type=PLACE)
@click.option("--subjects", metavar="FILE", type=PLACE, help="Table that describes the models, a row each.")
@click.option("--items", metavar="FILE", type=PLACE, help="Table that describes the items, a row each.")
@click.option(
    "--group",
    "groups",
    metavar="COLUMN:A,B",
    multiple=True,
    required=True,
    help="Column of the models and the two levels to compare, the reference first. Repeatable.",
)
@click.option(
    "--scope",
    "scopes",
    metavar="COLUMN",
    multiple=True,
    help="Item column; models are also matched within each of its categories. Repeatable.",
)
@click.option(
    "--cluster", metavar="COLUMN", help="Column that names families of models; default: the group's."
)
@click.option(
    "--match",
    type=click.Choice(("theta", "total")),
    default="theta",
    show_default=True,
    help="Equally able by fitted ability or by the number of items passed.",
)
@click.option(
    "--bands",
    default="3",
    show_default=True,
    metavar="N|score",
    help="Ability bands, or every score its own.",
)
@click.option(
    "--screen",
    default=",".join(SCREENS),
    metavar="LIST",
    help=f"Of {', '.join(SCREENS)}; default all, see above.",
)
@click.option("--purify", is_flag=True, help="Match on items that are not flagged themselves.")
@click.option("--rematch", is_flag=True, help="Estimate abilities anew in every simulated matrix.")
@click.option(
    "--penalty", type=Number(min=0), default=1.0, show_default=True, help="Of the logistic screens."
)
@click.option(
    "--simulations",
    type=click.IntRange(min=0),
    default=5000,
    show_default=True,
    help="Matrices per null; 0: classical tests.",
)
@click.option(
    "--control", type=click.IntRange(min=0), default=50, show_default=True, help="Deals of random groups."
)
@click.option("--preset", type=click.Choice(PRESETS), default="default", show_default=True)
@click.option(
    "--restarts",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Fits per item response model.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=2026, show_default=True, help="Of fits and nulls."
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes for fits; default: where it pays.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:<number>.")
@click.option("--claim", metavar="TEXT", type=WORDS, help="The reading under test, in your words.")
@click.option(
    "--out", type=PLACE, default=Path("irtaudit-report-dif"), show_default=True, help="Folder to write."
)
@click.option("--quiet", is_flag=True, help="Print the answer alone.")
@click.option("--json", "as_json", is_flag=True, help="Print what dif.json holds.")
@reading_options
@size_option
def command(
    responses: Path,
    subjects: Path | None,
    items: Path | None,
    groups: tuple[str, ...],
    scopes: tuple[str, ...],
    cluster: str | None,
    claim: str | None,
    out: Path,
    quiet: bool,
    as_json: bool,
    match: Any,
    bands: str,
    screen: str,
    purify: bool,
    rematch: bool,
    penalty: float,
    simulations: int,
    control: int,
    seed: int,
    preset: str,
    restarts: int,
    workers: int | None,
    device: str,
    **reading: Any,
) -> None:
    """Compare two groups of models item by item at equal ability, and write a report.

    An item on which equally able models of the groups fare differently measures something besides ability:
    it has differential item functioning (DIF). RESPONSES is any file that `irtaudit audit` reads; --subjects
    says which group a model belongs to. The folder --out receives report.html, dif.json, dif.csv (a row per
    item and screen), dif_flags.csv and figures.

    \b
    irtaudit dif responses.csv --subjects models.csv --group developer:OpenAI,Anthropic

    Screens: mh, odds of passing within ability bands (Mantel-Haenszel), and logistic, regression on ability
    and group, are the headline; mh_z and score are standardised, so that noisy items do not set the cut-off;
    logistic_nonuniform looks for differences that change with ability.
    """
    from irtaudit.data.outputs import check_folder, claim_folder, keep_apart
    from irtaudit.data.screen import missingness_warnings
    from irtaudit.data.screen import screen as screened_of
    from irtaudit.dif.audit import compare_groups
    from irtaudit.dif.groups import parse_groups
    from irtaudit.dif.options import DifOptions
    from irtaudit.dif.present import READING
    from irtaudit.dif.words import answer
    from irtaudit.present import write_dif

    pairs = [parse_groups(text) for text in groups]
    chosen: Any = tuple(
        name.strip() for name in screen.split(",")
    )  # DifOptions refuses what it does not know
    options = DifOptions(
        match=match,
        bands="score" if bands == "score" else _number(bands),
        screens=chosen,
        penalty=penalty,
        purify=purify,
        rematch=rematch,
        n_simulations=simulations,
        n_control=control,
        seed=seed,
    )
    check_folder(out, "dif")
    keep_apart(out, (responses, subjects, items, reading["model_table"]))
    keeps_work(out / "fits")
    screened = screened_of(_read(responses, subjects, items, reading))
    for pair in pairs:
        pair.sides(screened.matrix.subjects)
    claim_folder(out, "dif")
    fitting = {"n_restarts": restarts, "preset": preset, "seed": seed, "workers": workers, "device": device}
    with progress_bars(silent=quiet or as_json) as progress:
        fits = _fitted(screened.matrix, scopes, options, out, fitting, progress)
        found = compare_groups(
            screened.matrix, fits, pairs, cluster=cluster, options=options, progress=progress
        )
    notes = (*screened.matrix.notes, *missingness_warnings(screened.matrix))
    again = reproducing_command(click.get_current_context())
    report = write_dif(found, screened, out, notes=notes, claim=claim or READING, command=again)
    if as_json:
        click.echo((out / "dif.json").read_text(encoding="utf-8"), nl=False)
    elif quiet:
        click.echo(answer(found).word)
    else:
        _tell(found, notes, claim, report)


def _number(bands: str) -> int:
    from irtaudit.errors import PlanError

    try:
        return int(bands)
    except ValueError:
        raise PlanError(f"--bands is {bands!r}; expected a whole number from 1 on, or score.") from None


def _read(
    responses: Path, subjects: Path | None, items: Path | None, reading: dict[str, Any]
) -> ResponseMatrix:
    from irtaudit.data.read import read_responses
    from irtaudit.data.trials import refuse_counts
    from irtaudit.dif.audit import COMPARISON

    tables = {"subjects": subjects, "items": items}
    matrix = read_responses(responses, **given(tables), **given(reading))
    refuse_counts(matrix, COMPARISON)
    return matrix


def _fitted(
    matrix: ResponseMatrix,
    scopes: tuple[str, ...],
    options: DifOptions,
    out: Path,
    fitting: dict[str, Any],
    progress: Progress | None,
) -> list[FitResult]:
    """The single score's model and one per scope column; none where totals are matched without a null."""
    if options.match == "total" and not options.n_simulations and not scopes:
        return []
    from irtaudit.audit import model_specs
    from irtaudit.irt.fit import fit_all

    specs, _ = model_specs(matrix.items, ["unidimensional_2pl"], scopes)
    stage = None if progress is None else partial(progress, "Fits to every response")
    fits = fit_all(matrix, specs, store=out / "fits", progress=stage, **fitting)
    return list(fits.values())


def _tell(found: DifResult, notes: Sequence[str], claim: str | None, report: Path) -> None:
    from irtaudit.dif.present import READING
    from irtaudit.dif.result import comparisons
    from irtaudit.dif.words import answer, flag_lines

    result = answer(found)
    click.echo(f"{claim or READING}: {click.style(result.word, bold=True)}")
    click.echo(f"  {result.because}")
    for part in comparisons(found):
        for line in flag_lines(part):
            click.echo(f"  {line}")
    for note in (*found.notes, *notes):
        click.echo(f"  {note}")
    click.echo(f"  What would change it? {result.what_would_change}")
    click.echo(f"Report: {report}")
