"""Cells that count trials: binomial likelihoods equal those of the single trials, by Pyro, scipy and hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from panels import every_spec
from scipy.special import expit, gammaln
from scipy.stats import binom

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import make_splits
from irtaudit.errors import PlanError
from irtaudit.irt import pyro_model
from irtaudit.irt.correlations import factor_correlation_intervals
from irtaudit.irt.fit import fit
from irtaudit.irt.kernel import Kernel
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells, Likelihood
from irtaudit.irt.panels import fit_panels
from irtaudit.irt.predict import draw_responses
from irtaudit.irt.presets import Preset
from irtaudit.irt.prior import State
from irtaudit.irt.score import score
from irtaudit.irt.spec import ModelSpec

N_SUBJECTS, N_ITEMS, N_SPLITS, N_RESTARTS = 7, 9, 2, 3
UNI = ModelSpec.unidimensional("2pl")
TINY = Preset("tiny", 40, 0.1, "cosine", True)


@pytest.mark.parametrize("spec", every_spec("hierarchical"), ids=lambda s: s.name)
def test_elbo_and_gradients_of_counts_equal_pyros_scaled_bernoulli(spec: ModelSpec) -> None:
    layout = Layout(spec, N_SUBJECTS, N_ITEMS)
    rng = np.random.default_rng(0)
    trials = torch.as_tensor(rng.integers(0, 6, (N_SPLITS, 1, N_SUBJECTS, N_ITEMS)) * 1.0)
    passes = torch.as_tensor(rng.binomial(trials.numpy().astype(int), 0.4) * 1.0)
    state, noise = _state(layout)
    rows = [t.expand(-1, N_RESTARTS, -1, -1).flatten(0, 1) for t in (passes, trials)]
    kernel = Kernel(layout, Cells(*rows), state)
    by_hand = kernel.gradient(noise)
    leaves = State(*(t.clone().requires_grad_() for t in state.tensors()))
    total, per_fit = pyro_model.elbo(layout, leaves, noise, passes / trials.clamp(min=1), trials)
    (-total).backward()
    torch.testing.assert_close(kernel.elbo(noise), per_fit.detach(), rtol=0, atol=1e-8)
    torch.testing.assert_close(per_fit.sum(), total, rtol=0, atol=1e-8)
    widths = (
        *[sum(layout.sizes.values())] * 2,
        max((s.stop for s in layout.hyper_slices.values()), default=0),
    )
    for ours, leaf, width in zip(by_hand.tensors(), leaves.tensors(), widths, strict=True):
        if width:
            torch.testing.assert_close(ours[:, :width], leaf.grad[:, :width], rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_a_cell_of_n_trials_is_n_columns_that_share_their_parameters(family: str) -> None:
    spec = ModelSpec.confirmatory(family, ["a", "b", "c"] * 3)  # type: ignore[arg-type] # one of the families
    layout = Layout(spec, N_SUBJECTS, N_ITEMS)
    rng = np.random.default_rng(1)
    n = rng.integers(0, 5, (1, N_SUBJECTS, N_ITEMS))
    trained = np.arange(4)[:, None, None] < n  # (trial, subject, item)
    passed = trained & (rng.random(trained.shape) < 0.6)
    z = torch.as_tensor(rng.normal(size=(1, layout.width)))

    def value_and_gradient(
        success: NDArray[np.bool_], mask: NDArray[np.bool_]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        grad = torch.zeros_like(z)
        cells = Cells(*(torch.as_tensor(t.sum(0, keepdims=True) * 1.0) for t in (success, mask)))
        likelihood = Likelihood(layout, cells, z, grad)
        likelihood.gradient()
        return likelihood.value(), grad

    value, gradient = value_and_gradient(passed, trained)
    single = [value_and_gradient(passed[[t]], trained[[t]]) for t in range(4)]
    torch.testing.assert_close(value, sum(v for v, _ in single), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, sum(g for _, g in single), rtol=1e-10, atol=1e-12)


def test_scores_of_a_fit_are_those_of_its_single_trials() -> None:
    matrix = _counted(30, 8, seed=2, missing=0.2)
    splits = make_splits(matrix, n_splits=2)
    result = fit(matrix, UNI, splits, n_restarts=2, preset=TINY, workers=1)
    for s, test in enumerate(splits.test):
        train, p = matrix.observed & ~test, result.probabilities(s)
        n, y = matrix.n_trials, matrix.passes
        constant = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
        by_scipy = binom.logpmf(y, n, p) - constant
        row = result.restarts[
            (result.restarts["split"] == result.splits[s]) & result.restarts["selected"]
        ].iloc[0]
        assert row["train_log_lik"] == pytest.approx(by_scipy[train].sum(), rel=1e-9)
        assert row["log_loss"] == pytest.approx(-by_scipy[test].sum() / n[test].sum(), rel=1e-9)
        squares = y * (1 - p) ** 2 + (n - y) * p**2
        assert row["brier"] == pytest.approx(squares[test].sum() / n[test].sum(), rel=1e-9)
        assert result.train_cells[s] == n[train].sum()
        assert result.test_cells[s] == n[test].sum()
    assert set(result.heldout["log_loss_predictive"].round(12)) != set(result.heldout["log_loss"].round(12))


def test_one_trial_a_cell_gives_exactly_the_numbers_of_single_responses() -> None:
    cells = np.stack([_counted(21, 9, seed, trials=1).responses for seed in range(3)])
    for family in ("1pl", "2pl", "3pl"):
        spec = ModelSpec.unidimensional(family)  # type: ignore[arg-type] # one of the families
        plain = fit_panels(spec, cells, preset=TINY, workers=1)
        counted = fit_panels(spec, cells, preset=TINY, workers=1, trials=np.ones((21, 9), np.int64))
        np.testing.assert_array_equal(plain.train_log_lik, counted.train_log_lik)
        for name in plain.means:
            np.testing.assert_array_equal(plain.means[name], counted.means[name])
            np.testing.assert_array_equal(plain.sds[name], counted.sds[name])


def test_panels_of_counts_are_fitted_as_if_alone() -> None:
    matrix = _counted(21, 9, seed=4, missing=0.1)
    fits = fit_panels(UNI, matrix.responses[None], preset=TINY, workers=1, trials=matrix.trials)
    alone = fit(matrix, UNI, n_restarts=1, preset=TINY, workers=1)
    np.testing.assert_array_equal(fits.means["theta"][0], alone.posterior()[0]["theta"])


def test_more_trials_tell_more_by_as_much_as_their_number() -> None:
    """The precision of theta is the prior's and that of every trial, by the information of its item."""
    once, often = (_counted(120, 30, seed=5, trials=n) for n in (1, 8))
    fits = [fit(m, UNI, n_restarts=1, preset="quick", workers=1) for m in (once, often)]
    for one, n in zip(fits, (1, 8), strict=True):
        p, items = one.probabilities(), one.item_parameters
        squared = (items["slope_ability"] ** 2 + items["slope_ability_sd"] ** 2).to_numpy()
        information = 1 + n * (squared * p * (1 - p)).sum(axis=1)
        assert (one.abilities["ability_sd"] ** -2).mean() == pytest.approx(information.mean(), rel=0.1)
    theta, slope, intercept = _truth(120, 30, seed=5)
    found = fits[1].abilities
    # 120 subjects give the scale itself an error of 1 / sqrt(240), the mean one of 1 / sqrt(120).
    standardised = (theta - theta.mean()) / theta.std()
    error = (found["ability"] - found["ability"].mean()) / found["ability"].std() - standardised
    assert np.sqrt((error**2).mean()) < 1.5 * found["ability_sd"].mean()
    shift = items["intercept"].to_numpy() - (intercept + slope * theta.mean())
    assert np.sqrt((shift**2).mean()) < 3 * np.hypot(items["intercept_sd"].mean(), 1 / np.sqrt(120))


