"""CPU seconds and memory of both headline screens with 5,000 simulated matrices on 32 x 398.

Usage: ``python experiments/dif_calibration/speed.py``. The panel is *simulated*. Measures an audit with one
null (unrelated models) and one with the cluster-aware null as well; the fit is not counted. Writes
``results/speed.csv``.
"""

from __future__ import annotations

import resource
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from run import HERE, Condition, panel

import irtaudit
from irtaudit import ConvergenceWarning, DifOptions, FitResult, ModelSpec, ResponseMatrix

CONDITION = Condition("speed", 1, others=0, family_size=3, family_sd=1.0)
OPTIONS = DifOptions(screens=("mh", "logistic"), n_simulations=5000, n_control=0, n_power=0)


def measured(matrix: ResponseMatrix, fit: FitResult, cluster: str) -> dict[str, Any]:
    """One audit, and what it took; memory is the peak of the process so far."""
    start = time.process_time()
    found = irtaudit.audit_dif(
        matrix, fit, group="developer", levels=("A", "B"), cluster=cluster, options=OPTIONS
    )
    return {
        "nulls": "one" if cluster == "model" else "one, and the cluster-aware one",
        "subjects": matrix.n_subjects,
        "items": matrix.n_items,
        "simulations": OPTIONS.n_simulations,
        "cpu_seconds": round(time.process_time() - start, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "family_sd": round(found.families["sd"].iloc[0], 2),
        "irtaudit": irtaudit.__version__,
    }


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    drawn = panel(CONDITION, np.random.default_rng(1))
    matrix = irtaudit.screen(replace(drawn, responses=_varied(drawn.responses))).matrix
    fit = irtaudit.fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, workers=1)
    table = pd.DataFrame([measured(matrix, fit, cluster) for cluster in ("model", "family")])
    (HERE / "results").mkdir(exist_ok=True)
    table.to_csv(HERE / "results" / "speed.csv", index=False)
    print(table.to_string(index=False))


def _varied(cells: np.ndarray) -> np.ndarray:
    """The first model fails what all pass and passes what all fail, so that no item is dropped."""
    changed = cells.copy()
    alike = (cells == cells[0]).all(axis=0)
    changed[0, alike] = 1 - cells[0, alike]
    return changed


if __name__ == "__main__":
    main()
