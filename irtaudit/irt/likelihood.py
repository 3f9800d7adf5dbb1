"""The likelihood of a tile and its gradient with respect to drawn latents, in buffers that are reused.

With slopes and intercepts stacked as W (dim + 1, item), a row of ones below theta, and minus the residual
``e = mask * P - success``::

    eta = theta' W      d loss / d theta = slopes e'      d loss / d W = theta e

so an epoch is one batched product, one sigmoid and two batched products back. Where every item loads on
one dimension and the items of a dimension lie together, the products are one dimension wide, factor by
factor. Large panels go through this block by block of subjects: the same sums, in a buffer that stays in
the processor's cache.
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
        n_fits, j = z.shape[0], layout.n_items
        at = layout.slices
        self._guessing = layout.spec.family == "3pl"
        self._products = _Factors(layout, z, grad) if layout.factor_columns else _Dense(layout, z, grad)
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
        for i, block in enumerate(self._blocks):
            self._products.predict(block)
            self._minus_residual(block, first=i == 0)
            self._products.back(block, first=i == 0)
        if self._guessing:
            self._grad_guess.mul_(self._guess)
        self._products.collect()

    def value(self) -> Tensor:
        """Log-likelihood of each fit at the drawn latents.

        Returns
        -------
        (fit,) float64 Tensor, in nats
        """
        self._spread()
        values = []
        for block in self._blocks:
            self._products.predict(block)
            values.append(self._block_value(block))
        return torch.stack(values).sum(0)

    def _spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        self._products.spread()
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


class _Dense:
    """Any pattern: slopes and intercepts as one matrix, zero where an item does not load."""

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor) -> None:
        f, k, n, j = z.shape[0], layout.spec.dims, layout.n_subjects, layout.n_items
        at, site = layout.slices, layout.latents[1]
        self._theta, self._grad_theta = (t[:, at["theta"]].view(f, k, n) for t in (z, grad))
        self._stacked = z.new_ones(f, k + 1, n)
        self._free = not layout.spec.positive
        if self._free:  # slopes and intercepts already lie as one matrix
            both = slice(at["slope"].start, at["intercept"].stop)
            self._weights, self._grad_weights = (t[:, both].view(f, k + 1, j) for t in (z, grad))
            return
        self._index = torch.as_tensor(layout.loading_index, device=z.device)
        self._dim = self._index // j if site.plate == "dim" else None
        self._log_slope, self._grad_slope = (t[:, at[site.name]] for t in (z, grad))
        self._intercept, self._grad_intercept = (t[:, at["intercept"]] for t in (z, grad))
        self._weights, self._grad_weights = z.new_zeros(f, k + 1, j), z.new_zeros(f, k + 1, j)
        self._slopes, self._grads = (w[:, :-1].view(f, k * j) for w in (self._weights, self._grad_weights))

    def spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        self._stacked[:, :-1] = self._theta
        if self._free:
            return
        values = self._log_slope.exp()
        self._slopes[:, self._index] = values if self._dim is None else values[:, self._dim]
        self._weights[:, -1] = self._intercept

    def predict(self, block: _Block) -> None:
        """Linear predictor of a block."""
        torch.bmm(self._stacked[:, :, block.subjects].mT, self._weights, out=block.eta_cells)

    def back(self, block: _Block, first: bool) -> None:
        """Gradients from a block's residuals; the first block starts the sums over subjects."""
        residual, stacked = block.eta_cells, self._stacked[:, :, block.subjects]
        torch.bmm(self._weights[:, :-1], residual.mT, out=self._grad_theta[:, :, block.subjects])
        if first:
            torch.bmm(stacked, residual, out=self._grad_weights)
        else:
            self._grad_weights.baddbmm_(stacked, residual)

    def collect(self) -> None:
        """Bring the gradients back to the packed latents."""
        if self._free:
            return
        # A slope is its own derivative with respect to its logarithm, and zero off the pattern.
        found = self._grads.mul_(self._slopes)[:, self._index]
        if self._dim is None:
            self._grad_slope.copy_(found)
        else:
            self._grad_slope.zero_().index_add_(1, self._dim, found)
        self._grad_intercept.copy_(self._grad_weights[:, -1])


class _Factors:
    """Every item on one dimension, the items of each dimension together: products one dimension wide."""

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor) -> None:
        f, k, n, j = z.shape[0], layout.spec.dims, layout.n_subjects, layout.n_items
        at = layout.slices
        self._common = layout.latents[1].plate == "dim"
        self._columns = layout.factor_columns
        self._theta, self._grad_theta = (t[:, at["theta"]].view(f, k, n) for t in (z, grad))
        self._log_slope, self._grad_slope = (t[:, None, at["log_slope"]] for t in (z, grad))
        self._intercept, self._grad_intercept = (t[:, None, at["intercept"]] for t in (z, grad))
        self._slopes = z.new_zeros(f, 1, j)
        self._stacked = z.new_ones(k, f, 2, n)
        self._grads = [z.new_zeros(f, 2, c.stop - c.start) for c in self._columns]
        self._grad_rows = [z.new_zeros(f, 1, n) for _ in self._columns]

    def spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        self._stacked[:, :, 0] = self._theta.transpose(0, 1)
        if not self._common:
            torch.exp(self._log_slope, out=self._slopes)
            return
        values = self._log_slope.exp()
        for d, columns in enumerate(self._columns):
            self._slopes[:, :, columns] = values[:, :, d : d + 1]

    def predict(self, block: _Block) -> None:
        """Linear predictor of a block."""
        for d, columns in enumerate(self._columns):
            theta = self._theta[:, d, block.subjects, None]
            slopes, intercepts = self._slopes[:, :, columns], self._intercept[:, :, columns]
            torch.addcmul(intercepts, theta, slopes, out=block.eta_cells[:, :, columns])

    def back(self, block: _Block, first: bool) -> None:
        """Gradients from a block's residuals; the first block starts the sums over subjects."""
        for d, columns in enumerate(self._columns):
            residual, stacked = block.eta_cells[:, :, columns], self._stacked[d, :, :, block.subjects]
            row = self._grad_rows[d][:, :, block.subjects]
            torch.bmm(self._slopes[:, :, columns], residual.mT, out=row)
            if first:
                torch.bmm(stacked, residual, out=self._grads[d])
            else:
                self._grads[d].baddbmm_(stacked, residual)

    def collect(self) -> None:
        """Bring the gradients back to the packed latents."""
        for d, (columns, grads, row) in enumerate(
            zip(self._columns, self._grads, self._grad_rows, strict=True)
        ):
            self._grad_theta[:, d : d + 1] = row
            self._grad_intercept[:, :, columns] = grads[:, 1:]
            # A slope is its own derivative with respect to its logarithm.
            if self._common:
                slope = self._slopes[:, :, columns.start]
                torch.mul(grads[:, 0].sum(1, keepdim=True), slope, out=self._grad_slope[:, 0, d : d + 1])
            else:
                torch.mul(grads[:, :1], self._slopes[:, :, columns], out=self._grad_slope[:, :, columns])
