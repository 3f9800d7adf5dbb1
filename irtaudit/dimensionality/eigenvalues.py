"""Bernoulli-null eigenvalues: do items go together by more than chance?

The eigenvalues of the item correlation matrix stand beside those of random panels of the same shape, missing
cells and item pass rates. Observed and random panels are treated alike: columns are standardised over their
observed cells, missing cells set to 0, and eigenvalues taken from the smaller side. Each null draws its own
way; the test of a null stands on the largest eigenvalue, the cut-offs of the other ranks are for the plot.

==============  ========================================================================================
null            random panels
==============  ========================================================================================
``permuted``    each item's passes fall on any models: columns conditional on their totals
``redrawn``     Bernoulli at the item's pass rate, redrawn until not constant
``margins``     independent cells that keep the expected totals of items and of models
``paper``       Bernoulli at the item's pass rate, constant columns kept (Stewart et al., 2610.12409)
``one_factor``  the fitted one-dimensional model, not refitted: the second eigenvalue, descriptive
``residual``    standardised residuals of the fitted one-dimensional model, every random panel refitted
==============  ========================================================================================

The paper's version misleads on small panels: items that came out constant are dropped from the data but not
from the draws, whose eigenvalues are too small. The second eigenvalue under the plug-in one-factor null is
anti-conservative: a fit that is not repeated on the random panels has fitted the noise of the observed one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import refuse_counts
from irtaudit.errors import PlanError
from irtaudit.stats.random_panels import (
    Draw,
    bernoulli_cells,
    bernoulli_columns,
    drawn,
    expected_margins,
    permuted_within_columns,
)
from irtaudit.stats.simulated import cutoff, exceeds, simulated_p
from irtaudit.stats.spectrum import spectrum, standardised_columns
from irtaudit.stats.threads import one_blas_thread

Array = NDArray[Any]
ItemNull = Literal["permuted", "redrawn", "margins", "paper"]

ITEM_NULLS: tuple[ItemNull, ...] = get_args(ItemNull)
LEVEL = 0.05
DRAWS = 1000
EIGENVALUES = ["null", "rank", "eigenvalue", "null_mean", "cutoff", "above", "p", "tested", "draws", "seed"]


@dataclass(frozen=True, eq=False)
class EigenvalueNull:
    """Observed eigenvalues among those of a null.

    Attributes
    ----------
    name : str
        One of the table above.
    observed : (rank,) array
        Largest first.
    draws : (draw, rank) array
        Of the random panels, each sorted on its own.
    tested_rank : int or None
        Rank on which the test stands, counted from 1; None: the ranks are read one by one, without a test.
    seed : int
    """

    name: str
    observed: Array
    draws: Array
    tested_rank: int | None
    seed: int

    @property
    def n_draws(self) -> int:
        """Number of random panels."""
        return len(self.draws)

    @property
    def p_by_rank(self) -> Array:
        """(rank,) simulated p-values, (1 + #) / (draws + 1), of each rank by itself."""
        return simulated_p(np.vstack([self.observed, self.draws]))

    @property
    def p(self) -> float:
        """Simulated p-value of the tested rank; NaN without a test."""
        return float("nan") if self.tested_rank is None else float(self.p_by_rank[self.tested_rank - 1])

    @property
    def cutoffs(self) -> Array:
        """(rank,) values that random panels exceed in 5 % of draws."""
        return cutoff(self.draws, LEVEL)

    @property
    def above(self) -> Array:
        """(rank,) whether the observed value is above its cut-off."""
        return exceeds(self.observed, self.cutoffs)


def eigenvalue_nulls(
    matrix: ResponseMatrix,
    nulls: Sequence[ItemNull] = ITEM_NULLS,
    *,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, EigenvalueNull]:
    """Eigenvalues of the item correlations against random panels.

    Parameters
    ----------
    matrix : ResponseMatrix
        Items that are constant over their observed cells hold no correlation and are left out.
    nulls : sequence of {"permuted", "redrawn", "margins", "paper"}
    n_draws : int
    seed : int
        Each null draws from a generator of its own, named by the seed and the null.

    Returns
    -------
    dict of EigenvalueNull
        By name of the null.

    Raises
    ------
    PlanError
        For an unknown null, no draw, or fewer than two items that are not constant.
    """
    unknown = [name for name in nulls if name not in ITEM_NULLS]
    if unknown:
        raise PlanError(f"There is no null {unknown[0]!r}; choose among {', '.join(ITEM_NULLS)}.")
    if n_draws < 1:
        raise PlanError(f"n_draws is {n_draws}; expected at least 1.")
    cells, observed = varying_cells(matrix)
    return {name: _item_null(name, cells, observed, n_draws, seed) for name in nulls}


def plug_in_null(
    matrix: ResponseMatrix, probability: Array, *, n_draws: int = DRAWS, seed: int = 0
) -> EigenvalueNull:
    """Eigenvalues of the item correlations against panels drawn from a fitted model that is not refitted.

    Descriptive: the observed panel has been fitted, noise and all, and the random ones have not.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix.
    probability : (subject, item) array
        Of a pass, by the fitted one-dimensional model.
    n_draws : int
    seed : int

    Returns
    -------
    EigenvalueNull
        Named ``one_factor``; its test stands on the second rank.
    """
    cells, observed = varying_cells(matrix)
    draw = bernoulli_cells(probability[:, _varying(matrix)], observed)
    return _against("one_factor", draw, cells, observed, n_draws, seed, tested_rank=2)


def eigenvalue_table(nulls: Sequence[EigenvalueNull], *, max_rank: int | None = None) -> pd.DataFrame:
    """Eigenvalues and cut-offs as a tidy table.

    Parameters
    ----------
    nulls : sequence of EigenvalueNull
    max_rank : int, optional
        Ranks kept; default all.

    Returns
    -------
    DataFrame
        One row per null and rank: ``null, rank`` (1 is largest), ``eigenvalue`` (observed), ``null_mean``,
        ``cutoff`` (95 % quantile of the rank under the null), ``above`` (observed above it), ``p``
        (simulated, of the rank by itself), ``tested`` (the row on which the null's test stands), ``draws``,
        ``seed``.
    """
    frames = []
    for null in nulls:
        rank = np.arange(1, len(null.observed) + 1)
        frame = pd.DataFrame(
            {
                "null": null.name,
                "rank": rank,
                "eigenvalue": null.observed,
                "null_mean": null.draws.mean(axis=0),
                "cutoff": null.cutoffs,
                "above": null.above,
                "p": null.p_by_rank,
                "tested": rank == null.tested_rank,
                "draws": null.n_draws,
                "seed": null.seed,
            }
        )
        frames.append(frame.iloc[:max_rank])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=EIGENVALUES)


