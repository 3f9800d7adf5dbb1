"""Small simulated panels with known structure, for the tests of eigenvalues, residuals and fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import screen


def panel(
    seed: int,
    n_subjects: int = 40,
    n_items: int = 60,
    *,
    spread: float = 1.0,
    correlation: float = 1.0,
    missing: float = 0.0,
    slope_sd: float = 0.3,
    intercept_sd: float = 1.0,
    change: Callable[[NDArray[np.float64], np.random.Generator], None] | None = None,
) -> ResponseMatrix:
    """Screened 2PL responses on two factors, half of the items each; `spread` 0: independent items."""
    rng = np.random.default_rng(seed)
    r = [[1, correlation], [correlation, 1]]
    theta = spread * rng.multivariate_normal([0, 0], r, n_subjects)
    slope = np.exp(rng.normal(0.2, slope_sd, n_items))
    eta = slope * theta[:, np.arange(n_items) % 2] + rng.normal(0.3, intercept_sd, n_items)
    cells = (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
    if change is not None:
        change(cells, rng)
    cells[rng.random(eta.shape) < missing] = np.nan
    return screen(ResponseMatrix.from_array(cells, source="simulated panel")).matrix
