"""``irtaudit bundles``: retained runs from the logs of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from irtaudit.cli.reading import PLACE


@click.group()
def command() -> None:
    """Make retained bundles, which `irtaudit protocol` audits."""


@command.command()
@click.argument("source", metavar="LOG", type=PLACE)
@click.argument("target", metavar="OUT", type=PLACE)
@click.option(
    "--from",
    "format",
    type=click.Choice(["inspect", "atif", "swe-agent", "openai"]),
    help="What LOG is; by default its content says.",
)
@click.option("--scores", type=PLACE, help="Scores that the log lacks: CSV of run_id and score or passed.")
@click.option("--spec", type=PLACE, help="A spec.yaml for what the log does not say.")
@click.option("--benchmark", help="Name of the benchmark, where the log does not say.")
@click.option("--model", help="Name of the model, likewise.")
@click.option("--agent", help="Name of the agent, likewise.")
@click.option(
    "--kind",
    type=click.Choice(["dataset", "emulator", "sandbox", "container", "live"]),
    default="container",
    show_default=True,
    help="Kind of protocol the runs were made under.",
)
@click.option(
    "--sampling",
    type=click.Choice(["census", "random", "suspicious_subset"]),
    default="census",
    show_default=True,
    help="How the runs came into the cohort.",
)
def convert(
    source: Path,
    target: Path,
    format: str | None,
    scores: Path | None,
    spec: Path | None,
    benchmark: str | None,
    model: str | None,
    agent: str | None,
    kind: str,
    sampling: str,
) -> None:
    """Turn LOG into one bundle per run in the folder OUT.

    LOG is an Inspect AI log (.eval, .json), an ATIF trajectory, a SWE-agent .traj file, OpenAI-style messages
    as JSON lines, or a folder of such. Runs of a folder that would have one name, as those of a/x.traj and
    b/x.traj, get the path of their log in front: a/x, b/x. What a log does not say is named: rules that need
    it, of withheld files say, stay silent until a spec.yaml says it. No score, no misleading score: where a
    log holds none, --scores takes a table with columns run_id and score or passed, and max and
    validity_check where they were recorded.

    A spec.yaml holds what is known of the following; everything may be left out.

    \b
        intended_capability: repairing a function from its description
        intended_task: Repair parse(text).
        allowed: [the repository]
        withheld:
        - id: reference
          paths: [/opt/gold/patch.diff]
          strings: [def parse_strictly]
        scoring_rule: share of the hidden tests that pass
        success_threshold: 1.0
        direction: higher
        no_credit_score: 0.0
        notes: {E: environment, I: information, S: scoring, V: verification}
    """
    from irtaudit.data.responses import listed
    from irtaudit.protocol.adapters.convert import convert as convert_logs
    from irtaudit.protocol.adapters.draft import Filling
    from irtaudit.protocol.adapters.scores import read_scores
    from irtaudit.protocol.load import read_spec

    filling = Filling(
        benchmark=benchmark,
        model=model,
        agent=agent,
        protocol_kind=kind,  # type: ignore[arg-type]  # click checked the choice
        cohort_sampling=sampling,  # type: ignore[arg-type]  # likewise
        spec=read_spec(spec) if spec else None,
        scores=read_scores(scores) if scores else {},
    )
    found = convert_logs(source, target, filling, format)  # type: ignore[arg-type]  # likewise
    done = found.done
    for why in found.left_out:
        click.echo(f"  left out: {why}", err=True)
    formats = ", ".join(dict.fromkeys(one.format for one in done))
    count = f"{len(done):,} bundle{'' if len(done) == 1 else 's'}"
    click.echo(f"{target}: {count} from {formats}, {sum(one.n_events for one in done):,} events")
    if found.apart:
        click.echo(f"  named by their logs' paths, as several had one name: {listed(found.apart)}")
    unused = len(set(filling.scores) - {one.run_id for one in done})
    if unused:
        click.echo(f"  scores of no run here: {unused}")
    missing = sorted({name for one in done for name in one.unfilled})
    if missing:
        click.echo(f"  not in the log: {', '.join(missing)}")
    click.echo(f"  next: irtaudit protocol {target}")
