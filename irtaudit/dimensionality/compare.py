"""Which item response model predicts held-out responses best, and by how much.

Every model of a comparison is fitted to the same training cells and scored on the same held-out cells, so
differences are paired by split.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.dimensionality.baselines import BASELINES
from irtaudit.dimensionality.counts import aic, bic, fitted_quantities
from irtaudit.dimensionality.nested import (
    failed_fits,
    finding_sentence,
    lower_likelihoods,
    lower_sentence,
    nested_findings,
)
from irtaudit.errors import PlanError, check_kind
from irtaudit.irt.result import FitResult
from irtaudit.stats.resampling import Interval, corrected_interval
from irtaudit.stats.scoring import CLIP
from irtaudit.words import counted

Array = NDArray[Any]
SAME = 1e-5
"""Nats by which one log-loss may differ from itself, computed again."""
_OTHERS = "Give the fits, the matrix and the splits that belong together."
IDENTITY = ["model", "family", "structure", "dims"]
BY_SPLIT = [
    *IDENTITY,
    "split",
    "log_loss",
    "log_loss_predictive",
    "brier",
    "train_log_lik",
    "train_cells",
    "restart_sd",
    "fitted_quantities",
    "fitted_quantities_exact",
    "note",
]
"""Columns of ``comparison_by_split.csv``; ``restart_sd``: SD of log-loss over the restarts of the split."""
TABLE = [
    *IDENTITY,
    "log_loss",
    "log_loss_sd",
    "log_loss_predictive",
    "brier",
    "brier_sd",
    "train_log_lik",
    "fitted_quantities",
    "aic",
    "bic",
    "fitted_quantities_exact",
    "aic_exact",
    "bic_exact",
    "restart_sd",
    "note",
]
"""Columns of ``comparison.csv``."""
PAIRED = [
    "model",
    "reference",
    "difference",
    "sd",
    "min",
    "max",
    "low",
    "high",
    "splits_won",
    "n_splits",
    "every_restart_better",
]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Held-out comparison of item response models and baselines.

    Attributes
    ----------
    table : DataFrame
        One row per model, columns `TABLE`: ``log_loss`` and ``brier`` of held-out cells (nats, squared
        probability; mean and SD over splits), ``log_loss_predictive`` (the other predictor),
        ``train_log_lik`` (mean over splits of the plug-in log-likelihood of the training cells),
        ``fitted_quantities, aic, bic`` by the source paper's count and ``*_exact`` by ours, ``restart_sd``
        (SD of log-loss over the restarts of a split, mean over splits), ``note``.
    by_split : DataFrame
        One row per model and split, columns `BY_SPLIT`.
    paired : DataFrame
        One row per model other than the reference, columns `PAIRED`: ``difference`` is log-loss of the
        reference minus log-loss of the model (above 0: the model predicts better), its mean, SD, min, max
        over splits, the corrected 95 % interval ``low, high``, ``splits_won``, and whether every restart of
        the model beats every restart of the reference in every split.
    restarts : DataFrame
        Every restart of every model: ``model`` and the columns of `FitResult.restarts`.
    findings : DataFrame
        What the nested-model check found, see `nested_findings`.
    reference : str or None
        Model that `paired` refers to; None: every unidimensional fit failed, and `paired` is empty.
    test_over_train : float
        Held-out over training cells of a split, which widens the intervals.
    sampling : DataFrame or None
        Covariances of the models' log-losses as means over the held-out cells of a split, rows (split,
        model), a column per model; None where single responses were not given, as in a published table.
    """

    table: pd.DataFrame
    by_split: pd.DataFrame
    paired: pd.DataFrame
    restarts: pd.DataFrame
    findings: pd.DataFrame
    reference: str | None
    test_over_train: float
    sampling: pd.DataFrame | None = None

    def __repr__(self) -> str:
        n = int((self.table["structure"] != "baseline").sum())
        parts = {"model": n, "baseline": len(self.table) - n, "split": self.by_split["split"].nunique()}
        size = ", ".join(counted(number, part) for part, number in parts.items())
        return f"Comparison({size}, reference={self.reference!r}, {len(self.failed)} failed)"

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the models whose fit failed."""
        return tuple(failed_fits(self.findings))

    def difference(self, model: str, reference: str) -> pd.Series:
        """Log-loss of `reference` minus log-loss of `model`, by split: above 0 the model predicts better."""
        return _difference(self.by_split, model, reference)

    def interval(self, model: str, reference: str, n_comparisons: int = 1) -> Interval:
        """Corrected 95 % interval of the mean difference, jointly over `n_comparisons`."""
        return _interval(self.by_split, self.sampling, self.test_over_train, model, reference, n_comparisons)


def compare(
    fits: Mapping[str, FitResult],
    *,
    baselines: pd.DataFrame | None = None,
    reference: str | None = None,
    test_fraction: float | None = None,
    matrix: ResponseMatrix | None = None,
    splits: Splits | None = None,
) -> Comparison:
    """Compare fitted models on the cells they did not see.

    Parameters
    ----------
    fits : mapping of str to FitResult
        Fits of the same matrix to the same splits, by name of the model.
    baselines : DataFrame, optional
        Rows of :func:`irtaudit.dimensionality.baselines.additive_baselines` for the same splits.
    reference : str, optional
        Model that all others are paired with; default the unidimensional model with the lowest held-out
        log-loss among those whose fit did not fail.
    test_fraction : float, optional
        Share of the observed cells that a split holds out, for the corrected intervals; default that of the
        splits of the fits.
    matrix : ResponseMatrix, optional
        What was fitted. With it and `splits`, intervals also use how much the losses of single responses
        vary, and are the surer for it: see `irtaudit.stats.resampling.corrected_interval`.
    splits : Splits, optional

    Returns
    -------
    Comparison

    Raises
    ------
    PlanError
        When there is nothing to compare, `test_fraction` is no share, the fits are not of one matrix and one
        set of splits, none has one dimension and no reference is given, or the reference is unknown, a
        baseline, or a failed fit.
    """
    _check_comparable(fits)
    if reference is None:
        check_one_dimension(fit.spec.name for fit in fits.values())
    rows = [split_rows(fit) for fit in fits.values()]
    by_split = pd.concat([*([baselines] if baselines is not None else []), *rows], ignore_index=True)
    by_split = by_split[BY_SPLIT]
    if _losses(by_split).isna().any(axis=None):
        raise PlanError("Baselines and models were scored on different splits; score both on the same ones.")
    restarts = pd.concat([fit.restarts.assign(model=name) for name, fit in fits.items()], ignore_index=True)
    restarts = restarts[["model", *restarts.columns.drop("model")]]
    ratio = _test_over_train(next(iter(fits.values())), test_fraction)
    if matrix is None or splits is None:
        return assemble(by_split, restarts, ratio, reference)
    losses = heldout_losses(fits, matrix, splits)
    check_scored(by_split, losses)
    sampling = sampling_covariance(losses, next(iter(fits.values())).splits)
    return assemble(by_split, restarts, ratio, reference, sampling)


def check_scored(by_split: pd.DataFrame, losses: Mapping[str, Sequence[Array]]) -> None:
    """Refuse losses that are not those which a comparison was made of.

    Parameters
    ----------
    by_split : DataFrame
        Of the comparison.
    losses : mapping of str to list of (cell,) array
        By :func:`heldout_losses`.

    Raises
    ------
    PlanError
        When the mean of a model's losses is another one than the comparison has.
    """
    for name, cells in losses.items():
        expected = by_split.loc[by_split["model"] == name, "log_loss"].to_numpy(dtype=float)
        found = np.array([each.mean() for each in cells])
        if len(expected) and (found.shape != expected.shape or not np.allclose(found, expected, atol=SAME)):
            raise PlanError(f"{name} does not have the held-out log-loss that the comparison has. {_OTHERS}")


def _test_over_train(fit: FitResult, test_fraction: float | None) -> float:
    if test_fraction is not None:
        if not 0 < test_fraction < 1:
            raise PlanError(f"test_fraction is {test_fraction!r}; expected a share above 0 and below 1.")
        return test_fraction / (1 - test_fraction)
    if not fit.test_cells:
        raise PlanError("These fits do not say how many responses were held out; give test_fraction=.")
    return sum(fit.test_cells) / sum(fit.train_cells)


def heldout_losses(
    fits: Mapping[str, FitResult], matrix: ResponseMatrix, splits: Splits
) -> dict[str, list[Array]]:
    """Log-loss of every held-out response under every model and baseline.

    Returns
    -------
    dict of list of (cell,) array
        Nats, by name; one array per split, as :func:`cell_losses` has them.

    Raises
    ------
    PlanError
        When a fit is not of so many splits of a matrix of this shape.
    """
    n = matrix.trials
    heldout, train = splits.heldout(matrix), splits.training(matrix)
    for fit in fits.values():
        if (len(fit.splits), *fit.probabilities().shape) != heldout.shape:
            raise PlanError(f"{fit.spec.name} was not fitted to these splits. {_OTHERS}")
    found = {
        fit.spec.name: [
            cell_losses(matrix.responses, fit.probabilities(s), cells, n) for s, cells in enumerate(heldout)
        ]
        for fit in fits.values()
    }
    for name, predict in BASELINES.items():
        p = predict(matrix.responses, train, n)
        found[name] = [
            cell_losses(matrix.responses, q, cells, n) for q, cells in zip(p, heldout, strict=True)
        ]
    return found


def cell_losses(responses: Array, p: Array, cells: Array, trials: Array | None = None) -> Array:
    """(cell,) log-losses in nats of the cells asked for, probabilities clipped as everywhere.

    Parameters
    ----------
    responses, p : (subject, item) array
    cells : (subject, item) bool array
    trials : (subject, item) array, optional
        Trials that each response is the share of. Then the cells' values have the mean over all their trials
        as their mean, and vary about it as cells of different weight do: ``m + n (l - m) / mean(n)`` for a
        cell's mean loss l over n trials and the mean m over all, the linearised ratio (Cochran 1977, Sampling
        Techniques, chapter 6). So cells stay the units that intervals are made of, not trials.
    """
    q, y = np.clip(p[cells], CLIP, 1 - CLIP), responses[cells]
    losses = np.asarray(-(y * np.log(q) + (1 - y) * np.log1p(-q)))
    if trials is None:
        return losses
    n = trials[cells]
    mean = (n * losses).sum() / n.sum()
    return np.asarray(mean + n * (losses - mean) / n.mean())


def sampling_covariance(losses: Mapping[str, Sequence[Array]], splits: Sequence[str]) -> pd.DataFrame:
    """Covariances of mean log-losses over held-out cells, from the losses of single cells.

    Parameters
    ----------
    losses : mapping of str to sequence of (cell,) array
        By model; one array per split, the same cells for every model.
    splits : sequence of str
        Names of the splits.

    Returns
    -------
    DataFrame
        Rows (split, model), a column per model.
    """
    names = list(losses)
    frames = []
    for s, split in enumerate(splits):
        cells = np.stack([losses[name][s] for name in names])
        index = pd.MultiIndex.from_product([[split], names], names=["split", "model"])
        frames.append(pd.DataFrame(np.atleast_2d(np.cov(cells)) / cells.shape[1], index, names))
    return pd.concat(frames)


def assemble(
    by_split: pd.DataFrame,
    restarts: pd.DataFrame,
    test_over_train: float,
    reference: str | None = None,
    sampling: pd.DataFrame | None = None,
) -> Comparison:
    """Comparison from plain tables, of a published run for example.

    Parameters
    ----------
    by_split : DataFrame
        Columns `BY_SPLIT`.
    restarts : DataFrame
        ``model, split, log_loss`` at least.
    test_over_train : float
    reference : str, optional
        See :func:`compare`.
    sampling : DataFrame, optional
        See :func:`sampling_covariance`.
    """
    table = summary_table(by_split)
    findings = nested_findings(table)
    failed = failed_fits(findings)
    chosen = (
        _checked_reference(table, failed, reference)
        if reference is not None
        else strongest_unidimensional(table, failed)[0]
    )
    return Comparison(
        table=_with_findings(table, findings),
        by_split=by_split,
        paired=_paired(by_split, restarts, chosen, test_over_train, sampling),
        restarts=restarts,
        findings=findings,
        reference=chosen,
        test_over_train=test_over_train,
        sampling=sampling,
    )


def _difference(by_split: pd.DataFrame, model: str, reference: str) -> pd.Series:
    losses = _losses(by_split)
    return losses[reference] - losses[model]


def _interval(
    by_split: pd.DataFrame,
    sampling: pd.DataFrame | None,
    test_over_train: float,
    model: str,
    reference: str,
    n_comparisons: int = 1,
) -> Interval:
    variance = None
    if sampling is not None:
        of_model, of_reference = (sampling.xs(name, level="model") for name in (model, reference))
        variance = of_model[model] + of_reference[reference] - 2 * of_model[reference]
    return corrected_interval(
        _difference(by_split, model, reference),
        test_over_train,
        n_comparisons=n_comparisons,
        sampling=variance,
    )


def split_rows(fit: FitResult) -> pd.DataFrame:
    """One row per split of a fit, columns `BY_SPLIT`; the scores are those of the selected restart."""
    selected = fit.restarts[fit.restarts["selected"]].set_index("split")
    counts = fitted_quantities(fit.spec, len(fit.subjects), len(fit.items))
    rows = fit.heldout.assign(
        model=fit.spec.name,
        family=fit.spec.family,
        structure=fit.spec.structure,
        dims=fit.spec.dims,
        train_log_lik=selected["train_log_lik"].reindex(fit.heldout["split"]).to_numpy(),
        train_cells=pd.Series(fit.train_cells, fit.splits).reindex(fit.heldout["split"]).to_numpy(),
        restart_sd=fit.restarts.groupby("split")["log_loss"].std().reindex(fit.heldout["split"]).to_numpy(),
        fitted_quantities=counts.paper,
        fitted_quantities_exact=counts.exact,
        note="; ".join(fit.warnings),
    )
    return pd.DataFrame(rows, columns=BY_SPLIT)


def summary_table(by_split: pd.DataFrame) -> pd.DataFrame:
    """Average rows per split into one row per model, columns `TABLE`; AIC and BIC on training cells."""
    models = by_split.groupby("model", sort=False)
    identity = models[[*IDENTITY[1:], "fitted_quantities", "fitted_quantities_exact"]].first()
    means = models[["log_loss", "log_loss_predictive", "brier", "train_log_lik", "restart_sd"]].mean()
    table = identity.join(means)
    table[["log_loss_sd", "brier_sd"]] = models[["log_loss", "brier"]].std()
    responses = models["train_cells"].mean()
    for suffix in ("", "_exact"):
        k = table["fitted_quantities" + suffix]
        table["aic" + suffix] = aic(k, table["train_log_lik"])
        table["bic" + suffix] = bic(k, table["train_log_lik"], responses)
    table["note"] = models["note"].agg(_distinct)
    return table.reset_index()[TABLE]


def _distinct(notes: pd.Series) -> str:
    return "; ".join(dict.fromkeys(note for note in notes if note))


def _with_findings(table: pd.DataFrame, findings: pd.DataFrame) -> pd.DataFrame:
    lower = {row["model"]: lower_sentence(row) for _, row in lower_likelihoods(table).iterrows()}
    said = lower | {finding["model"]: finding_sentence(finding) for _, finding in findings.iterrows()}
    notes = [
        "; ".join(part for part in (said.get(model, ""), note) if part)
        for model, note in zip(table["model"], table["note"], strict=True)
    ]
    return table.assign(note=notes)


def _losses(by_split: pd.DataFrame) -> pd.DataFrame:
    """Log-loss, splits by models."""
    return by_split.pivot(index="split", columns="model", values="log_loss")


def strongest_unidimensional(table: pd.DataFrame, failed: Collection[str] = ()) -> tuple[str | None, int]:
    """The unidimensional model with the lowest held-out log-loss.

    Parameters
    ----------
    table : DataFrame
        ``model, structure, log_loss``.
    failed : collection of str
        Models that are out of the question.

    Returns
    -------
    name : str or None
        None where no unidimensional model is left.
    candidates : int
        Among how many it was chosen.
    """
    usable = table[(table["structure"] == "unidimensional") & ~table["model"].isin(list(failed))]
    ranked = usable.dropna(subset="log_loss").sort_values("log_loss", kind="stable")["model"].tolist()
    return (ranked[0] if ranked else None), len(ranked)


def check_one_dimension(names: Iterable[str]) -> None:
    """Refuse models none of which has one dimension: the others are judged by what they gain over it.

    Raises
    ------
    PlanError
    """
    names = list(names)
    if not any(name.strip().startswith("unidimensional_") for name in names):
        raise PlanError(
            f"No model with one dimension is among {', '.join(names) or 'the models'}; more dimensions are "
            "judged by what they gain over one. Add unidimensional_2pl, say."
        )


def _checked_reference(table: pd.DataFrame, failed: list[str], wanted: str) -> str:
    models = table.loc[table["structure"] != "baseline", "model"].tolist()
    if wanted not in models:
        raise PlanError(f"The reference {wanted!r} is not a fitted model; fitted are: {', '.join(models)}.")
    if wanted in failed:
        raise PlanError(f"The fit of {wanted!r} failed the nested-model check; a failed fit is no reference.")
    return wanted


def _paired(
    by_split: pd.DataFrame,
    restarts: pd.DataFrame,
    reference: str | None,
    test_over_train: float,
    sampling: pd.DataFrame | None,
) -> pd.DataFrame:
    if reference is None:
        return pd.DataFrame(columns=PAIRED)
    others = [model for model in by_split["model"].unique() if model != reference]
    rows = []
    for model in others:
        d = _difference(by_split, model, reference)
        interval = _interval(by_split, sampling, test_over_train, model, reference)
        rows.append(
            {
                "model": model,
                "reference": reference,
                "difference": interval.estimate,
                "sd": d.std(),
                "min": d.min(),
                "max": d.max(),
                "low": interval.low,
                "high": interval.high,
                "splits_won": int((d > 0).sum()),
                "n_splits": len(d),
                "every_restart_better": dominates(restarts, model, reference),
            }
        )
    return pd.DataFrame(rows, columns=PAIRED)


def dominates(restarts: pd.DataFrame, model: str, other: str) -> bool | None:
    """Whether every restart of `model` predicts better than every restart of `other`, in every split.

    Parameters
    ----------
    restarts : DataFrame
        ``model, split, log_loss``; a restart without a log-loss was not fitted and is left out.
    model, other : str

    Returns
    -------
    bool or None
        None where a model has no restarts, as a baseline.
    """
    losses = restarts.dropna(subset="log_loss").groupby(["model", "split"])["log_loss"]
    worst, best = losses.max(), losses.min()
    if model not in worst.index or other not in best.index:
        return None
    return bool((worst[model] < best[other]).all())


def _check_comparable(fits: Mapping[str, FitResult]) -> None:
    check_kind("fits", fits, Mapping, "a dict of fits by name, as irtaudit.fit_all returns it")
    for name, fit in fits.items():
        check_kind(f"fit {name!r}", fit, FitResult, "a FitResult, as irtaudit.fit returns it")
    if not fits:
        raise PlanError("There is nothing to compare: give at least one fitted model.")
    first_name, first = next(iter(fits.items()))
    for name, fit in fits.items():
        if fit.heldout.empty:
            raise PlanError(
                f"{name!r} was fitted to every observed cell and predicts none; fit it with splits."
            )
        if _basis(fit) != _basis(first):
            raise PlanError(
                f"{name!r} and {first_name!r} are fits of different data or splits; only fits that share "
                "both can be compared."
            )


def _basis(fit: FitResult) -> tuple[Any, ...]:
    return fit.data_sha256, fit.splits, fit.train_cells, fit.predictor
