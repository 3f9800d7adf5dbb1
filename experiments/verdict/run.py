"""Does the verdict say what is true? Simulated panels of 81 models and 398 items, by the audit's own rule.

Usage: ``OMP_NUM_THREADS=1 python experiments/verdict/run.py [--minutes N] [--out FOLDER]``. Writes
``verdicts.csv`` (one row per simulated panel and audit of it), ``evidence.csv`` (the intervals behind each),
``losses.csv`` (held-out log-loss of every model and split), ``spread.csv`` (variances between and within
splits), ``summary.csv`` (how often each word falls, against the goals) and ``provenance.json``. Panels that
``verdicts.csv`` already holds are not run again.

Models, preset, splits, intervals, families of models and the power where it decides are as in ``irtaudit
audit``, by the same functions. Three things are cheaper: each model has one start instead of 20; the power
rests on 5 simulated panels instead of 40 where items have labels; and of the one-dimensional models only the
2PL is fitted, where there is guessing the 3PL too (in twelve panels of each kind no other was ever the best).

``--check`` audits the first panels of each kind once more by ``irtaudit.run_audit`` with its own defaults,
into ``check.csv``, beside the word of the study. ``--coverage`` draws responses and splits again and again
from the same abilities and items, one set of each kind, and writes ``coverage.csv``: how often intervals of a
gain over one dimension hold its mean. ``--rejudge`` applies the rule of this version to what is saved, and
fits nothing: after a change of the rule.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, polygamma
from scipy.stats import t as student

import irtaudit
from irtaudit import ModelSpec, ResponseMatrix, Splits, Verdict, additive_baselines
from irtaudit.dimensionality.compare import (
    BY_SPLIT,
    Comparison,
    assemble,
    heldout_losses,
    sampling_covariance,
)
from irtaudit.dimensionality.gates import judge_with_gates
from irtaudit.irt.panels import fit_panels
from irtaudit.present import versions
from irtaudit.stats.proportions import wilson
from irtaudit.stats.resampling import Interval, corrected_interval
from irtaudit.stats.scoring import log_loss

HERE = Path(__file__).parent
ONE = (1.0, 1.0, 1.0)
TRUE, PERMUTED, NONE = "own", "permuted", "none"
"""Item labels that an audit is given: the factor of each item, the same in another order, none."""
Array = NDArray[Any]
WORDS = ["supported", "not supported", "inconclusive", "nothing to measure"]


@dataclass(frozen=True)
class Goal:
    """In how many of the 40 panels a word should fall.

    Attributes
    ----------
    word : str
    at_least, at_most : int
    """

    word: str
    at_least: int = 0
    at_most: int = 40


@dataclass(frozen=True)
class Kind:
    """A kind of simulated panel, and the audits of it.

    Attributes
    ----------
    name : str
    correlations : tuple of float
        Of factors 1-2, 1-3 and 2-3; ones: one factor.
    goals : mapping of str to tuple of Goal
        By the item labels that the audit is given.
    hard : bool
        Skewed abilities (a centred, scaled Gamma of shape 2, the tail to the right) and guessing at .2.
    """

    name: str
    correlations: tuple[float, float, float]
    goals: Mapping[str, tuple[Goal, ...]]
    hard: bool = False


ONE_FACTOR = {TRUE: (Goal("not supported", at_most=2), Goal("supported", at_least=30))}


@dataclass(frozen=True)
class Config:
    """The study: shape and moments of the panels as in ``tests/reference/sim81x398.md``.

    Families of models are as large as those of the 81 models of the audit of HarmBench (see
    ``experiments/harmful_refusal/printed/developers.csv``), dealt at random: here they do not matter.
    """

    n_subjects: int = 81
    n_items: tuple[int, int, int] = (200, 100, 98)
    pass_rate: float = 0.67
    log_slope: tuple[float, float] = (0.2, 0.4)
    intercept_sd: float = 1.5
    families: tuple[int, ...] = (21, 11, 7, 6, 5, 5, 5, 4, 4, 4, 3, 2, 1, 1, 1, 1)
    panels: int = 40
    starts: int = 1
    power_panels: int = 5
    power_panels_unlabelled: int = 40
    block: int = 4
    preset: str = "default"
    seed: int = 2027
    kinds: tuple[Kind, ...] = (
        Kind("one factor", ONE, ONE_FACTOR),
        Kind("one factor, skewed theta and guessing", ONE, ONE_FACTOR, hard=True),
        Kind(
            "three factors .785/.451/.603",
            (0.785, 0.451, 0.603),
            {
                TRUE: (Goal("not supported", at_least=38),),
                PERMUTED: (Goal("not supported", at_least=36),),
                NONE: (Goal("not supported", at_least=36),),
            },
        ),
        Kind(
            "three factors .90",
            (0.9, 0.9, 0.9),
            {TRUE: (Goal("not supported", at_least=36),), NONE: (Goal("supported", at_most=0),)},
        ),
        Kind("three factors .95", (0.95, 0.95, 0.95), {TRUE: ()}),
    )


EXPLORATORY = [ModelSpec.exploratory("2pl", dims) for dims in (2, 3, 4)]
ONE_2PL, ONE_3PL = (ModelSpec.unidimensional(family) for family in ("2pl", "3pl"))


def unlabelled(kind: Kind) -> list[ModelSpec]:
    """Models that need no labels; labels add a confirmatory one."""
    return [ONE_2PL, *([ONE_3PL] if kind.hard else []), *EXPLORATORY]


@dataclass(frozen=True)
class Panel:
    """One simulated panel with its held-out cells.

    Attributes
    ----------
    matrix : ResponseMatrix
        Items with ``own`` and ``permuted`` factors, subjects with ``family``; no item is constant.
    splits : Splits
    """

    matrix: ResponseMatrix
    splits: Splits


def simulate(config: Config, kind: Kind, rng: np.random.Generator) -> Panel:
    """One panel of a kind."""
    return drawn(config, kind, probabilities(config, kind, rng), rng, config.seed)


def probabilities(config: Config, kind: Kind, rng: np.random.Generator) -> Array:
    """(subject, item) probabilities of a pass: abilities and items of one panel."""
    factor = np.repeat(range(3), config.n_items)
    theta = abilities(kind, config.n_subjects, rng)
    slope = np.exp(rng.normal(*config.log_slope, factor.size))
    eta = slope * theta[:, factor] + rng.normal(0, config.intercept_sd, factor.size)
    floor = 0.2 if kind.hard else 0.0
    shift = brentq(lambda s: (floor + (1 - floor) * expit(eta + s)).mean() - config.pass_rate, -6, 6)
    return floor + (1 - floor) * expit(eta + shift)


def drawn(config: Config, kind: Kind, p: Array, rng: np.random.Generator, seed: int) -> Panel:
    """Responses with these probabilities, and splits."""
    labels = np.array([f"factor {f + 1}" for f in np.repeat(range(3), config.n_items)])
    cells = varied_draws(p, rng)
    families = rng.permutation(np.repeat(range(len(config.families)), config.families))
    matrix = ResponseMatrix.from_array(
        cells,
        items=named({"own": labels, "permuted": rng.permutation(labels)}, "item"),
        subjects=named({"family": families}, "subject"),
        source=f"simulated: {kind.name}",
    )
    return Panel(matrix, irtaudit.make_splits(matrix, seed=seed))


def abilities(kind: Kind, n: int, rng: np.random.Generator) -> Array:
    """(subject, factor) abilities of mean 0 and variance 1."""
    if kind.hard:
        return np.repeat((rng.gamma(2.0, size=(n, 1)) - 2) / np.sqrt(2), 3, axis=1)
    r = np.eye(3)
    r[[0, 0, 1], [1, 2, 2]] = r[[1, 2, 2], [0, 0, 1]] = kind.correlations
    return rng.multivariate_normal(np.zeros(3), r, n)


def varied_draws(p: Array, rng: np.random.Generator) -> Array:
    """0/1 responses; an item on which all models agree is drawn again, so that all panels have one shape."""
    cells = (rng.random(p.shape) < p).astype(float)
    while (constant := cells.std(axis=0) == 0).any():
        cells[:, constant] = rng.random((len(p), int(constant.sum()))) < p[:, constant]
    return cells


def named(columns: Mapping[str, Array], axis: str) -> pd.DataFrame:
    """Covariates of simulated items or subjects."""
    n = len(next(iter(columns.values())))
    return pd.DataFrame(columns, index=pd.Index([f"simulated {i:03d}" for i in range(n)], name=axis))


@dataclass(frozen=True)
class Fitted:
    """One model fitted to the splits of one panel: what the rule asks of a fit.

    Attributes
    ----------
    spec : ModelSpec
    p : (split, subject, item) array
        Plug-in probabilities of the start with the highest training likelihood of each split.
    train_log_lik : (split,) array
    """

    spec: ModelSpec
    p: Array
    train_log_lik: Array

    @property
    def splits(self) -> tuple[str, ...]:
        """Name of each split, by its number."""
        return tuple(map(str, range(len(self.p))))

    def probabilities(self, split: int = 0) -> Array:
        """Plug-in probability of a pass for every cell."""
        return self.p[split]


def fitted(config: Config, spec: ModelSpec, panels: Sequence[Panel], first: int) -> list[Fitted]:
    """One model fitted to every split of several panels of one shape, the first of which has this number."""
    cells = [np.where(one.splits.training(one.matrix), one.matrix.responses, np.nan) for one in panels]
    n_splits = len(cells[0])
    options = {"preset": config.preset, "first": first * n_splits, "workers": 1}
    starts = [
        fit_panels(spec, np.concatenate(cells), seed=config.seed + start, **options)
        for start in range(config.starts)
    ]
    lik = np.array([start.train_log_lik for start in starts])
    p = np.array([start.probabilities() for start in starts])
    best, rows = np.nanargmax(lik, axis=0), np.arange(lik.shape[1])
    kept, kept_lik = p[best, rows], lik[best, rows]
    of_panel = [slice(i * n_splits, (i + 1) * n_splits) for i in range(len(panels))]
    return [Fitted(spec, kept[part], kept_lik[part]) for part in of_panel]


def scored(fit: Fitted, panel: Panel) -> pd.DataFrame:
    """Columns `BY_SPLIT` of one model on one panel."""
    heldout, responses = panel.splits.heldout(panel.matrix), panel.matrix.responses
    rows = pd.DataFrame(
        {
            "split": list(map(str, panel.splits.seeds)),
            "log_loss": log_loss(responses, fit.p, heldout, axis=(-2, -1)),
            "train_log_lik": fit.train_log_lik,
            "train_cells": panel.splits.training(panel.matrix).sum(axis=(1, 2)),
        }
    )
    spec = fit.spec
    identity = {"model": spec.name, "family": spec.family, "structure": spec.structure, "dims": spec.dims}
    undefined = dict.fromkeys(set(BY_SPLIT) - {*rows, *identity, "note"}, np.nan)
    return rows.assign(**identity, **undefined, note="")[BY_SPLIT]


@dataclass(frozen=True)
class Audited:
    """What one audit of a panel said.

    Attributes
    ----------
    verdict : Verdict
    power : float or None
        None where it would not decide.
    losses : DataFrame
        ``model, split, log_loss, train_log_lik``.
    comparison : Comparison
    """

    verdict: Verdict
    power: float | None
    losses: pd.DataFrame
    comparison: Comparison


def with_spread(audit: Audited) -> pd.DataFrame:
    """The evidence, with what any other interval can be computed from.

    That is ``between`` and ``within``: SD of a difference between splits, and of its mean over the held-out
    responses of one.
    """
    best, rows = str(audit.verdict.best), audit.verdict.evidence
    covariance = audit.comparison.sampling
    assert covariance is not None
    between = [audit.comparison.difference(name, best).std() for name in rows["challenger"]]
    own, reference = covariance.groupby("model"), covariance.xs(best, level="model")
    within = [
        np.sqrt(
            (
                own.get_group(name)[name].to_numpy()
                + reference[best].to_numpy()
                - 2 * reference[name].to_numpy()
            ).mean()
        )
        for name in rows["challenger"]
    ]
    return rows.assign(between=between, within=within)


def audited(config: Config, panel: Panel, fits: Mapping[str, Fitted]) -> Audited:
    """Verdict by the audit's rule; panels are simulated for the power only where that decides."""
    matrix, splits = panel.matrix, panel.splits
    rows = [additive_baselines(matrix, splits), *(scored(fit, panel) for fit in fits.values())]
    by_split = pd.concat(rows, ignore_index=True)
    starts = by_split.loc[by_split["structure"] != "baseline", ["model", "split", "log_loss"]]
    ratio = splits.heldout(matrix).sum() / splits.training(matrix).sum()
    sampling = sampling_covariance(heldout_losses(fits, matrix, splits), list(map(str, splits.seeds)))
    comparison = assemble(by_split, starts.assign(restart=0), float(ratio), sampling=sampling)
    labelled = [fit.spec for fit in fits.values() if fit.spec.structure == "confirmatory"]
    options = {
        "clusters": matrix.subjects["family"].tolist(),
        "n_panels": config.power_panels if labelled else config.power_panels_unlabelled,
        "seed": config.seed,
        "workers": 1,
    }
    verdict, power = judge_with_gates(comparison, fits, {}, matrix, splits, **options)
    if "open" in set(verdict.conditions["state"]):
        truth = labelled[0] if labelled else fits[str(verdict.best)].spec
        full = irtaudit.fit(matrix, truth, n_restarts=1, preset=config.preset, seed=config.seed, workers=1)
        verdict, power = judge_with_gates(comparison, fits, {truth.name: full}, matrix, splits, **options)
    losses = by_split[["model", "split", "log_loss", "train_log_lik"]]
    return Audited(verdict, None if power is None else power.power, losses, comparison)


