"""The divergence of a tile's posterior from its priors, and its gradient; everything here is exact.

For a latent with posterior N(m, s) and prior N(mu, sigma)::

    KL = log(sigma / s) + (s^2 + (m - mu)^2) / (2 sigma^2) - 1/2

Where theta has prior N(0, R), the diagonal of R's inverse plays the part of ``1 / sigma^2`` and the rest
is added. R is learned as ``L L'``, L being a unit lower triangle W with its rows normalised; W's free
numbers are unconstrained, and W, not R, is what gets inverted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from irtaudit.irt.layout import Layout, padded
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
    base : (fit, width) Tensor
        The likelihood's gradient with respect to the drawn latents, kept up to date by the caller.
    scale : (fit, width) Tensor
        ``exp(log_scale)``, kept up to date by the caller.
    """

    def __init__(self, layout: Layout, state: State, grad: State, base: Tensor, scale: Tensor) -> None:
        self._layout, self._state, self._grad, self._base, self._scale = layout, state, grad, base, scale
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
        self._exp_hyper, self._precisions = (torch.empty_like(state.hyper) for _ in range(2))
        self._linear, self._exponential, self._constant = _hyper_gradient_terms(layout, state.hyper)
        self._learned = [self._views(sites) for sites in _alike(layout)]
        self._correlations = None
        if layout.spec.correlated:
            self._correlations = Correlations(layout, state, grad, base, self._precision, self._variance)

    def gradient(self) -> None:
        """Write the whole gradient but for the likelihood's part of ``log_scale``."""
        self._moments()
        torch.sub(self._state.loc, self._mean, out=self._deviation)
        torch.mul(self._scale, self._scale, out=self._variance)
        torch.addcmul(self._base, self._precision, self._deviation, out=self._grad.loc)
        torch.addcmul(self._minus_one, self._precision, self._variance, out=self._grad.log_scale)
        hyper = torch.addcmul(self._constant, self._linear, self._state.hyper, out=self._grad.hyper)
        hyper.addcmul_(self._exponential, self._exp_hyper)
        for sites in self._learned:
            spread = torch.addcmul(sites.variance, sites.deviation, sites.deviation).sum(2)
            sites.grad_scale.addcmul_(sites.precision, spread, value=-1)
            if sites.grad_mean is not None:
                sites.grad_mean.addcmul_(sites.precision, sites.deviation.sum(2), value=-1)
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
        torch.pow(self._exp_hyper, -2, out=self._precisions)
        for sites in self._learned:
            sites.precision_rows.copy_(sites.precision_column)
            if sites.mean_column is not None:
                sites.mean_rows.copy_(sites.mean_column)
        if self._correlations is not None:
            self._correlations.moments()

    def _views(self, sites: Sequence[Latent]) -> _Learned:
        lay = self._layout
        columns = slice(lay.slices[sites[0].name].start, lay.slices[sites[-1].name].stop)
        scales = _columns([lay.hyper_slices[str(site.scale)] for site in sites])
        learned_mean = isinstance(sites[0].mean, str)
        means = _columns([lay.hyper_slices[str(site.mean)] for site in sites]) if learned_mean else None
        n = self._precisions[:, scales].shape[1]

        def rows(packed: Tensor) -> Tensor:
            return packed[:, columns].view(packed.shape[0], n, -1)

        return _Learned(
            precision=self._precisions[:, scales],
            precision_column=self._precisions[:, scales, None],
            precision_rows=rows(self._precision),
            mean_column=None if means is None else self._state.hyper[:, means, None],
            mean_rows=rows(self._mean),
            deviation=rows(self._deviation),
            variance=rows(self._variance),
            grad_scale=self._grad.hyper[:, scales],
            grad_mean=None if means is None else self._grad.hyper[:, means],
        )


def _alike(layout: Layout) -> list[list[Latent]]:
    """Latent sites whose prior moments are learned; neighbours of one size that learn the same together."""
    learned = [site for site in layout.latents if isinstance(site.scale, str)]

    def kind(site: Latent) -> tuple[int, bool]:
        return layout.sizes[site.name], isinstance(site.mean, str)

    return [list(sites) for _, sites in groupby(learned, kind)]


def _columns(hypers: Sequence[slice]) -> slice:
    """Columns of one hyperparameter, or of two that have one each."""
    first, last = hypers[0], hypers[-1]
    return first if first == last else slice(first.start, last.stop, last.start - first.start)


@dataclass(frozen=True)
class _Learned:
    """Views of what belongs to latent sites whose prior moments are learned.

    (fit, site) hyperparameters, (fit, site, 1) columns, (fit, site, size) rows; a site with hyperparameters
    in each dimension counts as so many.
    """

    precision: Tensor
    precision_column: Tensor
    precision_rows: Tensor
    mean_column: Tensor | None
    mean_rows: Tensor
    deviation: Tensor
    variance: Tensor
    grad_scale: Tensor
    grad_mean: Tensor | None


