"""How close are factor correlations, and do both of their intervals cover? Simulated panels throughout.

Usage: ``python experiments/factor_correlations/run.py [--out FOLDER] [--panels N] [--minutes M]``. Writes
``panels.csv`` (one row per simulated panel and pair of factors), ``summary.csv`` (errors and coverage) and
``provenance.json``. Panels that ``panels.csv`` already holds are not run again: a study that was stopped goes
on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import expit

import irtaudit
from irtaudit import ResponseMatrix
from irtaudit.irt.correlations import COLUMNS, factor_correlation_intervals
from irtaudit.irt.result import moment_correlations
from irtaudit.irt.score import ability_posterior
from irtaudit.irt.spec import spec_from_name
from irtaudit.present import versions
from irtaudit.stats.latent_correlation import latent_correlations
from irtaudit.stats.proportions import wilson

Array = NDArray[np.float64]
HERE = Path(__file__).parent
PAIRS = tuple(combinations(range(3), 2))
PANELS = ["kind", "panel", "truth", "of_panel", "at_mode", *COLUMNS]
MIXED = (0.785, 0.451, 0.603)
ONE = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Kind:
    """A kind of simulated panel.

    Attributes
    ----------
    name : str
    n_subjects, n_items : int
        Half of the items are of the first factor, a quarter of each other one, as in the paper's matrix.
    correlations : tuple of float
        Of factors 1-2, 1-3 and 2-3 in the population that subjects are drawn from.
    panels : int
    intervals : int
        The first so many of them get intervals; the others only estimates, which cost a tenth.
    """

    name: str
    n_subjects: int
    n_items: int
    correlations: tuple[float, float, float]
    panels: int
    intervals: int = 120


@dataclass(frozen=True)
class Config:
    """The study: slopes as in ``tests/reference/sim81x398.md``; item pass rates with mean .64 and SD .22."""

    log_slope: tuple[float, float] = (0.2, 0.4)
    intercept: tuple[float, float] = (1.0, 1.5)
    preset: str = "default"
    seed: int = 2027
    kinds: tuple[Kind, ...] = (
        Kind("81 x 398, .785/.451/.603", 81, 398, MIXED, 200, 120),
        Kind("81 x 398, .95", 81, 398, (0.95, 0.95, 0.95), 120),
        Kind("81 x 398, .90", 81, 398, (0.9, 0.9, 0.9), 120),
        Kind("81 x 398, .30", 81, 398, (0.3, 0.3, 0.3), 60),
        Kind("81 x 398, one factor", 81, 398, ONE, 60),
        Kind("81 x 100, .785/.451/.603", 81, 100, MIXED, 60),
        Kind("81 x 100, .95", 81, 100, (0.95, 0.95, 0.95), 60),
        Kind("81 x 100, one factor", 81, 100, ONE, 60),
        Kind("40 x 200, .785/.451/.603", 40, 200, MIXED, 60),
        Kind("40 x 200, .95", 40, 200, (0.95, 0.95, 0.95), 60),
        Kind("160 x 100, .785/.451/.603", 160, 100, MIXED, 60),
        Kind("160 x 100, .95", 160, 100, (0.95, 0.95, 0.95), 60),
    )


def correlation_matrix(kind: Kind) -> Array:
    """(3, 3) correlations of the population."""
    r = np.eye(3)
    for (a, b), value in zip(PAIRS, kind.correlations, strict=True):
        r[a, b] = r[b, a] = value
    return r


@dataclass(frozen=True)
class Truth:
    """What a panel was simulated from: abilities (subject, factor), slopes (item, factor), intercepts."""

    theta: Array
    slope: Array
    intercept: Array


def simulate(config: Config, kind: Kind, rng: np.random.Generator) -> tuple[ResponseMatrix, Truth]:
    """One simulated panel, screened, and what is behind it."""
    theta = rng.multivariate_normal(np.zeros(3), correlation_matrix(kind), kind.n_subjects)
    factor = np.array([0, 1, 0, 2])[np.arange(kind.n_items) % 4]
    slope = np.exp(rng.normal(*config.log_slope, factor.size))
    intercept = rng.normal(*config.intercept, factor.size)
    passed = rng.random((kind.n_subjects, factor.size)) < expit(slope * theta[:, factor] + intercept)
    names = pd.Index([f"item {j:03}" for j in range(factor.size)], name="item")
    items = pd.DataFrame({"factor": [f"factor {f + 1}" for f in factor]}, index=names)
    matrix = irtaudit.screen(ResponseMatrix.from_array(passed.astype(float), items=items)).matrix
    kept = names.get_indexer(matrix.items.index)
    slopes = slope[:, None] * (factor[:, None] == np.arange(3))
    return matrix, Truth(theta, slopes[kept], intercept[kept])


def run_panel(config: Config, number: int, panel: int) -> pd.DataFrame:
    """One row per pair of factors of one panel: true, of this panel, estimated, with both intervals."""
    kind = config.kinds[number]
    matrix, truth = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
    spec = spec_from_name("confirmatory_factor_2pl", matrix.items)
    options = {"preset": config.preset, "seed": panel, "workers": 1}
    fit = irtaudit.fit(matrix, spec, n_restarts=1, **options)
    pairs = tuple(np.transpose(PAIRS))
    if panel < kind.intervals:
        found = factor_correlation_intervals(fit, matrix, **options)
    else:
        estimate = fit.factor_correlations.to_numpy()[pairs]
        found = pd.DataFrame({"correlation": estimate}).reindex(columns=COLUMNS)
    mean, sd = (moments["theta"] for moments in fit.posterior())
    found = found.assign(
        kind=kind.name,
        panel=panel,
        truth=kind.correlations,
        of_panel=np.corrcoef(truth.theta.T)[pairs].round(6),
        at_mode=moment_correlations(mean, sd)[pairs],
    )
    return found[PANELS]


def bounds(config: Config, number: int, n_panels: int) -> dict[str, float]:
    """RMSE of those who know more than the responses tell: what no estimator can do much better than.

    Returns
    -------
    dict of float
        ``rmse_items_known``: every item's parameters are known, R is averaged over; ``rmse_oracle``: R is
        known too. Both at the modes of the abilities (Laplace). Undefined where all factors are one.
    """
    kind, pairs = config.kinds[number], tuple(np.transpose(PAIRS))
    if kind.correlations == ONE:
        return {"rmse_items_known": np.nan, "rmse_oracle": np.nan}
    known, of_panel, values, precision = [], [], [], []
    for panel in range(n_panels):
        matrix, truth = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
        items = (matrix.responses, truth.slope, truth.intercept)
        mean, covariance = ability_posterior(*items, correlation=correlation_matrix(kind), nodes=1)
        moments = np.cov(mean.T, bias=True) + covariance.mean(axis=0)
        scale = np.sqrt(np.diag(moments))
        known.append((moments / np.outer(scale, scale))[pairs])
        of_panel.append(np.corrcoef(truth.theta.T)[pairs])
        mean, covariance = ability_posterior(*items, correlation=np.eye(3), nodes=1)
        variance = np.einsum("idd->id", covariance)
        values.append(mean / variance)
        precision.append(1 / variance - 1)
    start = np.broadcast_to(correlation_matrix(kind), (n_panels, 3, 3))
    averaged = latent_correlations(np.array(values), np.array(precision), start)
    return {
        name: float(np.sqrt(np.mean(np.square(found - np.array(of_panel)))))
        for name, found in (
            ("rmse_items_known", np.array([r[pairs] for r in averaged])),
            ("rmse_oracle", np.array(known)),
        )
    }


def summarise(panels: pd.DataFrame) -> pd.DataFrame:
    """Errors and coverage.

    Returns
    -------
    DataFrame
        One row per kind of panel, over its pairs: ``kind, panels``, ``rmse`` and ``bias`` (of the estimate
        against the correlation of the panel's own abilities), ``rmse_at_mode`` (of
        `irtaudit.irt.result.moment_correlations`, the moments at the mode of R), ``population_coverage``
        (share of population intervals, where there are any, that hold the true correlation),
        ``panel_coverage`` (share of panel intervals that hold that of the panel's abilities), each with
        ``_low, _high`` (Wilson 95 %, as if the pairs of a panel were independent), and mean widths.
    """
    error = panels["correlation"] - panels["of_panel"]
    population = panels["truth"].between(panels["population_low"], panels["population_high"])
    own = panels["of_panel"].between(panels["panel_low"], panels["panel_high"])
    rows = panels.assign(
        squared=error**2,
        squared_at_mode=(panels["at_mode"] - panels["of_panel"]) ** 2,
        error=error,
        population=population,
        own=own,
        population_width=panels["population_high"] - panels["population_low"],
        panel_width=panels["panel_high"] - panels["panel_low"],
    )
    groups = rows.groupby("kind", sort=False)
    table = pd.DataFrame(
        {
            "panels": groups["panel"].nunique(),
            "rmse": np.sqrt(groups["squared"].mean()),
            "bias": groups["error"].mean(),
            "rmse_at_mode": np.sqrt(groups["squared_at_mode"].mean()),
        }
    )
    covered = rows.dropna(subset="measurement_sd").groupby("kind", sort=False)
    n = covered.size()
    for estimand, column in (("population", "population"), ("panel", "own")):
        hits = covered[column].sum()
        table[f"{estimand}_coverage"] = hits / n
        table[f"{estimand}_coverage_low"], table[f"{estimand}_coverage_high"] = wilson(hits, n)
        table[f"{estimand}_width"] = groups[f"{estimand}_width"].mean()
    return table.reset_index()


def missing_panels(config: Config, panels: pd.DataFrame, at_most: int | None) -> list[tuple[int, int]]:
    """Numbers of the kinds and panels that are not there yet, those without intervals first."""
    done = set(zip(panels["kind"], panels["panel"], strict=True))
    wanted = [
        (panel < kind.intervals, panel, number)
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
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then; run again to go on")
    arguments = parser.parse_args()
    config, out, started = Config(), arguments.out, time.monotonic()
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "panels.csv"
    found = [pd.read_csv(file)] if file.exists() else []
    left = missing_panels(config, found[0] if found else pd.DataFrame(columns=PANELS), arguments.panels)
    while left and time.monotonic() - started < 60 * arguments.minutes:
        found.append(run_panel(config, *left.pop(0)))
        pd.concat(found).round(5).to_csv(file, index=False)
    print(f"{len(left)} panels left")
    summary = summarise(pd.concat(found))
    numbers = [kind.name for kind in config.kinds]
    known = pd.DataFrame(
        [
            bounds(config, numbers.index(kind), n)
            for kind, n in zip(summary["kind"], summary["panels"], strict=True)
        ]
    )
    for place, name in enumerate(known, 5):
        summary.insert(place, name, known[name])
    summary = summary.round(4)
    summary.to_csv(out / "summary.csv", index=False)
    print(summary.to_string(index=False))
    provenance = {
        "config": asdict(config),
        "versions": versions(),
        "command": "python experiments/factor_correlations/run.py",
    }
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