def run_panels(config: Config, number: int, numbers: Sequence[int]) -> dict[str, pd.DataFrame]:
    """Rows of every table for some panels of the kind with that number, which follow each other."""
    kind = config.kinds[number]
    panels = [simulate(config, kind, np.random.default_rng([config.seed, number, i])) for i in numbers]
    free = {spec.name: fitted(config, spec, panels, numbers[0]) for spec in unlabelled(kind)}
    rows: dict[str, list[pd.DataFrame]] = {"verdicts": [], "evidence": [], "losses": []}
    for labels in kind.goals:
        given = [confirmatory(config, labels, panel, i) for panel, i in zip(panels, numbers, strict=True)]
        for p, (panel, i) in enumerate(zip(panels, numbers, strict=True)):
            start = time.process_time()
            fits = {name: every[p] for name, every in free.items()} | given[p]
            audit, key = audited(config, panel, fits), {"kind": kind.name, "panel": i, "labels": labels}
            row = {**described(audit), "cpu_seconds": time.process_time() - start}
            evidence = with_spread(audit)
            rows["verdicts"].append(pd.DataFrame([key | row]))
            rows["evidence"].append(evidence.assign(**key)[[*key, *evidence.columns]])
            rows["losses"].append(audit.losses.assign(**key)[[*key, *audit.losses.columns]])
    return {name: pd.concat(parts, ignore_index=True) for name, parts in rows.items()}


