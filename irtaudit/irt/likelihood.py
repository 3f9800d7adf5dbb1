"""The likelihood of a tile and its gradient with respect to drawn latents, in buffers that are reused.

With slopes and intercepts stacked as W (dim + 1, item), a row of ones below theta, and minus the residual
``e = mask * P - success``::

    eta = theta' W      d loss / d theta = slopes e'      d loss / d W = theta e

so an epoch is one batched product, one sigmoid and two batched products back. On a CPU the sigmoid is
``1 / (1 + 2^h)`` with ``h = -log2(e) eta``, which is cheaper. Where every item loads on
one dimension and the items of a dimension lie together, each dimension is a strip of its own, and no
product is wider than one dimension. Large panels go through this block by block of subjects: the same
sums, in a buffer that stays in the processor's cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from irtaudit.irt.layout import ALIGNED, Layout, padded

BLOCK_CELLS = 2**17
"""Cells of one fit that a CPU works on at a time; a GPU takes all."""
LOG2_E = 1 / math.log(2)


@dataclass(frozen=True)
class Cells:
    """Training responses of a tile.

    Attributes
    ----------
    success : (1 or fit, subject, item) Tensor
        1 where a training response is a pass, else 0; of several trials of a cell the number of passes.
    mask : (1 or fit, subject, item) Tensor
        1 where a response is used for training, else 0; of several trials of a cell their number.
    """

    success: Tensor
    mask: Tensor


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
        n_fits, on_cpu = z.shape[0], z.device.type == "cpu"
        self._guessing = layout.spec.family == "3pl"
        self._powers = not self._guessing and powers_are_cheaper(z.device)
        self._unit = -LOG2_E if self._powers else 1.0
        self._products = _Products(layout, z, grad, self._unit)
        self._axis = ItemAxis.of(layout)
        if self._guessing:
            self._packed_guess, self._packed_grad = (
                t[:, None, layout.slices["logit_guess"]] for t in (z, grad)
            )
            self._wide_logit, self._wide_guess = (
                z.new_zeros(n_fits, 1, padded(self._axis.length)) for _ in range(2)
            )
            self._logit_guess, self._guess = (
                t[..., : self._axis.length] for t in (self._wide_logit, self._wide_guess)
            )
            self._not_guess, self._grad_guess = (z.new_zeros(n_fits, 1, self._axis.length) for _ in range(2))
        cuts = layout.blocks(BLOCK_CELLS) if on_cpu else [slice(0, layout.n_subjects)]
        size = padded(n_fits * max(cut.stop - cut.start for cut in cuts) * self._axis.length)
        cells = Cells(*(self._axis.laid_out(t) for t in (cells.success, cells.mask)))
        buffers = [z.new_zeros(size) for _ in range(2 if self._guessing else 1)]
        self._blocks = [_Block(cells, self._products, cut, self._unit, *buffers) for cut in cuts]

    def gradient(self) -> None:
        """Gradient of minus the log-likelihood at the drawn latents."""
        self._spread()
        if self._guessing:
            self._grad_guess.zero_()
        for block in self._blocks:
            block.predict()
            self._minus_residual(block)
            block.back()
        if self._guessing:
            self._packed_grad.copy_(self._axis.gathered(self._grad_guess.mul_(self._guess)))
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
            block.predict()
            values.append(self._block_value(block))
        return torch.stack(values).sum(0)

    def _spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        self._products.spread()
        if self._guessing:
            self._axis.lay_out(self._packed_guess, self._logit_guess)
            torch.sigmoid(self._wide_logit, out=self._wide_guess)
            torch.sub(1.0, self._guess, out=self._not_guess)

    def _minus_residual(self, block: _Block) -> None:
        """Turn eta, in place, into minus the derivative of the log-likelihood, per unit of eta."""
        p = block.eta
        if self._powers:
            block.flat.exp2_().add_(1)
            torch.addcdiv(block.minus_success, block.mask, p, out=p)
            return
        block.flat.sigmoid_()
        if not self._guessing:
            torch.addcmul(block.minus_success, block.mask, p, out=p)
            return
        # With p* = c + (1 - c) p the derivative is (y / p* - 1) p, and (y / p* - 1) c for the logit of c.
        torch.addcmul(self._guess, self._not_guess, p, out=block.ratio)
        torch.addcdiv(block.mask, block.minus_success, block.ratio, out=block.ratio)
        p.mul_(block.ratio)
        self._grad_guess.add_(block.ratio.sum(1, keepdim=True))

    def _block_value(self, block: _Block) -> Tensor:
        if not self._guessing:
            minus_terms = block.cells(functional.softplus(block.flat.mul_(1 / self._unit)))
            minus_terms.mul_(block.observed).addcmul_(block.success, block.eta, value=-1)
            return -minus_terms.sum(2).sum(1, dtype=torch.float64)
        eta, success = block.eta, block.success
        minus_log_not_guess, minus_log_guess = (
            functional.softplus(sign * self._wide_logit)[..., : self._axis.length] for sign in (1, -1)
        )
        log_fail = -minus_log_not_guess - block.cells(functional.softplus(block.flat))
        log_pass = torch.logaddexp(-minus_log_guess, log_fail + eta)
        return (success * log_pass + (block.mask - success) * log_fail).sum((1, 2), dtype=torch.float64)


def powers_are_cheaper(device: torch.device) -> bool:
    """Whether three passes with a power of two take less time than two with a sigmoid.

    Parameters
    ----------
    device : torch.device
        On a CPU arithmetic counts, on a GPU passes.
    """
    return device.type == "cpu"


@dataclass(frozen=True)
class ItemAxis:
    """Where items lie in the buffers: strips of them, each from a multiple of `ALIGNED`, zeros in between.

    A product works out an element in an order that may depend on where its operands begin in memory, so
    these begin alike for every fit of a batch. It is faster, too.

    Attributes
    ----------
    items, places : tuple of slice
        The items of each strip, and where they lie.
    strips : tuple of slice
        Whole strips.
    """

    items: tuple[slice, ...]
    places: tuple[slice, ...]
    strips: tuple[slice, ...]

    @classmethod
    def of(cls, layout: Layout) -> ItemAxis:
        """One strip with every dimension; or, where each item has but one and they lie together, one each."""
        items = layout.factor_columns or (slice(0, layout.n_items),)
        sizes = [s.stop - s.start for s in items]
        starts = [0, *accumulate(padded(n, ALIGNED) for n in sizes)]
        return cls(
            items,
            tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=False)),
            tuple(slice(a, b) for a, b in pairwise(starts)),
        )

    @property
    def length(self) -> int:
        """Length of the axis."""
        return self.strips[-1].stop

    def lay_out(self, values: Tensor, into: Tensor) -> None:
        """Copy (..., item) numbers to their places."""
        for items, place in zip(self.items, self.places, strict=True):
            into[..., place] = values[..., items]

    def laid_out(self, values: Tensor) -> Tensor:
        """Numbers (..., item) at their places."""
        into = values.new_zeros(*values.shape[:-1], self.length)
        self.lay_out(values, into)
        return into

    def gathered(self, values: Tensor) -> Tensor:
        """Numbers at their places as (..., item)."""
        return torch.cat([values[..., place] for place in self.places], -1)


class _Block:
    """Some subjects' cells, and where their linear predictor goes in the buffers that all blocks share."""

    def __init__(
        self,
        cells: Cells,
        products: _Products,
        subjects: slice,
        unit: float,
        flat: Tensor,
        ratio: Tensor | None = None,
    ) -> None:
        self.success, self.observed = cells.success[:, subjects], cells.mask[:, subjects]
        self._shape = (products.n_fits, *self.observed.shape[1:])
        self.minus_success, self.mask = (
            (self.success / -unit).contiguous(),
            (self.observed / unit).contiguous(),
        )
        # Whole vectors, so that no element is worked out differently for lying at the end.
        self.flat = flat[: padded(math.prod(self._shape))]
        self.eta = self.cells(self.flat)
        if ratio is not None:
            self.ratio = self.cells(ratio)
        self._strips = products.strips(subjects, self.eta)

    def cells(self, flat: Tensor) -> Tensor:
        """View whole vectors as (fit, subject, item)."""
        return flat[: math.prod(self._shape)].view(self._shape)

    def predict(self) -> None:
        """Linear predictor at the drawn latents."""
        for strip in self._strips:
            strip.predict()

    def back(self) -> None:
        """Gradients from minus the residuals, which lie where the linear predictor was."""
        for strip in self._strips:
            strip.back()