def test_a_store_tells_counts_of_equal_shares_apart(tmp_path: Path) -> None:
    few = _counted(12, 6, seed=6, trials=2)
    many = ResponseMatrix(few.responses, few.items, few.subjects, trials=few.n_trials * 3)
    options = {"n_restarts": 1, "preset": TINY, "workers": 1, "store": tmp_path}
    first, second = (fit(m, UNI, **options) for m in (few, many))  # type: ignore[arg-type] # of several types
    assert second.restarts["train_log_lik"].item() < first.restarts["train_log_lik"].item()
    assert first.data_sha256 != second.data_sha256


def test_responses_are_drawn_with_the_trials_of_the_matrix() -> None:
    matrix = _counted(40, 50, seed=7, missing=0.2)
    p = np.full((100, 40, 50), 0.3)
    drawn = draw_responses(p, matrix, np.random.default_rng(0))
    assert np.isnan(drawn).all(axis=0).tolist() == (~matrix.observed).tolist()
    n = matrix.n_trials[matrix.observed]
    shares = drawn[:, matrix.observed]
    np.testing.assert_allclose(shares * n, np.rint(shares * n), atol=1e-9)
    # 4 standard errors of 100 draws of each of ~1,600 cells
    assert shares.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / (100 * n.sum())) * np.sqrt(n.mean()))
    assert (shares.var(axis=0) * n).mean() == pytest.approx(0.21, rel=4 * np.sqrt(2 / (100 * len(n))))


def test_intervals_of_factor_correlations_rest_on_panels_of_counts() -> None:
    matrix, spec = _counted(30, 12, seed=9), ModelSpec.confirmatory("2pl", ["a", "b"] * 6)
    result = fit(matrix, spec, n_restarts=1, preset=TINY, workers=1)
    found = factor_correlation_intervals(result, matrix, n_refits=3, preset=TINY, workers=1)
    assert found["panel_low"].item() < found["correlation"].item() < found["panel_high"].item()


def test_new_subjects_are_not_scored_by_counts() -> None:
    matrix = _counted(21, 9, seed=8)
    result = fit(matrix, UNI, n_restarts=1, preset=TINY, workers=1)
    with pytest.raises(PlanError, match=r"takes one response a cell.*--trials majority"):
        score(result, matrix)


def _state(layout: Layout) -> tuple[State, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)

    def draw(width: int) -> torch.Tensor:
        return torch.randn(N_SPLITS * N_RESTARTS, width, dtype=torch.float64, generator=generator)

    widths = (layout.width, layout.width, layout.hyper_width)
    return State(*(0.5 * draw(width) for width in widths)), draw(layout.width)


def _truth(n_subjects: int, n_items: int, seed: int) -> tuple[NDArray[np.float64], ...]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n_subjects), np.exp(rng.normal(0, 0.3, n_items)), rng.normal(size=n_items)


def _counted(
    n_subjects: int, n_items: int, seed: int, trials: int | None = None, missing: float = 0.0
) -> ResponseMatrix:
    """Simulated passes of a 2PL: `trials` a cell, or 1 to 5."""
    theta, slope, intercept = _truth(n_subjects, n_items, seed)
    rng = np.random.default_rng(seed + 1000)
    shape = (n_subjects, n_items)
    n = np.full(shape, trials) if trials else rng.integers(1, 6, shape)
    n = np.where(rng.random(shape) < missing, 0, n)
    passes = rng.binomial(n, expit(theta[:, None] * slope + intercept))
    share = np.divide(passes, n, out=np.full(shape, np.nan), where=n > 0)
    return ResponseMatrix.from_array(share, trials=n)