def confirmatory(config: Config, labels: str, panel: Panel, number: int) -> dict[str, Fitted]:
    """The confirmatory model by these labels; none without labels."""
    if labels == NONE:
        return {}
    spec = ModelSpec.confirmatory("2pl", panel.matrix.items[labels])
    return {spec.name: fitted(config, spec, [panel], number)[0]}


def described(audit: Audited) -> dict[str, object]:
    """One audit in a row."""
    verdict = audit.verdict
    return {
        "word": verdict.word,
        "best": verdict.best,
        "gain": verdict.gain.estimate,
        "gain_low": verdict.gain.low,
        "margin": verdict.margin,
        "power": np.nan if audit.power is None else audit.power,
        "failed": len(verdict.challengers) - len(verdict.evidence),
    }


def rejudged(
    kind: Kind, tables: Mapping[str, pd.DataFrame], panel: int, labels: str
) -> dict[str, pd.DataFrame]:
    """The rule applied again to the saved rows of one audit.

    The power is as it was. An audit without labels is one with permuted ones, less the confirmatory model.
    """
    source = labels if labels in set(tables["verdicts"].query("kind == @kind.name")["labels"]) else PERMUTED
    old = {name: chosen(table, kind.name, panel, source) for name, table in tables.items()}
    if source != labels:
        old = {name: table.assign(labels=labels) for name, table in old.items()}
        old["losses"] = old["losses"][~old["losses"]["model"].str.startswith("confirmatory")]
        old["evidence"] = old["evidence"][~old["evidence"]["challenger"].str.startswith("confirmatory")]
    row, evidence = old["verdicts"].iloc[0], old["evidence"].set_index("challenger")
    by_split = described_losses(old["losses"])
    models = by_split["model"].unique()
    every = pd.MultiIndex.from_product([by_split["split"].unique(), models], names=["split", "model"])
    sampling = pd.DataFrame(0.0, every, models)
    for name, within in evidence["within"].items():
        sampling.loc[(slice(None), name), name] = within**2
    starts = by_split.loc[by_split["structure"] != "baseline", ["model", "split", "log_loss"]]
    comparison = assemble(by_split, starts.assign(restart=0), 0.25, sampling=sampling)
    verdict = irtaudit.judge(
        comparison,
        power=None if np.isnan(row["power"]) else row["power"],
        cluster_intervals={
            name: Interval(one["difference"], one["cluster_low"], one["cluster_high"])
            for name, one in evidence.iterrows()
        },
    )
    new = verdict.evidence.set_index("challenger")
    changed = evidence.assign(**{name: new[name] for name in ("low", "high", "margin", "position")})
    return old | {
        "verdicts": old["verdicts"].assign(word=verdict.word),
        "evidence": changed.reset_index()[old["evidence"].columns],
    }


