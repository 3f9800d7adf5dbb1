"""The null by simulation: matrices without DIF, screened alike, and where the observed one stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import Effect
from irtaudit.dif.options import LEVEL, ScreenName
from irtaudit.stats.logistic import sigmoid_in_place
from irtaudit.stats.simulated import cutoff, exceeds, family_p, simulated_p, standardised

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, int], Array]
"""From a generator and a number of matrices to (simulation, subject, item) float32 responses."""

CELLS_AT_ONCE = 1_000_000
"""Cells simulated together, a few megabytes."""
STANDARDISED: frozenset[ScreenName] = frozenset({"mh_z"})
"""Screens whose effects are centred and scaled by the null."""


def no_dif(contrast: Contrast) -> Draw:
    """Draws from the fitted model: groups, abilities and missing cells as they are, no group effect."""
    assert contrast.probability is not None  # a null is refused without a fit
    return from_probabilities(contrast.probability, contrast.observed)


def from_probabilities(probability: Array, observed: Array) -> Draw:
    """Independent responses with given pass probabilities; 0 where not observed."""
    p = np.where(observed, probability, 0.0).astype(np.float32)

    def draw(rng: np.random.Generator, n: int) -> Array:
        return (rng.random((n, *p.shape), dtype=np.float32) < p).astype(np.float32)

    return draw


def family_effects(contrast: Contrast, logits: Array, codes: Array, sd: float) -> Draw:
    """Draws in which the models of a family share a normal shift of each item.

    Parameters
    ----------
    contrast : Contrast
    logits : (subject, item) array
        Logits at a shift of zero, see :func:`irtaudit.dif.families.conditional_logits`.
    codes : (subject,) int array
        Family of each subject.
    sd : float
        SD of the shifts, in logits.
    """
    base, n_families = logits.astype(np.float32), int(codes.max()) + 1
    observed = contrast.observed

    def draw(rng: np.random.Generator, n: int) -> Array:
        shift = rng.standard_normal((n, n_families, base.shape[1]), dtype=np.float32)
        shift *= np.float32(sd)
        p = shift[:, codes]
        p += base
        sigmoid_in_place(p)
        p *= observed
        return (rng.random(p.shape, dtype=np.float32) < p).astype(np.float32)

    return draw


def simulate(
    observed: Array, effects: Mapping[str, Effect], draw: Draw, n_simulations: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Effects of the observed matrix and of simulated ones.

    Parameters
    ----------
    observed : (subject, item) float32 array
    effects : mapping of functions
        See :func:`irtaudit.dif.effects.effect_functions`.
    draw : function
    n_simulations : int
    rng : Generator

    Returns
    -------
    dict of (1 + simulation, item) float32 arrays
        By name of the effect, the observed matrix first.
    """
    stacks = {name: np.empty((1 + n_simulations, observed.shape[1]), np.float32) for name in effects}
    for name, effect in effects.items():
        stacks[name][0] = effect(observed[None])[0]
    size = max(1, CELLS_AT_ONCE // observed.size)
    for first in range(1, 1 + n_simulations, size):
        n = min(size, 1 + n_simulations - first)
        responses = draw(rng, n)
        for name, effect in effects.items():
            stacks[name][first : first + n] = effect(responses)
    return stacks


@dataclass(frozen=True, eq=False)
class Judged:
    """A screen's observed values among those of its null; (item,) arrays, NaN or False where not testable.

    Attributes
    ----------
    statistic : array
        What is compared with the cut-offs.
    effect : array
        Signed effect minus its mean under the null.
    null_mean, null_sd : array
        Of the signed effect, observed matrix included.
    p, p_family : array
        Item by item, and adjusted for the maximum over the testable items.
    item_cutoff : array
    pooled_cutoff, family_cutoff : float
    flag_item, flag_pooled, flag_family : bool array
    """

    statistic: Array
    effect: Array
    null_mean: Array
    null_sd: Array
    p: Array
    p_family: Array
    item_cutoff: Array
    pooled_cutoff: float
    family_cutoff: float
    flag_item: Array
    flag_pooled: Array
    flag_family: Array


def judge(stack: Array, screen: ScreenName, testable: Array) -> Judged:
    """Compare a screen's observed values with its null.

    Parameters
    ----------
    stack : (1 + simulation, item) array
        Signed effects, the observed matrix first.
    screen : str
    testable : (item,) bool array

    Returns
    -------
    Judged
    """
    signed = stack[:, testable]
    size = np.abs(standardised(signed) if screen in STANDARDISED else signed)
    null = size[1:]
    pooled = float(cutoff(null.reshape(-1), LEVEL))
    largest = null.max(axis=1, initial=0.0)
    mean = signed.mean(axis=0, dtype=float)
    p, adjusted = simulated_p(size), family_p(size)
    values = {
        "statistic": size[0],
        "effect": signed[0] - mean,
        "null_mean": mean,
        "null_sd": signed.std(axis=0, dtype=float),
        "p": p,
        "p_family": adjusted,
        "item_cutoff": cutoff(null, LEVEL),
    }
    flags = {
        "flag_item": p <= LEVEL,
        "flag_pooled": exceeds(size[0], pooled),
        "flag_family": adjusted <= LEVEL,
    }
    return Judged(
        pooled_cutoff=pooled,
        family_cutoff=float(cutoff(largest, LEVEL)),
        **{name: spread(part, testable, np.nan) for name, part in values.items()},
        **{name: spread(part, testable, False) for name, part in flags.items()},
    )


def spread(part: Array, testable: Array, missing: Any) -> Array:
    """Values of the testable items among all items."""
    whole = np.full(len(testable), missing, dtype=np.result_type(part, type(missing)))
    whole[testable] = part
    return whole
