"""One contrast worked through: matching, both nulls, power and the negative control, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.control import random_groups
from irtaudit.dif.effects import EFFECT_OF, Effect, effect_functions, effects_needed
from irtaudit.dif.families import FamilyEffect, conditional_logits, family_effect
from irtaudit.dif.matching import Matching, match
from irtaudit.dif.null import Draw, Judged, family_effects, judge, no_dif, simulate
from irtaudit.dif.observed import TESTABLE, Gathered, reasons, stratum_counts
from irtaudit.dif.options import DifOptions, ScreenName
from irtaudit.dif.power import power_curves
from irtaudit.dif.purify import find_anchors

Array = NDArray[Any]

NULL, CLUSTER, POWER = 0, 1, 2
"""Streams of random numbers: with the seed each names a generator of its own."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What was computed for one contrast.

    Attributes
    ----------
    contrast : Contrast
    matchings : tuple of Matching
        Of the observed responses.
    counts : Gathered
        Observed passes and responses by group, stratum and item.
    anchors : (item,) bool array
        Items of the matching variable.
    reasons : mapping of (item,) object arrays
        Why an item is not testable, by screen; empty text where it is.
    judged, clustered : mapping of Judged
        By screen, under the null of independent models and under the cluster-aware one; empty where there is
        none.
    family : FamilyEffect or None
    power : mapping of (shift, item) arrays
    control : DataFrame
    notes : tuple of str
    """

    contrast: Contrast
    matchings: tuple[Matching, ...]
    counts: Gathered
    anchors: Array
    reasons: Mapping[ScreenName, Array]
    judged: Mapping[ScreenName, Judged] = field(default_factory=dict)
    clustered: Mapping[ScreenName, Judged] = field(default_factory=dict)
    family: FamilyEffect | None = None
    power: Mapping[ScreenName, Array] = field(default_factory=dict)
    control: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: tuple[str, ...] = ()


def find(contrast: Contrast, codes: Array, options: DifOptions) -> Findings:
    """Work a contrast through.

    Parameters
    ----------
    contrast : Contrast
    codes : (subject,) int array
        Family of each subject of the contrast.
    options : DifOptions
        Without simulations only what the observed matrix says by itself is found.

    Returns
    -------
    Findings
    """
    anchors, notes = np.ones(contrast.n_items, dtype=bool), []
    if options.purify:
        anchors, note = find_anchors(contrast, options)
        notes.append(f"{contrast.name}: {note}.")
    matchings = match(contrast, contrast.responses[None], options, anchors, anew=options.rematch)
    if all(np.ptp(m.value) == 0 for m in matchings):
        notes.append(f"{contrast.name}: all compared models are equally able, so matching changes nothing.")
    counts = stratum_counts(contrast, matchings)
    observed = Findings(
        contrast=contrast,
        matchings=matchings,
        counts=counts,
        anchors=anchors,
        reasons={screen: reasons(contrast, counts, screen) for screen in options.screens},
        notes=tuple(notes),
    )
    return _with_nulls(observed, codes, options) if options.n_simulations else observed


def _with_nulls(observed: Findings, codes: Array, options: DifOptions) -> Findings:
    """The same with everything that is simulated."""
    contrast = observed.contrast
    probability = contrast.probability
    assert probability is not None  # simulations are refused without a fit
    family = family_effect(contrast.responses, contrast.observed, probability, codes)
    if "score" not in options.screens:  # nobody else's responses are needed
        n = contrast.n_compared
        contrast, codes, probability = contrast.compared(), codes[:n], probability[:n]
    names = effects_needed(options.screens)
    effects = effect_functions(contrast, options, observed.anchors, names)

    judged = _judged(observed, contrast, effects, no_dif(contrast), options, NULL)
    clustered = judged if family.sd == 0 else {}
    if family.sd > 0:
        draw = family_effects(contrast, conditional_logits(probability, family.sd), codes, family.sd)
        clustered = _judged(observed, contrast, effects, draw, options, CLUSTER)
    rng = np.random.default_rng([options.seed, POWER])
    power = power_curves(contrast, effects, judged, options.n_power, rng) if options.n_power else {}
    return replace(
        observed,
        judged=judged,
        clustered=clustered,
        family=family,
        power=power,
        control=random_groups(contrast, options),
    )


def _judged(
    observed: Findings,
    contrast: Contrast,
    effects: Mapping[str, Effect],
    draw: Draw,
    options: DifOptions,
    stream: int,
) -> dict[ScreenName, Judged]:
    rng = np.random.default_rng([options.seed, stream])
    stacks = simulate(contrast.responses, effects, draw, options.n_simulations, rng)
    return {
        screen: judge(stacks[EFFECT_OF[screen]], screen, why == TESTABLE)
        for screen, why in observed.reasons.items()
    }
