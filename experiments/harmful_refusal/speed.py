"""How long does the paper's grid take? Seconds of its fits by preset, on the *simulated* replica.

Usage: ``python experiments/harmful_refusal/speed.py --preset paper [--splits 1] [--workers 1]``. Fits the 19
models of ``plan.toml``, 20 restarts each, to the first so many of its splits, and adds a row to
``results/speed.csv``. One split is a fifth of the grid of 1,900 fits: seconds of the whole are those of the
part times five, over as many cores as there are workers.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
from replica import simulate

import irtaudit
from irtaudit.audit import model_specs
from irtaudit.dimensionality.plan import IrtPlan
from irtaudit.plan import read_plan

HERE = Path(__file__).parent
SEED = 2026


def cpu_seconds() -> float:
    """Of this process and the workers it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> None:
    """Time the fits and keep the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=["default", "paper", "quick"], required=True)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    plan = read_plan(HERE / "plan.toml", IrtPlan)
    matrix = irtaudit.screen(simulate(SEED)[0]).matrix
    specs, _ = model_specs(matrix.items, plan.models.names, ())
    splits = irtaudit.make_splits(matrix, n_splits=given.splits, seed=SEED)
    cpu, wall = cpu_seconds(), time.monotonic()
    fits = irtaudit.fit_all(
        matrix,
        specs,
        splits,
        n_restarts=plan.fit.restarts,
        preset=given.preset,
        seed=SEED,
        workers=given.workers,
        device="cpu",
    )
    row = {
        "preset": given.preset,
        "splits": given.splits,
        "fits": sum(len(fit.restarts) for fit in fits.values()),
        "workers": given.workers,
        "cpu_seconds": round(cpu_seconds() - cpu),
        "wall_seconds": round(time.monotonic() - wall),
        "load": round(os.getloadavg()[1], 1),
        "irtaudit": irtaudit.__version__,
    }
    file = given.out / "speed.csv"
    rows = [pd.read_csv(file)] if file.exists() else []
    pd.concat([*rows, pd.DataFrame([row])]).to_csv(file, index=False)
    print(row)


if __name__ == "__main__":
    main()
