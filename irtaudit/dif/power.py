"""What the screens could have seen: power against one shifted item, at the audit's own cut-offs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import EFFECT_OF, Effect, score_effect
from irtaudit.dif.null import STANDARDISED, Judged, from_probabilities, simulate
from irtaudit.dif.options import ScreenName
from irtaudit.stats.simulated import exceeds

Array = NDArray[Any]

SHIFTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0)
"""Differences between the groups, in logits, at which power is computed."""
TARGET = 0.8
SCORING_STEPS = 8
"""Of Fisher's scoring, each at most one logit."""


def power_curves(
    contrast: Contrast,
    effects: Mapping[str, Effect],
    judged: Mapping[ScreenName, Judged],
    n_simulations: int,
    rng: np.random.Generator,
) -> dict[ScreenName, Array]:
    """Power of each screen for each item, at the family-wise cut-off.

    In each simulated matrix every item is shifted; items are screened one by one with abilities fixed, so
    this says what each would show if it alone were shifted. Half of the matrices favour either group.
    The groups' logits move apart in such proportion that the item's overall difficulty stays. The score
    test asks at parameters that a fit to such responses would give, see :func:`refitted`.

    Parameters
    ----------
    contrast : Contrast
    effects : mapping of functions
    judged : mapping of Judged
        Of the null without DIF, by screen.
    n_simulations : int
        Matrices per shift.
    rng : Generator

    Returns
    -------
    dict of (shift, item) arrays
        NaN for items that are not testable.
    """
    assert contrast.probability is not None  # no power without a null, no null without a fit
    base = logit(np.clip(contrast.probability, 1e-8, 1 - 1e-8))
    share = (contrast.side > 0).sum() / contrast.n_compared
    pull = np.where(contrast.side > 0, 1 - share, np.where(contrast.side < 0, -share, 0.0))[:, None]
    powers: dict[ScreenName, list[Array]] = {screen: [] for screen in judged}
    for shift in SHIFTS:
        hits = dict.fromkeys(judged, 0.0)
        for sign in (1, -1):
            shifted = expit(base + sign * shift * pull)
            own = {"z": score_effect(refitted(contrast, shifted))} if "z" in effects else {}
            draw = from_probabilities(shifted, contrast.observed)
            stacks = simulate(contrast.responses, {**effects, **own}, draw, -(-n_simulations // 2), rng)
            for screen, j in judged.items():
                hits[screen] = (
                    hits[screen] + _flagged(stacks[EFFECT_OF[screen]][1:], screen, j).mean(axis=0) / 2
                )
        for screen, j in judged.items():
            powers[screen].append(np.where(np.isnan(j.statistic), np.nan, hits[screen]))
    return {screen: np.array(rows) for screen, rows in powers.items()}


def refitted(contrast: Contrast, expected: Array) -> Contrast:
    """The contrast with the pass probabilities that a fit to other responses would give.

    Abilities and guessing stay; each item's intercept and slope move to where the expected log-likelihood is
    largest, held back by a normal prior as wide as these parameters vary over items. A shifted item gets a
    flatter curve, which hides some of its shift from a test at that curve: without this the printed power of
    the score screen was .54 where .45 of planted shifts were flagged (experiments/dif_calibration).

    Parameters
    ----------
    contrast : Contrast
        With a fitted scope.
    expected : (subject, item) array
        Pass probabilities of the responses.

    Returns
    -------
    Contrast
    """
    scope, theta = contrast.scope, contrast.theta
    assert scope is not None  # no power without a null, no null without a fit
    assert theta is not None
    assert contrast.probability is not None
    room = 1 - scope.guess
    x = np.stack([np.ones_like(theta)] + [theta] * (scope.family != "1pl"))
    fitted = logit(np.clip((contrast.probability - scope.guess) / room, 1e-8, 1 - 1e-8))
    spread = np.array([np.var(scope.intercept), np.var(scope.slope)])[: len(x)]
    prior = np.diag(1 / np.maximum(spread, 1e-3))
    moved = np.zeros((len(x), contrast.n_items))
    for _ in range(SCORING_STEPS):
        eta = fitted + np.einsum("an,aj->nj", x, moved)
        p = scope.guess + room * expit(eta)
        slope = room * expit(eta) * expit(-eta)
        weight = contrast.observed * slope / np.maximum(p * (1 - p), 1e-12)
        gradient = np.einsum("an,nj->aj", x, weight * (expected - p)) - prior @ moved
        information = np.einsum("an,nj,bn->jab", x, weight * slope, x) + prior
        moved += np.clip(np.linalg.solve(information, gradient.T[..., None])[..., 0].T, -1, 1)
    eta = fitted + np.einsum("an,aj->nj", x, moved)
    return replace(contrast, probability=scope.guess + room * expit(eta))


def _flagged(signed: Array, screen: ScreenName, judged: Judged) -> Array:
    if screen in STANDARDISED:
        with np.errstate(divide="ignore", invalid="ignore"):
            signed = np.nan_to_num((signed - judged.null_mean) / judged.null_sd)
    return exceeds(np.abs(signed), judged.family_cutoff)


def smallest_shift(power: Array, target: float = TARGET) -> Array:
    """Shift at which power reaches the target, between the computed ones by straight lines.

    Parameters
    ----------
    power : (shift, ...) array
        At `SHIFTS`; small falls from one shift to the next are taken for noise.
    target : float

    Returns
    -------
    (...) array
        NaN where the largest shift does not reach it.
    """
    grid = np.array([0.0, *SHIFTS])
    rising = np.maximum.accumulate(np.concatenate([np.zeros_like(power[:1]), power]), axis=0)
    above = rising >= target
    after = np.maximum(above.argmax(axis=0), 1)
    high, low = (np.take_along_axis(rising, k[None], axis=0)[0] for k in (after, after - 1))
    part = (target - low) / np.where(high > low, high - low, 1)
    return np.asarray(
        np.where(above.any(axis=0), grid[after - 1] + part * (grid[after] - grid[after - 1]), np.nan)
    )
