"""The likelihood of a tile and its gradient with respect to drawn latents, in buffers that are reused.

With slopes and intercepts stacked as W (dim + 1, item), a row of ones below theta, and minus the residual
``e = mask * P - success``::

    eta = theta' W      d loss / d theta = slopes e'      d loss / d W = theta e

so an epoch is one batched product, one sigmoid and two batched products back. Large panels go through
this block by block of subjects: the same sums, in a buffer that stays in the processor's cache.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from irtaudit.irt.cells import Cells, as_cells, block_columns
from irtaudit.irt.layout import LANES, Layout

BLOCK_CELLS = 2**17
"""Cells of one fit that a CPU works on at a time; a GPU takes all."""


class Likelihood:
    """Bernoulli likelihood of every training response of a tile.

    Parameters
    ----------
    layout : Layout
    cells : Cells
    z : (fit, width) Tensor
        Where the drawn latents will be, packed.
    grad : (fit, width) Tensor
        Where the gradient goes, packed; the padding is never written.
    """

    def __init__(self, layout: Layout, cells: Cells, z: Tensor, grad: Tensor) -> None:
        n_fits, k, n, j = z.shape[0], layout.spec.dims, layout.n_subjects, layout.n_items
        at = layout.slices
        self._guessing = layout.spec.family == "3pl"
        self._theta, self._grad_theta = (t[:, at["theta"]].view(n_fits, k, n) for t in (z, grad))
        self._stacked = z.new_ones(n_fits, k + 1, n)
        self._placement = _place(layout, z, grad)
        self._weights, self._grad_weights = self._placement.weights, self._placement.grad_weights
        if self._guessing:
            self._logit_guess, self._grad_guess = (t[:, None, at["logit_guess"]] for t in (z, grad))
            self._guess, self._not_guess = z.new_zeros(n_fits, 1, j), z.new_zeros(n_fits, 1, j)
        on_cpu = z.device.type == "cpu"
        cuts = layout.blocks(BLOCK_CELLS if on_cpu else layout.cell_width + layout.n_items * LANES)
        widest = max(c.stop - c.start for c in (block_columns(layout, cut) for cut in cuts))
        buffers = [z.new_zeros(n_fits, widest) for _ in range(2 if self._guessing else 1)]
        self._blocks = [_Block(layout, cells, cut, *buffers) for cut in cuts]

    def gradient(self) -> None:
        """Gradient of minus the log-likelihood at the drawn latents."""
        self._spread()
        slopes = self._weights[:, :-1]
        for i, block in enumerate(self._blocks):
            stacked = self._stacked[:, :, block.subjects]
            torch.bmm(stacked.mT, self._weights, out=block.eta_cells)
            self._minus_residual(block, first=i == 0)
            residual = block.eta_cells
            torch.bmm(slopes, residual.mT, out=self._grad_theta[:, :, block.subjects])
            if i == 0:
                torch.bmm(stacked, residual, out=self._grad_weights)
            else:
                self._grad_weights.baddbmm_(stacked, residual)
        if self._guessing:
            self._grad_guess.mul_(self._guess)
        self._placement.collect()

    def value(self) -> Tensor:
        """Log-likelihood of each fit at the drawn latents.

        Returns
        -------
        (fit,) float64 Tensor, in nats
        """
        self._spread()
        total = torch.zeros(self._stacked.shape[0], dtype=torch.float64, device=self._stacked.device)
        for block in self._blocks:
            torch.bmm(self._stacked[:, :, block.subjects].mT, self._weights, out=block.eta_cells)
            total += self._block_value(block)
        return total

    def _spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        self._stacked[:, :-1] = self._theta
        self._placement.spread()
        if self._guessing:
            torch.sigmoid(self._logit_guess, out=self._guess)
            torch.sub(1.0, self._guess, out=self._not_guess)

    def _minus_residual(self, block: _Block, first: bool) -> None:
        """Turn eta, in place, into minus the derivative of the log-likelihood with respect to it."""
        p = block.eta.sigmoid_()
        if not self._guessing:
            torch.addcmul(block.minus_success, block.mask, p, out=p)
            return
        # With p* = c + (1 - c) p the derivative is (y / p* - 1) p, and (y / p* - 1) c for the logit of c.
        torch.addcmul(self._guess, self._not_guess, block.eta_cells, out=block.ratio_cells)
        torch.addcdiv(block.mask, block.minus_success, block.ratio, out=block.ratio)
        p.mul_(block.ratio)
        if first:
            torch.sum(block.ratio_cells, 1, keepdim=True, out=self._grad_guess)
        else:
            self._grad_guess.add_(block.ratio_cells.sum(1, keepdim=True))

    def _block_value(self, block: _Block) -> Tensor:
        eta, success, mask = block.eta_cells, block.success_cells, block.mask_cells
        if not self._guessing:
            terms = functional.softplus(eta).mul_(mask).addcmul_(success, eta, value=-1)
            return -terms.sum((1, 2), dtype=torch.float64)
        log_fail = -functional.softplus(self._logit_guess) - functional.softplus(eta)
        log_pass = torch.logaddexp(-functional.softplus(-self._logit_guess), log_fail + eta)
        return (success * log_pass + (mask - success) * log_fail).sum((1, 2), dtype=torch.float64)


class _Block:
    """Views of the cells of some subjects, in the buffers that all blocks share."""

    def __init__(
        self, layout: Layout, cells: Cells, subjects: slice, eta: Tensor, ratio: Tensor | None = None
    ) -> None:
        columns = block_columns(layout, subjects)
        width = columns.stop - columns.start
        success = cells.success[:, columns]
        self.subjects, self.minus_success, self.mask = subjects, -success, cells.mask[:, columns]
        self.success_cells = as_cells(success, layout, subjects)
        self.mask_cells = as_cells(self.mask, layout, subjects)
        self.eta, self.eta_cells = eta[:, :width], as_cells(eta, layout, subjects)
        if ratio is not None:
            self.ratio, self.ratio_cells = ratio[:, :width], as_cells(ratio, layout, subjects)


class _Free:
    """Every slope free and of either sign: the packed rows are the weights."""

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor) -> None:
        item_side = slice(layout.slices["slope"].start, layout.slices["intercept"].stop)
        shape = (z.shape[0], layout.spec.dims + 1, layout.n_items)
        self.weights, self.grad_weights = z[:, item_side].view(shape), grad[:, item_side].view(shape)

    def spread(self) -> None:
        """Nothing to do: slopes and intercepts already lie as one matrix."""

    def collect(self) -> None:
        """Nothing to do: the gradient was written where it belongs."""


class _Broadcast:
    """Positive slopes that broadcast against the pattern: one per item, or one per dimension in a 1PL."""

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor) -> None:
        f, k, j = z.shape[0], layout.spec.dims, layout.n_items
        at, common = layout.slices, layout.latents[1].plate == "dim"
        shape = (f, k, 1) if common else (f, 1, j)
        self._axis = 2 if common else 1
        self._pattern = torch.as_tensor(layout.pattern.T.copy(), device=z.device).to(z.dtype)
        self._log_slope, self._grad_slope = (t[:, at["log_slope"]].view(shape) for t in (z, grad))
        self._intercept, self._grad_intercept = (t[:, at["intercept"]] for t in (z, grad))
        self.weights, self.grad_weights = z.new_zeros(f, k + 1, j), z.new_zeros(f, k + 1, j)
        self._slopes, self._grads = self.weights[:, :-1], self.grad_weights[:, :-1]
        self._exp = torch.empty_like(self._log_slope)

    def spread(self) -> None:
        """Lay the drawn slopes and intercepts out as the weights."""
        torch.exp(self._log_slope, out=self._exp)
        torch.mul(self._exp, self._pattern, out=self._slopes)
        self.weights[:, -1] = self._intercept

    def collect(self) -> None:
        """Bring the weights' gradient back to the packed latents."""
        # A slope is its own derivative with respect to its logarithm, and zero off the pattern.
        self._grads.mul_(self._slopes)
        torch.sum(self._grads, self._axis, keepdim=True, out=self._grad_slope)
        self._grad_intercept.copy_(self.grad_weights[:, -1])


