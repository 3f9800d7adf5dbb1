"""Odds of two groups compared within strata, for many items at once.

Every function takes counts with trailing axes ``(group, stratum, item)``; group 0 is the reference, 1 the
focal group. Leading axes (simulations, say) broadcast. A stratum in which one group is empty, or everybody
passes or fails, carries no information about an item and drops out of every sum by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HALF = 0.5
"""Added to both sums of products of :func:`log_odds_ratio`."""
DELTA_PER_LOGIT = -2.35
"""ETS delta per unit of log alpha (Holland and Thayer 1988)."""


class MantelHaenszel(NamedTuple):
    """Classical Mantel-Haenszel statistics, each an (..., item) array; NaN where undefined.

    `alpha` is the common odds ratio (above 1: the reference group has the better odds), `se` the
    Robins-Breslow-Greenland standard error of its logarithm, `chi2` the test statistic with continuity
    correction on one degree of freedom and `chi2_uncorrected` the one without, `std_p_dif` the difference
    in pass rates, focal minus reference, with the focal group's numbers per stratum as weights.
    """

    alpha: Array
    se: Array
    chi2: Array
    chi2_uncorrected: Array
    std_p_dif: Array


def informative(passes: Array, totals: Array) -> Array:
    """Strata in which both groups have responses and these are not all alike.

    Parameters
    ----------
    passes, totals : (..., group, stratum, item) arrays

    Returns
    -------
    (..., stratum, item) bool array
    """
    all_passes = passes.sum(axis=-3)
    return np.asarray((totals > 0).all(axis=-3) & (all_passes > 0) & (all_passes < totals.sum(axis=-3)))


def log_odds_ratio(passes: Array, totals: Array) -> Array:
    """Logarithm of the common odds ratio with `HALF` added to both sums of products: always finite.

    Parameters
    ----------
    passes, totals : (..., group, stratum, item) arrays
        Their type is the working precision.

    Returns
    -------
    (..., item) array
        0 where no stratum is informative.

    Notes
    -----
    The two sums, ``sum_k A_k D_k / T_k`` and ``sum_k B_k C_k / T_k``, count discordant responses. Half a
    response on either side keeps sparse items, whose plain ratio is 0 or infinite, from setting the largest
    value among all items.
    """
    reference, focal = passes[..., 0, :, :], passes[..., 1, :, :]
    size = totals.sum(axis=-3)
    per = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
    ours = (reference * (totals[..., 1, :, :] - focal) * per).sum(axis=-2)
    theirs = (focal * (totals[..., 0, :, :] - reference) * per).sum(axis=-2)
    half = passes.dtype.type(HALF)
    return np.asarray(np.log((ours + half) / (theirs + half)))


def mantel_haenszel(passes: Array, totals: Array) -> MantelHaenszel:
    """Common odds ratio, its standard error, the chi-square test and the standardised p-difference.

    Parameters
    ----------
    passes, totals : (..., group, stratum, item) arrays
        Passes and responses.

    Returns
    -------
    MantelHaenszel

    References
    ----------
    Mantel and Haenszel (1959), JNCI 22, 719-748. Robins, Breslow and Greenland (1986), Biometrics 42,
    311-323. Dorans and Kulick (1986), Journal of Educational Measurement 23, 355-368 (`std_p_dif`).
    """
    passes, totals = np.asarray(passes, dtype=float), np.asarray(totals, dtype=float)
    a, c = passes[..., 0, :, :], passes[..., 1, :, :]
    n_reference, n_focal = totals[..., 0, :, :], totals[..., 1, :, :]
    b, d, size = n_reference - a, n_focal - c, totals.sum(axis=-3)
    with np.errstate(divide="ignore", invalid="ignore"):
        per = np.where(size > 0, 1 / size, 0.0)
        r, s = a * d * per, b * c * per
        p, q = (a + d) * per, (b + c) * per
        ours, theirs = r.sum(axis=-2), s.sum(axis=-2)
        variance = (
            (p * r).sum(axis=-2) / (2 * ours**2)
            + (p * s + q * r).sum(axis=-2) / (2 * ours * theirs)
            + (q * s).sum(axis=-2) / (2 * theirs**2)
        )
        expected = n_reference * (a + c) * per
        spread = n_reference * n_focal * (a + c) * (b + d) * per**2 / (size - 1)
        excess = np.abs((a - expected).sum(axis=-2))
        known = np.where(size > 1, spread, 0.0).sum(axis=-2)
        both = (n_reference > 0) & (n_focal > 0)
        weight = np.where(both, n_focal, 0.0)
        gap = np.where(both, c / n_focal - a / n_reference, 0.0)
        return MantelHaenszel(
            alpha=ours / theirs,
            se=np.sqrt(variance),
            chi2=np.where(known > 0, (excess - 0.5) ** 2 / known, np.nan),
            chi2_uncorrected=np.where(known > 0, excess**2 / known, np.nan),
            std_p_dif=(weight * gap).sum(axis=-2) / weight.sum(axis=-2),
        )


def ets_class(alpha: Array, se: Array, chi2: Array) -> Array:
    """Size of DIF on the scale of the Educational Testing Service.

    Parameters
    ----------
    alpha, se, chi2 : (item,) arrays
        As in :class:`MantelHaenszel`.

    Returns
    -------
    (item,) object array
        "A" (negligible): absolute delta below 1, or not different from 0 by the chi-square test at .05; "C"
        (large): absolute delta at least 1.5, and above 1 by a one-sided test at .05; "B" otherwise; "" where
        undefined.

    References
    ----------
    Zieky (1993), in Holland and Wainer (eds.), Differential Item Functioning, 337-347.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.abs(DELTA_PER_LOGIT * np.log(alpha))
        clearly_above_1 = delta - 1 > 1.6449 * np.abs(DELTA_PER_LOGIT) * se
    negligible = (delta < 1) | (chi2 < 3.8415)
    large = (delta >= 1.5) & clearly_above_1
    classes = np.where(negligible, "A", np.where(large, "C", "B"))
    return np.where(np.isfinite(delta) & np.isfinite(se), classes, "").astype(object)