class _Products:
    """The linear predictor and the gradients that follow from its residuals, strip by strip of items.

    Parameters
    ----------
    layout : Layout
    z, grad : (fit, width) Tensor
        Drawn latents and their gradient, packed.
    unit : float
        What the linear predictor is to be multiplied by.
    """

    def __init__(self, layout: Layout, z: Tensor, grad: Tensor, unit: float) -> None:
        self.n_fits, k, n = z.shape[0], layout.spec.dims, layout.n_subjects
        self._unit, self._axis = unit, ItemAxis.of(layout)
        n_strips = len(self._axis.strips)
        r = k // n_strips
        self._theta, self._grad_theta = (
            t[:, layout.slices["theta"]].view(self.n_fits, n_strips, r, n).transpose(0, 1) for t in (z, grad)
        )
        self._weights = _weights(layout, r, unit, z, grad)
        rows = r + 1 if r % 4 == 3 else r  # a product of four rows is faster than one of three
        self._stacked = z.new_full((n_strips, self.n_fits, r + 1, padded(n, ALIGNED)), unit)[..., :n]
        self._by_theta = z.new_zeros(n_strips, self.n_fits, rows, n)
        self._laid_weights = z.new_zeros(self.n_fits, r + 1, self._axis.length)
        self._by_weights = [z.new_zeros(self.n_fits, r + 1, s.stop - s.start) for s in self._axis.strips]
        self._scaled_theta, self._found_theta = self._stacked[:, :, :r], self._by_theta[:, :, :r]
        pairs = list(zip(self._axis.items, self._axis.places, strict=True))
        self._copies = [(self._laid_weights[:, :, p], self._weights.value[:, :, i]) for i, p in pairs]
        self._found_weights = [
            found[:, :, : i.stop - i.start] for found, (i, _) in zip(self._by_weights, pairs, strict=True)
        ]

    def strips(self, subjects: slice, eta: Tensor) -> list[_Strip]:
        """The products of a block of subjects.

        Parameters
        ----------
        subjects : slice
        eta : (fit, subject, item) Tensor
            Where the linear predictor goes, and where minus the residuals are found.
        """
        return [
            _Strip(
                eta[:, :, strip],
                stacked[:, :, subjects],
                self._laid_weights[:, :, strip],
                by_theta[:, :, subjects],
                by_weights,
                first=subjects.start == 0,
            )
            for strip, stacked, by_theta, by_weights in zip(
                self._axis.strips, self._stacked, self._by_theta, self._by_weights, strict=True
            )
        ]

    def spread(self) -> None:
        """Lay the drawn latents out as the factors of the products."""
        torch.mul(self._theta, self._unit, out=self._scaled_theta)
        self._weights.spread()
        for laid, value in self._copies:
            laid.copy_(value)

    def collect(self) -> None:
        """Bring the gradients back to the packed latents."""
        torch.mul(self._found_theta, self._unit, out=self._grad_theta)
        torch.cat(self._found_weights, 2, out=self._weights.grad)
        self._weights.collect()


