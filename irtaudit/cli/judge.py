"""``irtaudit judge``: how far the calls of an audit can be trusted."""

from __future__ import annotations

import json
from pathlib import Path

import click

from irtaudit.cli.reading import PLACE


@click.group()
def command() -> None:
    """Hold the calls of `irtaudit protocol` against human labels."""


@command.command()
@click.argument("audit", metavar="AUDIT", type=PLACE)
@click.argument("labels", metavar="LABELS", type=PLACE)
@click.option("--out", type=PLACE, help="Folder for the tables.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=2026, show_default=True, help="Seed of the bootstrap."
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers for programs.")
def calibrate(audit: Path, labels: Path, out: Path | None, seed: int, as_json: bool) -> None:
    """Compare the calls in AUDIT with the human labels in LABELS.

    AUDIT is the folder that `irtaudit protocol` wrote. LABELS is a CSV file with columns run_id and label
    (positive, negative, ambiguous), or id and target (true, false) as Inspect Scout writes them. Every metric
    stands beside the score of a policy that never looks: flag everything, or nothing.
    """
    from irtaudit.data.files import write_csv
    from irtaudit.data.outputs import check_folder, filling, keep_apart
    from irtaudit.protocol.calibration import calibrate as compare
    from irtaudit.protocol.calibration import read_calls, read_labels
    from irtaudit.report.export import plain

    if out is not None:
        check_folder(out, "calibration")
        keep_apart(out, (audit, labels))
    found = compare(read_calls(audit), read_labels(labels), seed=seed)
    if out is not None:
        with filling(out, "calibration"):
            write_csv(found.metrics, out / "calibration.csv")
            write_csv(found.reliability, out / "reliability.csv")
    if as_json:
        told = {"counts": found.counts, "metrics": found.metrics, "reliability": found.reliability}
        click.echo(json.dumps(plain(told), allow_nan=False))
        return
    click.echo(", ".join(f"{name} {count}" for name, count in found.counts.items()))
    click.echo(f"{'metric':<18} {'estimate':>8}  {'95 % interval':<16} {'constant':>8}  above constant")
    for row in found.metrics[found.metrics["undecided_as"] == "negative"].itertuples():
        click.echo(
            f"{row.metric:<18} {row.estimate:8.4f}  {row.low:.4f} to {row.high:.4f} {row.constant:8.4f}  "
            f"{row.above_low:+.4f} to {row.above_high:+.4f} ({row.policy})"
        )
