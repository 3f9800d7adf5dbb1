"""The hot path equals Pyro on the same noise; the reference densities equal torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyro
import pytest
import torch
from panels import PAIRS, every_spec
from torch.distributions import LKJCholesky

from irtaudit.irt import likelihood, pyro_model
from irtaudit.irt.kernel import Kernel
from irtaudit.irt.layout import LANES, Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.prior import State, correlation_cholesky, log_volume_of_correlations
from irtaudit.irt.spec import ModelSpec

N_SUBJECTS, N_ITEMS, N_SPLITS, N_RESTARTS = 7, 9, 2, 3
SPECS = [*every_spec("hierarchical"), *every_spec("paper")]
TWO_PARAMETERS = [spec for spec in SPECS if spec.family == "2pl"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.name}-{s.priors}")
def test_elbo_and_every_gradient_equal_pyros_on_the_same_noise(spec: ModelSpec) -> None:
    layout = Layout(spec, N_SUBJECTS, N_ITEMS)
    responses, mask = _cells()
    state, noise = _state(layout, seed=1)
    kernel = Kernel(layout, _packed(responses, mask), state)
    by_hand = kernel.gradient(noise)
    leaves = State(*(t.clone().requires_grad_() for t in state.tensors()))
    total, per_fit = pyro_model.elbo(layout, leaves, noise, responses, mask)
    (-total).backward()
    torch.testing.assert_close(kernel.elbo(noise), per_fit.detach(), rtol=0, atol=1e-8)
    torch.testing.assert_close(per_fit.sum(), total, rtol=0, atol=1e-8)
    widths = (sum(layout.sizes.values()), sum(layout.sizes.values()), _n_hyper(layout))
    for ours, leaf, width in zip(by_hand.tensors(), leaves.tensors(), widths, strict=True):
        if width:
            torch.testing.assert_close(ours[:, :width], leaf.grad[:, :width], rtol=0, atol=1e-6)


def test_gradient_does_not_depend_on_the_call_before() -> None:
    layout = Layout(ModelSpec.confirmatory("3pl", ["a", "b", "c"] * 3), N_SUBJECTS, N_ITEMS)
    state, noise = _state(layout, seed=1)
    kernel = Kernel(layout, _packed(*_cells()), state)
    first = [t.clone() for t in kernel.gradient(noise).tensors()]
    kernel.gradient(_state(layout, seed=2)[1])
    kernel.elbo(_state(layout, seed=3)[1])
    for before, after in zip(first, kernel.gradient(noise).tensors(), strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("spec", TWO_PARAMETERS, ids=lambda s: f"{s.name}-{s.priors}")
def test_a_sigmoid_or_a_power_of_two_is_a_matter_of_speed(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(spec, N_SUBJECTS, N_ITEMS)
    state, noise = _state(layout, seed=1)
    by_power = Kernel(layout, _packed(*_cells()), state)
    monkeypatch.setattr(likelihood, "powers_are_cheaper", lambda _device: False)
    by_sigmoid = Kernel(layout, _packed(*_cells()), state)
    for one, other in zip(
        by_power.gradient(noise).tensors(), by_sigmoid.gradient(noise).tensors(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(by_power.elbo(noise), by_sigmoid.elbo(noise), rtol=1e-12, atol=0)


def test_logits_whose_power_overflows_have_the_gradient_of_a_sigmoid(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(ModelSpec.exploratory("2pl", 2), N_SUBJECTS, N_ITEMS)
    state, noise = _state(layout, seed=1)
    state = State(30 * state.loc, *state.tensors()[1:])
    by_power = Kernel(layout, _packed(*_cells()), state).gradient(noise)
    logits = (state.loc[:, :14].view(-1, 2, 7).mT @ state.loc[:, 14:32].view(-1, 2, 9)).abs()
    assert float(logits.max()) > 1024, "two to this power is no double"
    monkeypatch.setattr(likelihood, "powers_are_cheaper", lambda _device: False)
    by_sigmoid = Kernel(layout, _packed(*_cells()), state).gradient(noise)
    for one, other in zip(by_power.tensors(), by_sigmoid.tensors(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sign_of_the_noise_is_part_of_the_draw(sign: float) -> None:
    layout = Layout(ModelSpec.confirmatory("2pl", PAIRS), N_SUBJECTS, N_ITEMS)
    state, noise = _state(layout, seed=1)
    kernel = Kernel(layout, _packed(*_cells()), state)
    signed = [t.clone() for t in kernel.gradient(noise, sign).tensors()]
    value = kernel.elbo(noise, sign)
    for one, other in zip(signed, kernel.gradient(sign * noise).tensors(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(value, kernel.elbo(sign * noise))


@pytest.mark.parametrize("family", ["2pl", "3pl"])
def test_blocks_of_subjects_add_up(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(ModelSpec.confirmatory(family, ["a", "b", "c"] * 3), 70, N_ITEMS)
    rng = np.random.default_rng(0)
    mask, success = (torch.as_tensor((rng.random((1, 70, N_ITEMS)) < p) * 1.0) for p in (0.8, 0.5))
    cells = Cells(success * mask, mask)
    state, noise = _state(layout, seed=1)
    whole = Kernel(layout, cells, state)
    monkeypatch.setattr(likelihood, "BLOCK_CELLS", 1)
    cut = Kernel(layout, cells, state)
    assert [s.stop for s in layout.blocks(1)] == [32, 64, 70]
    for one, other in zip(whole.gradient(noise).tensors(), cut.gradient(noise).tensors(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(whole.elbo(noise), cut.elbo(noise), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dims", [2, 3, 4, 7])
def test_volume_of_the_correlation_matrices_is_pyros_uniform_lkj(dims: int) -> None:
    identity = torch.eye(dims, dtype=torch.float64)
    log_density = pyro.distributions.LKJ(dims, torch.tensor(1.0, dtype=torch.float64)).log_prob(identity)
    assert -log_volume_of_correlations(dims) == pytest.approx(float(log_density), abs=1e-10)
    if dims == 2:  # correlations between -1 and 1: a length of 2
        assert log_volume_of_correlations(2) == pytest.approx(np.log(2), abs=1e-12)


def test_free_numbers_make_a_correlation_cholesky_factor() -> None:
    free = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    factor = correlation_cholesky(free, 4)
    assert LKJCholesky.support.check(factor).all()
    torch.testing.assert_close((factor @ factor.mT).diagonal(dim1=1, dim2=2), torch.ones(5, 4).double())


def test_rows_have_no_vector_tail() -> None:
    for spec in SPECS:
        layout = Layout(spec, 81, 9)
        assert layout.width % LANES == layout.hyper_width % LANES == 0
        assert layout.width - sum(layout.sizes.values()) < LANES


def _n_hyper(layout: Layout) -> int:
    return max((s.stop for s in layout.hyper_slices.values()), default=0)


def _cells() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    shape = (N_SPLITS, 1, N_SUBJECTS, N_ITEMS)
    return torch.as_tensor((rng.random(shape) < 0.5) * 1.0), torch.as_tensor((rng.random(shape) < 0.8) * 1.0)


def _packed(responses: torch.Tensor, mask: torch.Tensor) -> Cells:
    rows = [t.expand(-1, N_RESTARTS, -1, -1).flatten(0, 1) for t in (responses * mask, mask)]
    return Cells(*rows)


def _state(layout: Layout, seed: int) -> tuple[State, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def draw(width: int) -> torch.Tensor:
        return torch.randn(N_SPLITS * N_RESTARTS, width, dtype=torch.float64, generator=generator)

    widths = (layout.width, layout.width, layout.hyper_width)
    return State(*(0.5 * draw(width) for width in widths)), draw(layout.width)
