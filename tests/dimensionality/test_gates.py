"""The gates of the verdict: clusters widen what they should, power is there when factors are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, make_splits
from irtaudit.dimensionality.baselines import additive_baselines, item_means
from irtaudit.dimensionality.compare import compare
from irtaudit.dimensionality.gates import (
    _interval_for,
    _part,
    _refitted_losses,
    _simulated,
    cluster_intervals,
    judge_with_gates,
    power_of_the_rule,
)
from irtaudit.errors import PlanError
from irtaudit.irt.fit import fit, fit_all
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.resampling import joint_intervals
from irtaudit.stats.scoring import log_loss

ONE = ModelSpec.unidimensional("2pl")
LABELS = ["a"] * 30 + ["b"] * 30
TWO = ModelSpec.confirmatory("2pl", LABELS)


def _panel(n: int, correlation: float, seed: int) -> ResponseMatrix:
    rng = np.random.default_rng(seed)
    r = np.array([[1, correlation], [correlation, 1]])
    theta = rng.multivariate_normal(np.zeros(2), r, size=n)
    p = 1 / (1 + np.exp(-2 * theta[:, np.repeat([0, 1], 30)] - rng.normal(size=60)))
    return ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0)


@pytest.fixture(scope="module")
def audit() -> tuple[dict[str, FitResult], ResponseMatrix, Splits]:
    matrix = _panel(60, 0.3, seed=0)
    splits = make_splits(matrix, n_splits=2)
    return fit_all(matrix, [ONE, TWO], splits, n_restarts=1, workers=1), matrix, splits


def test_the_gain_is_the_pooled_difference_of_log_losses(
    audit: tuple[dict[str, FitResult], ResponseMatrix, Splits],
) -> None:
    fits, matrix, splits = audit
    found = cluster_intervals(fits, matrix, splits, best=ONE.name, challengers=[TWO.name])[TWO.name]
    cells = splits.heldout(matrix).sum(axis=(1, 2))
    per_split = fits[ONE.name].heldout["log_loss"] - fits[TWO.name].heldout["log_loss"]
    assert found.estimate == pytest.approx(np.average(per_split, weights=cells), abs=1e-9)
    assert 0 < found.low < found.estimate < found.high


def test_copies_of_a_model_count_once(audit: tuple[dict[str, FitResult], ResponseMatrix, Splits]) -> None:
    fits, matrix, splits = audit

    def width(clusters: list[object] | None) -> float:
        options = {"best": ONE.name, "challengers": [TWO.name], "clusters": clusters}
        interval = cluster_intervals(fits, matrix, splits, **options)[TWO.name]  # type: ignore[arg-type]  # mixed
        return interval.high - interval.low

    few: list[object] = [i % 5 for i in range(60)]
    alone = width(None)
    assert width(list(range(60))) == pytest.approx(alone, rel=0.05)
    assert width([None] * 60) == pytest.approx(alone, rel=0.05)
    assert width(few) != pytest.approx(alone, rel=0.01)
    assert np.isnan(width(["one family"] * 60))


def test_power_is_high_for_distinct_factors_and_low_for_one() -> None:
    matrix = _panel(60, 0.3, seed=1)
    splits = make_splits(matrix, n_splits=5)
    truth = fit(matrix, TWO, n_restarts=1, workers=1)
    options = {"best": ONE, "challengers": [TWO], "n_panels": 10, "workers": 1}
    distinct = power_of_the_rule(truth, matrix, splits, correlation=0.2, **options)  # type: ignore[arg-type]
    same = power_of_the_rule(truth, matrix, splits, correlation=1.0, **options)  # type: ignore[arg-type]
    assert (distinct.n_panels, distinct.factors) == (10, TWO.name)
    assert distinct.power >= 0.9
    assert same.power <= 0.1


def test_without_labels_items_are_dealt_to_blocks() -> None:
    matrix = _panel(40, 0.3, seed=2)
    splits = make_splits(matrix, n_splits=2)
    truth = fit(matrix, ONE, n_restarts=1, workers=1)
    found = power_of_the_rule(
        truth, matrix, splits, best=ONE, challengers=[ModelSpec.exploratory("2pl", 2)], n_panels=3, workers=1
    )
    assert found.factors == "3 random equal blocks of items"
    assert 0 <= found.power <= 1


def test_fitting_challengers_only_where_none_was_found_yet_changes_nothing() -> None:
    """Identity: the same panels, every challenger fitted to all of them, read jointly."""
    matrix = _panel(40, 0.3, seed=3)
    splits = make_splits(matrix, n_splits=3)
    truth = fit(matrix, TWO, n_restarts=1, workers=1)
    free = ModelSpec.exploratory("2pl", 2)
    options = {"best": ONE, "n_panels": 8, "correlation": 0.85, "workers": 1, "challengers": [free, TWO]}
    found = power_of_the_rule(truth, matrix, splits, **options)  # type: ignore[arg-type]  # of several types
    rng, train, heldout = np.random.default_rng(0), splits.training(matrix), splits.heldout(matrix)
    panels = np.stack([_simulated(truth, matrix, 0.85, rng) for _ in range(8)])
    how = {"preset": "quick", "seed": 0, "workers": 1, "progress": _part(None, 0, 1)}
    one, *others = (
        list(_refitted_losses(spec, panels, np.arange(8), train, heldout, how)) for spec in (ONE, free, TWO)
    )
    by_rule, by_bonferroni = [], []
    for p, panel in enumerate(panels):
        means = log_loss(panel, item_means(panel, train), heldout, axis=(-2, -1))
        margin = 0.02 * (means - [cells.mean() for cells in one[p]]).mean()
        each = [
            _interval_for(
                np.array([gain.mean() for gain in gains]), 0.25, [g.var(ddof=1) / g.size for g in gains]
            )
            for gains in ([a - b for a, b in zip(one[p], other[p], strict=True)] for other in others)
        ]
        by_rule.append(any(interval.low > margin for interval in joint_intervals(each, margin)))
        by_bonferroni.append(any(interval(2).low > margin for interval in each))
    assert found.power == np.mean(by_rule)
    # in some of these panels the free dimensions are clearly below, which leaves the labels more power
    assert 0 < np.mean(by_bonferroni) < np.mean(by_rule) < 1


def test_a_panel_refitted_alone_is_the_panel_refitted_among_others() -> None:
    matrix = _panel(30, 0.3, seed=4)
    train = make_splits(matrix, n_splits=2).training(matrix)
    heldout = matrix.observed & ~train
    panels = np.stack([_panel(30, 0.3, seed=s).responses for s in range(5, 9)])
    options = {"preset": "quick", "seed": 0, "workers": 1, "progress": _part(None, 0, 1)}
    every = list(_refitted_losses(TWO, panels, np.arange(4), train, heldout, options))
    some = list(_refitted_losses(TWO, panels, np.array([1, 3]), train, heldout, options))
    assert [len(panel) for panel in every] == [2] * 4
    for alone, among in zip(some, (every[1], every[3]), strict=True):
        for a, b in zip(alone, among, strict=True):
            assert a == pytest.approx(b, abs=1e-4)
    assert np.abs(every[0][0] - every[1][0]).max() > 1e-2


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"n_panels": 0}, "n_panels is 0"),
        ({"n_panels": "3"}, "n_panels is '3'"),
        ({"clusters": ["a"]}, "1 clusters for 60 subjects"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"correlation": 2.0}, "correlation is 2.0"),
        ({"correlation": float("nan")}, "correlation is nan"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    audit: tuple[dict[str, FitResult], ResponseMatrix, Splits], option: dict[str, object], message: str
) -> None:
    fits, matrix, splits = audit
    comparison = compare(fits, baselines=additive_baselines(matrix, splits, fits[ONE.name].splits))
    with pytest.raises(PlanError, match=message):
        judge_with_gates(comparison, fits, {}, matrix, splits, **option)  # type: ignore[arg-type]  # that is the point


def test_clusters_that_are_not_known_are_said_to_be(
    audit: tuple[dict[str, FitResult], ResponseMatrix, Splits],
) -> None:
    fits, matrix, splits = audit
    comparison = compare(
        fits,
        baselines=additive_baselines(matrix, splits, fits[ONE.name].splits),
        matrix=matrix,
        splits=splits,
    )
    ten = [f"lab {i % 10}" for i in range(60)]
    some: list[object] = [None, " ", np.nan, *ten[3:]]
    said = {}
    for name, clusters in {"known": ten, "some": some, "blank": [""] * 60, "none": None}.items():
        verdict, _ = judge_with_gates(comparison, fits, {}, matrix, splits, clusters=clusters)
        assert verdict.word == "not supported", name
        said[name] = verdict.because
    assert "not known" not in said["known"]
    assert "of 3 models is not known" in said["some"]
    assert "of 60 models is not known" in said["blank"]
    assert said["blank"] == said["none"]


def test_named_clusters_are_lined_up_with_the_subjects(
    audit: tuple[dict[str, FitResult], ResponseMatrix, Splits],
) -> None:
    fits, matrix, splits = audit
    comparison = compare(fits, baselines=additive_baselines(matrix, splits, fits[ONE.name].splits))
    named = pd.Series([f"lab {i % 10}" for i in range(60)], index=matrix.subjects.index)
    judge_with_gates(comparison, fits, {}, matrix, splits, clusters=named)
    for wrong in (named.sample(frac=1, random_state=0), named.rename(index=lambda name: f"x{name}")):
        with pytest.raises(PlanError, match=r"clusters\.reindex"):
            judge_with_gates(comparison, fits, {}, matrix, splits, clusters=wrong)


def test_fits_responses_and_splits_belong_together(
    audit: tuple[dict[str, FitResult], ResponseMatrix, Splits],
) -> None:
    fits, matrix, splits = audit
    comparison = compare(fits, baselines=additive_baselines(matrix, splits, fits[ONE.name].splits))
    other, again = _panel(60, 0.3, seed=9), make_splits(matrix, n_splits=2, seed=5)
    full = fit_all(matrix, [ONE, TWO], n_restarts=1, preset="quick", workers=1)
    for wrong in ((fits, other, splits), (fits, matrix, again), (full, matrix, splits)):
        with pytest.raises(PlanError, match="belong together"):
            judge_with_gates(comparison, wrong[0], {}, *wrong[1:])
    for panel, cells in ((other, splits), (matrix, again)):
        with pytest.raises(PlanError, match="belong together"):
            compare(fits, matrix=panel, splits=cells)
    foreign = additive_baselines(other, splits, fits[ONE.name].splits)
    with pytest.raises(PlanError, match="item_means does not have"):
        compare(fits, baselines=foreign, matrix=matrix, splits=splits)
