"""``irtaudit convert``: response data from one layout into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

LAYOUTS = ("wide", "long", "py-irt")
FORMATS = ("wide-csv", "long-csv", "wide-tsv", "long-tsv", "wide-parquet", "long-parquet", "py-irt")


@click.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--from", "layout", type=click.Choice(LAYOUTS), help="What IN is, if it could be two things.")
@click.option(
    "--to", "format", type=click.Choice(FORMATS), help="What OUT becomes; by default its suffix says."
)
@click.option(
    "--subject-column", metavar="NAME", help="Column of the subjects, if its name is not recognised."
)
@click.option("--item-column", metavar="NAME", help="Column of the items of a long table, likewise.")
@click.option("--response-column", metavar="NAME", help="Column of the responses of a long table, likewise.")
@click.option(
    "--pass-at", type=float, metavar="SCORE", help="Scores from SCORE on pass; 1.0 counts full marks only."
)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Refuse files that unpack to more. Default: 1 GiB.",
)
def command(source: Path, target: Path, format: str | None, max_bytes: int | None, **reading: Any) -> None:
    """Read the responses in IN and write them to OUT in another layout.

    IN is a wide table (a row per subject, a column per item) or a long one (a row per response) as CSV, TSV
    or Parquet, or py-irt's JSON lines; text may be gzip-compressed. OUT holds 0, 1 and missing only,
    whatever IN's scores were. A suffix .csv, .tsv or .parquet asks for a wide table, .jsonl for py-irt; .gz
    after it compresses.

    In CSV and TSV a name that a spreadsheet would run as a formula (it begins with = + - @) gets a leading
    apostrophe, which irtaudit takes off when it reads the file. Parquet and JSON lines keep every name as
    it is.
    """
    from irtaudit.data.files import MAX_BYTES
    from irtaudit.data.read import read_responses
    from irtaudit.data.write import write_responses

    matrix = read_responses(source, max_bytes=max_bytes or MAX_BYTES, **reading)
    written = write_responses(matrix, target, format)
    click.echo(
        f"{target}: {written}, {matrix.n_subjects} subjects x {matrix.n_items} items, "
        f"{int(matrix.observed.sum())} responses, data sha256 {matrix.sha256}"
    )
