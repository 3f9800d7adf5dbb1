"""Do the intervals cover, are the p-values uniform? Simulated panels as small and as clustered as real ones.

Usage: ``python experiments/agent_safety_panel/calibration.py [--panels 1000] [--out FOLDER]``. Writes
``calibration.csv``: one row per question and setting with the rate, its Monte Carlo SD, and the bar.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.stats.bootstrap import (
    cluster_draws,
    cluster_interval,
    percentile_interval,
    stratified_draws,
    two_sided_p,
    unit_draws,
)
from irtaudit.stats.correlation import permutation_p, rank_correlation, rank_residuals, standardized
from irtaudit.stats.groups import kruskal_permutation

HERE = Path(__file__).parent
COVERAGE = (0.92, 0.97)
SIZE = (0.03, 0.07)
Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Config:
    """How much is simulated.

    Attributes
    ----------
    panels : int
        Simulated panels per setting.
    draws : int
        Bootstrap draws and permutations per panel.
    seed : int
    """

    panels: int = 1000
    draws: int = 1999
    seed: int = 2026


def spearman_of(r: float) -> float:
    """Spearman correlation of a bivariate normal with Pearson correlation r."""
    return float(6 / np.pi * np.arcsin(r / 2))


def trio(n: int, r1: float, r2: float, rng: np.random.Generator) -> np.ndarray:
    """(3, n): capability and two outcomes that correlate with it at r1 and r2, and otherwise not."""
    matrix = np.array([[1, r1, r2], [r1, 1, r1 * r2], [r2, r1 * r2, 1]])
    return np.linalg.cholesky(matrix) @ rng.standard_normal((3, n))


def difference(values: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """rho(capability, second) - rho(capability, first)."""
    return rank_correlation([values[0], values[2]], counts) - rank_correlation([values[0], values[1]], counts)


def paired_bootstrap(config: Config, rng: np.random.Generator) -> Rows:
    """Difference of dependent correlations at n = 20."""
    for r1, r2 in ((0.0, 0.0), (0.6, -0.4), (0.6, 0.6)):
        truth = spearman_of(r2) - spearman_of(r1)
        covered, rejected = 0, 0
        for _ in range(config.panels):
            values = trio(20, r1, r2, rng)
            draws = difference(values, unit_draws(20, config.draws, rng))
            interval = percentile_interval(float(difference(values)[0]), draws)
            covered += interval.low <= truth <= interval.high
            rejected += two_sided_p(draws) <= 0.05
        setting = f"n = 20, Pearson {r1:+.1f} and {r2:+.1f}"
        yield row("paired bootstrap of a difference covers", setting, covered, config, COVERAGE)
        if truth == 0:
            yield row("its p <= 0.05 under the null", setting, rejected, config, (0.03, 0.08))


def one_correlation(config: Config, rng: np.random.Generator) -> Rows:
    """A single correlation, and one with a composite of two anchors made anew in each draw."""
    for n, r in ((20, 0.0), (20, 0.5), (10, 0.5), (18, 0.8)):
        covered = 0
        for _ in range(config.panels):
            x, y, _ = trio(n, r, 0.0, rng)
            draws = rank_correlation([x, y], unit_draws(n, config.draws, rng))
            interval = percentile_interval(float(rank_correlation([x, y])[0]), draws)
            covered += interval.low <= spearman_of(r) <= interval.high
        setting = f"n = {n}, Pearson {r:+.1f}"
        yield row("bootstrap of one correlation covers", setting, covered, config, COVERAGE)
    covered, n = 0, 20
    for _ in range(config.panels):
        ability, y, _ = trio(n, 0.5, 0.0, rng)
        anchors = ability + 0.5 * rng.standard_normal((2, n))
        counts = unit_draws(n, config.draws, rng)
        whole = np.ones((1, n))
        once, anew = (np.mean([standardized(a, c) for a in anchors], axis=0) for c in (whole, counts))
        draws = rank_correlation([anew, y], counts)
        interval = percentile_interval(float(rank_correlation([once, y], whole)[0]), draws)
        covered += interval.low <= spearman_of(0.5 / np.sqrt(1 + 0.25 / 2)) <= interval.high
    yield row("the same with a composite of two anchors", f"n = {n}", covered, config, COVERAGE)


def clustered(config: Config, rng: np.random.Generator) -> Rows:
    """Eight organizations whose models share a part of their scores."""
    makers = np.repeat(np.arange(8), [9, 7, 6, 5, 4, 4, 3, 3])
    for shared in (0.3, 0.6):
        for r1, r2 in ((0.4, 0.4), (0.6, -0.4)):
            truth = spearman_of(r2) - spearman_of(r1)
            by_rule, by_percentile = 0, 0
            for _ in range(config.panels):
                common, own = trio(8, r1, r2, rng)[:, makers], trio(makers.size, r1, r2, rng)
                values = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
                draws = difference(values, cluster_draws(makers, config.draws, rng))
                found = cluster_interval(float(difference(values)[0]), draws, 8)
                by_rule += found.low <= truth <= found.high
                by_percentile += found.percentile_low <= truth <= found.percentile_high
            setting = f"8 organizations, {shared:.0%} shared, Pearson {r1:+.1f} and {r2:+.1f}"
            yield row("clustered bootstrap covers, t rule", setting, by_rule, config, COVERAGE)
            yield row("clustered bootstrap covers, percentiles", setting, by_percentile, config, None)


def nested(config: Config, rng: np.random.Generator) -> Rows:
    """A panel of 20 inside a larger one, nothing changes; over one more model the audit gives no interval."""
    for more, r in product((20, 5, 1), (0.0, 0.5)):
        strata = np.repeat([3, 2], [20, more])
        covered = 0
        for _ in range(config.panels):
            x, y, _ = trio(20 + more, r, 0.0, rng)
            counts = stratified_draws(strata, config.draws, rng)
            draws = rank_correlation([x, y], counts) - rank_correlation([x[:20], y[:20]], counts[:, :20])
            estimate = rank_correlation([x, y])[0] - rank_correlation([x[:20], y[:20]])[0]
            interval = percentile_interval(float(estimate), draws)
            covered += interval.low <= 0 <= interval.high
        setting = f"20 in {20 + more}, Pearson {r:+.1f}"
        bar = (0.92, 0.98) if more > 1 else None
        yield row("nested bootstrap of a change covers", setting, covered, config, bar)


def permutations(config: Config, rng: np.random.Generator) -> Rows:
    """p-values under the null, with ties and with organizations that differ in capability."""
    for n, levels in ((7, 0), (12, 0), (18, 0), (18, 4)):
        p = np.array([permutation_p(*unrelated(n, levels, rng), 999, rng).p for _ in range(config.panels)])
        setting = f"n = {n}" + (f", {levels} levels" if levels else "")
        for level in (0.05, 0.5):
            bar = (level - 0.02, level + 0.02) if n > 9 and not levels else (0.0, level)
            yield row(f"permutation Spearman, p <= {level}", setting, int((p <= level).sum()), config, bar)
    makers = np.repeat(np.arange(5), 5)
    for gap in (0.0, 1.0):
        rejected = 0
        for _ in range(config.panels):
            ability = rng.standard_normal(25) + gap * np.linspace(-1, 1, 5)[makers]
            left = np.round(rank_residuals(ability + rng.standard_normal(25), ability), 9)
            rejected += kruskal_permutation(left, makers, 999, rng).p <= 0.05
        setting = f"5 organizations of 5, capability apart by {gap:.0f} SD"
        yield row("permutation Kruskal-Wallis, p <= 0.05", setting, rejected, config, SIZE)


def unrelated(n: int, levels: int, rng: np.random.Generator) -> np.ndarray:
    """(2, n) unrelated values: normal, or with that many levels."""
    return rng.integers(0, levels, (2, n)).astype(float) if levels else rng.standard_normal((2, n))


def row(
    what: str, setting: str, hits: int, config: Config, bar: tuple[float, float] | None
) -> dict[str, Any]:
    """One line of the table; it holds when the rate is inside the bar within two Monte Carlo SDs."""
    rate = hits / config.panels
    sd = float(np.sqrt(max(rate * (1 - rate), 1e-9) / config.panels))
    low, high = bar if bar is not None else (np.nan, np.nan)
    holds = "" if bar is None else bool(low - 2 * sd <= rate <= high + 2 * sd)
    line = {"what": what, "setting": setting, "panels": config.panels, "rate": rate, "mc_sd": sd}
    return {**line, "low_bar": low, "high_bar": high, "holds": holds}


def study(config: Config) -> pd.DataFrame:
    """Every question with a generator of its own."""
    parts = (paired_bootstrap, one_correlation, clustered, nested, permutations)
    return pd.DataFrame(
        line
        for number, part in enumerate(parts)
        for line in part(config, np.random.default_rng([config.seed, number]))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panels", type=int, default=Config.panels)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = study(Config(panels=given.panels))
    table.to_csv(given.out / "calibration.csv", index=False, float_format="%.4f")
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