def chosen(table: pd.DataFrame, kind: str, panel: int, labels: str) -> pd.DataFrame:
    """Rows of one audit."""
    return table[(table["kind"] == kind) & (table["panel"] == panel) & (table["labels"] == labels)]


def described_losses(losses: pd.DataFrame) -> pd.DataFrame:
    """Saved losses with the columns that a comparison asks for."""
    words = losses["model"].str.split("_")
    structure = words.str[0].where(~losses["model"].str.startswith("item_"), "baseline")
    dims = {"baseline": 0, "unidimensional": 1, "confirmatory": 3}
    rows = losses.assign(
        structure=structure,
        family=words.str[-1].where(structure != "baseline", "additive"),
        dims=[
            dims.get(s) or int(w[1].removesuffix("d")) if s != "baseline" else 0
            for s, w in zip(structure, words, strict=True)
        ],
        split=losses["split"].astype(str),
        note="",
    )
    return rows.reindex(columns=BY_SPLIT)


def rejudge(config: Config, out: Path) -> None:
    """Write every table anew, by the rule of this version."""
    tables = {name: read(out / f"{name}.csv") for name in ("evidence", "losses", "verdicts")}
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in tables}
    for kind in config.kinds:
        for panel in range(config.panels):
            for labels in kind.goals:
                for name, rows in rejudged(kind, tables, panel, labels).items():
                    found[name].append(rows)
    for name, parts in found.items():
        pd.concat(parts, ignore_index=True).round(6).to_csv(out / f"{name}.csv", index=False)


