"""How fast are candidates found, and does memory stay flat over many long runs?

``measure()`` returns the figures; as a script it prints them::

    python experiments/protocol_throughput/measure.py --events 10000 --traces 1000

Each run is simulated ordinary work with some look-alikes of cues, written once and read again for every
trace, because what counts is what reading, filtering and letting go of a run costs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from irtaudit.protocol.candidates import find_candidates
from irtaudit.protocol.load import load_bundle
from irtaudit.protocol.simulate import clean_run
from irtaudit.protocol.write import write_bundle


def measure(n_events: int = 10_000, n_traces: int = 20, seed: int = 2026) -> dict[str, float]:
    """Figures of one process.

    Parameters
    ----------
    n_events, n_traces : int
        Events of a trace, and traces that are read one after another.
    seed : int

    Returns
    -------
    dict of str to float
        ``events_per_second`` (filter alone, CPU time), ``events_per_second_with_loading``,
        ``peak_mib_after_two`` and ``peak_mib_at_end`` (resident after a trace), ``growth_mib`` between them.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        kinds = [clean_run(rng, f"run-{n}", n_events, benign_cues=0.1) for n in range(3)]
        places = [write_bundle(one, Path(folder) / f"{n}.zip") for n, one in enumerate(kinds)]
        del kinds
        loading = filtering = 0.0
        early = peak = _resident_mib()
        for n in range(n_traces):
            began = time.process_time()
            bundle = load_bundle(places[n % len(places)])
            loaded = time.process_time()
            find_candidates(bundle)
            filtering += time.process_time() - loaded
            loading += loaded - began
            peak = max(peak, _resident_mib())
            early = peak if n < 2 else early
    events = n_events * n_traces
    return {
        "events_per_second": events / filtering,
        "events_per_second_with_loading": events / (filtering + loading),
        "peak_mib_after_two": early,
        "peak_mib_at_end": peak,
        "growth_mib": peak - early,
    }


def _resident_mib() -> float:
    # not the peak that the kernel keeps: a process inherits it from the one that started it
    return psutil.Process().memory_info().rss / 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--traces", type=int, default=20)
    given = parser.parse_args()
    for name, value in measure(given.events, given.traces).items():
        print(f"{name:<32} {value:>12,.1f}")
