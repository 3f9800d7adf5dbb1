"""What one dimension leaves over: local dependence between items, and items and models that do not fit.

Every statistic is computed from a panel and its own one-dimensional fit, and judged against panels that were
simulated from the fit and refitted (:mod:`irtaudit.dimensionality.residuals`): a parametric bootstrap, with
no appeal to a chi-square or normal limit that tens of models are too few for.

=============  =========================================================================================
statistic      of a panel
=============  =========================================================================================
Q3             correlation of two items' residuals y - P over the models that answered both (Yen 1984)
item fit       G2 = 2 sum O log(O / E) over passes and fails in five bands of ability (McKinley, Mills
               1985); infit and outfit are the weighted and plain mean of squared standardised residuals
person fit     lz: log-likelihood of a model's responses, minus its mean, over its SD (Drasgow, Levine and
               Williams 1985); far below 0: easy items failed and hard ones passed
=============  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.eigenvalues import LEVEL, EigenvalueNull
from irtaudit.dimensionality.residuals import (
    Panels,
    Refitted,
    Statistic,
    refit,
    residual_eigenvalues,
    residual_null,
)
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.simulated import cutoff, exceeds, family_p, simulated_p
from irtaudit.stats.spectrum import standardised_columns

Array = NDArray[Any]

BANDS = 5
"""Bands of ability, of equal numbers of models, in which item fit compares passes with their expectation."""
MIN_INFORMATION = 1.0
"""Variance of the sum of residual products, ``sum_i v_ij v_ik``, that a pair of items needs for its Q3. Pairs
of items that nearly every model passes, or fails, have less: when one and the same model surprises in both,
they correlate near 1, and the largest Q3 of any panel is such a pair."""
UNDEFINED = -2.0
"""Stands below every correlation where there is none."""
SHOWN_PAIRS = 20
"""Pairs listed even where none is flagged."""
MAX_PAIRS = 500
ITEMS_AT_A_TIME = 512


@dataclass(frozen=True, eq=False)
class FitChecks:
    """How a one-dimensional model fits a panel, by refitted simulated panels.

    Attributes
    ----------
    residual : EigenvalueNull
        The one-factor test: largest eigenvalue of the standardised residuals.
    q3_cutoff : float
        What the largest Q3 of all pairs exceeds in 5 % of simulated panels.
    n_pairs, n_dependent : int
        Pairs of items that were compared, and those above the cut-off.
    pairs : DataFrame
        The largest Q3, largest first: ``item_1, item_2, q3, p`` (simulated, family-wise over all pairs),
        ``flag`` (p at most .05). At most `MAX_PAIRS`.
    items : DataFrame
        One row per item, worst fit first: ``item, fit`` (G2), ``p`` (simulated), ``p_family`` (over all
        items), ``infit, outfit`` (1 is expected), ``flag`` (p_family at most .05).
    subjects : DataFrame
        One row per model, worst fit first: ``subject, lz, p`` (simulated, of a value as low), ``p_family``,
        ``flag``.
    model : str
        Name of the one-dimensional model.
    preset : str
    n_panels, seed : int
        Simulated panels that could be refitted; seed of the simulation and the fits.
    """

    residual: EigenvalueNull
    q3_cutoff: float
    n_pairs: int
    n_dependent: int
    pairs: pd.DataFrame
    items: pd.DataFrame
    subjects: pd.DataFrame
    model: str
    preset: str
    n_panels: int
    seed: int


def check_fit(matrix: ResponseMatrix, spec: ModelSpec | None = None, **options: Any) -> FitChecks:
    """Check what a one-dimensional model leaves over, by refitted simulated panels.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix.
    spec : ModelSpec, optional
        The one-dimensional model; default the unidimensional 2PL.
    **options
        ``n_panels, preset, seed, workers, device, progress`` of
        :func:`irtaudit.dimensionality.residuals.refit`.

    Returns
    -------
    FitChecks
    """
    statistics: dict[str, Statistic] = {
        "residual": residual_eigenvalues,
        "q3": largest_q3,
        "item_fit": item_fit,
        "person_misfit": lambda panels: -person_fit(panels),
    }
    refitted = refit(matrix, spec or ModelSpec.unidimensional("2pl"), statistics, **options)
    null = refitted.stacks["q3"][1:]
    pairs, n_pairs, n_dependent = _pairs(matrix, refitted)
    return FitChecks(
        residual=residual_null(refitted),
        q3_cutoff=float(cutoff(null, LEVEL)),
        n_pairs=n_pairs,
        n_dependent=n_dependent,
        pairs=pairs,
        items=_item_table(matrix, refitted),
        subjects=_subject_table(matrix, refitted),
        model=refitted.spec.name,
        preset=refitted.preset,
        n_panels=refitted.n_panels,
        seed=refitted.seed,
    )


# Statistics of panels ----------------------------------------------------------------------------------


def largest_q3(panels: Panels) -> Array:
    """Largest Q3 of all pairs of items about which the panel says enough, see `MIN_INFORMATION`.

    Parameters
    ----------
    panels : Panels

    Returns
    -------
    (panel,) array
        `UNDEFINED` where no pair can be compared.
    """
    return np.array(
        [
            max((q3.max() for _, _, q3 in _q3_rows(panels, p)), default=UNDEFINED)
            for p in range(len(panels.responses))
        ]
    )


def item_fit(panels: Panels) -> Array:
    """G2 of every item over bands of ability.

    Parameters
    ----------
    panels : Panels

    Returns
    -------
    (panel, item) array
    """
    p = panels.probability * panels.observed
    bands = _bands(panels)
    passes, expected = bands @ panels.responses, bands @ p
    seen = bands @ panels.observed.astype(np.float32)
    fails, unexpected = seen - passes, seen - expected
    terms = xlogy(passes, passes / np.where(passes > 0, expected, 1))
    terms += xlogy(fails, fails / np.where(fails > 0, unexpected, 1))
    return np.asarray(2 * terms.sum(axis=1))


def person_fit(panels: Panels) -> Array:
    """Standardised log-likelihood lz of every subject.

    Parameters
    ----------
    panels : Panels

    Returns
    -------
    (panel, subject) array
    """
    p, v = panels.probability.astype(np.float64), panels.variance.astype(np.float64)
    logit = np.log(p / (1 - p)) * panels.observed
    excess = (panels.residuals * logit).sum(axis=-1)
    return np.asarray(excess / np.sqrt((v * logit**2).sum(axis=-1)))


def mean_squares(panels: Panels) -> tuple[Array, Array]:
    """Infit and outfit of every item: 1 is expected, more is noisier, less is more regular.

    Parameters
    ----------
    panels : Panels

    Returns
    -------
    infit, outfit : (panel, item) arrays
        Sum of squared residuals over that of their variances, and mean of their ratios (Wright and Masters
        1982).
    """
    squared, variance = panels.residuals**2, panels.variance * panels.observed
    seen = np.maximum(panels.observed.sum(axis=0), 1)
    return squared.sum(axis=1) / variance.sum(axis=1), (squared / panels.variance).sum(axis=1) / seen


def _bands(panels: Panels) -> Array:
    """(panel, band, subject) float32 membership in bands of equal numbers of subjects by fitted ability."""
    # with one dimension and positive slopes the mean probability over all items orders by theta
    order = np.argsort(np.argsort(panels.probability.mean(axis=-1), axis=-1, kind="stable"), axis=-1)
    band = order * BANDS // order.shape[-1]
    return np.asarray(band[:, None, :] == np.arange(BANDS)[:, None], dtype=np.float32)


def _q3_rows(panels: Panels, panel: int) -> Iterator[tuple[Array, Array, Array]]:
    """Q3 of one panel, some rows at a time.

    Yields
    ------
    rows, columns : (row,) and (column,) int arrays
        Positions of the items.
    q3 : (row, column) float32 array
        `UNDEFINED` on and below the diagonal, and where the panel says too little about the pair.
    """
    observed, items = panels.observed, np.arange(panels.observed.shape[1])
    z = standardised_columns(panels.residuals[panel], observed)
    variance, both = panels.variance[panel] * observed, observed.astype(np.float32)
    for start in range(0, len(items), ITEMS_AT_A_TIME):
        rows = slice(start, start + ITEMS_AT_A_TIME)
        q3 = z[:, rows].T @ z
        if observed.all():
            q3 /= len(z)
        else:
            squared = np.square(z)
            scale = np.sqrt((squared[:, rows].T @ both) * (both[:, rows].T @ squared))
            np.divide(q3, scale, out=q3, where=scale > 0)
        q3[variance[:, rows].T @ variance < MIN_INFORMATION] = UNDEFINED
        q3[np.tri(len(q3), len(items), start, dtype=bool)] = UNDEFINED
        yield items[rows], items, q3


# Tables ------------------------------------------------------------------------------------------------


def _pairs(matrix: ResponseMatrix, refitted: Refitted) -> tuple[pd.DataFrame, int, int]:
    """The largest Q3 as a table, how many pairs were compared, and how many are flagged."""
    largest = refitted.stacks["q3"]
    q3, first, second = (np.concatenate(parts) for parts in zip(*_q3_list(refitted.panel), strict=True))
    n_flagged = int(exceeds(q3, cutoff(largest[1:], LEVEL)).sum())
    shown = np.argsort(-q3, kind="stable")[: min(max(SHOWN_PAIRS, n_flagged), MAX_PAIRS)]
    nulls = np.broadcast_to(largest[1:, None], (len(largest) - 1, len(shown)))
    p = simulated_p(np.vstack([q3[shown], nulls]))
    names = matrix.items.index.to_numpy()
    table = pd.DataFrame(
        {"item_1": names[first[shown]], "item_2": names[second[shown]], "q3": q3[shown], "p": p}
    )
    return table.assign(flag=p <= LEVEL), len(q3), n_flagged


def _q3_list(panel: Panels) -> Iterator[tuple[Array, Array, Array]]:
    """Q3 and positions of the pairs of a panel that can be compared."""
    yield np.empty(0, np.float32), np.empty(0, int), np.empty(0, int)
    for rows, columns, q3 in _q3_rows(panel, 0):
        first, second = np.nonzero(q3 > UNDEFINED)
        yield q3[first, second], rows[first], columns[second]


def _item_table(matrix: ResponseMatrix, refitted: Refitted) -> pd.DataFrame:
    infit, outfit = mean_squares(refitted.panel)
    table = _judged("item", matrix.items.index, "fit", refitted.stacks["item_fit"])
    table.insert(4, "infit", infit[0])
    table.insert(5, "outfit", outfit[0])
    return table.sort_values(["p_family", "p", "fit"], ascending=[True, True, False], ignore_index=True)


def _subject_table(matrix: ResponseMatrix, refitted: Refitted) -> pd.DataFrame:
    table = _judged("subject", matrix.subjects.index, "lz", refitted.stacks["person_misfit"])
    return table.assign(lz=-table["lz"]).sort_values("lz", ignore_index=True)


def _judged(axis: str, names: pd.Index, statistic: str, stack: Array) -> pd.DataFrame:
    """Observed values with their simulated p-values, one by one and over the family."""
    p, p_family = simulated_p(stack), family_p(stack)
    columns = {axis: names, statistic: stack[0], "p": p, "p_family": p_family, "flag": p_family <= LEVEL}
    return pd.DataFrame(columns)
