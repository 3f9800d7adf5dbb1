"""How precisely a fit measures: empirical reliability and test information of each dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

Array = NDArray[Any]

GRID = np.linspace(-4, 4, 81)
RELIABILITY = ["model", "factor", "items", "reliability", "mean_sd", "most_informative", "smallest_se"]
INFORMATION = ["model", "factor", "theta", "information", "se"]


def empirical_reliability(theta: ArrayLike, sd: ArrayLike) -> float:
    """Share of the variance of the abilities that the estimates carry.

    ``var(m) / (var(m) + mean(V))`` for posterior means m and variances V: the squared correlation that
    estimates of another, equal test of the same subjects would have with the abilities.

    Parameters
    ----------
    theta, sd : (subject,) array
        Posterior means and SDs.

    Returns
    -------
    float
        NaN with fewer than two subjects.
    """
    m, v = np.asarray(theta, dtype=float), np.asarray(sd, dtype=float) ** 2
    if m.size < 2:
        return float("nan")
    between = m.var()
    return float(between / (between + v.mean()))


def information(theta: ArrayLike, slope: ArrayLike, intercept: ArrayLike, guess: ArrayLike = 0.0) -> Array:
    """Fisher information about one dimension, summed over items; its inverse root is a standard error.

    An item of the three-parameter model gives ``a^2 (1 - P) / P ((P - c) / (1 - c))^2`` (Lord 1980).

    Parameters
    ----------
    theta : (point,) array
        Abilities; the other dimensions of a model are held at 0.
    slope, intercept, guess : (item,) array
        Logits per unit of theta, logits, and probability.

    Returns
    -------
    (point,) array
        Per squared unit of theta; the prior's information, 1, is not included.
    """
    a, d, c = (np.asarray(part, dtype=float) for part in (slope, intercept, guess))
    above = expit(np.asarray(theta, dtype=float)[:, None] * a + d)
    p = c + (1 - c) * above
    return np.asarray((a**2 * (1 - p) * above**2 / p).sum(axis=-1))


def information_table(fits: Mapping[str, FitResult]) -> pd.DataFrame:
    """Test information of every dimension of every fit over a grid of abilities.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits by name of the model.

    Returns
    -------
    DataFrame
        ``model, factor, theta, information`` (per squared unit of theta, items alone), ``se`` (its inverse
        root; infinite without information).
    """
    frames = []
    for name, fit in fits.items():
        for factor in fit.spec.factors:
            information = _information(fit, factor)
            with np.errstate(divide="ignore"):
                se = 1 / np.sqrt(information)
            columns = {"theta": GRID, "information": information, "se": se}
            frames.append(pd.DataFrame(columns).assign(model=name, factor=factor))
    return pd.concat(frames, ignore_index=True)[INFORMATION] if frames else pd.DataFrame(columns=INFORMATION)


def reliability_table(fits: Mapping[str, FitResult]) -> pd.DataFrame:
    """Empirical reliability of every dimension of every fit.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits by name of the model.

    Returns
    -------
    DataFrame
        ``model, factor, items`` (that load on it), ``reliability`` (empirical, 0 to 1), ``mean_sd`` (root
        mean posterior variance of theta), ``most_informative`` (theta where the items tell most),
        ``smallest_se`` (standard error there, by the items alone).
    """
    rows = []
    for name, fit in fits.items():
        loads = fit.spec.pattern(len(fit.items))
        for d, factor in enumerate(fit.spec.factors):
            theta, sd = (fit.abilities[column].to_numpy(float) for column in (factor, f"{factor}_sd"))
            information = _information(fit, factor)
            best = int(np.argmax(information))
            rows.append(
                {
                    "model": name,
                    "factor": factor,
                    "items": int(loads[:, d].sum()),
                    "reliability": empirical_reliability(theta, sd),
                    "mean_sd": float(np.sqrt((sd**2).mean())),
                    "most_informative": float(GRID[best]),
                    "smallest_se": float(1 / np.sqrt(information[best])),
                }
            )
    return pd.DataFrame(rows, columns=RELIABILITY)


def _information(fit: FitResult, factor: str) -> Array:
    items = fit.item_parameters
    guess = items["guess"].to_numpy(float) if "guess" in items else 0.0
    slope, intercept = items[f"slope_{factor}"].to_numpy(float), items["intercept"].to_numpy(float)
    return information(GRID, slope, intercept, guess)
