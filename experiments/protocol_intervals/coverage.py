"""How often does an interval for repeated runs of tasks hold the true rate?

Beta-binomial tasks, 4,000 samples a row. "independent" is Wilson's interval on all runs; "clustered" is
:func:`irtaudit.stats.clustered.clustered_proportion`, the audit's::

    python experiments/protocol_intervals/coverage.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irtaudit.stats.clustered import clustered_proportion
from irtaudit.stats.proportions import wilson


@dataclass(frozen=True)
class Config:
    """Designs: tasks, runs of each, intraclass correlation; true rates; samples; seed."""

    designs: tuple[tuple[int, int, float], ...] = (
        (50, 10, 0.5),
        (20, 10, 0.5),
        (50, 10, 0.1),
        (10, 5, 0.3),
        (30, 3, 0.2),
    )
    rates: tuple[float, ...] = (0.02, 0.05, 0.1, 0.3, 0.5)
    samples: int = 4_000
    seed: int = 2026


def coverage(tasks: int, runs: int, icc: float, rate: float, config: Config) -> tuple[float, float, float]:
    """Coverage of the independent and of the clustered interval, and the mean length of the latter."""
    rng = np.random.default_rng(config.seed)
    a, b = rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc
    positives = rng.binomial(runs, rng.beta(a, b, size=(config.samples, tasks)))
    low, high = wilson(positives.sum(axis=1), tasks * runs)
    found = [clustered_proportion(row, np.full(tasks, runs)) for row in positives]
    held = np.mean([one.low <= rate <= one.high for one in found])
    length = np.mean([one.high - one.low for one in found])
    return float(np.mean((low <= rate) & (rate <= high))), float(held), float(length)


if __name__ == "__main__":
    config = Config()
    print("tasks runs  icc  rate  independent  clustered  length")
    for tasks, runs, icc in config.designs:
        for rate in config.rates:
            independent, clustered, length = coverage(tasks, runs, icc, rate, config)
            print(f"{tasks:5} {runs:4} {icc:4} {rate:5} {independent:12.3f} {clustered:10.3f} {length:7.3f}")
