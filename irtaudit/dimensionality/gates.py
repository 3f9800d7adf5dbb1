"""The two gates of the verdict: does a gain hold over developers, and could the audit have seen one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.dimensionality.baselines import item_means
from irtaudit.dimensionality.compare import Comparison, cell_losses, check_scored, heldout_losses
from irtaudit.dimensionality.verdict import DEFAULT_RULE, MARGIN_SHARE, OPEN, POWERFUL, Rule, Verdict, judge
from irtaudit.errors import PlanError, check_whole
from irtaudit.irt.predict import draw_responses
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.bootstrap import cluster_draws, cluster_interval
from irtaudit.stats.resampling import Interval, corrected_interval, joint_intervals
from irtaudit.stats.scoring import log_likelihood, log_loss

POWER_CORRELATION = 0.8
BLOCKS = 3
"""Random equal groups of items that stand in for factors where no labels are planned."""
N_PANELS = 40
N_DRAWS = 2000
CELLS = (-2, -1)


def judge_with_gates(
    comparison: Comparison,
    fits: Mapping[str, FitResult],
    full: Mapping[str, FitResult],
    matrix: ResponseMatrix,
    splits: Splits,
    *,
    clusters: Sequence[object] | None = None,
    challengers: Sequence[str] | None = None,
    rule: Rule = DEFAULT_RULE,
    correlation: float = POWER_CORRELATION,
    n_panels: int = N_PANELS,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Verdict, Power | None]:
    """Apply the whole rule to a comparison: intervals over clusters, and power where it decides.

    Parameters
    ----------
    comparison : Comparison
        Of `fits`, with baselines.
    fits : mapping of str to FitResult
        Fitted on the training cells of `splits`.
    full : mapping of str to FitResult
        Fits to every observed cell, from which panels are simulated: the first confirmatory model's, where
        there is one, else that of the best unidimensional model. Without either the power stays open.
    matrix : ResponseMatrix
        The screened matrix.
    splits : Splits
    clusters : sequence of length n_subjects, optional
        Family of each subject, in the order of the matrix; see :func:`cluster_intervals`. Where they are not
        known the answer says so.
    challengers, rule
        As in :func:`irtaudit.dimensionality.verdict.judge`.
    correlation : float
        Of every pair of simulated factors.
    n_panels : int
        Simulated for the power.
    seed : int
    workers : int, optional
    progress : callable, optional
        Called with the numbers of refits done and in all.

    Returns
    -------
    verdict : Verdict
    power : Power or None
        None where it would not decide.

    Raises
    ------
    PlanError
        As :func:`irtaudit.dimensionality.verdict.judge`; for other clusters than one per subject, a
        correlation that is no share, or numbers that are not whole or too small.
    """
    _check_options(correlation, n_panels, seed, workers)
    _check_clusters(clusters, matrix)
    first = judge(comparison, challengers=challengers, rule=rule)
    names = tuple(first.evidence["challenger"])
    over = {}
    if first.best is not None:
        check_scored(comparison.by_split, heldout_losses({first.best: fits[first.best]}, matrix, splits))
        over = cluster_intervals(
            fits, matrix, splits, best=first.best, challengers=names, clusters=clusters, seed=seed
        )
    power, truth = None, _power_truth(full, first.best)
    if truth is not None and first.conditions.set_index("condition")["state"][POWERFUL] == OPEN:
        power = power_of_the_rule(
            truth,
            matrix,
            splits,
            best=fits[str(first.best)].spec,
            challengers=[fits[name].spec for name in names],
            n_panels=n_panels,
            correlation=correlation,
            margin_share=rule.margin_share,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    final = judge(
        comparison,
        challengers=challengers,
        power=power.power if power else None,
        cluster_intervals=over,
        unplaced=matrix.n_subjects if clusters is None else int(unplaced(clusters).sum()),
        rule=rule,
    )
    return final, power


def _check_clusters(clusters: Sequence[object] | pd.Series | None, matrix: ResponseMatrix) -> None:
    if clusters is None:
        return
    if len(clusters) != matrix.n_subjects:
        found = f"{len(clusters)} clusters for {matrix.n_subjects} subjects"
        raise PlanError(f"There are {found}; give one for each.")
    names = list(clusters.index) if isinstance(clusters, pd.Series) else []
    if all(isinstance(name, str) for name in names) and names not in ([], list(matrix.subjects.index)):
        raise PlanError(
            "The clusters are named for other subjects than the matrix has, or in another order. Line them "
            "up: clusters.reindex(matrix.subjects.index)."
        )


def unplaced(clusters: Iterable[object]) -> NDArray[np.bool_]:
    """(subject,) which subjects' cluster is not known: missing, or blank."""
    labels = pd.Series(list(clusters), dtype=object)
    return np.asarray(labels.isna() | (labels.astype(str).str.strip() == ""), dtype=np.bool_)


def _check_options(correlation: float, n_panels: object, seed: object, workers: object) -> None:
    if not 0 <= correlation <= 1:
        raise PlanError(f"correlation is {correlation!r}; expected a number from 0 to 1.")
    check_whole("n_panels", n_panels, 1)
    check_whole("seed", seed)
    check_whole("workers", 1 if workers is None else workers, 1)