def varying_cells(matrix: ResponseMatrix) -> tuple[Array, Array]:
    """Cells of the items that are not constant, as float32 with 0 where not observed, and which are observed.

    Parameters
    ----------
    matrix : ResponseMatrix

    Returns
    -------
    cells, observed : (subject, item) arrays

    Raises
    ------
    PlanError
        When fewer than two items vary, or cells count several trials.
    """
    refuse_counts(matrix, "The eigenvalue test")
    varying = _varying(matrix)
    if varying.sum() < 2:
        raise PlanError(
            f"{int(varying.sum())} of {matrix.n_items} items vary between models; correlations need two."
        )
    cells = np.nan_to_num(matrix.responses[:, varying]).astype(np.float32)
    return cells, matrix.observed[:, varying]


def _varying(matrix: ResponseMatrix) -> Array:
    passes, seen = np.nansum(matrix.responses, axis=0), matrix.observed.sum(axis=0)
    return np.asarray((passes > 0) & (passes < seen))


_DRAWS: dict[ItemNull, Callable[[Array, Array], Draw]] = {
    "permuted": lambda cells, observed: permuted_within_columns(cells.sum(axis=0), observed),
    "redrawn": lambda cells, observed: bernoulli_columns(cells.sum(axis=0), observed),
    "margins": lambda cells, observed: bernoulli_cells(expected_margins(cells, observed), observed),
    "paper": lambda cells, observed: bernoulli_columns(cells.sum(axis=0), observed, constant=True),
}


def _item_null(name: ItemNull, cells: Array, observed: Array, n_draws: int, seed: int) -> EigenvalueNull:
    draw = _DRAWS[name](cells, observed)
    return _against(name, draw, cells, observed, n_draws, seed, tested_rank=None if name == "paper" else 1)


@one_blas_thread()
def _against(
    name: str, draw: Draw, cells: Array, observed: Array, n_draws: int, seed: int, *, tested_rank: int | None
) -> EigenvalueNull:
    rng = np.random.default_rng([seed, *name.encode()])
    parts = [
        spectrum(standardised_columns(panels, observed)) for panels in drawn(draw, n_draws, rng, cells.size)
    ]
    mine = spectrum(standardised_columns(cells, observed))
    return EigenvalueNull(name, mine, np.concatenate(parts), tested_rank, seed)
