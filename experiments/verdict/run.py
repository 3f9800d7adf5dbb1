"""Does the verdict say what is true? Simulated panels of 81 models and 398 items, by the audit's own rule.

Usage: ``OMP_NUM_THREADS=1 python experiments/verdict/run.py [--minutes N] [--out FOLDER]``. Writes
``verdicts.csv`` (one row per simulated panel and audit of it), ``evidence.csv`` (the intervals behind each),
``losses.csv`` (held-out log-loss of every model and split), ``summary.csv`` (how often each word falls,
against the goals) and ``provenance.json``. Panels that ``verdicts.csv`` already holds are not run again.
``--check`` runs the first panels of each kind again with the audit's 20 restarts, into ``check.csv``.

Everything that the verdict depends on is as in ``irtaudit audit``: models, splits, intervals, families of
models, the simulated power where it decides. Only the restarts are fewer: 4 of the 20.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

import irtaudit
from irtaudit import FitResult, ModelSpec, ResponseMatrix, Splits, Verdict
from irtaudit.dimensionality.gates import judge_with_gates
from irtaudit.stats.proportions import wilson

HERE = Path(__file__).parent
ONE = (1.0, 1.0, 1.0)
TRUE, PERMUTED, NONE = "true labels", "permuted labels", "no labels"
WORDS = ["supported", "not supported", "inconclusive", "nothing to measure"]


@dataclass(frozen=True)
class Goal:
    """In how many of the 40 panels a word should fall.

    Attributes
    ----------
    word : str
    at_least, at_most : int
    """

    word: str
    at_least: int = 0
    at_most: int = 40


@dataclass(frozen=True)
class Kind:
    """A kind of simulated panel, and the audits of it.

    Attributes
    ----------
    name : str
    correlations : tuple of float
        Of factors 1-2, 1-3 and 2-3; ones: one factor.
    goals : mapping of str to tuple of Goal
        By the item labels that the audit is given.
    hard : bool
        Skewed abilities (a centred, scaled Gamma of shape 2, the tail to the right) and guessing at .2.
    """

    name: str
    correlations: tuple[float, float, float]
    goals: Mapping[str, tuple[Goal, ...]]
    hard: bool = False


ONE_FACTOR = {TRUE: (Goal("not supported", at_most=2), Goal("supported", at_least=30))}


@dataclass(frozen=True)
class Config:
    """The study: shape and moments of the panels as in ``tests/reference/sim81x398.md``.

    Families of models are as large as those of the 81 models of the audit of HarmBench (see
    ``experiments/harmful_refusal/printed/developers.csv``), dealt at random: here they do not matter.
    """

    n_subjects: int = 81
    n_items: tuple[int, int, int] = (200, 100, 98)
    pass_rate: float = 0.67
    log_slope: tuple[float, float] = (0.2, 0.4)
    intercept_sd: float = 1.5
    families: tuple[int, ...] = (21, 11, 7, 6, 5, 5, 5, 4, 4, 4, 3, 2, 1, 1, 1, 1)
    panels: int = 40
    restarts: int = 4
    preset: str = "default"
    seed: int = 2026
    kinds: tuple[Kind, ...] = (
        Kind("one factor", ONE, ONE_FACTOR),
        Kind("one factor, skewed theta and guessing", ONE, ONE_FACTOR, hard=True),
        Kind(
            "three factors .785/.451/.603",
            (0.785, 0.451, 0.603),
            {
                TRUE: (Goal("not supported", at_least=38),),
                PERMUTED: (Goal("not supported", at_least=36),),
            },
        ),
        Kind(
            "three factors .90",
            (0.9, 0.9, 0.9),
            {TRUE: (Goal("not supported", at_least=36),), NONE: (Goal("supported", at_most=0),)},
        ),
        Kind("three factors .95", (0.95, 0.95, 0.95), {TRUE: (), NONE: ()}),
    )


DIMENSIONS = [
    *(ModelSpec.unidimensional(family) for family in ("1pl", "2pl", "3pl")),
    *(ModelSpec.exploratory("2pl", dims) for dims in (2, 3, 4)),
]
"""The default models of an audit; item labels add a confirmatory one."""


@dataclass(frozen=True)
class Panel:
    """One simulated panel, screened, with its held-out cells.

    Attributes
    ----------
    matrix : ResponseMatrix
        Subjects with ``family``.
    splits : Splits
    labels : mapping of str to Series
        The item labels that audits of it may be given.
    """

    matrix: ResponseMatrix
    splits: Splits
    labels: Mapping[str, pd.Series]


def simulate(config: Config, kind: Kind, rng: np.random.Generator) -> Panel:
    """One panel of a kind."""
    factor = np.repeat(range(3), config.n_items)
    theta = abilities(kind, config.n_subjects, rng)
    slope = np.exp(rng.normal(*config.log_slope, factor.size))
    eta = slope * theta[:, factor] + rng.normal(0, config.intercept_sd, factor.size)
    floor = 0.2 if kind.hard else 0.0
    shift = brentq(lambda s: (floor + (1 - floor) * expit(eta + s)).mean() - config.pass_rate, -6, 6)
    cells = (rng.random(eta.shape) < floor + (1 - floor) * expit(eta + shift)).astype(float)
    families = rng.permutation(np.repeat(range(len(config.families)), config.families))
    names = pd.Index([f"simulated {i:03d}" for i in range(factor.size)], name="item")
    whole = ResponseMatrix.from_array(
        cells,
        items=pd.DataFrame({"factor": [f"factor {f + 1}" for f in factor]}, index=names),
        subjects=pd.DataFrame(
            {"family": families},
            index=pd.Index([f"simulated {i:02d}" for i in range(len(cells))], name="subject"),
        ),
    )
    matrix = irtaudit.screen(whole).matrix
    true = matrix.items["factor"]
    permuted = pd.Series(rng.permutation(true), true.index, name="permuted")
    return Panel(matrix, irtaudit.make_splits(matrix, seed=config.seed), {TRUE: true, PERMUTED: permuted})


def abilities(kind: Kind, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(subject, factor) abilities of mean 0 and variance 1."""
    if kind.hard:
        return np.repeat((rng.gamma(2.0, size=(n, 1)) - 2) / np.sqrt(2), 3, axis=1)
    r = np.eye(3)
    r[[0, 0, 1], [1, 2, 2]] = r[[1, 2, 2], [0, 0, 1]] = kind.correlations
    return rng.multivariate_normal(np.zeros(3), r, n)