def coverage(config: Config, number: int) -> pd.DataFrame:
    """Intervals of what models gain over one dimension, for one set of abilities and items of a kind.

    Returns
    -------
    DataFrame
        One row per model: ``kind, challenger, panels, mean`` gain; ``covered, covered_jointly``: share of the
        intervals, for one comparison and for four, that hold the mean, and ``half_*``, their mean half-width;
        ``*_between``: the same from the spread between splits alone.
    """
    kind = config.kinds[number]
    rng = np.random.default_rng([config.seed, 99, number])
    p = probabilities(config, kind, rng)
    panels = [drawn(config, kind, p, rng, 10 * i) for i in range(config.panels)]
    own = ModelSpec.confirmatory("2pl", panels[0].matrix.items["own"])
    one, *others = (fitted(config, spec, panels, 0) for spec in (ONE_2PL, own, *EXPLORATORY[:2]))
    return pd.DataFrame([covered(kind, panels, one, other) for other in others])


def covered(
    kind: Kind, panels: Sequence[Panel], one: Sequence[Fitted], other: Sequence[Fitted]
) -> dict[str, object]:
    """A row of :func:`coverage`."""
    gains, ratio = [], 0.25
    for panel, a, b in zip(panels, one, other, strict=True):
        losses = heldout_losses({"one": a, "other": b}, panel.matrix, panel.splits)
        gains.append([x - y for x, y in zip(losses[a.spec.name], losses[b.spec.name], strict=True)])
    means = [[cells.mean() for cells in gain] for gain in gains]
    variances = [[cells.var(ddof=1) / cells.size for cells in gain] for gain in gains]
    mean = float(np.mean(means))
    row: dict[str, object] = {
        "kind": kind.name,
        "challenger": other[0].spec.name,
        "panels": len(panels),
        "mean": mean,
    }
    for suffix, sampling in (("", variances), ("_between", [None] * len(panels))):
        for name, n in (("covered", 1), ("covered_jointly", 4)):
            found = [
                corrected_interval(d, ratio, n_comparisons=n, sampling=v)
                for d, v in zip(means, sampling, strict=True)
            ]
            row[name + suffix] = float(np.mean([low <= mean <= high for _, low, high in found]))
            row["half_" + name + suffix] = float(np.mean([high - middle for middle, _, high in found]))
    return row


