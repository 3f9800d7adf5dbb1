"""The divergence of a tile's posterior from its priors, and its gradient; everything here is exact.

For a latent with posterior N(m, s) and prior N(mu, sigma)::

    KL = log(sigma / s) + (s^2 + (m - mu)^2) / (2 sigma^2) - 1/2

Where theta has prior N(0, R), the diagonal of R's inverse plays the part of ``1 / sigma^2`` and the rest
is added. R is learned as ``L L'``, L being a unit lower triangle W with its rows normalised; W's free
numbers are unconstrained, and W, not R, is what gets inverted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from irtaudit.irt.layout import Layout
from irtaudit.irt.sites import Latent


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

    @classmethod
    def views(cls, flat: Tensor, like: State) -> State:
        """Cut one flat tensor, contiguous part by part, into the shapes of another state."""
        parts = flat.split([t.numel() for t in like.tensors()])
        return cls(*(part.view(t.shape) for part, t in zip(parts, like.tensors(), strict=True)))

    def flat(self) -> Tensor:
        """All numbers in one new tensor, part by part."""
        return torch.cat([t.reshape(-1) for t in self.tensors()])

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three tensors, in the order of the attributes."""
        return self.loc, self.log_scale, self.hyper


class Prior:
    """Divergence of every latent from its prior, minus the log prior of the hyperparameters.

    Parameters
    ----------
    layout : Layout
    state : State
        Parameters, read anew at every call.
    grad : State
        Where the gradient goes.
    scale : (fit, width) Tensor
        ``exp(log_scale)``, kept up to date by the caller.
    """

    def __init__(self, layout: Layout, state: State, grad: State, scale: Tensor) -> None:
        self._layout, self._state, self._grad, self._scale = layout, state, grad, scale
        self._mean, self._deviation, self._variance = (torch.zeros_like(scale) for _ in range(3))
        # A precision of one holds the padding at a standard normal, where it cannot overflow.
        self._precision = torch.ones_like(scale)
        for site in layout.latents:
            columns = layout.slices[site.name]
            if isinstance(site.mean, float):
                self._mean[:, columns] = site.mean
            if isinstance(site.scale, float):
                self._precision[:, columns] = site.scale**-2.0
        self._minus_one = -scale.new_ones(())
        self._exp_hyper = torch.empty_like(state.hyper)
        self._linear, self._exponential, self._constant = _hyper_gradient_terms(layout, state.hyper)
        self._learned = [self._views(site) for site in layout.latents if isinstance(site.scale, str)]
        self._correlations = None
        if layout.spec.correlated:
            self._correlations = Correlations(layout, state, grad, self._precision, self._variance)

    def gradient(self, base: Tensor) -> None:
        """Write the whole gradient but for the likelihood's part of ``log_scale``.

        Parameters
        ----------
        base : (fit, width) Tensor
            The likelihood's gradient with respect to ``loc``, to which the priors' is added.
        """
        self._moments()
        torch.sub(self._state.loc, self._mean, out=self._deviation)
        torch.mul(self._scale, self._scale, out=self._variance)
        torch.addcmul(base, self._precision, self._deviation, out=self._grad.loc)
        torch.addcmul(self._minus_one, self._precision, self._variance, out=self._grad.log_scale)
        hyper = torch.addcmul(self._constant, self._linear, self._state.hyper, out=self._grad.hyper)
        hyper.addcmul_(self._exponential, self._exp_hyper)
        for site in self._learned:
            spread = torch.addcmul(site.variance, site.deviation, site.deviation).sum(1, keepdim=True)
            site.grad_scale.add_(site.size).addcmul_(site.precision, spread, value=-1)
            if site.grad_mean is not None:
                total = site.deviation.sum(1, keepdim=True)
                site.grad_mean.addcmul_(site.precision, total, value=-1)
        if self._correlations is not None:
            self._correlations.gradient()

    def value(self) -> Tensor:
        """Divergence of the latents minus the log prior of the hyperparameters.

        Returns
        -------
        (fit,) float64 Tensor, in nats
        """
        self._moments()
        used = slice(0, sum(self._layout.sizes.values()))
        deviation = (self._state.loc - self._mean)[:, used].double()
        precision = self._precision[:, used].double()
        log_scale = self._state.log_scale[:, used].double()
        kl = 0.5 * (precision * (deviation**2 + (2 * log_scale).exp()) - 1 - precision.log()) - log_scale
        total = kl.sum(1) - _hyper_log_prior(self._layout, self._state.hyper.double())
        return total if self._correlations is None else total + self._correlations.value()

    def _moments(self) -> None:
        """Bring the prior moments that are learned up to date."""
        torch.exp(self._state.hyper, out=self._exp_hyper)
        for site in self._learned:
            torch.pow(site.sd, -2, out=site.precision)
            site.precision_row.copy_(site.precision)
            if site.mean is not None:
                site.mean_row.copy_(site.mean)
        if self._correlations is not None:
            self._correlations.moments()

    def _views(self, site: Latent) -> _Learned:
        lay, columns = self._layout, self._layout.slices[site.name]
        scale = lay.hyper_slices[str(site.scale)]
        mean = lay.hyper_slices[site.mean] if isinstance(site.mean, str) else None
        return _Learned(
            size=lay.sizes[site.name],
            sd=self._exp_hyper[:, scale],
            precision=torch.empty_like(self._exp_hyper[:, scale]),
            mean=None if mean is None else self._state.hyper[:, mean],
            mean_row=self._mean[:, columns],
            precision_row=self._precision[:, columns],
            deviation=self._deviation[:, columns],
            variance=self._variance[:, columns],
            grad_scale=self._grad.hyper[:, scale],
            grad_mean=None if mean is None else self._grad.hyper[:, mean],
        )


