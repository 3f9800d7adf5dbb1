"""The definition of the models, in Pyro: what every faster path must equal.

Restarts and splits are plate dimensions of one model, so many fits are one program; being independent
given their own parameters, they are exactly the separate fits. Dimensions of every tensor, from the
left: ``split, restart, subject, item`` (then ``dim`` where a site is a vector).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.distributions.transforms import CorrMatrixCholeskyTransform
from pyro.infer import TraceMeanField_ELBO
from torch import Tensor
from torch.distributions import kl_divergence

from irtaudit.irt.layout import Layout
from irtaudit.irt.prior import State, correlation_cholesky
from irtaudit.irt.sites import Hyper, Latent

Sites = dict[str, Tensor]


def model(layout: Layout, responses: Tensor, trials: Tensor, n_restarts: int) -> None:
    """Generative model of responses, for every split and restart.

    Parameters
    ----------
    layout : Layout
        The spec with the numbers of subjects and items.
    responses, trials : (split, 1, subject, item) Tensor
        Shares of passes (any number where not used) and how many trials of each are used for training: 1 or
        none where a cell has one response. The likelihood is that of every single trial, binomial without
        its constant.
    n_restarts : int
    """
    spec, plates = layout.spec, _Plates(layout, responses.shape[0], n_restarts)
    values: Sites = {}
    for hyper in layout.hypers:
        with plates("split", "restart", *filter(None, [hyper.plate])):
            values[hyper.name] = pyro.sample(hyper.name, _hyper_prior(hyper, spec.dims, responses.dtype))
    for site in layout.latents:
        with plates("split", "restart", site.plate):
            values[site.name] = pyro.sample(site.name, _latent_prior(site, layout, values, responses.dtype))
    eta = (values["theta"] * slopes(layout, values)).sum(-1) + values["intercept"]
    logits = _with_guessing(eta, values["logit_guess"]) if spec.family == "3pl" else eta
    # Mask and scale, for a scale of zero is refused.
    with plates("split", "restart", "subject", "item"), poutine.scale(scale=trials.clamp(min=1)):
        pyro.sample("response", dist.Bernoulli(logits=logits).mask(trials > 0), obs=responses)


def guide(layout: Layout, state: State, n_splits: int) -> None:
    """Mean-field normal posterior of the latents; hyperparameters as points.

    Parameters
    ----------
    layout : Layout
    state : State
        Unconstrained parameters, packed, with splits times restarts rows (split-major).
    n_splits : int
    """
    n_restarts = state.loc.shape[0] // n_splits
    plates = _Plates(layout, n_splits, n_restarts)
    for hyper in layout.hypers:
        with plates("split", "restart", *filter(None, [hyper.plate])):
            point = _hyper_value(hyper, layout, state).unflatten(0, (n_splits, n_restarts))
            event = 2 if hyper.support == "correlation" else 0
            point = point[:, :, None, None] if event else point[:, :, None]
            pyro.sample(hyper.name, dist.Delta(point, event_dim=event))
    for site in layout.latents:
        loc = unpack(layout, site, state.loc, n_splits)
        scale = unpack(layout, site, state.log_scale, n_splits).exp()
        with plates("split", "restart", site.plate):
            pyro.sample(site.name, dist.Normal(loc, scale).to_event(site.name == "theta"))


def unpack(layout: Layout, site: Latent, packed: Tensor, n_splits: int) -> Tensor:
    """Numbers of one latent site in the model's shape.

    Parameters
    ----------
    layout : Layout
    site : Latent
    packed : (fit, width) Tensor
    n_splits : int

    Returns
    -------
    (split, restart, subject, 1, dim) Tensor for theta, else (split, restart, 1, n) Tensor
    """
    rows = packed[:, layout.slices[site.name]].unflatten(0, (n_splits, -1))
    if site.name == "theta":
        by_dim = rows.unflatten(2, (layout.spec.dims, layout.n_subjects))
        return by_dim.transpose(2, 3)[:, :, :, None, :]
    return rows[:, :, None, :]


def slopes(layout: Layout, values: Mapping[str, Tensor]) -> Tensor:
    """Slope matrix, zero where the pattern is zero.

    Returns
    -------
    (split, restart, 1, item, dim) Tensor
    """
    site = layout.latents[1].name
    free = values[site].exp() if site == "log_slope" else values[site]
    k, j = layout.spec.dims, layout.n_items
    index = torch.as_tensor(layout.loading_index)
    if layout.latents[1].plate == "dim":
        free = free[..., index // j]
    flat = free.new_zeros(*free.shape[:-1], k * j).index_copy(-1, index, free)
    return flat.unflatten(-1, (k, j)).transpose(-1, -2)


def elbo(
    layout: Layout, state: State, noise: Tensor, responses: Tensor, trials: Tensor
) -> tuple[Tensor, Tensor]:
    """Pyro's evidence lower bound at a given draw, summed and per fit.

    Parameters
    ----------
    layout : Layout
    state : State
        Packed parameters; gradients flow to them.
    noise : (fit, width) Tensor
        Standard normal numbers, packed like the parameters.
    responses, trials : (split, 1, subject, item) Tensor
        As in :func:`model`.

    Returns
    -------
    total : () Tensor
        ``-TraceMeanField_ELBO.differentiable_loss``.
    per_fit : (fit,) Tensor
        The same bound, fit by fit.
    """
    n_splits = responses.shape[0]
    n_restarts = state.loc.shape[0] // n_splits
    args = (layout, responses, trials, n_restarts)

    def with_noise(*_: Any) -> None:
        with _GivenNoise({s.name: unpack(layout, s, noise, n_splits) for s in layout.latents}):
            guide(layout, state, n_splits)

    with pyro.settings.context(module_local_params=True), pyro.validation_enabled(False):
        loss = TraceMeanField_ELBO(max_plate_nesting=4).differentiable_loss(model, with_noise, *args)
        posterior = poutine.trace(with_noise).get_trace(*args)
        prior = poutine.trace(poutine.replay(model, trace=posterior)).get_trace(*args)
    prior.compute_log_prob()
    likelihood = _by_fit(prior.nodes["response"]["log_prob"], n_splits, n_restarts)
    divergence = sum(
        _by_fit(kl_divergence(node["fn"], prior.nodes[name]["fn"]), n_splits, n_restarts)
        for name, node in posterior.nodes.items()
        if node["type"] == "sample" and not type(node["fn"]).__name__.startswith("_Subsample")
    )
    return -loss, likelihood - divergence


class _GivenNoise(poutine.messenger.Messenger):
    """Reparameterised draws of normal sites from noise that was drawn elsewhere."""

    def __init__(self, noise: Sites) -> None:
        super().__init__()
        self.noise = noise

    def _pyro_sample(self, msg: dict[str, Any]) -> None:
        if msg["name"] in self.noise:
            fn = msg["fn"]
            msg["value"] = fn.mean + fn.stddev * self.noise[msg["name"]]
            msg["done"] = True


class _Plates:
    """The plates of the model by name, each at its fixed dimension."""

    def __init__(self, layout: Layout, n_splits: int, n_restarts: int) -> None:
        n = {"split": n_splits, "restart": n_restarts, "subject": layout.n_subjects}
        n |= {"loading": len(layout.loading_index), "dim": layout.spec.dims, "item": layout.n_items}
        at = {"split": -4, "restart": -3, "subject": -2, "loading": -1, "dim": -1, "item": -1}
        self.plates = {name: pyro.plate(name, size, dim=at[name]) for name, size in n.items()}

    def __call__(self, *names: str) -> ExitStack:
        stack = ExitStack()
        for name in names:
            stack.enter_context(self.plates[name])
        return stack


def _hyper_prior(hyper: Hyper, dims: int, dtype: torch.dtype) -> dist.Distribution:
    first, second = (torch.tensor(v, dtype=dtype) for v in hyper.prior)
    if hyper.support == "real":
        return dist.Normal(first, second)
    if hyper.support == "positive":
        return dist.Gamma(first, second)
    # Spelled out because `dist.LKJ` of pyro 1.9 cannot be expanded over plates.
    return dist.TransformedDistribution(dist.LKJCholesky(dims, first), [CorrMatrixCholeskyTransform().inv])


def _latent_prior(
    site: Latent, layout: Layout, values: Mapping[str, Tensor], dtype: torch.dtype
) -> dist.Distribution:
    def moment(of: float | str) -> Tensor:
        if not isinstance(of, str):
            return torch.tensor(of, dtype=dtype)
        # Exploratory slopes lie dimension by dimension, and each dimension has moments of its own.
        return values[of].repeat_interleave(layout.n_items, -1) if site.name == "slope" else values[of]

    moments = [moment(of) for of in (site.mean, site.scale)]
    if site.name != "theta":
        return dist.Normal(*moments)
    if layout.spec.correlated:
        zero = torch.zeros(layout.spec.dims, dtype=dtype)
        return dist.MultivariateNormal(zero, covariance_matrix=values["factor_correlation"])
    return dist.Normal(*(m.expand(layout.spec.dims) for m in moments)).to_event(1)


def _hyper_value(hyper: Hyper, layout: Layout, state: State) -> Tensor:
    free = state.hyper[:, layout.hyper_slices[hyper.name]]
    if hyper.support == "positive":
        return free.exp()
    if hyper.support == "real":
        return free
    cholesky = correlation_cholesky(free, layout.spec.dims)
    return cholesky @ cholesky.mT


def _with_guessing(eta: Tensor, logit_guess: Tensor) -> Tensor:
    """Logit of ``c + (1 - c) sigmoid(eta)``, without leaving the log scale."""
    log_fail = torch.nn.functional.logsigmoid(-logit_guess) - torch.nn.functional.softplus(eta)
    return torch.logaddexp(torch.nn.functional.logsigmoid(logit_guess), log_fail + eta) - log_fail


def _by_fit(terms: Tensor, n_splits: int, n_restarts: int) -> Tensor:
    return terms.expand(n_splits, n_restarts, *terms.shape[2:]).reshape(n_splits * n_restarts, -1).sum(1)
