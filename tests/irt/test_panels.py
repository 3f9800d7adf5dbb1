"""Many panels fitted at once are the same panels fitted one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from panels import BIFACTOR, random_matrix

from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import ConvergenceWarning, DataError, PlanError
from irtaudit.irt import fit as fit_module
from irtaudit.irt.engine import run_tile
from irtaudit.irt.fit import fit
from irtaudit.irt.panels import PanelFits, fit_panels
from irtaudit.irt.presets import PRESETS
from irtaudit.irt.spec import ModelSpec

TINY = replace(PRESETS["default"], name="tiny", epochs=40)
UNI = ModelSpec.unidimensional("2pl")
SPECS = [
    UNI,
    ModelSpec.unidimensional("1pl"),
    ModelSpec.unidimensional("3pl"),
    ModelSpec.exploratory("2pl", 2),
    ModelSpec.from_pattern("2pl", BIFACTOR, name="oblique"),
]


def _panels(n: int, missing: float) -> NDArray[np.float64]:
    return np.stack([random_matrix(21, 9, seed, missing).responses for seed in range(n)])


def _assert_equal(one: PanelFits, other: PanelFits, at: slice = slice(None)) -> None:
    for name in one.means:
        np.testing.assert_array_equal(one.means[name][at], other.means[name])
        np.testing.assert_array_equal(one.sds[name][at], other.sds[name])
    np.testing.assert_array_equal(one.train_log_lik[at], other.train_log_lik)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_first_of_many_panels_is_fitted_as_if_alone(spec: ModelSpec, missing: float) -> None:
    cells = _panels(5, missing)
    fits = fit_panels(spec, cells, preset=TINY, seed=3)
    alone = fit(ResponseMatrix.from_array(cells[0]), spec, n_restarts=1, preset=TINY, seed=3)
    means, sds = alone.posterior()
    for name in means:
        np.testing.assert_array_equal(fits.means[name][0], means[name])
        np.testing.assert_array_equal(fits.sds[name][0], sds[name])
    assert fits.train_log_lik[0] == alone.restarts["train_log_lik"].item()
    np.testing.assert_allclose(fits.probabilities(slice(0, 1))[0], alone.probabilities(), rtol=1e-12)
    assert fits.finite.all()
    assert repr(fits) == f"PanelFits({spec.name}, 21 subjects x 9 items, 5 of 5 panels fitted)"


def test_neither_parts_nor_tiles_nor_workers_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = _panels(7, 0.2)
    whole = fit_panels(UNI, cells, preset=TINY)
    _assert_equal(whole, fit_panels(UNI, cells[4:], preset=TINY, first=4), slice(4, None))
    monkeypatch.setattr(fit_module, "MAX_FITS_PER_TILE", 2)
    seen: list[tuple[int, int]] = []
    _assert_equal(whole, fit_panels(UNI, cells, preset=TINY, progress=lambda *n: seen.append(n)))
    assert seen == [(2, 7), (4, 7), (6, 7), (7, 7)]
    _assert_equal(whole, fit_panels(UNI, cells, preset=TINY, workers=2))


def test_each_panel_is_fitted_to_its_own_responses() -> None:
    cells = _panels(3, 0.0)
    cells[2] = 1 - cells[0]
    fitted = fit_panels(UNI, cells).probabilities().mean(axis=1)
    agreement = np.corrcoef(fitted, cells.mean(axis=1))
    assert (np.diag(agreement[:3, 3:]) > 0.97).all()
    assert agreement[0, 5] < -0.97


def test_a_diverged_panel_is_retried_and_then_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = _panels(4, 0.2)
    last_attempt = 0

    def poisoned(layout, tile_cells, keys, preset, **options):  # type: ignore[no-untyped-def] # as run_tile
        state = run_tile(layout, tile_cells, keys, preset, **options)
        finite = np.array([key.split != 2 or key.attempt > last_attempt for key in keys])
        return replace(state, finite=state.finite & finite)

    monkeypatch.setattr(fit_module, "run_tile", poisoned)
    monkeypatch.setattr(fit_module, "RETRY", TINY)
    retried = fit_panels(UNI, cells, preset=TINY)
    assert retried.finite.all()
    monkeypatch.undo()
    whole = fit_panels(UNI, cells, preset=TINY)
    assert not np.array_equal(retried.means["theta"][2], whole.means["theta"][2]), "other noise, other fit"
    assert np.corrcoef(retried.means["theta"][2, :, 0], whole.means["theta"][2, :, 0])[0, 1] > 0.95
    last_attempt = 1
    monkeypatch.setattr(fit_module, "run_tile", poisoned)
    monkeypatch.setattr(fit_module, "RETRY", TINY)
    with pytest.warns(ConvergenceWarning, match="1 of 4 panels"):
        failed = fit_panels(UNI, cells, preset=TINY)
    assert failed.finite.tolist() == [True, True, False, True]
    assert np.isnan(failed.probabilities()[2]).all()
    assert np.isfinite(failed.probabilities()[3]).all()


def test_what_is_no_stack_of_panels_is_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(21, 9\)"):
        fit_panels(UNI, _panels(1, 0)[0])
    with pytest.raises(DataError, match="other values"):
        fit_panels(UNI, np.full((1, 4, 3), 0.5))
    with pytest.raises(PlanError, match="factors of 9 items"):
        fit_panels(SPECS[-1], np.zeros((1, 4, 3)))
