"""``irtaudit check-table``: does a published comparison of models hold together?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from irtaudit.cli.reading import PLACE, Number
from irtaudit.words import counted

if TYPE_CHECKING:
    from irtaudit.dimensionality.published import TableCheck


@click.command()
@click.argument("table", metavar="TABLE", type=PLACE)
@click.option(
    "--sd",
    type=Number(min=0, min_open=True),
    metavar="NATS",
    help="SD of log-loss over splits, for a table without the column log_loss_sd; default .01.",
)
@click.option(
    "--responses",
    type=Number(min=2),
    metavar="N",
    help="Training responses behind BIC, for a table without train_cells; default: what its BIC imply.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found for programs.")
def command(table: Path, sd: float | None, responses: float | None, as_json: bool) -> None:
    """Check a table that compares item response models, anyone's, by its own numbers.

    TABLE (CSV, TSV or Parquet) has a row per model and the columns model, family (1pl, 2pl, 3pl), structure
    (unidimensional, exploratory, confirmatory), dims, log_loss (of held-out responses) and train_log_lik.
    Exit code 1 when something is flagged:

    \b
    failed fit  the training likelihood is lower than that of a model it contains,
                and the held-out log-loss worse by more than twice the larger SD
    overfit     the held-out log-loss alone is worse by that much
    AIC, BIC    not what fitted_quantities and train_log_lik give

    A lower training likelihood alone is noted and flags nothing: the richer model could have done as well,
    but a prior may have held it back, and it predicts no worse by that measure.
    """
    from irtaudit.dimensionality.published import check_table, read_comparison
    from irtaudit.errors import DataError

    printed = read_comparison(table)
    try:
        found = check_table(printed, sd=sd, responses=responses)
    except DataError as error:
        raise DataError(f"{table}: {error}") from None
    (_tell_programs if as_json else _tell)(found)
    if found.flagged:
        raise click.exceptions.Exit(1)


def _tell(found: TableCheck) -> None:
    from irtaudit.dimensionality.nested import finding_sentence, lower_sentence

    n = int((found.table["structure"] != "baseline").sum())
    for _, row in found.findings.iterrows():
        click.echo(f"{click.style(row['model'], bold=True)}: {finding_sentence(row)}")
    for _, row in found.criteria.iterrows():
        name = f"{click.style(row['model'], bold=True)}: {row['criterion'].upper()}"
        click.echo(f"{name} is printed as {row['printed']:,.2f}, the counts give {row['recomputed']:,.2f}")
    for _, row in found.lower.iterrows():
        click.echo(f"{click.style(row['model'], bold=True)}: note, not flagged: {lower_sentence(row)}")
    counts = found.findings["finding"].value_counts()
    click.echo(
        f"{counted(n, 'model')}: {counted(counts.get('failed fit', 0), 'failed fit')}, "
        f"{counted(counts.get('overfit', 0), 'overfit')}, "
        + counted(
            len(found.criteria),
            "criterion that differs from its counts.",
            "criteria that differ from their counts.",
        )
    )
    for line in _basis(found):
        click.echo(f"  {line}")


def _basis(found: TableCheck) -> list[str]:
    """What the check rests on, and what it could not check."""
    lines = []
    if found.sd is not None:
        lines.append(
            f"Where the table gives no SD, a log-loss is worse when it is by more than {2 * found.sd:g} nats."
        )
    if "aic_recomputed" not in found.table:
        lines.append("No fitted_quantities in the table: AIC and BIC were not recomputed.")
    elif found.responses is None:
        lines.append("No number of training responses (--responses): BIC was not recomputed.")
    else:
        lines.append(f"BIC with {found.responses:,.0f} training responses: {found.responses_from}.")
    return lines


def _tell_programs(found: TableCheck) -> None:
    from irtaudit.report.export import json_text

    content = {
        "flagged": found.flagged,
        "findings": found.findings.to_dict("records"),
        "lower_likelihoods": found.lower.to_dict("records"),
        "criteria": found.criteria.to_dict("records"),
        "assumed_sd": found.sd,
        "training_responses": found.responses,
        "training_responses_from": found.responses_from,
    }
    click.echo(json_text(content), nl=False)
