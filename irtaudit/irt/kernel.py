"""The hot path: the negative ELBO's gradient by hand, for many fits at once.

The model is the table of :mod:`irtaudit.irt.sites`; only its derivatives are written here, and a test
holds them, and the ELBO, equal to Pyro's ``TraceMeanField_ELBO`` on the same noise.

With residual ``e = mask * (y - P)`` and one reparameterised draw ``z = loc + scale * noise``::

    d loglik / d theta = W e'      d loglik / d slope = theta' e      d loglik / d intercept = sum_i e

so an epoch is one batched product, one sigmoid and two batched products back, over the packed rows of
:class:`irtaudit.irt.layout.Layout`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from irtaudit.irt.layout import Layout


@dataclass(frozen=True)
class Cells:
    """What a tile is fitted to.

    Attributes
    ----------
    success : (1 or fit, cell_width) Tensor
        1 where a training response is a pass, else 0.
    mask : (1 or fit, cell_width) Tensor
        1 where a response is used for training, else 0.
    """

    success: Tensor
    mask: Tensor


@dataclass(frozen=True)
class State:
    """Variational parameters of a tile, unconstrained; also used for their gradient.

    Attributes
    ----------
    loc, log_scale : (fit, width) Tensor
        Mean-field normal posterior of the latents.
    hyper : (fit, hyper_width) Tensor
        Unconstrained modes of the hyperparameters.
    """

    loc: Tensor
    log_scale: Tensor
    hyper: Tensor

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three tensors, in the order of the attributes."""
        return self.loc, self.log_scale, self.hyper


def as_cells(packed: Tensor, layout: Layout) -> Tensor:
    """View packed cells (fit, cell_width) as (fit, subject, item)."""
    n, j = layout.n_subjects, layout.n_items
    return packed.as_strided((packed.shape[0], n, j), (packed.stride(0), j, 1))


def pack_cells(values: Tensor, layout: Layout) -> Tensor:
    """Pack (panel, subject, item) numbers into rows (panel, cell_width), padded with zeros."""
    packed = values.new_zeros(values.shape[0], layout.cell_width)
    as_cells(packed, layout).copy_(values)
    return packed


def correlation_cholesky(free: Tensor, dims: int) -> Tensor:
    """Cholesky factor of a correlation matrix from its free numbers.

    Parameters
    ----------
    free : (..., dims * (dims - 1) / 2) Tensor
        Strict lower triangle, row by row, of a matrix with unit diagonal whose rows are then normalised.
    dims : int

    Returns
    -------
    (..., dims, dims) Tensor
    """
    rows = torch.eye(dims, dtype=free.dtype, device=free.device).expand(*free.shape[:-1], dims, dims).clone()
    lower = torch.tril_indices(dims, dims, -1, device=free.device)
    rows[..., lower[0], lower[1]] = free
    return rows / rows.norm(dim=-1, keepdim=True)


def log_volume_of_correlations(dims: int) -> float:
    """Logarithm of the volume of the correlation matrices: minus the LKJ(1) log density.

    Source: Lewandowski, Kurowicka and Joe (2009), J. Multivariate Analysis 100, 1989-2001.
    """
    total = 0.0
    for m in range(1, dims):
        shape = (dims - m + 1) / 2
        log_beta = 2 * math.lgamma(shape) - math.lgamma(2 * shape)
        total += (dims - m) * ((2 * shape - 1) * math.log(2) + log_beta)
    return total


