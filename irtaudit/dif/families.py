"""Family resemblance: how strongly models of one family share what is particular about an item.

Models of one family (one developer, one base model, one scaffold) are not independent witnesses. Each
family gets a normal shift of its own on the logit of every item; the SD of these shifts is estimated from
products of residuals, and the cluster-aware null draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

Array = NDArray[Any]

MAX_SD = 6.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LOGITS = np.linspace(-60, 60, 4801)


@dataclass(frozen=True)
class FamilyEffect:
    """Estimated spread of family x item shifts.

    Attributes
    ----------
    sd : float
        In logits; NaN where no family has two models.
    n_families : int
        Families with at least two models.
    n_related : int
        Models in them.
    within, between : float
        Mean product of the residuals of two models on an item: of one family, of different families.
    """

    sd: float
    n_families: int
    n_related: int
    within: float
    between: float


def family_codes(labels: Array) -> Array:
    """Number of each subject's family; a subject without a label is a family of its own.

    Parameters
    ----------
    labels : (subject,) object array
        None where missing.

    Returns
    -------
    (subject,) int array
    """
    keys = [("", str(i)) if label is None else ("family", label) for i, label in enumerate(labels)]
    numbers = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys])


def family_effect(responses: Array, observed: Array, probability: Array, codes: Array) -> FamilyEffect:
    """Estimate the SD of family x item shifts by the method of moments.

    Parameters
    ----------
    responses, probability : (subject, item) arrays
    observed : (subject, item) bool array
    codes : (subject,) int array
        Family of each subject.

    Returns
    -------
    FamilyEffect
        The SD under which related models' residuals would have the observed mean product, beyond that of
        unrelated models (which is below zero, as items were fitted to all of them); 0 where it is not larger.
    """
    residual = np.where(observed, responses - probability, 0.0)
    within, n_within = _products(residual, codes), _products(observed.astype(float), codes)
    everybody = np.zeros_like(codes)
    between = _products(residual, everybody) - within
    n_between = _products(observed.astype(float), everybody) - n_within
    sizes = np.bincount(codes)
    related = int(sizes[sizes > 1].sum())
    if n_within == 0:
        return FamilyEffect(np.nan, 0, 0, np.nan, between / n_between if n_between else np.nan)
    mean_within, mean_between = within / n_within, between / n_between if n_between else 0.0
    excess = mean_within - mean_between

    def gap(sd: float) -> float:
        return _expected_product(probability, observed, codes, sd) / n_within - excess

    sd = 0.0
    if excess > 0:
        sd = float(brentq(gap, 0.0, MAX_SD, xtol=1e-3)) if gap(MAX_SD) > 0 else MAX_SD
    return FamilyEffect(sd, int((sizes > 1).sum()), related, mean_within, mean_between)


def _products(values: Array, codes: Array) -> float:
    """Sum over items and pairs of a family of the product of two subjects' values."""
    sums = np.zeros((int(codes.max()) + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    return float((sums**2).sum() - (values**2).sum()) / 2


def _expected_product(probability: Array, observed: Array, codes: Array, sd: float) -> float:
    """Expectation of the sum of products of residuals within families when shifts have the given SD."""
    logits = conditional_logits(probability, sd)
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * _products(np.where(observed, expit(logits + sd * node) - probability, 0.0), codes)
    return total


def conditional_logits(probability: Array, sd: float) -> Array:
    """Logits at a family shift of zero that give the probabilities on average over shifts of the given SD.

    Parameters
    ----------
    probability : array
    sd : float

    Returns
    -------
    array of the same shape
    """
    average = (expit(_LOGITS[:, None] + sd * _NODES) * _WEIGHTS).sum(axis=1)
    inside = (average > 1e-9) & (average < 1 - 1e-9)
    p = np.clip(probability, 1e-8, 1 - 1e-8)
    return np.asarray(np.interp(logit(p), logit(average[inside]), _LOGITS[inside]))
