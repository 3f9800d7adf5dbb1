"""Agreement: of rankings (Kendall's W) and of coders (Krippendorff's alpha)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, rankdata

Level = Literal["nominal", "ordinal", "interval"]


class Concordance(NamedTuple):
    """Kendall's W (0 unrelated, 1 same order) and its asymptotic chi-square p with n - 1 df."""

    w: float
    p: float


def kendall_w(scores: ArrayLike) -> Concordance:
    """Concordance of several rankings of the same units, corrected for ties.

    Parameters
    ----------
    scores : (unit, ranking) array
        No NaN; midranks are taken within each ranking.

    Returns
    -------
    Concordance
        NaN with fewer than two units or rankings, or when every ranking is one tie.

    References
    ----------
    Kendall and Smith (1939), The problem of m rankings, Annals of Mathematical Statistics 10.
    """
    x = np.asarray(scores, dtype=float)
    n, m = x.shape
    ranks = rankdata(x, axis=0)
    ties = sum(float((np.unique(r, return_counts=True)[1] ** 3.0).sum() - n) for r in ranks.T)
    spread = ((ranks.sum(axis=1) - m * (n + 1) / 2) ** 2).sum()
    most = m**2 * (n**3 - n) - m * ties
    if n < 2 or m < 2 or most <= 0:
        return Concordance(np.nan, np.nan)
    w = float(12 * spread / most)
    return Concordance(w, float(chi2.sf(m * (n - 1) * w, n - 1)))


def krippendorff_alpha(codes: ArrayLike, level: Level = "nominal") -> float:
    """Agreement of coders beyond chance; missing codes are allowed.

    Parameters
    ----------
    codes : (unit, coder) array
        Numbers, NaN where a coder did not code a unit. Only their order counts for "ordinal".
    level : {"nominal", "ordinal", "interval"}
        What a difference of codes means.

    Returns
    -------
    float
        1 perfect, 0 chance; NaN when no unit has two codes or all codes are one value.

    References
    ----------
    Krippendorff (2019), Content Analysis, 4th edition, chapter 12.
    """
    x = np.asarray(codes, dtype=float)
    values = np.unique(x[~np.isnan(x)])
    counts = (x[:, :, None] == values).sum(axis=1).astype(float)  # (unit, value)
    pairable = counts[counts.sum(axis=1) >= 2]
    n_per_value = pairable.sum(axis=0)
    n = n_per_value.sum()
    distance = _distances(values, n_per_value, level)
    expected = n_per_value @ distance @ n_per_value
    if not expected > 0:
        return float("nan")
    per_unit = np.einsum("uv,vw,uw->u", pairable, distance, pairable) / (pairable.sum(axis=1) - 1)
    return float(1 - (n - 1) * per_unit.sum() / expected)


def _distances(values: NDArray[Any], n_per_value: NDArray[Any], level: Level) -> NDArray[Any]:
    """Squared distances between values."""
    if level == "nominal":
        return 1.0 - np.eye(values.size)
    place = values if level == "interval" else np.cumsum(n_per_value) - n_per_value / 2
    return np.asarray((place[:, None] - place[None, :]) ** 2)
