"""The negative control: the same audit of groups dealt at random, where there is nothing to find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import EFFECT_OF, effect_functions, effects_needed
from irtaudit.dif.matching import match
from irtaudit.dif.null import judge, no_dif, simulate
from irtaudit.dif.observed import reasons, stratum_counts
from irtaudit.dif.options import DifOptions

SIMULATIONS = 99
"""Matrices per random deal: enough for p-values of .05 and .01 to be met exactly."""
MIN_ITEMS = 30
"""Items a scope needs: a number of flags among fewer says little."""


def random_groups(contrast: Contrast, options: DifOptions) -> pd.DataFrame:
    """Numbers of flags in random groups of the same sizes, each with a null of its own.

    Parameters
    ----------
    contrast : Contrast
        With a fitted scope.
    options : DifOptions

    Returns
    -------
    DataFrame
        ``screen, draw, item_flags, family_flags``, one row per screen and deal; none in scopes of fewer than
        `MIN_ITEMS` items.
    """
    rows: list[dict[str, Any]] = []
    for draw in range(options.n_control if contrast.n_items >= MIN_ITEMS else 0):
        rng = np.random.default_rng([options.seed, 3, draw])
        dealt = contrast.regrouped(rng)
        counts = stratum_counts(dealt, match(dealt, dealt.responses[None], options))
        effects = effect_functions(dealt, options, None, effects_needed(options.screens))
        stacks = simulate(dealt.responses, effects, no_dif(dealt), SIMULATIONS, rng)
        for screen in options.screens:
            judged = judge(stacks[EFFECT_OF[screen]], screen, reasons(dealt, counts, screen) == "")
            rows.append(
                {
                    "screen": screen,
                    "draw": draw,
                    "item_flags": int(judged.flag_item.sum()),
                    "family_flags": int(judged.flag_family.sum()),
                }
            )
    return pd.DataFrame(rows, columns=["screen", "draw", "item_flags", "family_flags"])
