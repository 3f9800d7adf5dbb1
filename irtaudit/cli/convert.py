"""``irtaudit convert``: response data from one layout into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from irtaudit.cli.reading import PLACE, force_option, given, reading_options, size_option

FORMATS = ("wide-csv", "long-csv", "wide-tsv", "long-tsv", "wide-parquet", "long-parquet", "py-irt")


@click.command()
@click.argument("source", metavar="IN", type=PLACE)
@click.argument("destination", metavar="OUT", type=PLACE)
@click.option(
    "--to", "format", type=click.Choice(FORMATS), help="What OUT becomes; by default its suffix says."
)
@force_option
@reading_options
@size_option
def command(source: Path, destination: Path, format: str | None, force: bool, **reading: Any) -> None:
    """Read the responses in IN and write them to OUT in another layout.

    IN is a wide table (a row per subject, a column per item) or a long one (a row per response) as CSV, TSV
    or Parquet, or py-irt's JSON lines; text may be gzip-compressed. It may also be logs of HELM, Inspect AI,
    lm-evaluation-harness or SWE-bench: a file, a folder, or a quoted glob. OUT holds 0, 1 and missing only,
    whatever IN's scores were, or with --trials counts (in a long table) passes and trials. A suffix .csv,
    .tsv or .parquet asks for a wide table, .jsonl for py-irt; .gz after it compresses.

    In CSV and TSV a name that a spreadsheet would run as a formula (it begins with = + - @) gets a leading
    apostrophe, which irtaudit takes off when it reads the file. Parquet and JSON lines keep every name as
    it is.
    """
    from irtaudit.data.outputs import check_file
    from irtaudit.data.read import read_responses
    from irtaudit.data.write import write_responses
    from irtaudit.words import panel_size

    check_file(destination, force=force)
    matrix = read_responses(source, **given(reading))
    written = write_responses(matrix, destination, format)
    for note in matrix.notes:
        click.echo(f"irtaudit: note: {note}", err=True)
    n, what = int(matrix.totals()[1]), "responses" if matrix.trials is None else "trials"
    click.echo(
        f"{destination}: {written}, {panel_size(matrix.n_subjects, matrix.n_items, 'subject')}, "
        f"{n} {what}, data sha256 {matrix.sha256}"
    )
