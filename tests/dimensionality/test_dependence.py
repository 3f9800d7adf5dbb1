"""Local dependence, item fit and person fit: formulas by hand, planted faults, and rates without any."""

from __future__ import annotations

import numpy as np
import pytest
from structure_panels import panel

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.dependence import (
    MIN_INFORMATION,
    UNDEFINED,
    check_fit,
    item_fit,
    largest_q3,
    mean_squares,
    person_fit,
)
from irtaudit.dimensionality.residuals import Panels
from irtaudit.irt.panels import fit_panels
from irtaudit.irt.spec import ModelSpec

FAST = {"n_panels": 99, "workers": 1}


def _panels(missing: float = 0.0, n_panels: int = 2, n: int = 30, j: int = 12) -> Panels:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, (n_panels, n, j)).astype(np.float32)
    observed = rng.random((n, j)) >= missing
    return Panels(((rng.random(p.shape) < p) & observed).astype(np.float32), p, observed)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_q3_is_the_correlation_of_residuals(missing: float) -> None:
    panels = _panels(missing)
    e = np.where(panels.observed, panels.responses - panels.probability, np.nan)[1]
    best, v = UNDEFINED, panels.variance[1] * panels.observed
    for j in range(12):
        for k in range(j):
            both = panels.observed[:, j] & panels.observed[:, k]
            # residuals are centred over all who answered an item, not over those who answered both
            a, b = ((e[:, item] - np.nanmean(e[:, item]))[both] for item in (j, k))
            if (v[:, j] * v[:, k]).sum() >= MIN_INFORMATION:
                best = max(best, (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))
    assert largest_q3(panels)[1] == pytest.approx(best, abs=1e-5)
    if not missing:
        assert best == pytest.approx(np.corrcoef(e.T)[np.tril_indices(12, -1)].max(), abs=1e-6)


def test_q3_works_in_parts_and_without_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    panels = _panels(0.2)
    whole = largest_q3(panels)
    monkeypatch.setattr("irtaudit.dimensionality.dependence.ITEMS_AT_A_TIME", 5)
    np.testing.assert_allclose(largest_q3(panels), whole)
    few = Panels(panels.responses[:, :8], panels.probability[:, :8], panels.observed[:8])
    assert (largest_q3(few) == UNDEFINED).all()


def test_item_fit_is_g2_over_five_bands_of_ability() -> None:
    panels = _panels(0.2)
    found = item_fit(panels)
    order = np.argsort(panels.probability[1].mean(axis=1), kind="stable")
    for j in (0, 7):
        total = 0.0
        for band in np.split(order, 5):
            rows = band[panels.observed[band, j]]
            o, e, n = panels.responses[1][rows, j].sum(), panels.probability[1][rows, j].sum(), len(rows)
            total += 2 * (o * np.log(o / e) if o else 0) + 2 * (
                (n - o) * np.log((n - o) / (n - e)) if n > o else 0
            )
        assert found[1, j] == pytest.approx(total, abs=1e-3)


def test_person_fit_and_mean_squares_have_their_moments_at_the_true_probabilities() -> None:
    panels = _panels(0.3, n_panels=4000)
    lz = person_fit(panels)
    assert np.abs(lz.mean(axis=0)).max() < 4.5 / np.sqrt(4000)
    assert np.abs(lz.std(axis=0) - 1).max() < 0.06
    infit, outfit = (ms.mean(axis=0) for ms in mean_squares(panels))
    assert np.abs(infit - 1).max() < 0.02
    assert np.abs(outfit - 1).max() < 0.03


def test_planted_faults_are_found_and_named() -> None:
    def spoil(cells: np.ndarray, rng: np.random.Generator) -> None:
        copied = rng.random(len(cells)) < 0.97
        cells[copied, 1] = cells[copied, 0]  # two items that are nearly one
        cells[:, 5] = 1 - cells[:, 5]  # an item scored the wrong way round
        cells[7] = cells.mean(axis=0) < 0.5  # a model that passes the hard items and fails the easy ones

    found = check_fit(panel(1, 100, 60, change=spoil), **FAST)
    assert set(found.pairs.iloc[0][["item_1", "item_2"]]) == {"item_01", "item_02"}
    assert found.pairs["flag"].iloc[0]
    assert found.n_dependent == found.pairs["flag"].sum() == 1
    assert found.items["item"].iloc[0] == "item_06"
    assert found.items["flag"].iloc[0]
    assert found.subjects["subject"].iloc[0] == "subject_008"
    assert found.subjects["lz"].iloc[0] < -3
    assert found.subjects["flag"].iloc[0]


def test_panels_that_fit_are_seldom_flagged() -> None:
    found = [check_fit(panel(seed, missing=0.1), n_panels=39, workers=1, seed=seed) for seed in range(12)]
    # twelve panels: three or more flagged at .05 happen once in fifty studies
    assert sum(f.n_dependent > 0 for f in found) <= 3
    assert sum(f.items["flag"].any() for f in found) <= 3
    assert sum(f.subjects["flag"].any() for f in found) <= 3
    item_p = np.concatenate([f.items["p"] for f in found])
    assert abs((item_p <= 0.05).mean() - 0.05) < 0.04
    person_p = np.concatenate([f.subjects["p"] for f in found])
    assert abs((person_p <= 0.05).mean() - 0.05) < 0.04


def test_the_tables_keep_their_contract() -> None:
    matrix = panel(2)
    found = check_fit(matrix, n_panels=19, seed=3, workers=1)
    assert list(found.pairs.columns) == ["item_1", "item_2", "q3", "p", "flag"]
    assert list(found.items.columns) == ["item", "fit", "p", "p_family", "infit", "outfit", "flag"]
    assert list(found.subjects.columns) == ["subject", "lz", "p", "p_family", "flag"]
    assert len(found.items) == matrix.n_items
    assert len(found.subjects) == matrix.n_subjects
    assert found.pairs["q3"].is_monotonic_decreasing
    assert found.n_pairs == _tested_pairs(matrix)
    assert (found.items["p"] >= 1 / 20).all()
    assert (found.items["p_family"] >= found.items["p"]).all()
    assert (found.model, found.preset, found.n_panels, found.seed) == ("unidimensional_2pl", "quick", 19, 3)
    assert found.residual.n_draws == 19


def _tested_pairs(matrix: ResponseMatrix) -> int:
    p = fit_panels(
        ModelSpec.unidimensional(), matrix.responses[None], preset="quick", seed=3
    ).probabilities()[0]
    information = (p * (1 - p)).T @ (p * (1 - p))
    return int((information[np.triu_indices(matrix.n_items, 1)] >= MIN_INFORMATION).sum())
