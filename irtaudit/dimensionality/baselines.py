"""Predictions without an item response model: what every model has to beat.

Both baselines are fitted to training cells alone and scored on held-out cells.

``item_means``
    Every subject passes an item at the item's own rate. Rates are shrunk towards their common mean by a Beta
    prior whose two pseudo-counts maximise the likelihood of the training totals. A hierarchical model shrinks
    its intercepts the same way, so it gains nothing by shrinkage alone: on responses that hold no information
    about subjects no model should look better than this row.
``item_subject_logit``
    The spreadsheet's additive rule ``logit P = logit(item) + logit(subject) - logit(overall)``, with half a
    pass and half a fail added to each item's and each subject's totals. It is a rule and not a fit: the
    fitted additive model is the 1PL, which stands in the comparison as a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, check_splits
from irtaudit.dimensionality.counts import Counts
from irtaudit.stats.scoring import brier, log_likelihood, log_loss
from irtaudit.stats.smoothing import shrunken_rates

Array = NDArray[Any]
CELLS = (-2, -1)
"""Axes of the cells of a split."""
HALF = 0.5
"""Passes and fails added to the totals of ``item_subject_logit``."""


def item_means(responses: Array, train: Array, trials: Array | None = None) -> Array:
    """Shrunken pass rate of each item, the same for every subject.

    Parameters
    ----------
    responses : (subject, item) array of 0, 1 or NaN
    train : (split, subject, item) bool array
        Training cells.
    trials : (subject, item) array, optional
        Trials that each response is the share of; default one each.

    Returns
    -------
    (split, subject, item) array of probabilities
    """
    passes, seen = _totals(responses, train, -2, trials)
    rates = np.stack([shrunken_rates(s, n) for s, n in zip(passes, seen, strict=True)])
    return np.broadcast_to(rates[:, None, :], train.shape)


def item_subject_logit(responses: Array, train: Array, trials: Array | None = None) -> Array:
    """Logit of the item's rate plus that of the subject's minus that of all cells.

    Parameters
    ----------
    responses, train, trials
        As in :func:`item_means`.

    Returns
    -------
    (split, subject, item) array of probabilities
    """
    item, subject, overall = (
        _logit_rate(*_totals(responses, train, axis, trials)) for axis in (-2, -1, (-2, -1))
    )
    return np.asarray(expit(item[:, None, :] + subject[:, :, None] - overall[:, None, None]))


BASELINES: dict[str, Callable[[Array, Array, Array | None], Array]] = {
    "item_means": item_means,
    "item_subject_logit": item_subject_logit,
}


def additive_baselines(
    matrix: ResponseMatrix, splits: Splits, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Score both baselines on every split.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix.
    splits : Splits
    names : sequence of str, optional
        Names of the splits as the fits have them (`FitResult.splits`); default the seed of each split.

    Returns
    -------
    DataFrame
        One row per baseline and split with the columns of ``comparison_by_split.csv``, see
        :data:`irtaudit.dimensionality.compare.BY_SPLIT`. ``note`` says how many items are constant in the
        training cells of a split: their rate rests on the prior as much as on their responses.

    Raises
    ------
    DataError, PlanError
        When `matrix` is no response matrix, or `splits` are not of it.
    """
    check_splits(splits)
    train, test = splits.training(matrix), splits.heldout(matrix)
    shared = {
        "split": list(names or map(str, splits.seeds)),
        "train_cells": matrix.n_responses(train),
        "note": _constant_note(int(constant_items(matrix.responses, train).max())),
    }
    frames, n = [], matrix.trials
    for name, predict in BASELINES.items():
        p = predict(matrix.responses, train, n)
        counts = _counts(name, matrix)
        frames.append(
            pd.DataFrame(
                {
                    "model": name,
                    "family": "additive",
                    "structure": "baseline",
                    "dims": 0,
                    "log_loss": log_loss(matrix.responses, p, test, axis=CELLS, trials=n),
                    "log_loss_predictive": np.nan,
                    "brier": brier(matrix.responses, p, test, axis=CELLS, trials=n),
                    "train_log_lik": log_likelihood(matrix.responses, p, train, axis=CELLS, trials=n),
                    "fitted_quantities": counts.paper,
                    "fitted_quantities_exact": counts.exact,
                    "restart_sd": np.nan,
                    **shared,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def constant_items(responses: Array, train: Array) -> Array:
    """Number of items whose training cells are all alike, or missing.

    Parameters
    ----------
    responses : (subject, item) array of 0, 1 or NaN
    train : (split, subject, item) bool array

    Returns
    -------
    (split,) int array
    """
    passes, seen = _totals(responses, train, axis=-2)
    return np.asarray(((passes == 0) | (passes == seen)).sum(axis=-1))


def _totals(
    responses: Array, train: Array, axis: int | tuple[int, ...], trials: Array | None = None
) -> tuple[Array, Array]:
    """Passes and responses in the training cells, summed."""
    seen = train if trials is None else np.where(train, trials, 0)
    passes = np.where(train, np.nan_to_num(responses), 0.0) * seen
    return passes.sum(axis=axis), seen.sum(axis=axis)


def _logit_rate(passes: Array, seen: Array) -> Array:
    return np.asarray(logit((passes + HALF) / (seen + 2 * HALF)))


def _counts(name: str, matrix: ResponseMatrix) -> Counts:
    quantities = matrix.n_items + (matrix.n_subjects if name == "item_subject_logit" else 0)
    return Counts(quantities, quantities)


def _constant_note(n: int) -> str:
    return (
        f"up to {n} item{'s are' if n > 1 else ' is'} constant in the training cells of a split" if n else ""
    )
