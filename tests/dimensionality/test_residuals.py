"""The refitted one-factor test: alike for observed and simulated panels, of its size, and with power."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality import residuals as residuals_module
from irtaudit.dimensionality.eigenvalues import LEVEL
from irtaudit.dimensionality.residuals import (
    Panels,
    one_factor_test,
    refit,
    residual_eigenvalues,
    residual_null,
)
from irtaudit.errors import FitError, PlanError
from irtaudit.irt import panels as panels_module
from irtaudit.irt.panels import fit_panels
from irtaudit.irt.spec import ModelSpec

UNI = ModelSpec.unidimensional("2pl")


def _rejections(matrices: Iterable[ResponseMatrix], n_panels: int) -> NDArray[np.bool_]:
    """Whether each panel is called more than one factor."""
    tests = (one_factor_test(m, n_panels=n_panels, seed=s, workers=1) for s, m in enumerate(matrices))
    return np.array([test.p <= LEVEL for test in tests])


def _tolerated(n: int) -> float:
    """Share of rejections that a test of the right size exceeds once in a thousand studies."""
    return float(binom.isf(1e-3, n, LEVEL) / n)


def test_one_factor_is_rejected_at_the_level() -> None:
    found = _rejections((panel(seed, missing=0.1 * (seed % 2)) for seed in range(30)), 39)
    assert found.mean() <= _tolerated(30)


def test_independent_items_do_not_look_like_several_factors() -> None:
    found = _rejections((panel(seed, spread=0.0) for seed in range(20)), 19)
    assert found.mean() <= _tolerated(20)


def test_a_second_factor_is_found() -> None:
    found = _rejections((panel(seed, 60, correlation=0.3) for seed in range(6)), 39)
    assert found.mean() >= 5 / 6


def test_observed_and_simulated_panels_are_treated_alike() -> None:
    matrix = panel(3, missing=0.2)
    seen = []

    def record(panels: Panels) -> np.ndarray:
        seen.append(panels)
        return residual_eigenvalues(panels)

    found = refit(matrix, UNI, {"residual": record}, n_panels=5, seed=4, workers=1)
    assert found.n_panels == 5
    simulated = np.concatenate([part.responses for part in seen[1:]])
    assert simulated.shape == (5, matrix.n_subjects, matrix.n_items)
    assert not simulated[:, ~matrix.observed].any()
    passes = simulated.sum(axis=1)
    assert ((passes > 0) & (passes < matrix.observed.sum(axis=0))).all(), "no item comes out constant"
    # fitted by hand, with the key of the third panel, the statistic of the third simulated panel is the same
    cells = np.where(matrix.observed, simulated[2], np.nan)
    p = fit_panels(UNI, cells[None], preset="quick", seed=4, first=3).probabilities()[0]
    e = np.where(matrix.observed, (simulated[2] - p) / np.sqrt(p * (1 - p)), np.nan)
    z = np.nan_to_num((e - np.nanmean(e, axis=0)) / np.nanstd(e, axis=0))
    expected = np.linalg.eigvalsh(z @ z.T / len(z))[-1]
    assert found.stacks["residual"][3, 0] == pytest.approx(expected, rel=1e-5)
    assert residual_null(found).observed[0] == found.stacks["residual"][0, 0]


def test_simulated_panels_have_the_pass_rates_of_the_observed_fit() -> None:
    matrix = panel(5)
    found = refit(matrix, UNI, {"rate": lambda p: p.responses.mean(axis=1)}, n_panels=200, workers=1)
    expected = found.panel.probability[0].mean(axis=0)
    z = (found.stacks["rate"][1:].mean(axis=0) - expected) / found.stacks["rate"][1:].std(axis=0)
    assert np.abs(z * np.sqrt(200)).max() < 5


def test_the_seed_decides() -> None:
    matrix = panel(6)
    one, same, other = (one_factor_test(matrix, n_panels=5, seed=s, workers=1).draws for s in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_progress_counts_every_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals_module, "CELLS_AT_A_TIME", 5 * 40 * 60)
    calls: list[tuple[int, int]] = []
    one_factor_test(panel(6), n_panels=12, workers=1, progress=lambda *n: calls.append(n))
    assert calls == [(1, 13), (6, 13), (11, 13), (13, 13)]


def test_a_simulated_panel_that_cannot_be_fitted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = panels_module.fit_panels

    def diverging(*args, first, **options):  # type: ignore[no-untyped-def] # as fit_panels
        fits = fitted(*args, first=first, **options)
        if first > 0:
            fits.finite[1] = False
            fits.means["theta"][1] = np.nan
        return fits

    monkeypatch.setattr(panels_module, "fit_panels", diverging)
    found = refit(panel(6), UNI, {"residual": residual_eigenvalues}, n_panels=6, workers=1)
    assert found.n_panels == 5
    assert np.isfinite(found.stacks["residual"]).all()

    def failing(*args, **options):  # type: ignore[no-untyped-def] # as fit_panels
        fits = fitted(*args, **options)
        fits.finite[:] = False
        return fits

    monkeypatch.setattr(panels_module, "fit_panels", failing)
    with pytest.raises(FitError, match="cannot be fitted"):
        one_factor_test(panel(6), n_panels=6, workers=1)


def test_what_cannot_be_simulated_is_refused() -> None:
    cells = panel(6).responses.copy()
    cells[:, 4] = 1
    with pytest.raises(PlanError, match="1 of 60 items are constant"):
        one_factor_test(ResponseMatrix.from_array(cells))
    with pytest.raises(PlanError, match="n_panels is 0"):
        one_factor_test(panel(6), n_panels=0)