class Correlations:
    """What the learned correlations R of theta add to the divergence and its gradient.

    With D the norms of W's rows, R's inverse Q is ``M' M``, M being ``inv(W) D``. S being the second
    moments of theta under the posterior, and H = Q S - n I::

        2 KL = tr(Q S) - n log det Q        d KL / d W = inv(D) (diag(H) inv(D) W - H M')

    below the diagonal of W.

    Parameters
    ----------
    layout : Layout
    state, grad : State
    base : (fit, width) Tensor
        The likelihood's gradient with respect to the drawn latents.
    precision, variance : (fit, width) Tensor
        Prior precisions, whose theta part this keeps at the diagonal of R's inverse; posterior variances.
    """

    def __init__(
        self, layout: Layout, state: State, grad: State, base: Tensor, precision: Tensor, variance: Tensor
    ) -> None:
        k, n, f = layout.spec.dims, layout.n_subjects, precision.shape[0]
        theta, free = layout.slices["theta"], layout.hyper_slices["factor_correlation"]
        self._n, self._k = n, k
        self._theta, self._grad_theta, self._base, self._precision, self._variance = (
            t[:, theta].view(f, k, n) for t in (state.loc, grad.loc, base, precision, variance)
        )
        self._theta_by_subject = self._theta.mT
        self._free, self._grad_free = state.hyper[:, free], grad.hyper[:, free]
        self._place = lower_triangle(k, precision)
        self._minus_from_place = -self._place.mT
        self._identity = torch.eye(k, dtype=precision.dtype, device=precision.device)
        self._minus_n = -n * self._identity
        # Each fit's matrices begin alike in memory: no product depends on the fit's place in the tile.
        self._flat_unit, root, inverse = (precision.new_zeros(f, padded(k * k))[:, : k * k] for _ in range(3))
        self._unit, self._root, self._inverse = (t.view(f, k, k) for t in (self._flat_unit, root, inverse))
        self._flat_identity, self._second = self._identity.view(1, k * k), precision.new_zeros(f, k, k)
        self._second_diagonal = self._second.diagonal(dim1=1, dim2=2)
        self._root_by_column, self._diagonal = (
            self._root.mT,
            self._inverse.diagonal(dim1=1, dim2=2)[:, :, None],
        )
        self._norm = precision.new_zeros(f, k, 1)
        self._norm_by_column = self._norm.mT
        self._pull = precision.new_zeros(f, k, n)

    def moments(self) -> None:
        """Bring W, its row norms, and the inverse of R up to date."""
        torch.addmm(self._flat_identity, self._free, self._place, out=self._flat_unit)
        torch.linalg.vector_norm(self._unit, dim=2, keepdim=True, out=self._norm)
        # The powers of the strict triangle I - W end with its size, so inv(W) is a finite sum of them.
        strict = self._identity - self._unit
        inverse = self._identity + strict
        for _ in range(self._k - 2):
            inverse = torch.baddbmm(self._identity, strict, inverse)
        torch.mul(inverse, self._norm_by_column, out=self._root)
        torch.bmm(self._root_by_column, self._root, out=self._inverse)
        self._precision.copy_(self._diagonal)

    def gradient(self) -> None:
        """Write the gradients of theta's means and of R's free numbers."""
        torch.bmm(self._inverse, self._theta, out=self._pull)
        torch.add(self._base, self._pull, out=self._grad_theta)
        torch.bmm(self._theta, self._theta_by_subject, out=self._second)
        self._second_diagonal.add_(self._variance.sum(2))
        rest = torch.baddbmm(self._minus_n, self._inverse, self._second)
        along = rest.diagonal(dim1=1, dim2=2)[:, :, None] / self._norm
        by_row = torch.bmm(rest, self._root_by_column).addcmul_(along, self._unit, value=-1)
        by_row.div_(self._norm)
        torch.mm(by_row.view(-1, self._k * self._k), self._minus_from_place, out=self._grad_free)

    def value(self) -> Tensor:
        """Divergence of theta beyond the diagonal of R's inverse, (fit,) float64."""
        inverse, theta = self._inverse.double(), self._theta.double()
        off_diagonal = inverse * (1 - self._identity.double())
        quadratic = (theta * torch.bmm(off_diagonal, theta)).sum((1, 2))
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
    """Rows a, b, c: minus the log prior and the log scales in the divergence give ``a v + b exp(v) + c``."""
    linear, exponential, constant = (hyper.new_zeros(hyper.shape[1]) for _ in range(3))
    for site in layout.hypers:
        columns, (first, second) = layout.hyper_slices[site.name], site.prior
        if site.support == "real":
            linear[columns], constant[columns] = second**-2, -first * second**-2
        elif site.support == "positive":
            exponential[columns], constant[columns] = second, 1 - first
    for latent in layout.latents:
        if isinstance(latent.scale, str):
            columns = layout.hyper_slices[latent.scale]
            constant[columns] += layout.sizes[latent.name] // (columns.stop - columns.start)
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