@dataclass(frozen=True)
class Audited:
    """What one audit of a panel said.

    Attributes
    ----------
    labels : str
        That the audit was given.
    verdict : Verdict
    power : float or None
        None where it would not decide.
    losses : DataFrame
        ``model, split, log_loss, train_log_lik`` of this audit.
    seconds : float
        CPU time of the audit, without fits that an earlier audit of the panel shares.
    """

    labels: str
    verdict: Verdict
    power: float | None
    losses: pd.DataFrame
    seconds: float


def audits(config: Config, kind: Kind, panel: Panel) -> Iterator[Audited]:
    """Audit a panel once for each set of labels."""
    shared: dict[str, FitResult] = {}
    for labels in kind.goals:
        start = time.process_time()
        given = [panel.labels[labels]] if labels in panel.labels else []
        specs = [*DIMENSIONS, *(ModelSpec.confirmatory("2pl", label) for label in given)]
        shared |= fitted(config, panel, [spec for spec in specs if spec.name not in shared])
        fits = {spec.name: shared[spec.name] for spec in specs}
        verdict, power, losses = judged(config, panel, fits)
        yield Audited(labels, verdict, power, losses, time.process_time() - start)


def fitted(config: Config, panel: Panel, specs: Sequence[ModelSpec]) -> dict[str, FitResult]:
    """Models fitted to the training cells."""
    options = {"n_restarts": config.restarts, "preset": config.preset, "seed": config.seed, "workers": 1}
    return irtaudit.fit_all(panel.matrix, specs, panel.splits, **options) if specs else {}


def judged(
    config: Config, panel: Panel, fits: Mapping[str, FitResult]
) -> tuple[Verdict, float | None, pd.DataFrame]:
    """Verdict by the audit's rule; panels are simulated for the power only where nothing else is open."""
    matrix, splits = panel.matrix, panel.splits
    comparison = irtaudit.compare(fits, baselines=irtaudit.additive_baselines(matrix, splits))
    options = {"clusters": matrix.subjects["family"].tolist(), "seed": config.seed, "workers": 1}
    verdict, _ = judge_with_gates(comparison, fits, {}, matrix, splits, **options)
    power = None
    if "open" in set(verdict.conditions["state"]):
        labelled = [fit.spec for fit in fits.values() if fit.spec.structure == "confirmatory"]
        truth = labelled[0] if labelled else fits[str(verdict.best)].spec
        full = irtaudit.fit(
            matrix, truth, n_restarts=config.restarts, preset=config.preset, seed=config.seed, workers=1
        )
        verdict, power = judge_with_gates(comparison, fits, {truth.name: full}, matrix, splits, **options)
    losses = comparison.by_split[["model", "split", "log_loss", "train_log_lik"]]
    return verdict, None if power is None else power.power, losses


