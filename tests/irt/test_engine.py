"""A batch of fits equals the same fits alone, whatever the tile, the order and the neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from panels import PAIRS, random_matrix, sim81
from torch import Tensor

from irtaudit.irt.engine import NOISE_BLOCK, Draw, FitKey, fit_noise, noise_seed, run_tile
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.presets import PRESETS, Preset
from irtaudit.irt.spec import ModelSpec

SHORT = Preset("short", 60, 0.1, "cosine", True)
KEYS = tuple(FitKey(0, 0, restart) for restart in range(7))
SPECS = [
    ModelSpec.unidimensional("1pl"),
    ModelSpec.unidimensional("3pl"),
    ModelSpec.exploratory("2pl", 2),
    ModelSpec.confirmatory("2pl", PAIRS),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_a_batch_equals_its_fits_alone_in_any_order(
    spec: ModelSpec, dtype: torch.dtype, tolerance: float
) -> None:
    layout, cells = _problem(spec, dtype)
    together = run_tile(layout, cells, KEYS, SHORT)
    backwards = run_tile(layout, cells, KEYS[::-1], SHORT)
    np.testing.assert_allclose(backwards.loc[::-1], together.loc, rtol=0, atol=tolerance)
    for i, key in enumerate(KEYS[:3]):
        alone = run_tile(layout, cells, (key,), SHORT)
        np.testing.assert_allclose(alone.loc[0], together.loc[i], rtol=0, atol=tolerance)
        np.testing.assert_allclose(alone.hyper[0], together.hyper[i], rtol=0, atol=tolerance)
        np.testing.assert_allclose(alone.elbo[0], together.elbo[i], rtol=0, atol=max(1e-3, tolerance))
    assert np.abs(together.loc[0] - together.loc[1]).max() > 1e-3, "restarts are different fits"


@pytest.mark.parametrize("name", ["one", "exploratory", "confirmatory", "guessing"])
def test_a_batch_equals_its_fits_alone_to_the_last_bit_on_a_panel_of_odd_size(name: str) -> None:
    matrix, _, factor = sim81()
    spec = {
        "one": ModelSpec.unidimensional("2pl"),
        "exploratory": ModelSpec.exploratory("2pl", 3),
        "confirmatory": ModelSpec.confirmatory("2pl", factor),
        "guessing": ModelSpec.unidimensional("3pl"),
    }[name]
    layout = Layout(spec, matrix.n_subjects, matrix.n_items)
    success = torch.tensor(matrix.responses[None], dtype=torch.float32)
    shared = Cells(success, torch.ones_like(success))
    own = Cells(*(t.expand(len(KEYS), -1, -1).contiguous() for t in (shared.success, shared.mask)))
    preset = replace(SHORT, epochs=12)
    together = run_tile(layout, shared, KEYS, preset)
    each_its_own = run_tile(layout, own, KEYS, preset)
    for i in (0, 3, 6):
        alone = run_tile(layout, shared, KEYS[i : i + 1], preset)
        for field in ("loc", "log_scale", "hyper", "elbo"):
            np.testing.assert_array_equal(getattr(alone, field)[0], getattr(together, field)[i])
            np.testing.assert_array_equal(getattr(alone, field)[0], getattr(each_its_own, field)[i])


def test_a_fit_that_diverges_leaves_its_neighbours_alone() -> None:
    layout, cells = _problem(ModelSpec.confirmatory("2pl", PAIRS), torch.float32)

    def poisoned(*args: object) -> Iterator[Draw]:
        for i, (draw, sign) in enumerate(fit_noise(*args)):  # type: ignore[arg-type]  # as they came
            if i == 10:
                draw = draw.clone()
                draw[2] = torch.inf
            yield draw, sign

    healthy = run_tile(layout, cells, KEYS, SHORT)
    hit = run_tile(layout, cells, KEYS, SHORT, noise=poisoned)
    assert hit.finite.tolist() == [i != 2 for i in range(len(KEYS))]
    rest = np.flatnonzero(hit.finite)
    np.testing.assert_array_equal(hit.loc[rest], healthy.loc[rest])


def test_a_fit_on_its_own_panel_equals_it_in_a_batch_of_panels() -> None:
    layout = Layout(SPECS[2], 12, 9)
    panels = [_problem(SPECS[2], torch.float64, seed)[1] for seed in range(3)]
    stacked = Cells(torch.cat([c.success for c in panels]), torch.cat([c.mask for c in panels]))
    together = run_tile(layout, stacked, KEYS[:3], SHORT)
    for i, panel in enumerate(panels):
        alone = run_tile(layout, panel, KEYS[i : i + 1], SHORT)
        np.testing.assert_allclose(alone.loc[0], together.loc[i], rtol=0, atol=1e-9)


def test_noise_belongs_to_the_fit_and_antithetic_pairs_cancel() -> None:
    layout = Layout(SPECS[0], 12, 9)
    draws = _draws(layout, KEYS[:2], PRESETS["default"], 5)
    swapped = _draws(layout, KEYS[1::-1], PRESETS["default"], 5)
    plain = _draws(layout, KEYS[:2], PRESETS["paper"], 5)
    assert torch.equal(draws.flip(1), swapped)
    assert torch.equal(draws[1] + draws[2], torch.zeros_like(draws[1]))
    assert torch.equal(draws[:2], plain[:2])
    assert not torch.equal(plain[1] + plain[2], torch.zeros_like(plain[1]))


def test_each_number_of_an_antithetic_fit_serves_two_latents_and_no_draw_is_less_than_normal() -> None:
    layout, pairs = Layout(SPECS[0], 12, 9), 3 * NOISE_BLOCK
    draws = _draws(layout, KEYS, PRESETS["default"], 1 + 2 * pairs)[1::2]
    half = layout.width // 2
    assert torch.equal(draws[1:, :, :half], draws[:-1, :, half:])
    assert len(draws.unique()) == len(KEYS) * half * (pairs + 1)
    # The mean and the variance of n normal numbers have standard errors 1 / sqrt(n) and sqrt(2 / n).
    numbers, n = draws[:, :, :half], pairs * len(KEYS) * half
    assert abs(float(numbers.mean())) < 4 / n**0.5
    assert abs(float(numbers.var()) - 1) < 4 * (2 / n) ** 0.5


def test_every_fit_has_a_seed_of_its_own() -> None:
    keys = [FitKey(s, p, r, a) for s in range(4) for p in range(5) for r in range(20) for a in range(2)]
    assert len({noise_seed(key) for key in keys}) == len(keys)


def _draws(layout: Layout, keys: Sequence[FitKey], preset: Preset, n: int) -> Tensor:
    source = fit_noise(layout, keys, preset, torch.device("cpu"))
    return torch.stack([draw * sign for draw, sign in islice(source, n)])


def _problem(spec: ModelSpec, dtype: torch.dtype, seed: int = 0) -> tuple[Layout, Cells]:
    matrix = random_matrix(12, 9, seed, missing=0.1)
    layout = Layout(spec, 12, 9)
    mask = torch.as_tensor(matrix.observed[None].astype(float)).to(dtype)
    success = torch.as_tensor(np.nan_to_num(matrix.responses)[None]).to(dtype)
    return layout, Cells(success, mask)