class _Indexed:
    """Positive slopes in any pattern: each is put at its place and fetched from there."""

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor) -> None:
        f, k, j = z.shape[0], layout.spec.dims, layout.n_items
        at = layout.slices
        self._index = torch.as_tensor(layout.loading_index, device=z.device)
        self._log_slope, self._grad_slope = (t[:, at["log_slope"]] for t in (z, grad))
        self._intercept, self._grad_intercept = (t[:, at["intercept"]] for t in (z, grad))
        self.weights, self.grad_weights = z.new_zeros(f, k + 1, j), z.new_zeros(f, k + 1, j)
        self._slopes, self._grads = (w[:, :-1].view(f, k * j) for w in (self.weights, self.grad_weights))

    def spread(self) -> None:
        """Lay the drawn slopes and intercepts out as the weights."""
        self._slopes[:, self._index] = self._log_slope.exp()
        self.weights[:, -1] = self._intercept

    def collect(self) -> None:
        """Bring the weights' gradient back to the packed latents."""
        self._grads.mul_(self._slopes)
        torch.index_select(self._grads, 1, self._index, out=self._grad_slope)
        self._grad_intercept.copy_(self.grad_weights[:, -1])


def _place(layout: Layout, z: Tensor, grad: Tensor) -> _Free | _Broadcast | _Indexed:
    if not layout.spec.positive:
        return _Free(layout, z, grad)
    one_each = layout.latents[1].plate == "dim" or bool((layout.pattern.sum(axis=1) == 1).all())
    return _Broadcast(layout, z, grad) if one_each else _Indexed(layout, z, grad)