class _Strip:
    """The products of some items and a block of subjects: views made once, since making them costs time."""

    def __init__(
        self,
        eta: Tensor,
        stacked: Tensor,
        weights: Tensor,
        by_theta: Tensor,
        by_weights: Tensor,
        first: bool,
    ) -> None:
        self._eta, self._residual_by_item, self._first = eta, eta.mT, first
        self._stacked, self._stacked_by_subject, self._theta = stacked, stacked.mT, stacked[:, :1].mT
        self._weights, self._slope_rows, self._slope = (
            weights,
            weights[:, : by_theta.shape[1]],
            weights[:, :1],
        )
        self._intercept, self._by_theta, self._by_weights = weights[:, -1:], by_theta, by_weights
        self._one_dimension = stacked.shape[1] == 2

    def predict(self) -> None:
        """Linear predictor; of one dimension, broadcasting is cheaper than a product."""
        if self._one_dimension:
            torch.addcmul(self._intercept, self._theta, self._slope, out=self._eta)
        else:
            torch.bmm(self._stacked_by_subject, self._weights, out=self._eta)

    def back(self) -> None:
        """Gradients from the residuals; the first block of subjects starts the sums over them."""
        torch.bmm(self._slope_rows, self._residual_by_item, out=self._by_theta)
        if self._first:
            torch.bmm(self._stacked, self._eta, out=self._by_weights)
        else:
            self._by_weights.baddbmm_(self._stacked, self._eta)


