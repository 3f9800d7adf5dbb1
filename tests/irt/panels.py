"""Panels that several tests of the item response models share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.irt.spec import ModelSpec

REFERENCE = Path(__file__).parents[1] / "reference"
PAIRS = ("a", "b", "c") * 3
BIFACTOR = np.column_stack([np.ones(9, int), np.repeat([1, 0], [5, 4]), np.repeat([0, 1], [5, 4])])


def every_spec(priors: str) -> list[ModelSpec]:
    """One model of every family and structure, for nine items."""
    specs = []
    for family in ("1pl", "2pl", "3pl"):
        specs += [
            ModelSpec.unidimensional(family, priors=priors),
            ModelSpec.confirmatory(family, PAIRS, priors=priors),
            ModelSpec.confirmatory(family, sorted(PAIRS), name="sorted", priors=priors),
            ModelSpec.from_pattern(family, BIFACTOR, name="oblique", priors=priors),
            ModelSpec.from_pattern(family, BIFACTOR, name="bifactor", correlated=False, priors=priors),
        ]
        if family != "1pl":
            specs.append(ModelSpec.exploratory(family, 2, priors=priors))
    return specs


def sim81() -> tuple[ResponseMatrix, Splits, list[str]]:
    """The simulated 81 x 398 panel, its mask and the factor of each item."""
    with np.load(REFERENCE / "sim81x398.npz") as file:
        shape = tuple(file["shape"])
        size = shape[0] * shape[1]
        responses = np.unpackbits(file["responses"])[:size].reshape(shape).astype(float)
        held_out = np.unpackbits(file["held_out"])[:size].reshape(1, *shape).astype(bool)
        factor = [f"factor{f}" for f in file["factor"]]
    return ResponseMatrix.from_array(responses), Splits.from_test_masks(held_out), factor


def lsat7() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(pattern, item) responses of LSAT7 and the number of persons with each pattern."""
    table = np.loadtxt(REFERENCE / "lsat7_patterns.csv", delimiter=",", skiprows=1)
    return table[:, :5], table[:, 5]


def random_matrix(n_subjects: int, n_items: int, seed: int = 0, missing: float = 0.0) -> ResponseMatrix:
    """Responses that a 2PL with one dimension gave, some of them removed."""
    rng = np.random.default_rng(seed)
    theta, slope = rng.normal(size=(n_subjects, 1)), np.exp(rng.normal(0, 0.3, n_items))
    p = 1 / (1 + np.exp(-(theta * slope + rng.normal(size=n_items))))
    cells = (rng.random(p.shape) < p).astype(float)
    cells[rng.random(p.shape) < missing] = np.nan
    return ResponseMatrix.from_array(cells)