@dataclass(frozen=True)
class _Learned:
    """Views of what belongs to a latent site whose prior moments are learned; (fit, 1) or (fit, size)."""

    size: int
    sd: Tensor
    precision: Tensor
    mean: Tensor | None
    mean_row: Tensor
    precision_row: Tensor
    deviation: Tensor
    variance: Tensor
    grad_scale: Tensor
    grad_mean: Tensor | None


class Correlations:
    """What the learned correlations R of theta add to the divergence and its gradient.

    Parameters
    ----------
    layout : Layout
    state, grad : State
    precision, variance : (fit, width) Tensor
        Prior precisions, whose theta part this keeps at the diagonal of R's inverse; posterior variances.
    """

    def __init__(
        self, layout: Layout, state: State, grad: State, precision: Tensor, variance: Tensor
    ) -> None:
        k, n, f = layout.spec.dims, layout.n_subjects, precision.shape[0]
        theta, free = layout.slices["theta"], layout.hyper_slices["factor_correlation"]
        self._n, self._k = n, k
        self._theta, self._grad_theta, self._precision, self._variance = (
            t[:, theta].view(f, k, n) for t in (state.loc, grad.loc, precision, variance)
        )
        self._free, self._grad_free = state.hyper[:, free], grad.hyper[:, free]
        self._place = lower_triangle(k, precision)
        self._identity = torch.eye(k, dtype=precision.dtype, device=precision.device)
        self._off_diagonal = 1 - self._identity

    def moments(self) -> None:
        """Bring W, its row norms, and the inverse of R up to date."""
        self._unit = torch.addmm(self._identity.view(1, -1), self._free, self._place).view(
            -1, self._k, self._k
        )
        self._norm = (self._unit * self._unit).sum(2, keepdim=True).sqrt_()
        inverse = torch.linalg.solve_triangular(
            self._unit, self._identity.expand_as(self._unit), upper=False, unitriangular=True
        )
        self._inverse_cholesky = inverse * self._norm.mT
        self._inverse = torch.bmm(self._inverse_cholesky.mT, self._inverse_cholesky)
        self._precision.copy_(self._inverse.diagonal(dim1=1, dim2=2)[:, :, None])

    def gradient(self) -> None:
        """Add the off-diagonal part to the gradient of theta; write the gradient of R's free numbers."""
        self._grad_theta.baddbmm_(self._inverse * self._off_diagonal, self._theta)
        moments = torch.bmm(self._theta, self._theta.mT)
        moments.diagonal(dim1=1, dim2=2).add_(self._variance.sum(2))
        cholesky = self._unit / self._norm
        # d KL / d R is (n R^-1 - R^-1 S R^-1) / 2, and R = L L', so d KL / d L = (n I - R^-1 S) L^-T.
        weighted = torch.baddbmm(self._identity, self._inverse, moments, beta=self._n, alpha=-1)
        by_cholesky = torch.bmm(weighted, self._inverse_cholesky.mT)
        along_row = (by_cholesky * cholesky).sum(2, keepdim=True)
        by_row = by_cholesky.addcmul_(cholesky, along_row, value=-1).div_(self._norm)
        torch.mm(by_row.view(-1, self._k * self._k), self._place.mT, out=self._grad_free)

    def value(self) -> Tensor:
        """Divergence of theta beyond the diagonal of R's inverse, (fit,) float64."""
        inverse, theta = self._inverse.double(), self._theta.double()
        quadratic = (theta * torch.bmm(inverse * self._off_diagonal.double(), theta)).sum((1, 2))
        log_det = -2 * self._norm.double().log().sum((1, 2))
        return 0.5 * (quadratic + self._n * (log_det + inverse.diagonal(dim1=1, dim2=2).log().sum(1)))


def lower_triangle(dims: int, like: Tensor) -> Tensor:
    """(pair, dims * dims) matrix that puts free numbers below the diagonal, row by row."""
    rows, columns = torch.tril_indices(dims, dims, -1)
    place = like.new_zeros(len(rows), dims * dims)
    place[torch.arange(len(rows)), rows * dims + columns] = 1.0
    return place


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
    identity = torch.eye(dims, dtype=free.dtype, device=free.device)
    rows = (free @ lower_triangle(dims, free)).unflatten(-1, (dims, dims)) + identity
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


def _hyper_gradient_terms(layout: Layout, hyper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows a, b, c with which the gradient of minus the log prior is ``a v + b exp(v) + c``."""
    linear, exponential, constant = (hyper.new_zeros(hyper.shape[1]) for _ in range(3))
    for site in layout.hypers:
        columns, (first, second) = layout.hyper_slices[site.name], site.prior
        if site.support == "real":
            linear[columns], constant[columns] = second**-2, -first * second**-2
        elif site.support == "positive":
            exponential[columns], constant[columns] = second, 1 - first
    return linear, exponential, constant


def _hyper_log_prior(layout: Layout, hyper: Tensor) -> Tensor:
    total = hyper.new_zeros(hyper.shape[0])
    for site in layout.hypers:
        value, (first, second) = hyper[:, layout.hyper_slices[site.name]], site.prior
        if site.support == "correlation":
            total -= log_volume_of_correlations(layout.spec.dims)
        elif site.support == "real":
            log_norm = -math.log(second * math.sqrt(2 * math.pi))
            total += (log_norm - 0.5 * ((value - first) / second) ** 2).sum(1)
        else:
            log_norm = first * math.log(second) - math.lgamma(first)
            total += (log_norm + (first - 1) * value - second * value.exp()).sum(1)
    return total
