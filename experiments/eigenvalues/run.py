"""Do the eigenvalue tests hold their size, and do they find several factors? Simulated panels throughout.

Usage: ``python experiments/eigenvalues/run.py [--out FOLDER] [--panels N] [--minutes M]``. Writes
``panels.csv`` (one row per simulated panel and test), ``summary.csv`` (rejection rates with 95 % intervals),
``seconds.csv`` (CPU seconds of 1,000 draws) and ``provenance.json``. Panels that ``panels.csv`` already holds
are not run again: a study that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

import irtaudit
from irtaudit.dimensionality.eigenvalues import DRAWS, ITEM_NULLS, LEVEL, eigenvalue_nulls, plug_in_null
from irtaudit.dimensionality.residuals import one_factor_test, refit, residual_eigenvalues, residual_null
from irtaudit.present import versions
from irtaudit.stats.proportions import wilson

HERE = Path(__file__).parent
WITH_A_BAR = 3
"""Kinds, from the first, whose rates have a bar to meet: two sizes and a power."""
PAPER_RANKS = 10
"""Leading ranks that a reader of the paper's plot looks at."""


@dataclass(frozen=True)
class Kind:
    """A kind of simulated panel.

    Attributes
    ----------
    name : str
    correlations : tuple of float
        Of factors 1-2, 1-3 and 2-3; ones: one factor.
    panels : int
    tests : {"both", "eigenvalues", "residual"}
        What panels from `Config.n_both` on are for: the test whose size they measure.
    spread : float
        SD of the abilities; 0: independent items.
    missing : float
        Share of cells not observed, at random.
    hard : bool
        Skewed abilities (a centred, scaled Gamma of shape 2, the tail to the right) and guessing at .2.
    """

    name: str
    correlations: tuple[float, float, float]
    panels: int
    tests: str = "both"
    spread: float = 1.0
    missing: float = 0.0
    hard: bool = False


ONE = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Config:
    """The study: shape, slopes and pass rate of the panels as in ``tests/reference/sim81x398.md``.

    Item pass rates scatter a little more (SD .22, there .20), so that more items are near constant.

    The residual test has 200 refitted panels, in portions: none is added once so many exceed the observed
    value that p is above .05 whatever the rest would give, and the p of such a panel is the lowest possible.
    """

    n_subjects: int = 81
    n_items: tuple[int, int, int] = (200, 100, 98)
    pass_rate: float = 0.67
    log_slope: tuple[float, float] = (0.2, 0.4)
    intercept_sd: float = 1.5
    n_draws: int = 199
    n_panels: tuple[int, ...] = (25, 25, 50, 100)
    preset: str = "quick"
    n_both: int = 40
    seed: int = 2026
    kinds: tuple[Kind, ...] = (
        Kind("independent items", ONE, 200, "eigenvalues", spread=0.0),
        Kind("one factor", ONE, 200, "residual"),
        Kind("three factors .785/.451/.603", (0.785, 0.451, 0.603), 40),
        Kind("three factors .90", (0.9, 0.9, 0.9), 20),
        Kind("three factors .95", (0.95, 0.95, 0.95), 20),
        Kind("one factor, skewed theta and guessing", ONE, 20, hard=True),
        Kind("one factor, 20 % missing", ONE, 20, missing=0.2),
    )


def simulate(config: Config, kind: Kind, rng: np.random.Generator) -> irtaudit.ResponseMatrix:
    """One simulated panel, screened."""
    n, factor = config.n_subjects, np.repeat(range(3), config.n_items)
    theta = kind.spread * abilities(kind, n, rng)
    slope = np.exp(rng.normal(*config.log_slope, factor.size))
    eta = slope * theta[:, factor] + rng.normal(0, config.intercept_sd, factor.size)
    floor = 0.2 if kind.hard else 0.0
    shift = brentq(lambda s: (floor + (1 - floor) * expit(eta + s)).mean() - config.pass_rate, -6, 6)
    cells = (rng.random(eta.shape) < floor + (1 - floor) * expit(eta + shift)).astype(float)
    cells[rng.random(eta.shape) < kind.missing] = np.nan
    return irtaudit.screen(irtaudit.ResponseMatrix.from_array(cells)).matrix


