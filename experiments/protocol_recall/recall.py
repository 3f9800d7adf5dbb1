"""How many planted cases does the candidate stage bring back, and how often does it cry wolf?

Known cases of every exposure are planted in simulated clean runs; the false-candidate rate is that of clean
runs in which one command in ten looks like a cue and is innocent::

    python experiments/protocol_recall/recall.py

The recipes are ours, so this is recall of known kinds; a shortcut that nobody thought of is not among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irtaudit.protocol.candidates import find_candidates
from irtaudit.protocol.judges.rules import rules_judge
from irtaudit.protocol.probe import recall_probe
from irtaudit.protocol.simulate import clean_run


@dataclass(frozen=True)
class Config:
    """Clean runs, cases planted of each exposure, share of benign look-alikes, seed."""

    clean_runs: int = 50
    per_exposure: int = 60
    benign_cues: float = 0.1
    seed: int = 2026


if __name__ == "__main__":
    config = Config()
    rng = np.random.default_rng(config.seed)
    clean = [clean_run(rng, f"clean-{n}") for n in range(config.clean_runs)]
    probe = recall_probe(clean, rules_judge(), per_exposure=config.per_exposure, seed=config.seed)
    print(probe.round(3).to_string(index=False))
    likely = [clean_run(rng, f"benign-{n}", benign_cues=config.benign_cues) for n in range(config.clean_runs)]
    for name, runs in (("without look-alikes", clean), ("one command in ten a look-alike", likely)):
        found = [len(find_candidates(run).found) for run in runs]
        print(
            f"clean runs, {name}: {np.mean(np.array(found) > 0):.2f} have a candidate, "
            f"{np.mean(found):.2f} each on average"
        )
