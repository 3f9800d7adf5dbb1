"""The one table of sites: every unknown of the model, its shape, its transform and its prior.

The Pyro model and guide (:mod:`irtaudit.irt.pyro_model`) and the hot path (:mod:`irtaudit.irt.kernel`)
both read this table, so the model is stated once.

Latent sites have a mean-field normal posterior; hyperparameters are learned as modes:

==============  =========  =================================  ====================================
latent          plate      hierarchical                       paper
==============  =========  =================================  ====================================
theta           subject    N(0, I), or N(0, R) if correlated  the same
log_slope       loading    N(slope_mean, slope_scale)         N(0, .5)
log_slope 1PL   dim        N(0, .5)                           N(0, .5)
slope (expl.)   loading    N(slope_mean, slope_scale)         N(0, 1)
intercept       item       N(intercept_mean, intercept_scale) N(0, 2)
logit_guess     item       N(-1.4, .7)                        N(-1.4, .7)
==============  =========  =================================  ====================================

==================  =============  =============================================================
hyperparameter      support        prior
==================  =============  =============================================================
slope_mean          real           N(0, .5) of log slopes; N(0, 1) of exploratory slopes
slope_scale         positive       Gamma(10, 20) of log slopes; Gamma(2, 2) of exploratory slopes
intercept_mean      real           N(0, 2)
intercept_scale     positive       Gamma(2, 1)
factor_correlation  correlation    LKJ(1): uniform over correlation matrices
==================  =============  =============================================================

Normal(mean, sd), Gamma(shape, rate). A Gamma density of shape 2 or more falls to zero at zero, so a
learned scale cannot collapse onto its boundary (Chung et al. 2013, Psychometrika 78, 685-709). For the
spread of log slopes shape 2 is not enough: on the five items of LSAT7 it still shrinks the 2PL towards a
1PL (marginal log-likelihood -2663.8, maximum -2658.8). Gamma(10, 20) has the paper's .5 as its mean and
reaches -2659.7 there; with hundreds of items it hardly matters.

Exploratory slopes have a mean and a scale in each dimension: where items mostly tell the same subjects apart,
one dimension takes what the slopes have in common, and the scale of one that is not needed becomes small, so
that a surplus dimension costs little held-out log-loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irtaudit.irt.spec import ModelSpec

Plate = Literal["subject", "loading", "dim", "item"]
Support = Literal["real", "positive", "correlation"]

GUESS_MEAN, GUESS_SD = -1.4, 0.7
SLOPE_SD = 0.5
FREE_SLOPE_SD = FREE_SLOPE_MEAN_SD = 1.0
INTERCEPT_SD = 2.0


@dataclass(frozen=True)
class Latent:
    """A site with a mean-field normal posterior and a normal prior.

    Attributes
    ----------
    name : str
        Name of the sample site.
    plate : {"subject", "loading", "dim", "item"}
        What the site is indexed by; ``theta`` has one value per subject and dimension.
    mean, scale : float or str
        Moments of the prior: a number, or the name of the hyperparameter that is learned.
    """

    name: str
    plate: Plate
    mean: float | str
    scale: float | str


@dataclass(frozen=True)
class Hyper:
    """A hyperparameter, learned as a mode under its prior.

    Attributes
    ----------
    name : str
        Name of the sample site.
    support : {"real", "positive", "correlation"}
        Learned as itself, as its logarithm, or as the rows of a Cholesky factor.
    prior : pair of float
        (mean, sd) of a normal for ``real``; (shape, rate) of a Gamma for ``positive``; unused otherwise.
    start : float
        Constrained value that a fit starts from.
    plate : {"dim"}, optional
        There is one value for each dimension; else a fit has one.
    """

    name: str
    support: Support
    prior: tuple[float, float]
    start: float
    plate: Literal["dim"] | None = None


def latents(spec: ModelSpec) -> tuple[Latent, ...]:
    """Latent sites of a model, in the order in which noise is drawn for them.

    Parameters
    ----------
    spec : ModelSpec

    Returns
    -------
    tuple of Latent
    """
    learned = spec.priors == "hierarchical"
    sites = [Latent("theta", "subject", 0.0, 1.0)]
    if not spec.positive and learned:
        sites.append(Latent("slope", "loading", "slope_mean", "slope_scale"))
    elif not spec.positive:
        sites.append(Latent("slope", "loading", 0.0, FREE_SLOPE_SD))
    elif spec.family == "1pl":
        sites.append(Latent("log_slope", "dim", 0.0, SLOPE_SD))
    elif learned:
        sites.append(Latent("log_slope", "loading", "slope_mean", "slope_scale"))
    else:
        sites.append(Latent("log_slope", "loading", 0.0, SLOPE_SD))
    if learned:
        sites.append(Latent("intercept", "item", "intercept_mean", "intercept_scale"))
    else:
        sites.append(Latent("intercept", "item", 0.0, INTERCEPT_SD))
    if spec.family == "3pl":
        sites.append(Latent("logit_guess", "item", GUESS_MEAN, GUESS_SD))
    return tuple(sites)


def hypers(spec: ModelSpec) -> tuple[Hyper, ...]:
    """Hyperparameters that a model learns.

    Parameters
    ----------
    spec : ModelSpec

    Returns
    -------
    tuple of Hyper
    """
    sites = []
    named = {v for site in latents(spec) for v in (site.mean, site.scale)}
    if "slope_mean" in named and spec.positive:
        sites.append(Hyper("slope_mean", "real", (0.0, SLOPE_SD), 0.0))
        sites.append(Hyper("slope_scale", "positive", (10.0, 20.0), 0.5))
    elif "slope_mean" in named:
        sites.append(Hyper("slope_mean", "real", (0.0, FREE_SLOPE_MEAN_SD), 0.0, "dim"))
        sites.append(Hyper("slope_scale", "positive", (2.0, 2.0), 0.5, "dim"))
    if "intercept_mean" in named:
        sites.append(Hyper("intercept_mean", "real", (0.0, 2.0), 0.0))
        sites.append(Hyper("intercept_scale", "positive", (2.0, 1.0), 1.0))
    if spec.correlated:
        sites.append(Hyper("factor_correlation", "correlation", (1.0, 1.0), 0.0))
    return tuple(sites)