def abilities(kind: Kind, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(subject, factor) abilities of mean 0 and variance 1."""
    if kind.hard:
        return np.repeat((rng.gamma(2.0, size=(n, 1)) - 2) / np.sqrt(2), 3, axis=1)
    r = np.eye(3)
    r[[0, 0, 1], [1, 2, 2]] = r[[1, 2, 2], [0, 0, 1]] = kind.correlations
    return rng.multivariate_normal(np.zeros(3), r, n)


def p_values(
    config: Config, matrix: irtaudit.ResponseMatrix, seed: int, tests: str
) -> Iterator[tuple[str, float]]:
    """Tests of the package on one panel: name and p-value."""
    if tests != "residual":
        nulls = eigenvalue_nulls(matrix, n_draws=config.n_draws, seed=seed)
        paper = nulls.pop("paper").p_by_rank
        yield from ((name, null.p) for name, null in nulls.items())
        yield from ((f"paper, rank {rank}", float(paper[rank - 1])) for rank in (1, 2, 3))
        yield f"paper, any of ranks 1-{PAPER_RANKS}", float(paper[:PAPER_RANKS].min())
    if tests != "eigenvalues":
        p, probability = residual_p(config, matrix, seed)
        yield "residual", p
        plug_in = plug_in_null(matrix, probability, n_draws=config.n_draws, seed=seed)
        yield "one factor, second eigenvalue (not refitted)", plug_in.p


def residual_p(
    config: Config, matrix: irtaudit.ResponseMatrix, seed: int
) -> tuple[float, NDArray[np.float64]]:
    """The residual test's p on one panel, and the probabilities of the panel's own fit."""
    portions = []
    for number, n_panels in enumerate(config.n_panels):
        refitted = refit(
            matrix,
            irtaudit.ModelSpec.unidimensional("2pl"),
            {"residual": residual_eigenvalues},
            n_panels=n_panels,
            preset=config.preset,
            seed=seed + 1000 * number,
            workers=1,
        )
        portions.append(refitted)
        nulls = np.concatenate([residual_null(one).draws[:, 0] for one in portions])
        exceeding = int((nulls >= residual_null(portions[0]).observed[0]).sum())
        if 1 + exceeding > LEVEL * (1 + sum(config.n_panels)):
            break
    return (1 + exceeding) / (1 + sum(config.n_panels)), portions[0].panel.probability[0]


def run_panel(config: Config, number: int, panel: int) -> pd.DataFrame:
    """Columns ``kind, panel, test, p`` for one panel of the kind with that number."""
    kind = config.kinds[number]
    matrix = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
    tests = "both" if panel < config.n_both else kind.tests
    found = pd.DataFrame(p_values(config, matrix, panel, tests), columns=["test", "p"])
    return found.assign(kind=kind.name, panel=panel)[["kind", "panel", "test", "p"]]


def summarise(panels: pd.DataFrame) -> pd.DataFrame:
    """Columns ``kind, test, panels, rejected`` (share with p at most .05), ``low, high`` (Wilson, 95 %)."""
    groups = panels.assign(rejected=panels["p"] <= LEVEL).groupby(["kind", "test"], sort=False)["rejected"]
    table = groups.agg(["size", "sum", "mean"]).reset_index()
    table.columns = pd.Index(["kind", "test", "panels", "hits", "rejected"])
    table["low"], table["high"] = wilson(table["hits"], table["panels"])
    return table.drop(columns="hits")


def presets(config: Config) -> pd.DataFrame:
    """Columns ``kind, panel, preset, eigenvalue, p`` of the residual test, 99 refits by either preset."""
    rows = []
    for number, panel in ((1, 0), (1, 1), (3, 0), (4, 0)):
        kind = config.kinds[number]
        matrix = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
        for preset in ("quick", "default"):
            found = one_factor_test(matrix, n_panels=99, preset=preset, seed=panel, workers=1)
            rows.append((kind.name, panel, preset, found.observed[0], found.p))
    return pd.DataFrame(rows, columns=["kind", "panel", "preset", "eigenvalue", "p"])


def seconds(config: Config) -> pd.DataFrame:
    """Columns ``null, models, items, draws, cpu_seconds`` of each null on a panel with one factor."""
    matrix = simulate(config, config.kinds[1], np.random.default_rng(config.seed))
    rows = []
    for null in ITEM_NULLS:
        start = time.process_time()
        eigenvalue_nulls(matrix, (null,), n_draws=DRAWS)
        rows.append((null, matrix.n_subjects, matrix.n_items, DRAWS, time.process_time() - start))
    return pd.DataFrame(rows, columns=["null", "models", "items", "draws", "cpu_seconds"])


def missing_panels(config: Config, panels: pd.DataFrame, at_most: int | None) -> list[tuple[int, int]]:
    """Numbers of the kinds and panels that are not there yet, those with a bar first, panel by panel."""
    done = set(zip(panels["kind"], panels["panel"], strict=True))
    wanted = [
        (number >= WITH_A_BAR, panel, number)
        for number, kind in enumerate(config.kinds)
        for panel in range(min(kind.panels, at_most or kind.panels))
        if (kind.name, panel) not in done
    ]
    return [(number, panel) for _, panel, number in sorted(wanted)]


def main() -> None:
    """Run the study and write its tables with their provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--panels", type=int, help="at most so many panels of each kind: a trial run")
    parser.add_argument("--presets", action="store_true", help="only compare two presets of the refits")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then; run again to go on")
    arguments = parser.parse_args()
    config, out, started = Config(), arguments.out, time.monotonic()
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    if arguments.presets:
        presets(config).round(4).to_csv(out / "presets.csv", index=False)
        return
    file = out / "panels.csv"
    columns = ["kind", "panel", "test", "p"]
    found = pd.read_csv(file) if file.exists() else pd.DataFrame({column: [] for column in columns})
    left = missing_panels(config, found, arguments.panels)
    while left and time.monotonic() - started < 60 * arguments.minutes:
        number, panel = left.pop(0)
        found = pd.concat([found, run_panel(config, number, panel)], ignore_index=True)
        found.astype({"panel": int}).round(6).to_csv(file, index=False)
    print(f"{len(left)} panels left")
    summary = summarise(found).round(4)
    summary.to_csv(out / "summary.csv", index=False)
    seconds(config).round(2).to_csv(out / "seconds.csv", index=False)
    print(summary.to_string(index=False))
    provenance = {
        "config": asdict(config),
        "versions": versions(),
        "command": "python experiments/eigenvalues/run.py",
    }
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
