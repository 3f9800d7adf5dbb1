"""Small simulated panels with known structure, for tests of the pipeline and its command."""

from __future__ import annotations

import numpy as np
import pandas as pd

from irtaudit.data.responses import ResponseMatrix

FAST = {"preset": "quick", "n_restarts": 2, "workers": 1}
KINDS = ["verbal"] * 24 + ["visual"] * 24 + ["rare"] * 2 + ["odd"] * 2


def two_factor_panel(correlation: float = 0.0, n_subjects: int = 90, seed: int = 5) -> ResponseMatrix:
    """Simulated 2PL responses on two factors; the last item is constant, two kinds have two items each."""
    rng = np.random.default_rng(seed)
    theta = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], n_subjects)
    factor = [int(kind == "visual") for kind in KINDS]
    logits = theta[:, factor] * 2.0 + rng.normal(0, 1, len(KINDS))
    cells = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    cells = np.column_stack([cells, np.ones(n_subjects)])
    names = [f"item_{j:02d}" for j in range(len(KINDS) + 1)]
    items = pd.DataFrame({"kind": [*KINDS, "verbal"]}, index=names)
    return ResponseMatrix.from_array(cells, items=items, source="simulated panel, two factors")


def shuffled_within_items(matrix: ResponseMatrix, seed: int = 1) -> ResponseMatrix:
    """The same pass rates without any information about subjects."""
    cells = np.random.default_rng(seed).permuted(matrix.responses, axis=0)
    return ResponseMatrix(cells, matrix.items, matrix.subjects, "simulated panel, shuffled within items")