class _FreeWeights:
    """Slopes and intercepts that lie in the packed rows as they are."""

    def __init__(self, value: Tensor, grad: Tensor) -> None:
        self.value, self.grad = value, grad

    def spread(self) -> None:
        """Nothing to do."""

    def collect(self) -> None:
        """Nothing to do."""


class _PatternWeights:
    """Slopes that are learned as logarithms, one or several per item, or one for all items of a dimension.

    A slope is its own derivative with respect to its logarithm, and zero off the pattern.
    """

    def __init__(self, layout: Layout, rows: int, unit: float, z: Tensor, grad: Tensor) -> None:
        f, j, site = z.shape[0], layout.n_items, layout.latents[1]
        index = torch.as_tensor(layout.loading_index, device=z.device)
        self._dim = index // j if site.plate == "dim" else None
        self._index, self._unit = index % (rows * j), unit
        self._log_slope, self._grad_slope = (t[:, layout.slices[site.name]] for t in (z, grad))
        self._intercept, self._grad_intercept = (t[:, layout.slices["intercept"]] for t in (z, grad))
        self.value, self.grad = z.new_zeros(f, rows + 1, j), z.new_zeros(f, rows + 1, j)
        self._slopes, self._grads = (w[:, :-1].view(f, rows * j) for w in (self.value, self.grad))

    def spread(self) -> None:
        """Write the slopes where the pattern has them."""
        values = self._log_slope.exp()
        self._slopes[:, self._index] = values if self._dim is None else values[:, self._dim]
        self.value[:, -1] = self._intercept * self._unit

    def collect(self) -> None:
        """Read the gradients from where the pattern has slopes."""
        found = self._grads.mul_(self._slopes)[:, self._index]
        if self._dim is None:
            self._grad_slope.copy_(found)
        else:
            self._grad_slope.zero_().index_add_(1, self._dim, found)
        self._grad_intercept.copy_(self.grad[:, -1])


class _RowWeights:
    """One slope per item; it, or its logarithm, and the intercept lie in the packed rows as two rows."""

    def __init__(self, positive: bool, unit: float, packed: Tensor, grad: Tensor) -> None:
        self.value, self.grad = torch.zeros_like(packed), grad
        self._positive, self._unit = positive, unit
        self._packed_slope, self._packed_intercept = packed.unbind(1)
        self._slope, self._intercept = self.value.unbind(1)
        self._grad_slope = grad[:, 0]

    def spread(self) -> None:
        """Write the slopes above the intercepts."""
        if self._positive:
            torch.exp(self._packed_slope, out=self._slope)
        else:
            self._slope.copy_(self._packed_slope)
        torch.mul(self._packed_intercept, self._unit, out=self._intercept)

    def collect(self) -> None:
        """Gradients of the logarithms: a slope is its own derivative."""
        if self._positive:
            self._grad_slope.mul_(self._slope)


def _weights(
    layout: Layout, rows: int, unit: float, z: Tensor, grad: Tensor
) -> _FreeWeights | _PatternWeights | _RowWeights:
    """Slopes in so many rows and below them intercepts, as the products want them.

    With one row of slopes the products add the intercepts as they are, so these must have the unit.
    """
    first, f, j = layout.latents[1].name, z.shape[0], layout.n_items
    both = slice(layout.slices[first].start, layout.slices["intercept"].stop)
    as_rows = both.stop - both.start == (rows + 1) * j
    if not as_rows or (layout.spec.positive and not layout.factor_columns):
        return _PatternWeights(layout, rows, unit if rows == 1 else 1.0, z, grad)
    views = (t[:, both].view(f, rows + 1, j) for t in (z, grad))
    return _RowWeights(layout.spec.positive, unit, *views) if rows == 1 else _FreeWeights(*views)
