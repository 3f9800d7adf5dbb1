"""Is model A better than model B? Probabilities of order, from the posterior of the abilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtaudit.dimensionality.tables import abilities_table
from irtaudit.stats.ranking import probability_greater

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

PAIRWISE = ["model", "factor", "subject", "other", "probability"]
"""Columns of ``pairwise.csv``."""
CLEAR = 0.95
"""Probability from which an order counts as clear."""


def pairwise_table(fits: Mapping[str, FitResult]) -> pd.DataFrame:
    """Probability that one subject is better than another, for every pair under every fit.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Full-data fits by name of the model.

    Returns
    -------
    DataFrame
        One row per model, factor and pair: ``subject, other``, the first with the higher posterior mean;
        ``probability`` that its ability is the higher one. Abilities are taken as independent normals, as the
        guide has them.
    """
    frames = [
        _pairs(fit.abilities, factor).assign(model=name, factor=factor)
        for name, fit in fits.items()
        for factor in fit.spec.factors
    ]
    return pd.concat(frames, ignore_index=True)[PAIRWISE] if frames else pd.DataFrame(columns=PAIRWISE)


def _pairs(abilities: pd.DataFrame, factor: str) -> pd.DataFrame:
    ranked = abilities.sort_values(factor, ascending=False, kind="stable")
    first, second = np.triu_indices(len(ranked), k=1)
    p = probability_greater(ranked[factor], ranked[f"{factor}_sd"])
    names = ranked.index.to_numpy()
    return pd.DataFrame({"subject": names[first], "other": names[second], "probability": p[first, second]})


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
