"""The two gates of the verdict: does a gain hold over developers, and could the audit have seen one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.dimensionality.baselines import item_means
from irtaudit.dimensionality.verdict import MARGIN_SHARE
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.bootstrap import cluster_draws, cluster_interval
from irtaudit.stats.resampling import Interval, corrected_interval
from irtaudit.stats.scoring import CLIP, log_loss

POWER_CORRELATION = 0.8
BLOCKS = 3
"""Random equal groups of items that stand in for factors where no labels are planned."""
N_PANELS = 40
N_DRAWS = 2000
CELLS = (-2, -1)


def cluster_intervals(
    fits: Mapping[str, FitResult],
    matrix: ResponseMatrix,
    splits: Splits,
    *,
    best: str,
    challengers: Iterable[str],
    clusters: Sequence[object] | None = None,
    seed: int = 0,
) -> dict[str, Interval]:
    """Interval of each challenger's gain over whole clusters of subjects, by the cluster bootstrap.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Fitted on the training cells of `splits`.
    matrix : ResponseMatrix
        The screened matrix.
    splits : Splits
    best : str
        The best unidimensional model.
    challengers : iterable of str
    clusters : sequence of length n_subjects, optional
        Family of each subject, its developer say; a missing label is a cluster of its own. Default: every
        subject is.
    seed : int

    Returns
    -------
    dict of Interval
        Log-loss of `best` minus that of the challenger over all held-out cells, with 95 % limits; below
        `irtaudit.stats.bootstrap.FEW_CLUSTERS` clusters by t.
    """
    heldout = splits.heldout(matrix)
    cells = heldout.sum(axis=(0, 2))
    labels = _labels(clusters, matrix.n_subjects)
    draws = cluster_draws(labels, N_DRAWS, np.random.default_rng(seed))
    losses = {name: _subject_losses(fits[name], matrix, heldout) for name in {best, *challengers}}
    found = {}
    for name in challengers:
        gain = losses[best] - losses[name]
        with np.errstate(invalid="ignore", divide="ignore"):
            resampled = (draws @ gain) / (draws @ cells)
        estimate = float(gain.sum() / cells.sum())
        limits = cluster_interval(estimate, resampled, len(set(labels)))
        found[name] = Interval(estimate, limits.low, limits.high)
    return found


def _labels(clusters: Sequence[object] | None, n_subjects: int) -> list[str]:
    if clusters is None:
        return [f"subject {i}" for i in range(n_subjects)]
    return [f"subject {i}" if pd.isna(c) else f"cluster {c}" for i, c in enumerate(clusters)]  # type: ignore[call-overload]  # pandas-stubs wants a scalar type


def _subject_losses(
    fit: FitResult, matrix: ResponseMatrix, heldout: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(subject,) log-losses summed over the held-out cells of every split."""
    total = np.zeros(matrix.n_subjects)
    for s, cells in enumerate(heldout):
        p = np.clip(fit.probabilities(s), CLIP, 1 - CLIP)
        loss = -np.log(np.where(matrix.responses == 1, p, 1 - p))
        total += np.where(cells, loss, 0.0).sum(axis=1)
    return total


@dataclass(frozen=True)
class Power:
    """How often the rule finds several dimensions that are there.

    Attributes
    ----------
    power : float
        Share of simulated panels in which some challenger's lower limit was above the margin.
    n_panels : int
    correlation : float
        Of every pair of the simulated factors.
    factors : str
        Where the simulated factors come from: the name of a confirmatory model, or random equal blocks.
    """

    power: float
    n_panels: int
    correlation: float
    factors: str


def power_of_the_rule(
    truth: FitResult,
    matrix: ResponseMatrix,
    splits: Splits,
    *,
    best: ModelSpec,
    challengers: Sequence[ModelSpec],
    n_panels: int = N_PANELS,
    correlation: float = POWER_CORRELATION,
    margin_share: float = MARGIN_SHARE,
    preset: str | Preset = "quick",
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Power:
    """Apply the verdict's comparison to simulated panels of this size in which one dimension is too few.

    Parameters
    ----------
    truth : FitResult
        Full-data fit that gives the item parameters: a confirmatory model's, whose factors are simulated, or
        a unidimensional one's, whose items are dealt to `BLOCKS` random equal factors anew for each panel.
    matrix : ResponseMatrix
        Its shape and its missing cells are those of every simulated panel.
    splits : Splits
    best : ModelSpec
        The unidimensional model that the challengers are compared with.
    challengers : sequence of ModelSpec
    n_panels : int
    correlation : float
        Of every pair of simulated factors.
    margin_share : float
        Of the rule.
    preset : str or Preset
        Of the refits, one start each.
    seed : int
    workers : int, optional
    progress : callable, optional
        Called with the numbers of refits done and in all.

    Returns
    -------
    Power
    """
    from irtaudit.irt.panels import fit_panels

    rng = np.random.default_rng(seed)
    train, heldout = splits.training(matrix), splits.heldout(matrix)
    panels = np.stack([_simulated(truth, matrix, correlation, rng) for _ in range(n_panels)])
    every = np.where(train, panels[:, None], np.nan).reshape(-1, *matrix.responses.shape)
    ratio = heldout.sum() / train.sum()
    losses = {}
    models = (best, *challengers)
    for i, spec in enumerate(models):
        fitted = fit_panels(
            spec, every, preset=preset, seed=seed, workers=workers, progress=_part(progress, i, len(models))
        )
        of_panel = [slice(p * len(train), (p + 1) * len(train)) for p in range(n_panels)]
        losses[spec.name] = np.array(
            [
                log_loss(panel, fitted.probabilities(rows), heldout, axis=CELLS)
                for panel, rows in zip(panels, of_panel, strict=True)
            ]
        )
    means = np.array([log_loss(panel, item_means(panel, train), heldout, axis=CELLS) for panel in panels])
    margins = margin_share * (means - losses[best.name]).mean(axis=1)
    seen = [
        any(
            corrected_interval(
                losses[best.name][p] - losses[spec.name][p], ratio, n_comparisons=len(challengers)
            ).low
            > margins[p]
            for spec in challengers
        )
        for p in range(n_panels)
    ]
    labelled = truth.spec.structure == "confirmatory"
    factors = truth.spec.name if labelled else f"{BLOCKS} random equal blocks of items"
    return Power(float(np.mean(seen)), n_panels, correlation, factors)


def _part(
    progress: Callable[[int, int], None] | None, part: int, parts: int
) -> Callable[[int, int], None] | None:
    """Progress of one of several equal parts, told as progress of the whole."""
    return None if progress is None else lambda done, total: progress(part * total + done, parts * total)


def _simulated(
    truth: FitResult, matrix: ResponseMatrix, correlation: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """(subject, item) responses of new subjects with correlated abilities, missing where `matrix` is."""
    parameters = truth.item_parameters
    slope = parameters[[f"slope_{factor}" for factor in truth.spec.factors]].to_numpy()
    if truth.spec.dims == 1:
        block = rng.permutation(matrix.n_items) % BLOCKS
        slope = slope * (block[:, None] == np.arange(BLOCKS))
    k = slope.shape[1]
    r = np.full((k, k), correlation) + (1 - correlation) * np.eye(k)
    theta = rng.multivariate_normal(np.zeros(k), r, size=matrix.n_subjects)
    p = expit(theta @ slope.T + parameters["intercept"].to_numpy())
    if "guess" in parameters:
        guess = parameters["guess"].to_numpy()
        p = guess + (1 - guess) * p
    return np.where(matrix.observed, (rng.random(p.shape) < p).astype(np.float64), np.nan)
