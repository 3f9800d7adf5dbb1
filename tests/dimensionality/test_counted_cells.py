"""Cells that count trials, compared with the single trials behind them and with planted dispersion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, make_splits
from irtaudit.dif.audit import audit_dif
from irtaudit.dif.options import DifOptions
from irtaudit.dimensionality.baselines import BASELINES, additive_baselines
from irtaudit.dimensionality.compare import cell_losses, compare
from irtaudit.dimensionality.dependence import check_fit
from irtaudit.dimensionality.eigenvalues import eigenvalue_nulls
from irtaudit.dimensionality.gates import cluster_intervals, power_of_the_rule
from irtaudit.dimensionality.predictive import predictive_checks
from irtaudit.dimensionality.residuals import one_factor_test
from irtaudit.dimensionality.saturation import saturation
from irtaudit.dimensionality.tables import items_table
from irtaudit.dimensionality.trials import dispersion, trial_facts, trial_notes
from irtaudit.errors import PlanError
from irtaudit.irt.fit import fit_all
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.scoring import log_loss

TINY = Preset("tiny", 60, 0.1, "cosine", True)
SPECS = (ModelSpec.unidimensional("1pl"), ModelSpec.exploratory("2pl", 2))


def counted(n_subjects: int = 40, n_items: int = 12, *, alike: bool = False, seed: int = 0) -> ResponseMatrix:
    """Simulated passes of a 1PL in 1 to 6 trials a cell, some missing; `alike`: a cell repeats itself."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(0, 1.2, (n_subjects, 1)) + rng.normal(size=n_items))
    n = rng.integers(1, 7, p.shape) * (rng.random(p.shape) > 0.1)
    passes = n * (rng.random(p.shape) < p) if alike else rng.binomial(n, p)
    share = np.divide(passes, n, out=np.full(p.shape, np.nan), where=n > 0)
    subjects = pd.DataFrame({"group": ["a", "b"] * (n_subjects // 2)}, [f"m{i}" for i in range(n_subjects)])
    return ResponseMatrix.from_array(share, trials=n, subjects=subjects)


def expanded(matrix: ResponseMatrix, test: NDArray[np.bool_]) -> tuple[ResponseMatrix, NDArray[np.bool_]]:
    """Every trial as a response of its own: a row per subject and trial; and the held-out ones among them."""
    most = int(matrix.n_trials.max())
    trial = np.arange(most)[:, None]
    cells = np.where(trial < matrix.passes[:, None], 1.0, 0.0)
    cells = np.where(trial < matrix.n_trials[:, None], cells, np.nan)
    rows = cells.reshape(-1, matrix.n_items)
    held = np.repeat(test, most, axis=1)
    return ResponseMatrix.from_array(rows), held


@pytest.fixture(scope="module")
def matrix() -> ResponseMatrix:
    return counted()


@pytest.fixture(scope="module")
def splits(matrix: ResponseMatrix) -> Splits:
    return make_splits(matrix, n_splits=2)


@pytest.fixture(scope="module")
def fits(matrix: ResponseMatrix, splits: Splits) -> dict[str, FitResult]:
    return fit_all(matrix, SPECS, splits, n_restarts=1, preset=TINY, workers=1)


@pytest.fixture(scope="module")
def full(matrix: ResponseMatrix) -> FitResult:
    return fit_all(matrix, SPECS[:1], n_restarts=1, preset="quick", workers=1)["unidimensional_1pl"]


def test_item_means_are_those_of_single_trials(matrix: ResponseMatrix, splits: Splits) -> None:
    single, held = expanded(matrix, splits.test)
    rows = additive_baselines(matrix, splits).set_index(["model", "split"]).loc["item_means"]
    alone = (
        additive_baselines(single, Splits(held, splits.seeds)).set_index(["model", "split"]).loc["item_means"]
    )
    for column in ("log_loss", "brier", "train_log_lik", "train_cells"):
        np.testing.assert_allclose(rows[column].astype(float), alone[column].astype(float), rtol=1e-9)


def test_the_additive_rule_counts_every_trial(matrix: ResponseMatrix, splits: Splits) -> None:
    train = splits.training(matrix)
    p = BASELINES["item_subject_logit"](matrix.responses, train, matrix.trials)

    def logit_rate(cells: NDArray[np.bool_]) -> float:
        y, n = matrix.passes[cells].sum(), matrix.n_trials[cells].sum()
        return float(np.log((y + 0.5) / (n - y + 0.5)))

    row, column = np.zeros_like(train[1]), np.zeros_like(train[1])
    row[3], column[:, 5] = True, True
    expected = logit_rate(train[1] & row) + logit_rate(train[1] & column) - logit_rate(train[1])
    assert p[1, 3, 5] == pytest.approx(expit(expected), rel=1e-12)


def test_losses_of_cells_have_the_mean_of_trials_and_the_spread_of_a_ratio(matrix: ResponseMatrix) -> None:
    rng = np.random.default_rng(3)
    p, cells = rng.uniform(0.2, 0.8, matrix.responses.shape), matrix.observed & (rng.random((40, 12)) < 0.5)
    found = cell_losses(matrix.responses, p, cells, matrix.trials)
    assert found.mean() == pytest.approx(
        log_loss(matrix.responses, p, cells, trials=matrix.trials), rel=1e-12
    )
    y, n, q = matrix.responses[cells], matrix.n_trials[cells], p[cells]
    sums = -n * (y * np.log(q) + (1 - y) * np.log(1 - q))
    drawn = rng.integers(0, len(n), (20_000, len(n)))  # a bootstrap of cells, an estimate of its own
    by_bootstrap = (sums[drawn].sum(axis=1) / n[drawn].sum(axis=1)).std()
    assert found.std() / np.sqrt(len(n)) == pytest.approx(by_bootstrap, rel=0.05)
    same = cell_losses(matrix.responses, p, cells, np.full(p.shape, 3))
    np.testing.assert_allclose(same, sums / n, rtol=1e-12)


def test_a_comparison_is_of_trials(
    matrix: ResponseMatrix, splits: Splits, fits: dict[str, FitResult]
) -> None:
    names = next(iter(fits.values())).splits
    baselines = additive_baselines(matrix, splits, names)
    found = compare(fits, baselines=baselines, matrix=matrix, splits=splits)
    n = matrix.n_trials
    test, train = (sum(int(n[cells].sum()) for cells in part) for part in (splits.test, ~splits.test))
    assert found.test_over_train == pytest.approx(test / train)
    row = found.table.set_index("model").loc["unidimensional_1pl"]
    assert row["bic_exact"] == pytest.approx(
        row["fitted_quantities_exact"] * np.log(train / 2) - 2 * row["train_log_lik"]
    )
    gain = cluster_intervals(
        fits, matrix, splits, best="unidimensional_1pl", challengers=["exploratory_2d_2pl"]
    )
    sums = {
        name: sum(
            n[cells].sum() * log_loss(matrix.responses, fit.probabilities(s), cells, trials=n)
            for s, cells in enumerate(splits.test)
        )
        for name, fit in fits.items()
    }
    expected = (sums["unidimensional_1pl"] - sums["exploratory_2d_2pl"]) / test
    assert gain["exploratory_2d_2pl"].estimate == pytest.approx(expected, rel=1e-9)


def test_power_is_simulated_with_the_trials(matrix: ResponseMatrix, splits: Splits, full: FitResult) -> None:
    options = {"best": SPECS[0], "challengers": [SPECS[1]], "n_panels": 2, "preset": TINY, "workers": 1}
    found = power_of_the_rule(full, matrix, splits, **options)  # type: ignore[arg-type] # of several types
    assert 0 <= found.power <= 1


def test_tables_count_trials(matrix: ResponseMatrix, full: FitResult) -> None:
    table = items_table({"m": full}, matrix).set_index("item")
    assert table["responses"].tolist() == matrix.n_trials.sum(axis=0).tolist()
    np.testing.assert_allclose(table["pass_rate"], matrix.passes.sum(axis=0) / matrix.n_trials.sum(axis=0))
    row = saturation({"d": matrix}).iloc[0]
    assert row["responses"] == matrix.n_trials.sum()
    rates = matrix.passes.sum(axis=1) / matrix.n_trials.sum(axis=1)
    assert row["pass_rate"] == pytest.approx(rates.mean())


def test_dispersion_is_one_of_independent_trials_and_their_number_of_alike_ones(
    matrix: ResponseMatrix, full: FitResult
) -> None:
    several = matrix.n_trials > 1
    # Each cell's term has a variance of at least 2; four standard errors, and the fit takes some spread away.
    assert dispersion(full, matrix) == pytest.approx(1, abs=4 * np.sqrt(2 / several.sum()) + 0.1)
    alike = counted(alike=True)
    fitted = fit_all(alike, SPECS[:1], n_restarts=1, preset="quick", workers=1)["unidimensional_1pl"]
    n = alike.n_trials[alike.n_trials > 1].mean()
    assert dispersion(fitted, alike) == pytest.approx(n, rel=0.3)
    assert "too narrow" in trial_notes(alike, fitted)[-1]
    assert "too narrow" not in " ".join(trial_notes(matrix, full))


@pytest.mark.parametrize(
    ("trials", "words"),
    [([3, 3], "2 cells count 3 trials each"), ([1, 3], "2 cells count 1 to 3 trials each")],
)
def test_equal_numbers_of_trials_are_told_once(trials: list[int], words: str) -> None:
    shares = np.array([[0.0, 1.0]])
    cells = ResponseMatrix.from_array(shares, trials=np.array([trials]))
    assert trial_notes(cells, None)[0].startswith(words)


def test_single_responses_have_nothing_to_note(full: FitResult) -> None:
    single = ResponseMatrix.from_array(np.eye(4))
    assert trial_notes(single, full) == []
    assert trial_facts(single, full) is None
    assert np.isnan(dispersion(full, single))


@pytest.mark.parametrize(
    "analysis",
    [
        lambda m, _: eigenvalue_nulls(m),
        lambda m, _: one_factor_test(m, SPECS[0]),
        lambda m, _: check_fit(m, SPECS[0]),
        lambda m, fit: predictive_checks(fit, m),
        lambda m, _: audit_dif(m, group="group", levels=("a", "b"), options=DifOptions(match="total")),
    ],
    ids=["eigenvalues", "one factor", "fit", "predictive", "dif"],
)
def test_what_takes_one_response_a_cell_says_so(
    analysis: Callable[[ResponseMatrix, FitResult], object], matrix: ResponseMatrix, full: FitResult
) -> None:
    with pytest.raises(PlanError, match=r"takes one response a cell, but \d+ cell.*--trials majority"):
        analysis(matrix, full)
