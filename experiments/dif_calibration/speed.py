"""CPU seconds and memory of both headline screens with 5,000 simulated matrices on 32 x 398.

Usage: ``python experiments/dif_calibration/speed.py``. The panel is *simulated*. Prints the time of an audit
with one null (unrelated models) and of one with the cluster-aware null as well; the fit is not counted.
"""

from __future__ import annotations

import resource
import time
import warnings
from dataclasses import replace

import numpy as np
from run import Condition, panel

import irtaudit
from irtaudit import ConvergenceWarning, DifOptions, ModelSpec

CONDITION = Condition("speed", 1, others=0, family_size=3, family_sd=1.0)
OPTIONS = DifOptions(screens=("mh", "logistic"), n_simulations=5000, n_control=0, n_power=0)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    drawn = panel(CONDITION, np.random.default_rng(1))
    unrelated = replace(drawn, subjects=drawn.subjects.assign(own=drawn.subjects.index))
    matrix = irtaudit.screen(unrelated).matrix
    fit = irtaudit.fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=1, workers=1)
    for cluster, words in (("own", "one null"), ("family", "with the cluster-aware null")):
        start = time.process_time()
        found = irtaudit.audit_dif(
            matrix, fit, group="developer", levels=("A", "B"), cluster=cluster, options=OPTIONS
        )
        seconds = time.process_time() - start
        sd = found.families["sd"].iloc[0]
        print(f"{matrix.n_subjects} x {matrix.n_items}, {words}: {seconds:.1f} CPU s (family SD {sd:.2f})")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
