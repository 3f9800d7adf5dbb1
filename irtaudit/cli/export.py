"""``irtaudit export``: results for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from irtaudit.cli.reading import PLACE, Number

FORMATS = ("csv", "parquet", "py-irt", "arviz", "items")


@click.command()
@click.argument("source", metavar="SOURCE", type=PLACE)
@click.option("--out", metavar="DIR", type=PLACE, required=True, help="Folder to write.")
@click.option(
    "--as",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="What to write; repeatable.",
)
@click.option("--model", metavar="NAME", help="Model of an audit; default its best one-dimensional one.")
@click.option(
    "--at", default="-1,0,1", show_default=True, metavar="LIST", help="Abilities a short form measures."
)
@click.option(
    "--share",
    type=Number(0, 1, min_open=True),
    default=0.8,
    show_default=True,
    help="Of all information that a short form keeps at each ability.",
)
@click.option("--count", type=click.IntRange(min=1), help="Items of a short form, instead of --share.")
@click.option("--factor", metavar="NAME", help="Ability a short form measures, where there are several.")
@click.option("--draws", type=click.IntRange(min=1), default=1000, show_default=True, help="For arviz.")
@click.option("--seed", type=click.IntRange(min=0), default=2026, show_default=True, help="Of the draws.")
def command(
    source: Path,
    out: Path,
    formats: tuple[str, ...],
    model: str | None,
    at: str,
    share: float,
    count: int | None,
    factor: str | None,
    draws: int,
    seed: int,
) -> None:
    """Write the abilities and item parameters in SOURCE for other programs.

    SOURCE is the folder of a finished audit, or a fit saved from Python (save_fit). csv and parquet:
    abilities and items, a row each. py-irt: best_parameters.json. arviz: posterior.nc, draws from the
    posterior. items: short_form.csv, the fewest items found that keep a share of the information at chosen
    abilities.
    """
    from irtaudit.data.outputs import check_folder, filling, keep_apart
    from irtaudit.errors import DataError
    from irtaudit.irt import export

    abilities = _numbers(at)
    if not source.exists():
        raise DataError(f"{source}: there is no such file or folder")
    check_folder(out, "export")
    keep_apart(out, [source])
    scale = export.read_scale(source, model)
    with filling(out, "export"):
        for kind in dict.fromkeys(formats):
            if kind in ("csv", "parquet"):
                for path in export.write_tables(scale, out, f".{kind}"):
                    click.echo(f"{path}")
            elif kind == "py-irt":
                export.write_py_irt(scale, out / "best_parameters.json")
                click.echo(f"{out / 'best_parameters.json'}")
            elif kind == "arviz":
                export.write_arviz(scale, out / "posterior.nc", draws, seed)
                click.echo(f"{out / 'posterior.nc'}: {draws} draws, seed {seed}")
            else:
                form = export.informative_items(scale, abilities, share=share, count=count, factor=factor)
                export.write_items(form, out / "short_form.csv")
                kept = min(form[f"share_at_{ability:g}"].iloc[-1] for ability in abilities)
                click.echo(
                    f"{out / 'short_form.csv'}: {len(form)} of {len(scale.items)} items keep {kept:.0%} or "
                    f"more of the information at {at}"
                )


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--at is {text!r}, expected numbers with commas between, such as -1,0,1"
        ) from None
