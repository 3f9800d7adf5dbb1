"""Simulated panels with groups, and fits whose parameters are the true ones: nothing has to be fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.irt.presets import PRESETS
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec


@dataclass(frozen=True, eq=False)
class Truth:
    """A simulated panel and what it was drawn from."""

    matrix: ResponseMatrix
    theta: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray


def panel(
    seed: int,
    sizes: tuple[int, int, int] = (21, 11, 16),
    n_items: int = 60,
    difference: float = 0.0,
    shifts: dict[int, float] | None = None,
    family_sd: float = 0.0,
    missing: float = 0.0,
) -> Truth:
    """Simulated 2PL responses of groups A, B and others.

    A positive shift favours A; families have three models.
    """
    rng = np.random.default_rng(seed)
    group = np.repeat(["A", "B", "other"], sizes)
    theta = rng.normal(np.repeat([difference / 2, -difference / 2, 0.0], sizes), 1.0)
    slope, intercept = np.exp(rng.normal(0.2, 0.4, n_items)), rng.normal(0.5, 1.2, n_items)
    logits = theta[:, None] * slope + intercept
    side = np.where(group == "A", 0.5, np.where(group == "B", -0.5, 0.0))
    for item, shift in (shifts or {}).items():
        logits[:, item] += side * shift
    family = np.arange(len(group)) // 3
    logits += rng.normal(0, family_sd, (family.max() + 1, n_items))[family]
    cells = (rng.random(logits.shape) < expit(logits)).astype(float)
    cells[rng.random(cells.shape) < missing] = np.nan
    subjects = pd.DataFrame(
        {"developer": group, "family": [f"f{n}" for n in family]},
        index=[f"model_{i:03d}" for i in range(len(group))],
    )
    flatter = 1 / np.sqrt(1 + family_sd**2 / 1.7**2)  # what a model without families sees of the logits
    matrix = ResponseMatrix.from_array(cells, subjects=subjects)
    return Truth(matrix, theta, slope * flatter, intercept * flatter)


def known_fit(truth: Truth, spec: ModelSpec | None = None) -> FitResult:
    """A fit whose posterior sits on the true parameters.

    With a confirmatory model of simple structure every factor has the true abilities.
    """
    spec = spec or ModelSpec.unidimensional("2pl")
    matrix, (n, j) = truth.matrix, truth.matrix.responses.shape
    means = {
        "theta": np.repeat(truth.theta[:, None], spec.dims, axis=1),
        "log_slope": np.log(truth.slope),
        "intercept": truth.intercept,
    }
    restarts = pd.DataFrame({"split": ["all"], "restart": [0], "selected": [True]})
    return FitResult(
        spec=spec,
        subjects=tuple(matrix.subjects.index),
        items=tuple(matrix.items.index),
        splits=("all",),
        train_cells=(n * j,),
        means={name: np.asarray(value)[None, None] for name, value in means.items()},
        sds={name: np.full_like(np.asarray(value), 1e-6)[None, None] for name, value in means.items()},
        hypers={},
        restarts=restarts,
        heldout=pd.DataFrame(),
        elbo_path=np.zeros((1, 1, 0)),
        seed=0,
        preset=PRESETS["default"],
        data_sha256=matrix.sha256,
    )