class Kernel:
    """Negative ELBO of a tile and its gradient, in buffers that every epoch reuses.

    Parameters
    ----------
    layout : Layout
    cells : Cells
    n_fits : int
        Number of fits in the tile.

    Attributes
    ----------
    grad : State
        Gradient of the negative ELBO after the last call of :meth:`gradient`.
    """

    def __init__(self, layout: Layout, cells: Cells, n_fits: int) -> None:
        k, n, j = layout.spec.dims, layout.n_subjects, layout.n_items
        new = cells.mask.new_zeros
        row = (n_fits, layout.width)
        self.layout, self.cells = layout, cells
        self.grad = State(new(row), new(row), new(n_fits, layout.hyper_width))
        self._z, self._grad_z, self._scale, self._variance = new(row), new(row), new(row), new(row)
        # A precision of one holds the padding at a standard normal, where it cannot overflow.
        self._deviation, self._mean, self._precision = new(row), new(row), new(row) + 1.0
        self._eta = new(n_fits, layout.cell_width)
        self._theta, self._grad_theta = new(n_fits, k + 1, n), new(n_fits, k + 1, n)
        self._theta[:, k] = 1.0
        self._weights, self._grad_weights = new(n_fits, k + 1, j), new(n_fits, k + 1, j)
        self._index = torch.as_tensor(layout.loading_index, device=self._z.device)
        if layout.spec.family == "3pl":
            self._ratio = new(n_fits, layout.cell_width)
            self._guess, self._not_guess = new(n_fits, 1, j), new(n_fits, 1, j)
        for site in layout.latents:
            columns = layout.slices[site.name]
            if isinstance(site.mean, float):
                self._mean[:, columns] = site.mean
            if isinstance(site.scale, float):
                self._precision[:, columns] = site.scale**-2.0

    def gradient(self, state: State, noise: Tensor) -> State:
        """Gradient of the negative ELBO at one draw.

        Parameters
        ----------
        state : State
        noise : (fit, width) Tensor
            Standard normal numbers, one per latent.

        Returns
        -------
        State
            The buffers of :attr:`grad`, overwritten by the next call.
        """
        self._forward(state, noise)
        self._likelihood_gradient()
        inverse = self._prior_moments(state)
        torch.sub(state.loc, self._mean, out=self._deviation)
        torch.mul(self._scale, self._scale, out=self._variance)
        grad_loc, grad_log_scale, _ = self.grad.tensors()
        torch.addcmul(self._grad_z, self._precision, self._deviation, out=grad_loc)
        torch.mul(self._precision, self._variance, out=grad_log_scale).sub_(1.0)
        grad_log_scale.addcmul_(self._grad_z.mul_(noise), self._scale)
        self._hyper_gradient(state, inverse)
        return self.grad

    def elbo(self, state: State, noise: Tensor) -> Tensor:
        """Evidence lower bound of each fit at one draw.

        Parameters
        ----------
        state : State
        noise : (fit, width) Tensor

        Returns
        -------
        (fit,) float64 Tensor, in nats
        """
        self._forward(state, noise)
        inverse = self._prior_moments(state)
        used = slice(0, sum(self.layout.sizes.values()))
        deviation = (state.loc - self._mean)[:, used].double()
        precision = self._precision[:, used].double()
        log_scale = state.log_scale[:, used].double()
        kl = 0.5 * (precision * (deviation**2 + (2 * log_scale).exp()) - 1 - precision.log()) - log_scale
        total = self._log_likelihood() - kl.sum(1) + self._hyper_log_prior(state)
        return total if inverse is None else total - self._correlation_kl(state, inverse.double())

    # The likelihood ----------------------------------------------------------------------------------

    def _forward(self, state: State, noise: Tensor) -> None:
        """Draw the latents and leave the linear predictor in ``_eta``."""
        torch.exp(state.log_scale, out=self._scale)
        torch.addcmul(state.loc, self._scale, noise, out=self._z)
        at, k = self.layout.slices, self.layout.spec.dims
        self._theta[:, :k] = self._z[:, at["theta"]].view(self._theta[:, :k].shape)
        self._place_slopes(self._z)
        self._weights[:, k] = self._z[:, at["intercept"]]
        if self.layout.spec.family == "3pl":
            torch.sigmoid(self._z[:, None, at["logit_guess"]], out=self._guess)
            torch.sub(1.0, self._guess, out=self._not_guess)
        torch.bmm(self._theta.transpose(1, 2), self._weights, out=as_cells(self._eta, self.layout))

    def _place_slopes(self, z: Tensor) -> None:
        target = self._weights[:, :-1].view(z.shape[0], -1)
        site = self.layout.latents[1]
        values = z[:, self.layout.slices[site.name]]
        if site.name == "log_slope":
            values = values.exp()
        if site.plate == "dim":
            values = values[:, self._index // self.layout.n_items]
        if target.shape == values.shape:
            target.copy_(values)
        else:
            target[:, self._index] = values

    def _likelihood_gradient(self) -> None:
        """Minus the gradient of the log-likelihood with respect to the drawn latents, in ``_grad_z``."""
        residual = as_cells(self._minus_residual(), self.layout)
        torch.bmm(self._weights, residual.transpose(1, 2), out=self._grad_theta)
        torch.bmm(self._theta, residual, out=self._grad_weights)
        at, k = self.layout.slices, self.layout.spec.dims
        theta = self._grad_z[:, at["theta"]]
        theta.view(-1, k, self.layout.n_subjects).copy_(self._grad_theta[:, :k])
        self._collect_slopes()
        self._grad_z[:, at["intercept"]] = self._grad_weights[:, k]
        if self.layout.spec.family == "3pl":
            ratios = as_cells(self._ratio, self.layout)
            self._grad_z[:, at["logit_guess"]] = ratios.sum(1).mul_(self._guess[:, 0])

    def _minus_residual(self) -> Tensor:
        """Minus d loglik / d eta, cell by cell, in the buffer of eta."""
        success, mask = self.cells.success, self.cells.mask
        p = torch.sigmoid(self._eta, out=self._eta)
        if self.layout.spec.family != "3pl":
            return torch.addcmul(-success, mask, p, out=p)
        # With p* = c + (1 - c) p the residual is (y / p* - 1) p, and (y / p* - 1) c for logit c.
        view, ratio = as_cells(p, self.layout), as_cells(self._ratio, self.layout)
        torch.addcmul(self._guess, self._not_guess, view, out=ratio)
        torch.sub(mask, success / self._ratio, out=self._ratio)
        return p.mul_(self._ratio)

    def _collect_slopes(self) -> None:
        site = self.layout.latents[1]
        found = self._grad_weights[:, :-1].view(self._grad_weights.shape[0], -1)
        if site.name == "log_slope":
            found = found.mul_(self._weights[:, :-1].view(found.shape))
        target = self._grad_z[:, self.layout.slices[site.name]]
        if site.plate == "dim":
            target.copy_(found.view(found.shape[0], target.shape[1], -1).sum(-1))
        elif found.shape == target.shape:
            target.copy_(found)
        else:
            target.copy_(found[:, self._index])

    def _log_likelihood(self) -> Tensor:
        lay = self.layout
        eta = as_cells(self._eta, lay).double()
        success, mask = as_cells(self.cells.success, lay).double(), as_cells(self.cells.mask, lay).double()
        if lay.spec.family != "3pl":
            return (success * eta - mask * functional.softplus(eta)).sum((1, 2))
        logit = self._z[:, None, lay.slices["logit_guess"]].double()
        log_fail = functional.logsigmoid(-logit) - functional.softplus(eta)
        log_pass = torch.logaddexp(functional.logsigmoid(logit), log_fail + eta)
        return (success * log_pass + (mask - success) * log_fail).sum((1, 2))

    # The priors --------------------------------------------------------------------------------------

    def _prior_moments(self, state: State) -> Tensor | None:
        """Write learned prior moments into the packed rows; return the inverse of R where it is learned."""
        lay = self.layout
        values = {name: state.hyper[:, columns] for name, columns in lay.hyper_slices.items()}
        for site in lay.latents:
            columns = lay.slices[site.name]
            if isinstance(site.mean, str):
                self._mean[:, columns] = values[site.mean]
            if isinstance(site.scale, str):
                self._precision[:, columns] = (-2 * values[site.scale]).exp()
        if not lay.spec.correlated:
            return None
        k, n = lay.spec.dims, lay.n_subjects
        inverse = torch.cholesky_inverse(correlation_cholesky(values["factor_correlation"], k))
        theta = self._precision[:, lay.slices["theta"]].view(-1, k, n)
        theta.copy_(inverse.diagonal(dim1=1, dim2=2)[:, :, None])
        return inverse

    def _hyper_log_prior(self, state: State) -> Tensor:
        lay = self.layout
        total = torch.zeros(state.hyper.shape[0], dtype=torch.float64, device=state.hyper.device)
        for hyper in lay.hypers:
            value = state.hyper[:, lay.hyper_slices[hyper.name]].double()
            first, second = hyper.prior
            if hyper.support == "correlation":
                total -= log_volume_of_correlations(lay.spec.dims)
            elif hyper.support == "real":
                total -= (
                    0.5 * ((value - first) / second) ** 2 + math.log(second * math.sqrt(2 * math.pi))
                ).sum(1)
            else:
                log_norm = first * math.log(second) - math.lgamma(first)
                total += ((first - 1) * value - second * value.exp() + log_norm).sum(1)
        return total

    def _correlation_kl(self, state: State, inverse: Tensor) -> Tensor:
        """What the correlations add to the divergence of theta beyond the diagonal of R's inverse."""
        lay = self.layout
        k, n = lay.spec.dims, lay.n_subjects
        theta = state.loc[:, lay.slices["theta"]].view(-1, k, n).double()
        diagonal = inverse.diagonal(dim1=1, dim2=2)
        off_diagonal = inverse - torch.diag_embed(diagonal)
        quadratic = (theta * torch.bmm(off_diagonal, theta)).sum((1, 2))
        log_det = -torch.linalg.slogdet(inverse).logabsdet
        return 0.5 * (quadratic + n * (log_det + diagonal.log().sum(1)))

    def _hyper_gradient(self, state: State, inverse: Tensor | None) -> None:
        lay = self.layout
        grad = {name: self.grad.hyper[:, columns] for name, columns in lay.hyper_slices.items()}
        for site in lay.latents:
            if not isinstance(site.scale, str):
                continue
            columns = lay.slices[site.name]
            precision = self._precision[:, columns.start]
            deviation = self._deviation[:, columns]
            spread = torch.addcmul(self._variance[:, columns], deviation, deviation).sum(1)
            grad[site.scale][:, 0] = lay.sizes[site.name] - precision * spread
            if isinstance(site.mean, str):
                grad[site.mean][:, 0] = -precision * deviation.sum(1)
        for hyper in lay.hypers:
            value = state.hyper[:, lay.hyper_slices[hyper.name]]
            first, second = hyper.prior
            if hyper.support == "real":
                grad[hyper.name].add_((value - first) / second**2)
            elif hyper.support == "positive":
                grad[hyper.name].add_(second * value.exp() - (first - 1))
        if inverse is not None:
            self._correlation_gradient(state, inverse, grad["factor_correlation"])

    def _correlation_gradient(self, state: State, inverse: Tensor, out: Tensor) -> None:
        """Gradient with respect to R, and the off-diagonal part of the gradient with respect to theta."""
        lay = self.layout
        k, n = lay.spec.dims, lay.n_subjects
        columns = lay.slices["theta"]
        theta = state.loc[:, columns].view(-1, k, n)
        grad_theta = self.grad.loc[:, columns].view(-1, k, n)
        off_diagonal = inverse - torch.diag_embed(inverse.diagonal(dim1=1, dim2=2))
        grad_theta.add_(torch.bmm(off_diagonal, theta))
        second = torch.bmm(theta, theta.transpose(1, 2))
        second += torch.diag_embed(self._variance[:, columns].view(-1, k, n).sum(2))
        cholesky = correlation_cholesky(state.hyper[:, lay.hyper_slices["factor_correlation"]], k)
        by_matrix = n * inverse - torch.bmm(torch.bmm(inverse, second), inverse)
        by_cholesky = torch.bmm(by_matrix, cholesky)
        along_row = (by_cholesky * cholesky).sum(2, keepdim=True)
        by_row = (by_cholesky - cholesky * along_row) * cholesky.diagonal(dim1=1, dim2=2)[:, :, None]
        lower = torch.tril_indices(k, k, -1, device=out.device)
        out.copy_(by_row[:, lower[0], lower[1]])
