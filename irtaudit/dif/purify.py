"""Anchors: items fit to define "equally able", found by taking flagged items out until the flags repeat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import effect_functions
from irtaudit.dif.matching import match
from irtaudit.dif.null import no_dif, simulate
from irtaudit.dif.observed import mantel_haenszel_columns, reasons, stratum_counts
from irtaudit.dif.options import LEVEL, DifOptions
from irtaudit.stats.simulated import simulated_p

Array = NDArray[Any]

MAX_ROUNDS = 10
MIN_ANCHORS = 3
SIMULATIONS = 999


def find_anchors(contrast: Contrast, options: DifOptions) -> tuple[Array, str]:
    """Items left after purification by the Mantel-Haenszel test, at level .05 item by item.

    The p-values are those of the simulated null, or of the chi-square test with continuity correction where
    `options` asks for no simulation.

    Parameters
    ----------
    contrast : Contrast
    options : DifOptions

    Returns
    -------
    anchors : (item,) bool array
    note : str
        How it ended.
    """
    anchors = np.ones(contrast.n_items, dtype=bool)
    seen = [anchors]
    for round_number in range(1, MAX_ROUNDS + 1):
        found = ~(_p_values(contrast, options, anchors) <= LEVEL)
        if found.sum() < MIN_ANCHORS:
            return (
                anchors,
                f"purification stopped: round {round_number} would leave {int(found.sum())} anchors",
            )
        if (found == anchors).all():
            return (
                anchors,
                f"{int(anchors.sum())} of {len(anchors)} items are anchors, settled in {round_number} rounds",
            )
        if any((found == earlier).all() for earlier in seen):
            return found, f"{int(found.sum())} of {len(found)} items are anchors; the flags alternate"
        anchors = found
        seen.append(anchors)
    return (
        anchors,
        f"{int(anchors.sum())} of {len(anchors)} items are anchors, not settled in {MAX_ROUNDS} rounds",
    )


def _p_values(contrast: Contrast, options: DifOptions, anchors: Array) -> Array:
    """(item,) p-values of the Mantel-Haenszel test; NaN where not testable."""
    counts = stratum_counts(contrast, match(contrast, contrast.responses[None], options, anchors))
    if options.n_simulations == 0:
        return mantel_haenszel_columns(counts)["p_chi2"].to_numpy()
    compared = contrast.compared()
    fixed = replace(options, rematch=False)
    effects = effect_functions(compared, fixed, anchors, ["log_alpha"])
    n = min(options.n_simulations, SIMULATIONS)
    rng = np.random.default_rng([options.seed, 4])
    stack = simulate(compared.responses, effects, no_dif(compared), n, rng)["log_alpha"]
    return np.where(reasons(contrast, counts, "mh") == "", simulated_p(np.abs(stack)), np.nan)
