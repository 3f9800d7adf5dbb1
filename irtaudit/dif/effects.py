"""What each screen measures: one signed number per item, above 0 where the reference group is favoured.

======================  ===================================================================================
``log_alpha``           Mantel-Haenszel log odds ratio within ability bands
``gamma``               group coefficient of ``logit P = alpha + beta match + gamma side``, ridge
``delta``               coefficient of match x side added to that model
``z``                   score test of a group effect inside the fitted item response model
======================  ===================================================================================

`side` is 0.5 in the reference and -0.5 in the focal group, so gamma is the difference between them in logits.
Observed and simulated responses go through the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.dif.contrast import Contrast
from irtaudit.dif.matching import Matching, match
from irtaudit.dif.options import DifOptions, ScreenName
from irtaudit.stats.logistic import ridge_logistic
from irtaudit.stats.mantel_haenszel import log_odds_ratio

Array = NDArray[Any]
Effect = Callable[[Array], Array]
"""From responses (simulation, subject, item) to effects (simulation, item)."""

EFFECT_OF: Mapping[ScreenName, str] = {
    "mh": "log_alpha",
    "mh_z": "log_alpha",
    "logistic": "gamma",
    "logistic_nonuniform": "delta",
    "score": "z",
}
MIN_INFORMATION = 1e-6


def effects_needed(screens: Sequence[ScreenName]) -> tuple[str, ...]:
    """Names of the effects that the screens are made of, each once."""
    return tuple(dict.fromkeys(EFFECT_OF[name] for name in screens))


def effect_functions(
    contrast: Contrast, options: DifOptions, anchors: Array | None, names: Sequence[str]
) -> dict[str, Effect]:
    """Functions that measure the effects, with everything prepared that does not depend on the responses.

    Parameters
    ----------
    contrast : Contrast
    options : DifOptions
    anchors : (item,) bool array, optional
        See :func:`irtaudit.dif.matching.match`.
    names : sequence of str

    Returns
    -------
    dict of functions
        By name of the effect.
    """
    prepared: dict[str, Effect] = {}
    fixed = None if options.rematch else match(contrast, contrast.responses[None], options, anchors)
    for name in names:
        if name == "z":
            prepared[name] = score_effect(contrast)
        elif fixed is not None:
            prepared[name] = _joined(
                [_one_effect(name, contrast, m, options, fixed=True) for m in fixed], fixed
            )
        else:
            prepared[name] = _rematched(name, contrast, options, anchors)
    return prepared


def _rematched(name: str, contrast: Contrast, options: DifOptions, anchors: Array | None) -> Effect:
    def effect(responses: Array) -> Array:
        matchings = match(contrast, responses, options, anchors, anew=True)
        parts = [_one_effect(name, contrast, m, options, fixed=False) for m in matchings]
        return _joined(parts, matchings)(responses)

    return effect


def _joined(parts: Sequence[Effect], matchings: Sequence[Matching]) -> Effect:
    """One effect from those of separately matched items."""
    if len(parts) == 1:
        return parts[0]

    def effect(responses: Array) -> Array:
        values = np.empty((len(responses), responses.shape[-1]), responses.dtype)
        for part, matching in zip(parts, matchings, strict=True):
            values[:, matching.items] = part(responses[..., matching.items])
        return values

    return effect


def _one_effect(
    name: str, contrast: Contrast, matching: Matching, options: DifOptions, *, fixed: bool
) -> Effect:
    compared = contrast.compared()
    observed = compared.observed[:, matching.items]
    if name == "log_alpha":
        return _log_alpha(matching, observed)
    covariates = logistic_covariates(matching, compared.side, options, crossed=name == "delta")
    expected = None
    if fixed and compared.probability is not None:
        expected = compared.probability[:, matching.items]
    return _last_coefficient(covariates, observed, options.penalty, expected)


def _log_alpha(matching: Matching, observed: Array) -> Effect:
    n = observed.shape[0]
    totals = by_stratum(matching, observed.astype(np.float32)[None])

    def effect(responses: Array) -> Array:
        return log_odds_ratio(by_stratum(matching, responses[:, :n]), totals)

    return effect


def by_stratum(matching: Matching, responses: Array) -> Array:
    """(simulation, group, stratum, item) sums of (simulation, subject, item) responses."""
    sums = matching.members.astype(responses.dtype, copy=False) @ responses
    return np.asarray(sums.reshape(len(sums), 2, matching.n_strata, -1))


def logistic_covariates(matching: Matching, side: Array, options: DifOptions, *, crossed: bool) -> Array:
    """(simulation, subject, covariate): matching variable, side, and their product where `crossed`.

    The matching variable is centred over the compared models; totals are divided by their SD.
    """
    value = matching.value - matching.value.mean(axis=-1, keepdims=True)
    if options.match == "total":
        sd = value.std(axis=-1, keepdims=True)
        value = np.divide(value, sd, out=np.zeros_like(value), where=sd > 0)
    columns = [value, np.broadcast_to(side, value.shape)]
    return np.stack([*columns, value * side] if crossed else columns, axis=-1)


def _last_coefficient(covariates: Array, observed: Array, penalty: float, expected: Array | None) -> Effect:
    penalties = np.full(covariates.shape[-1], penalty)
    mask, n = (None if observed.all() else observed), observed.shape[0]
    start = None
    if expected is not None:
        fitted = ridge_logistic(covariates, expected[None], penalties, observed=mask)
        start = fitted.coefficients[0]

    def effect(responses: Array) -> Array:
        fit = ridge_logistic(covariates, responses[:, :n], penalties, observed=mask, start=start)
        return fit.coefficients[..., -1, :]

    return effect


def score_effect(contrast: Contrast) -> Effect:
    """The score test as a function of the responses, see :func:`score_test`.

    Parameters
    ----------
    contrast : Contrast
        With a fitted scope.
    """
    test = score_test(contrast)
    weights = test.weights.astype(np.float32)
    assert contrast.probability is not None  # refused without a fit
    expected = (weights * contrast.probability).sum(axis=0)

    def effect(responses: Array) -> Array:
        return np.asarray(np.einsum("snj,nj->sj", responses, weights) - expected, dtype=np.float32)

    return effect


@dataclass(frozen=True, eq=False)
class ScoreTest:
    """Score test of ``gamma side`` added to the logit of the fitted model.

    Attributes
    ----------
    weights : (subject, item) array
        The test is ``sum_i weight_ij (y_ij - p_ij)``, of variance 1 in the fitted model without DIF.
    information : (item,) array
        About gamma, after what the item's own parameters take; the one-step estimate of gamma is
        ``z / sqrt(information)``.
    """

    weights: Array
    information: Array


def score_test(contrast: Contrast) -> ScoreTest:
    """Efficient score of a group effect: the part of it that no change of the item's parameters could mimic.

    The score for gamma is projected off the scores for the item's intercept, slope (2PL, 3PL) and guessing
    (3PL), over all subjects of the contrast. So re-estimating these parameters would change the test only in
    second order, and simulated panels need no refitting.

    Parameters
    ----------
    contrast : Contrast
        With a fitted scope.

    Returns
    -------
    ScoreTest
        Weights are 0 where the information is below `MIN_INFORMATION`.

    References
    ----------
    Neyman (1959), C(alpha) tests. Glas (1998), Statistica Sinica 8, 647-667, for item response models.
    """
    scope, theta, p = contrast.scope, contrast.theta, contrast.probability
    assert scope is not None  # the score screen is refused without a fit
    assert theta is not None
    assert p is not None
    p = np.clip(p, 1e-8, 1 - 1e-8)
    slope = (p - scope.guess) / (1 - scope.guess) * (1 - p)  # of the pass probability along the logit
    nuisance = [slope]
    if scope.family != "1pl":
        nuisance.append(slope * theta[:, None])
    if scope.family == "3pl":
        nuisance.append((1 - p) / (1 - scope.guess))
    weight = contrast.observed / (p * (1 - p))
    left = _residual(slope * contrast.side[:, None], np.stack(nuisance), weight)
    information = (weight * left**2).sum(axis=0)
    usable = information > MIN_INFORMATION
    scale = np.where(usable, 1 / np.sqrt(np.where(usable, information, 1.0)), 0.0)
    return ScoreTest(weight * left * scale, information)


def _residual(target: Array, nuisance: Array, weight: Array) -> Array:
    """What weighted regression on `nuisance` (part, subject, item) leaves of `target` (subject, item)."""
    inner = np.einsum("anj,nj,bnj->jab", nuisance, weight, nuisance)
    across = np.einsum("anj,nj,nj->ja", nuisance, weight, target)
    coefficients = np.einsum("jab,jb->ja", np.linalg.pinv(inner, rcond=1e-10, hermitian=True), across)
    return np.asarray(target - np.einsum("ja,anj->nj", coefficients, nuisance))