def _power_truth(full: Mapping[str, FitResult], best: str | None) -> FitResult | None:
    labelled = (fit for fit in full.values() if fit.spec.structure == "confirmatory")
    return next(labelled, full.get(best or ""))


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
    cells = np.where(heldout, matrix.n_trials, 0).sum(axis=(0, 2))
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
    alone = unplaced(clusters)
    return [f"subject {i}" if alone[i] else f"cluster {c}" for i, c in enumerate(clusters)]


def _subject_losses(
    fit: FitResult, matrix: ResponseMatrix, heldout: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(subject,) log-losses summed over the held-out responses of every split."""
    total = np.zeros(matrix.n_subjects)
    for s, cells in enumerate(heldout):
        total -= log_likelihood(
            matrix.responses, fit.probabilities(s), cells, axis=(-1,), trials=matrix.trials
        )
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
        Its shape, its missing cells and its numbers of trials are those of every simulated panel.
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

    Notes
    -----
    One challenger above the margin suffices, so challengers are fitted one after the other, the one that the
    panels are simulated from first, each only to panels in which none was yet above it by the interval
    corrected for all of them. The answer is the same as if all were fitted to all.
    """
    rng = np.random.default_rng(seed)
    train, heldout = splits.training(matrix), splits.heldout(matrix)
    panels = np.stack([_simulated(truth, matrix, correlation, rng) for _ in range(n_panels)])
    n, parts = matrix.trials, 1 + len(challengers)
    ratio = matrix.n_responses(heldout).sum() / matrix.n_responses(train).sum()

    def refitted(spec: ModelSpec, which: NDArray[np.intp], part: int) -> Iterator[list[NDArray[np.float64]]]:
        options = {
            "preset": preset,
            "seed": seed,
            "workers": workers,
            "progress": _part(progress, part, parts),
        }
        return _refitted_losses(spec, panels, which, train, heldout, options, n)

    one = list(refitted(best, np.arange(n_panels), 0))
    means = np.array(
        [log_loss(panel, item_means(panel, train, n), heldout, axis=CELLS, trials=n) for panel in panels]
    )
    gained = np.array([(m - _means(losses)).mean() for m, losses in zip(means, one, strict=True)])
    margins = np.where(gained > 0, margin_share * gained, np.nan)  # as for the responses themselves
    seen = np.zeros(n_panels, dtype=bool)
    intervals: list[list[Callable[[int], Interval]]] = [[] for _ in range(n_panels)]
    own_first = sorted(challengers, key=lambda spec: spec.name != truth.spec.name)
    for part, spec in enumerate(own_first, 1):
        left = np.flatnonzero(~seen)
        for panel, losses in zip(left, refitted(spec, left, part), strict=True):
            gains = [reference - own for reference, own in zip(one[panel], losses, strict=True)]
            sampling = [gain.var(ddof=1) / gain.size for gain in gains]
            intervals[panel].append(_interval_for(_means(gains), ratio, sampling))
            seen[panel] = intervals[panel][-1](len(challengers)).low > margins[panel]
    for panel in np.flatnonzero(~seen):
        joint = joint_intervals(intervals[panel], margins[panel])
        seen[panel] = any(interval.low > margins[panel] for interval in joint)
    if progress is not None:
        progress(parts, parts)
    labelled = truth.spec.structure == "confirmatory"
    factors = truth.spec.name if labelled else f"{BLOCKS} random equal blocks of items"
    return Power(float(seen.mean()), n_panels, correlation, factors)


def _refitted_losses(
    spec: ModelSpec,
    panels: NDArray[np.float64],
    which: NDArray[np.intp],
    train: NDArray[np.bool_],
    heldout: NDArray[np.bool_],
    options: dict[str, Any],
    trials: NDArray[np.int64] | None = None,
) -> Iterator[list[NDArray[np.float64]]]:
    """For each panel asked for, the log-losses of its held-out cells under one model, an array per split.

    Consecutive panels are fitted together; the noise of a fit belongs to its panel, whichever are asked for.
    """
    from irtaudit.irt.panels import fit_panels

    n_splits, report, done = len(train), options["progress"], len(panels) - len(which)
    for run in np.split(which, np.flatnonzero(np.diff(which) > 1) + 1):
        if not run.size:
            break
        every = np.where(train, panels[run][:, None], np.nan).reshape(-1, *panels.shape[1:])
        first = int(run[0]) * n_splits
        fitted = fit_panels(spec, every, first=first, trials=trials, **options | {"progress": None})
        for i, panel in enumerate(panels[run]):
            p = fitted.probabilities(slice(i * n_splits, (i + 1) * n_splits))
            yield [cell_losses(panel, q, cells, trials) for q, cells in zip(p, heldout, strict=True)]
        done += len(run)
        report(done, len(panels))


def _interval_for(
    differences: NDArray[np.float64], ratio: float, sampling: Sequence[float]
) -> Callable[[int], Interval]:
    """The interval of one comparison by the number that it is corrected for."""
    return lambda n: corrected_interval(differences, ratio, n_comparisons=n, sampling=sampling)


def _means(losses: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.array([cells.mean() for cells in losses])


def _part(progress: Callable[[int, int], None] | None, part: int, parts: int) -> Callable[[int, int], None]:
    """Progress of one of several equal parts, told as progress of the whole."""
    return lambda done, total: progress(part * total + done, parts * total) if progress else None


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
    return draw_responses(p, matrix, rng)
