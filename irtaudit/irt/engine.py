"""Run a tile: many fits of one model as one batch, from their noise to their final state.

A fit is named by (seed, split, restart, attempt) and owns one noise generator. Adam is elementwise and
every product is batched, so neighbours in a tile never touch each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irtaudit.irt.kernel import Kernel
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.presets import Preset
from irtaudit.irt.prior import State
from irtaudit.irt.sites import GUESS_MEAN

NOISE_BLOCK = 5
"""Noise vectors drawn at a time for each fit: few enough to stay in a processor's cache."""
CHECK_EVERY, FINAL_CHECKS = 100, 4
"""Epochs between two values of the ELBO, and the last epochs that all have one: it costs as much as five."""
START_JITTER, START_SCALE = 0.1, 0.3


@dataclass(frozen=True)
class FitKey:
    """Name of a fit: what its noise depends on, and nothing else.

    Attributes
    ----------
    seed, split, restart : int
    attempt : int
        0, or 1 for the retry after a loss that became NaN.
    """

    seed: int
    split: int
    restart: int
    attempt: int = 0


@dataclass(frozen=True)
class TileState:
    """Where the fits of a tile ended.

    Attributes
    ----------
    loc, log_scale : (fit, width) array
    hyper : (fit, hyper_width) array
    elbo : (fit, check) float64 array
        ELBO every `CHECK_EVERY` epochs and in each of the last `FINAL_CHECKS`, at the noise of that epoch.
    finite : (fit,) bool array
        False where the fit diverged.
    """

    loc: NDArray[np.floating]
    log_scale: NDArray[np.floating]
    hyper: NDArray[np.floating]
    elbo: NDArray[np.float64]
    finite: NDArray[np.bool_]


Draw = tuple[Tensor, float]
"""(fit, width) standard normal numbers, and the sign that they are used with."""
NoiseSource = Callable[[Layout, Sequence[FitKey], Preset, torch.device], Iterator[Draw]]


@torch.inference_mode()
def run_tile(
    layout: Layout,
    cells: Cells,
    keys: Sequence[FitKey],
    preset: Preset,
    *,
    noise: NoiseSource | None = None,
) -> TileState:
    """Fit a batch.

    Parameters
    ----------
    layout : Layout
    cells : Cells
        Training responses, one row for all fits or one row per fit; their dtype and device are used.
    keys : sequence of FitKey
    preset : Preset
    noise : callable, optional
        Source of draws; the first is used for the start. Default :func:`fit_noise`.

    Returns
    -------
    TileState
    """
    mask = cells.mask
    draws = (noise or fit_noise)(layout, keys, preset, mask.device)
    start = initial_state(layout, cells, next(draws)[0].to(mask))
    flat = start.flat()
    state = State.views(flat, start)
    kernel = Kernel(layout, cells, state)
    adam = Adam(flat, kernel.flat_grad)
    elbos = []
    for epoch in range(preset.epochs):
        draw, sign = next(draws)
        draw = draw.to(mask)
        kernel.gradient(draw, sign)
        adam.step(preset.rate(epoch))
        if (epoch + 1) % CHECK_EVERY == 0 or epoch >= preset.epochs - FINAL_CHECKS:
            elbos.append(kernel.elbo(draw, sign).cpu())
            if not torch.isfinite(elbos[-1]).any():
                break
    return _tile_state(state, torch.stack(elbos, 1))


class Adam:
    """torch's fused Adam without the rest of its optimiser, which costs more than the step itself.

    Parameters
    ----------
    parameter, grad : Tensor
        Flat; the first is changed by every step, the second read.
    """

    def __init__(self, parameter: Tensor, grad: Tensor) -> None:
        self._parameter, self._grad = [parameter], [grad]
        self._mean, self._square = [torch.zeros_like(parameter)], [torch.zeros_like(parameter)]
        self._steps = [torch.zeros((), dtype=torch.float32, device=parameter.device)]

    def step(self, rate: float) -> None:
        """Take one step."""
        self._steps[0].add_(1)
        torch._fused_adam_(
            self._parameter,
            self._grad,
            self._mean,
            self._square,
            [],
            self._steps,
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


def fit_noise(layout: Layout, keys: Sequence[FitKey], preset: Preset, device: torch.device) -> Iterator[Draw]:
    """Standard normal draws, each fit's from its own generator, whatever the tile.

    Parameters
    ----------
    layout : Layout
    keys : sequence of FitKey
    preset : Preset
    device : torch.device

    Yields
    ------
    Draw
        The first one for the start, then one per epoch; overwritten when `NOISE_BLOCK` later ones are drawn.
    """
    generators = [torch.Generator(device).manual_seed(noise_seed(key)) for key in keys]

    def fill(block: Tensor) -> Tensor:
        for row, generator in zip(block, generators, strict=True):
            row.normal_(generator=generator)
        return block

    yield fill(torch.empty(len(keys), layout.width, device=device)), 1.0
    new = layout.width // 2 if preset.antithetic else layout.width
    kept = layout.width - new
    numbers = fill(torch.empty(len(keys), kept + NOISE_BLOCK * new, device=device))
    while True:
        for draw in numbers.unfold(1, layout.width, new).unbind(1):
            yield draw, 1.0
            if preset.antithetic:
                yield draw, -1.0
        numbers[:, :kept] = numbers[:, NOISE_BLOCK * new :]
        fill(numbers[:, kept:])


def noise_seed(key: FitKey) -> int:
    """A 64-bit generator seed that differs between any two fits."""
    entropy = (key.seed, key.split, key.restart, key.attempt)
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))


def initial_state(layout: Layout, cells: Cells, jitter: Tensor) -> State:
    """Start of each fit: item pass rates for the intercepts, jitter that tells restarts apart.

    Parameters
    ----------
    layout : Layout
    cells : Cells
    jitter : (fit, width) Tensor
        Standard normal numbers.

    Returns
    -------
    State
    """
    loc = START_JITTER * jitter
    rate = (cells.success.sum(1) + 0.5) / (cells.mask.sum(1) + 1)
    loc[:, layout.slices["intercept"]] += torch.logit(rate)
    if "logit_guess" in layout.slices:
        loc[:, layout.slices["logit_guess"]] += GUESS_MEAN
    hyper = loc.new_zeros(loc.shape[0], layout.hyper_width)
    for site in layout.hypers:
        if site.support == "positive":
            hyper[:, layout.hyper_slices[site.name]] = math.log(site.start)
    return State(loc, torch.full_like(loc, math.log(START_SCALE)), hyper)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, and leave the caller's setting as it was.

    Intra-op threads on busy cores made the same work 14 to 50 times slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _tile_state(state: State, elbo: Tensor) -> TileState:
    loc, log_scale, hyper = (t.cpu().numpy() for t in state.tensors())
    finite = np.isfinite(elbo[:, -1].numpy())
    for array in (loc, log_scale, hyper):
        finite &= np.isfinite(array).all(axis=1)
    return TileState(loc, log_scale, hyper, elbo.numpy(), finite)
