"""``irtaudit protocol``: how was the score earned?"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irtaudit.cli import keeps_work
from irtaudit.cli.reading import PLACE, WORDS, Number

if TYPE_CHECKING:
    from irtaudit.protocol.audit import ProtocolAudit
    from irtaudit.protocol.calibration import Label
    from irtaudit.protocol.judges.budget import Budget
    from irtaudit.protocol.judges.case import Judge

JUDGES = ("rules", "replay", "openai", "inspect")
READING = "The scores show the intended capability"


@click.command()
@click.argument("bundles", metavar="BUNDLES...", nargs=-1, type=PLACE)
@click.option("--demo", is_flag=True, help="Audit the nine bundles that come with irtaudit.")
@click.option(
    "--out",
    type=PLACE,
    default=Path("protocol-report"),
    show_default=True,
    help="Folder for the report and its tables.",
)
@click.option(
    "--reading", type=WORDS, default=READING, show_default=True, help="The reading under test, in your words."
)
@click.option(
    "--judge",
    "judge_name",
    type=click.Choice(JUDGES),
    help="Who labels candidates.  [default: rules; replay with --demo]",
)
@click.option("--model", help="Model behind the judge openai or inspect.")
@click.option(
    "--answers",
    type=PLACE,
    help="Recorded answers (answers.jsonl) for the judge replay.",
)
@click.option(
    "--base-url", help="Server of the judge openai; otherwise OPENAI_BASE_URL. Key: OPENAI_API_KEY."
)
@click.option("--timeout", type=Number(min=0.1), default=120.0, help="Seconds for one answer.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Runs judged at a time.  [default: 1; 4 over a network]"
)
@click.option("--max-requests", type=click.IntRange(min=1), help="Stop asking after so many requests.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Stop asking after so many tokens.")
@click.option("--max-cost", type=Number(min=0), help="Stop asking at this cost; needs the prices.")
@click.option("--price-in", type=Number(min=0), help="Price of a million tokens of input.")
@click.option("--price-out", type=Number(min=0), help="Price of a million tokens of output.")
@click.option(
    "--interval",
    type=click.Choice(["wilson", "clopper-pearson"]),
    default="wilson",
    show_default=True,
    help="Interval of shares of independent runs.",
)
@click.option(
    "--tolerance",
    type=Number(0, 1),
    default=0.05,
    show_default=True,
    help="Share of misleading scores that the reading can bear.",
)
@click.option(
    "--cap",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Candidates per exposure and run.",
)
@click.option(
    "--probe", type=click.IntRange(min=1), metavar="N", help="Plant N known cases per exposure in clean runs."
)
@click.option("--labels", type=PLACE, help="Human labels (CSV) to hold the calls against.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=2026,
    show_default=True,
    help="Seed of the probe and of bootstraps.",
)
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary for programs.")
def command(bundles: tuple[Path, ...], demo: bool, out: Path, reading: str, **options: Any) -> None:
    """Audit the runs behind a score: what was exposed, used and credited.

    BUNDLES are retained runs: folders or zip files with a manifest.json, or folders of such; `irtaudit
    bundles convert` makes them from logs. Nothing in them is executed and no score is taken again.

    The judge `rules` is offline triage. `openai` asks any compatible server, `inspect` any model that
    Inspect AI knows, `replay` repeats recorded answers. Answers over a network are kept in OUT/answers, so
    that the same command again asks only for what is missing.
    """
    from irtaudit.data.outputs import check_folder, claim_folder, keep_apart
    from irtaudit.errors import PlanError
    from irtaudit.protocol.audit import audit_protocol
    from irtaudit.protocol.calibration import read_labels
    from irtaudit.protocol.judges.budget import Budget, Limit
    from irtaudit.protocol.load import find_bundles

    if demo == bool(bundles):
        raise PlanError("give BUNDLES to audit, or --demo, and not both")
    name = options["judge_name"] or ("replay" if demo else "rules")
    limit = Limit(
        options["max_requests"],
        options["max_tokens"],
        options["max_cost"],
        options["price_in"],
        options["price_out"],
    )
    if limit.cost is not None and None in (limit.price_in, limit.price_out):
        raise PlanError("--max-cost needs --price-in and --price-out, or the cost cannot be known")
    budget, started = Budget(limit), time.monotonic()
    judge = _judge(name, demo, budget, options)
    say = _no_words if options["quiet"] or options["as_json"] else _words
    check_folder(out, "protocol")
    keep_apart(out, (*bundles, options["answers"], options["labels"]))
    labels = read_labels(options["labels"]) if options["labels"] else None
    places = find_bundles([_demo_folder()] if demo else bundles)
    say(f"{_bundles(len(places))}{' made up for the demo' if demo else ''}, judge {name}")
    claim_folder(out, "protocol")
    if judge.remembered:
        keeps_work(out / "answers")
    audit = audit_protocol(
        places,
        judge,
        cap=options["cap"],
        workers=options["workers"] or (4 if judge.remembered else 1),
        answers=out / "answers",
        progress=_progress(len(places), say),
    )
    title = "How was the score earned?" + (" (made-up demo runs)" if demo else "")
    _report(audit, out, title, reading, labels, budget, options, say, time.monotonic() - started)


def _judge(name: str, demo: bool, budget: Budget, options: dict[str, Any]) -> Judge:
    from irtaudit.errors import PlanError
    from irtaudit.protocol.judges.replay import read_answers, replay_judge
    from irtaudit.protocol.judges.rules import rules_judge

    if name == "rules":
        return rules_judge()
    if name == "replay":
        if not options["answers"] and not demo:
            raise PlanError("the judge replay needs --answers FILE, an answers.jsonl of an earlier audit")
        return replay_judge(read_answers(options["answers"] or _demo_folder() / "answers.jsonl"))
    if not options["model"]:
        raise PlanError(f"the judge {name} needs --model")
    if name == "openai":
        from irtaudit.protocol.judges.openai import openai_judge

        return openai_judge(
            options["model"], base_url=options["base_url"], budget=budget, timeout=options["timeout"]
        )
    from irtaudit.protocol.judges.inspect import inspect_judge

    return inspect_judge(options["model"], budget=budget, timeout=options["timeout"])


def _demo_folder() -> Path:
    import irtaudit.protocol

    return Path(irtaudit.protocol.__file__).parent / "demo"


def _report(
    audit: ProtocolAudit,
    out: Path,
    title: str,
    reading: str,
    labels: dict[str, Label] | None,
    budget: Budget,
    options: dict[str, Any],
    say: Any,
    seconds: float,
) -> None:
    from irtaudit.data.outputs import filling
    from irtaudit.protocol.calibration import calibrate
    from irtaudit.protocol.output import OPTIONAL_TABLES, summary_of, write_results
    from irtaudit.protocol.present import GLOSSARY, present, verdict_of
    from irtaudit.protocol.results import tables, traces_table
    from irtaudit.report.page import write_report

    shown: dict[str, Any] = {"interval": options["interval"], "tolerance": options["tolerance"]}
    calibration = None if labels is None else calibrate(traces_table(audit), labels, seed=options["seed"])
    probe = _probed(audit, out, options, say) if options["probe"] else None
    spent = {**(budget.summary() if audit.judge.remembered else {}), "seconds": round(seconds, 1)}
    more: dict[str, Any] = {"probe": probe, "calibration": calibration, "spent": spent}
    named: dict[str, Any] = {"reading": reading, "command": _command_line()}
    with filling(out, "protocol"):
        for name in OPTIONAL_TABLES:  # of an earlier run with other options
            (out / f"{name}.csv").unlink(missing_ok=True)
        write_results(audit, out, **shown, **more, **named)
        sections = present(audit, reading=reading, **shown, **more)
        page = write_report(sections, out, title=title, command=named["command"], glossary=GLOSSARY)
    verdict = verdict_of(audit, options["tolerance"], options["interval"])
    if options["as_json"]:
        frames = tables(audit, options["interval"])
        summary = summary_of(audit, frames, calibration=calibration, spent=spent, **shown, **named)
        click.echo(json.dumps(summary, ensure_ascii=False))
        return
    click.echo(f"{reading}: {verdict.word}")
    say(verdict.why)
    if audit.refused:
        say(f"  {_bundles(len(audit.refused))} could not be read: {out / 'refused.csv'}")
    for section in [section for section in sections if section.place == "evidence"][:3]:
        say(f"  {section.claim}")
    if audit.judge.remembered:
        cost = "unknown (give --price-in, --price-out)" if spent["cost"] is None else f"{spent['cost']:.4f}"
        say(
            f"  {spent['requests']} requests, {spent['tokens_in']:,} tokens in, {spent['tokens_out']:,} out, "
            f"cost {cost}"
        )
    say(f"  {page}")


def _probed(audit: ProtocolAudit, out: Path, options: dict[str, Any], say: Any) -> Any:
    from irtaudit.protocol.load import load_bundle
    from irtaudit.protocol.probe import recall_probe

    clean = [trace.source for trace in audit.traces if trace.state == "no_candidate"]
    if not clean:
        click.echo("no probe: it plants cases in runs without candidates, and there is none", err=True)
        return None
    bundles = [load_bundle(place) for place in clean[:20]]
    say(f"probe: {options['probe']} cases per exposure in runs without candidates ({len(bundles)})")
    return recall_probe(
        bundles, audit.judge, per_exposure=options["probe"], seed=options["seed"], answers=out / "answers"
    )


def _bundles(n: int) -> str:
    return f"{n:,} bundle{'' if n == 1 else 's'}"


def _progress(total: int, say: Any) -> Any:
    started = time.monotonic()
    step = max(1, total // 20)

    def tell(count: int, result: Any) -> None:  # noqa: ARG001 - what audit_protocol hands over
        if total > 20 and count % step == 0 and count < total:
            left = (time.monotonic() - started) / count * (total - count)
            say(f"{count:,} of {total:,} runs, about {left:,.0f} s left")

    return tell


def _words(text: str) -> None:
    click.echo(text)


def _no_words(text: str) -> None:
    pass


def _command_line() -> str:
    import shlex

    return "irtaudit " + shlex.join(sys.argv[1:])