def checked(config: Config, number: int, panel: int, verdicts: pd.DataFrame) -> pd.DataFrame:
    """The audits of one panel once more, by `run_audit` with its own defaults, beside those of the study."""
    kind = config.kinds[number]
    simulated = simulate(config, kind, np.random.default_rng([config.seed, number, panel]))
    rows = []
    for labels in kind.goals:
        start = time.process_time()
        result = irtaudit.run_audit(
            simulated.matrix,
            factors=[] if labels == NONE else [labels],
            cluster="family",
            structured=False,
            workers=1,
        )
        key = {"kind": kind.name, "panel": panel, "labels": labels}
        same = (verdicts[list(key)] == pd.Series(key)).all(axis=1)
        power = result.power.power if result.power else np.nan
        rows.append(
            key
            | {
                "word": result.verdict.word,
                "power": power,
                "word_of_the_study": verdicts.loc[same, "word"].squeeze(),
                "cpu_seconds": time.process_time() - start,
            }
        )
    return pd.DataFrame(rows)


def summarise(config: Config, verdicts: pd.DataFrame, evidence: pd.DataFrame) -> pd.DataFrame:
    """How often each word falls, and whether that is the goal.

    Returns
    -------
    DataFrame
        One row per kind and labels: ``panels``; the number of each word; ``goal`` in words; ``met``: "yes",
        "no", or "" without a goal. ``share, low, high``: share of *not supported*, Wilson 95 %.
        ``by_splits_alone``: panels in which intervals from the spread between splits alone would say so.
    """
    rows, alone = [], not_supported_by_splits_alone(evidence)
    for kind in config.kinds:
        for labels, goals in kind.goals.items():
            found = verdicts[(verdicts["kind"] == kind.name) & (verdicts["labels"] == labels)]
            n = found["word"].value_counts().reindex(WORDS, fill_value=0)
            met = all(goal.at_least <= n[goal.word] <= goal.at_most for goal in goals)
            low, high = wilson([n["not supported"]], [len(found)])
            rows.append(
                {
                    "kind": kind.name,
                    "labels": labels,
                    "panels": len(found),
                    **n,
                    "goal": "; ".join(map(in_words, goals)),
                    "met": ("yes" if met else "no") if goals else "",
                    "share": n["not supported"] / max(len(found), 1),
                    "low": low[0],
                    "high": high[0],
                    "by_splits_alone": int(alone.get((kind.name, labels), 0)),
                }
            )
    return pd.DataFrame(rows)


def not_supported_by_splits_alone(evidence: pd.DataFrame) -> pd.Series:
    """Number of panels by kind and labels, with the t intervals of Nadeau and Bengio."""
    audit = ["kind", "labels", "panel"]
    n = evidence.groupby(audit)["challenger"].transform("size")
    half = student.ppf(1 - 0.05 / (2 * n), 4) * evidence["between"] * np.sqrt(1 / 5 + 0.25)
    above = (evidence["difference"] - half > evidence["margin"]) & (evidence["cluster_low"] > 0)
    return above.groupby([evidence[key] for key in audit]).any().groupby(level=[0, 1]).sum()