def run_panel(config: Config, number: int, panel: int) -> dict[str, pd.DataFrame]:
    """Rows of every table for one panel of the kind with that number."""
    kind = config.kinds[number]
    simulated = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
    rows: dict[str, list[pd.DataFrame]] = {"verdicts": [], "evidence": [], "losses": []}
    for audit in audits(config, kind, simulated):
        verdict, key = audit.verdict, {"kind": kind.name, "panel": panel, "labels": audit.labels}
        row = {
            "word": verdict.word,
            "best": verdict.best,
            "gain": verdict.gain.estimate,
            "gain_low": verdict.gain.low,
            "margin": verdict.margin,
            "power": audit.power,
            "failed": ", ".join(sorted(set(verdict.challengers) - set(verdict.evidence["challenger"]))),
            "cpu_seconds": audit.seconds,
        }
        rows["verdicts"].append(pd.DataFrame([key | row]))
        rows["evidence"].append(verdict.evidence.assign(**key)[[*key, *verdict.evidence.columns]])
        rows["losses"].append(audit.losses.assign(**key)[[*key, *audit.losses.columns]])
    return {name: pd.concat(parts, ignore_index=True) for name, parts in rows.items()}


def summarise(config: Config, verdicts: pd.DataFrame) -> pd.DataFrame:
    """How often each word falls, and whether that is the goal.

    Returns
    -------
    DataFrame
        One row per kind and labels: ``panels``; the number of each word; ``goal`` in words; ``met``: "yes",
        "no", or "" without a goal. ``share, low, high``: share of *not supported*, Wilson 95 %.
    """
    rows = []
    for kind in config.kinds:
        for labels, goals in kind.goals.items():
            found = verdicts[(verdicts["kind"] == kind.name) & (verdicts["labels"] == labels)]
            n = found["word"].value_counts().reindex(WORDS, fill_value=0)
            met = all(goal.at_least <= n[goal.word] <= goal.at_most for goal in goals)
            low, high = wilson([n["not supported"]], [len(found)])
            rows.append(
                {
                    "kind": kind.name,
                    "labels": labels,
                    "panels": len(found),
                    **n,
                    "goal": "; ".join(map(in_words, goals)),
                    "met": ("yes" if met else "no") if goals else "",
                    "share": n["not supported"] / max(len(found), 1),
                    "low": low[0],
                    "high": high[0],
                }
            )
    return pd.DataFrame(rows)


def in_words(goal: Goal) -> str:
    """The goal, for a table."""
    return f"{goal.word}: " + (f"at least {goal.at_least}" if goal.at_least else f"at most {goal.at_most}")


def missing_panels(config: Config, verdicts: pd.DataFrame, at_most: int) -> list[tuple[int, int]]:
    """Numbers of the kinds and panels that are not there yet, the first panel of every kind first."""
    done = set(zip(verdicts["kind"], verdicts["panel"], strict=True))
    wanted = [
        (panel, number)
        for number, kind in enumerate(config.kinds)
        for panel in range(at_most)
        if (kind.name, panel) not in done
    ]
    return [(number, panel) for panel, number in sorted(wanted)]


def main() -> None:
    """Run the study and write its tables with their provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--panels", type=int, default=Config.panels, help="at most so many of each kind")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then; run again to go on")
    parser.add_argument("--check", action="store_true", help="the first panels again, with 20 restarts")
    arguments = parser.parse_args()
    config, out, started = Config(), arguments.out, time.monotonic()
    names = {"verdicts": "verdicts", "evidence": "evidence", "losses": "losses"}
    if arguments.check:
        config, names = Config(restarts=20), {"verdicts": "check"}
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    files = {table: out / f"{name}.csv" for table, name in names.items()}
    empty = pd.DataFrame(columns=["kind", "panel"])
    tables = {table: pd.read_csv(file) if file.exists() else empty for table, file in files.items()}
    left = missing_panels(config, tables["verdicts"], arguments.panels)
    while left and time.monotonic() - started < 60 * arguments.minutes:
        found = run_panel(config, *left.pop(0))
        for table, file in files.items():
            parts = [part for part in (tables[table], found[table]) if len(part)]
            tables[table] = pd.concat(parts, ignore_index=True).round(6)
            tables[table].to_csv(file, index=False)
    print(f"{len(left)} panels left")
    if arguments.check:
        return
    summary = summarise(config, tables["verdicts"]).round(3)
    summary.to_csv(out / "summary.csv", index=False)
    print(summary.to_string(index=False))
    provenance = {
        "config": asdict(config),
        "versions": {
            "irtaudit": irtaudit.__version__,
            "numpy": np.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "command": "OMP_NUM_THREADS=1 python experiments/verdict/run.py",
    }
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
