"""Is model A better than model B? Probabilities of order, from the posterior of the abilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.dimensionality.tables import abilities_table
from irtaudit.stats.ranking import probability_greater

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

PAIRWISE = ["subject", "other"]
"""First columns of ``pairwise.csv``; a column per model and factor follows."""
DIGITS = 4
CLEAR = 0.95
"""Probability from which an order counts as clear."""


def pairwise_table(fits: Mapping[str, FitResult]) -> pd.DataFrame:
    """Probability that one subject is better than another, for every pair under every fit.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits of the same subjects by name of the model.

    Returns
    -------
    DataFrame
        One row per pair: ``subject, other``, the first with the higher posterior mean under the first factor
        of the first fit; then for each model ``<model>``, with several factors for each ``<model>
        <factor>``: the probability that the ability of ``subject`` is the higher one, to four decimals.
        Abilities are taken as independent normals, as the guide has them.
    """
    if not fits:
        return pd.DataFrame(columns=PAIRWISE)
    first_fit = next(iter(fits.values()))
    ranked = first_fit.abilities.sort_values(first_fit.spec.factors[0], ascending=False, kind="stable").index
    first, second = np.triu_indices(len(ranked), k=1)
    columns = {
        _column(name, factor, fit): _probabilities(fit.abilities.loc[ranked], factor)[first, second]
        for name, fit in fits.items()
        for factor in fit.spec.factors
    }
    names = ranked.to_numpy()
    pairs = pd.DataFrame({"subject": names[first], "other": names[second]})
    return pairs.join(pd.DataFrame(columns).astype(float).round(DIGITS))


def _column(name: str, factor: str, fit: FitResult) -> str:
    return name if fit.spec.dims == 1 else f"{name} {factor}"


def _probabilities(abilities: pd.DataFrame, factor: str) -> NDArray[np.float64]:
    return np.asarray(probability_greater(abilities[factor], abilities[f"{factor}_sd"]))


def standings(fit: FitResult) -> pd.DataFrame:
    """Where each subject stands under the first factor of a fit, and which order is clear.

    Returns
    -------
    DataFrame indexed by subject, best first
        ``theta``; ``rank, rank_low, rank_high`` (95 % interval); ``over_next``: probability to be better than
        the next one (missing for the last); ``clearly_above, clearly_below``: how many others it is better or
        worse than with probability `CLEAR`; ``level_with``: the rest.
    """
    table = abilities_table({fit.spec.name: fit}, fit.seed)
    table = table[table["factor"] == fit.spec.factors[0]].set_index("subject")
    p = probability_greater(table["theta"], table["theta_sd"])
    above, below = (p >= CLEAR).sum(axis=1), (p <= 1 - CLEAR).sum(axis=1)
    return table[["theta", "rank", "rank_low", "rank_high"]].assign(
        over_next=np.append(np.diagonal(p, 1), np.nan),
        clearly_above=above,
        clearly_below=below,
        level_with=len(table) - 1 - above - below,
    )
