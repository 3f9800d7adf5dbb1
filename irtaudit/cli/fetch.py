"""``irtaudit fetch``: public evaluation logs, downloaded."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from irtaudit.cli import keeps_work
from irtaudit.cli.reading import PLACE

BUCKET = "https://storage.googleapis.com/crfm-helm-public/gzip"


@click.group()
def command() -> None:
    """Download public evaluation logs."""


@command.command("helm")
@click.option(
    "--project", metavar="NAME", required=True, help="Leaderboard, as its address has it: safety, ..."
)
@click.option("--release", metavar="NAME", required=True, help="Release of it: v1.17.0, ...")
@click.option("--scenarios", metavar="LIST", required=True, help="Scenarios, with commas between.")
@click.option("--out", metavar="DIR", type=PLACE, required=True, help="Folder to fill.")
@click.option("--base-url", metavar="URL", default=BUCKET, help="A copy of the bucket, not CRFM's own.")
@click.option("--workers", type=click.IntRange(1, 64), default=8, show_default=True, help="Runs at once.")
@click.option("--tries", type=click.IntRange(min=1), default=6, show_default=True, help="Requests per file.")
@click.option("--max-bytes", type=click.IntRange(min=1), metavar="N", help="Largest file; default 256 MiB.")
@click.option("--max-total-bytes", type=click.IntRange(min=1), metavar="N", help="Of all; default 32 GiB.")
@click.option("--quiet", is_flag=True, help="No progress.")
def helm(
    project: str,
    release: str,
    scenarios: str,
    out: Path,
    base_url: str,
    workers: int,
    tries: int,
    max_bytes: int | None,
    max_total_bytes: int | None,
    quiet: bool,
) -> None:
    """Download runs of a HELM leaderboard: what every model answered, and its scores.

    The folder DIR/PROJECT/RELEASE receives the runs as HELM lays them out, and manifest.json with the SHA-256
    of every file. The same command again downloads only what is lacking or altered. For the four data sets of
    HELM Safety about refusal:

    \b
        irtaudit fetch helm --project safety --release v1.17.0 \\
            --scenarios harm_bench,simple_safety_tests,anthropic_red_team,xstest --out helm
        irtaudit audit helm/safety/v1.17.0 --task harm_bench --metric safety_score \\
            --pass-at 1.0 --incomplete drop --factors functional
    """
    from irtaudit.data.download import Patience
    from irtaudit.data.fetch_helm import fetch_helm

    keeps_work(out / project / release)
    limits = {"max_bytes": max_bytes} if max_bytes else {}
    total = {"max_total_bytes": max_total_bytes} if max_total_bytes else {}
    with _progress(quiet) as progress:
        fetched = fetch_helm(
            out,
            project=project,
            release=release,
            scenarios=[name.strip() for name in scenarios.split(",") if name.strip()],
            base_url=base_url,
            workers=workers,
            patience=Patience(tries=tries, **limits),
            progress=progress,
            **total,
        )
    for run in fetched.missing:
        click.echo(f"irtaudit: note: {run} is listed, but the server lacks its files", err=True)
    click.echo(
        f"{fetched.folder}: {len(fetched.runs)} runs, {fetched.n_bytes / 1e6:,.1f} MB, {fetched.downloaded} "
        f"files downloaded now, {len(fetched.missing)} runs missing on the server"
    )
    click.echo(f"Next: {shlex.join(['irtaudit', 'describe', str(fetched.folder)])}")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A line on stderr with the time left; nothing where no one watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Downloading"), BarColumn(), MofNCompleteColumn(), TextColumn("runs, left:"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