def spread(evidence: pd.DataFrame) -> pd.DataFrame:
    """Does the spread within splits tell that between them?

    Returns
    -------
    DataFrame
        One row per kind and challenger: ``panels``; ``ratio`` of the mean variances, between over within;
        ``log_ratio_variance`` over panels, and what it is if only four degrees of freedom make it:
        ``four_degrees``.
    """
    each = evidence.drop_duplicates(["kind", "panel", "challenger"])
    squares = each.assign(
        b=each["between"] ** 2, w=each["within"] ** 2, z=2 * np.log(each["between"] / each["within"])
    )
    groups = squares.groupby(["kind", "challenger"], sort=False)
    table = groups.agg(
        panels=("z", "size"), b=("b", "mean"), w=("w", "mean"), log_ratio_variance=("z", "var")
    )
    table["ratio"] = table["b"] / table["w"]
    table["four_degrees"] = polygamma(1, 2)
    return table.drop(columns=["b", "w"]).reset_index()


def in_words(goal: Goal) -> str:
    """The goal, for a table."""
    return f"{goal.word}: " + (f"at least {goal.at_least}" if goal.at_least else f"at most {goal.at_most}")


def missing_panels(config: Config, found: pd.DataFrame, at_most: int) -> list[tuple[int, list[int]]]:
    """Kinds by number and blocks of their panels that are not there yet, the first of every kind first."""
    done = set(zip(found["kind"], found["panel"], strict=True))
    wanted = [
        (
            start,
            number,
            [p for p in range(start, min(start + config.block, at_most)) if (kind.name, p) not in done],
        )
        for number, kind in enumerate(config.kinds)
        for start in range(0, at_most, config.block)
    ]
    return [(number, panels) for _, number, panels in sorted(wanted) if panels]


def read(file: Path) -> pd.DataFrame:
    """What an earlier run left."""
    return pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["kind", "panel", "labels", "word"])


def main() -> None:
    """Run the study and write its tables with their provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--panels", type=int, default=Config.panels, help="at most so many of each kind")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then; run again to go on")
    parser.add_argument("--coverage", action="store_true", help="how often intervals hold the mean gain")
    parser.add_argument("--rejudge", action="store_true", help="apply the rule again to what is saved")
    parser.add_argument("--check", action="store_true", help="the first panels again, by run_audit itself")
    arguments = parser.parse_args()
    config, out, ends = Config(), arguments.out, time.monotonic() + 60 * arguments.minutes
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    if arguments.rejudge:
        rejudge(config, out)
    if arguments.coverage:
        measure_coverage(config, out, ends)
        return
    if arguments.check:
        check(replace(config, block=1), out, arguments.panels, ends)
        return
    tables = {name: read(out / f"{name}.csv") for name in ("evidence", "losses", "verdicts")}
    left = missing_panels(config, tables["verdicts"], arguments.panels)
    while left and time.monotonic() < ends:
        found = run_panels(config, *left.pop(0))
        tables = {name: appended(found[name], out / f"{name}.csv") for name in tables}
    print(f"{len(left)} blocks of panels left")
    summary = summarise(config, tables["verdicts"], tables["evidence"]).round(3)
    spread(tables["evidence"]).round(3).to_csv(out / "spread.csv", index=False)
    summary.to_csv(out / "summary.csv", index=False)
    print(summary.to_string(index=False))
    command = "OMP_NUM_THREADS=1 python experiments/verdict/run.py"
    provenance = {"config": asdict(config), "versions": versions(), "command": command}
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


def measure_coverage(config: Config, out: Path, ends: float) -> None:
    """Coverage for every kind that is not there yet."""
    found = read(out / "coverage.csv")
    for number, kind in enumerate(config.kinds):
        if kind.name not in set(found["kind"]) and time.monotonic() < ends:
            found = appended(coverage(config, number), out / "coverage.csv")
    print(found.to_string(index=False))


def check(config: Config, out: Path, at_most: int, ends: float) -> None:
    """Audit the first panels of every kind again, one at a time."""
    found, verdicts = read(out / "check.csv"), read(out / "verdicts.csv")
    left = missing_panels(config, found, at_most)
    while left and time.monotonic() < ends:
        number, (panel,) = left.pop(0)
        found = appended(checked(config, number, panel, verdicts), out / "check.csv")
    agree = (found["word"] == found["word_of_the_study"]).sum()
    print(f"{len(left)} panels left; {agree} of {len(found)} words agree")


def appended(rows: pd.DataFrame, file: Path) -> pd.DataFrame:
    """The table with more rows, as its file now has it."""
    rows.round(6).to_csv(file, mode="a", header=not file.exists(), index=False)
    return read(file)


if __name__ == "__main__":
    main()
