"""What a fit gives: the posterior of every restart, which one was selected, and how it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import listed
from irtaudit.errors import PlanError, check_kind
from irtaudit.irt.layout import Layout
from irtaudit.irt.predict import pass_probability, plug_in, slope_matrix
from irtaudit.irt.presets import Preset
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.latent_correlation import latent_correlations
from irtaudit.words import counted

Array = NDArray[np.floating]


def ability_correlations(
    spec: ModelSpec, mean: Array, sd: Array, prior: Array, *, seed: int = 0
) -> NDArray[np.float64]:
    """Correlations of abilities that are known up to their posterior, one matrix per fit.

    The correlations of the centred second moments ``(1/N) sum_i (m_i m_i' + V_i)``, m_i and V_i the posterior
    mean and covariance of theta_i under the learned-R prior, averaged over the posterior of R: a normal
    posterior N(m, s) under N(0, R) implies a normal likelihood of precision ``1 / s^2 - diag(R^-1)``, to
    which :func:`irtaudit.stats.latent_correlation.latent_correlations` returns. Where items load on several
    factors that likelihood is not known factor by factor, and the moments at the mode of R are taken.
    ``experiments/factor_correlations`` has the errors of both intervals that rest on this.

    Parameters
    ----------
    spec : ModelSpec
    mean, sd : (fit, subject, dim) array
        Posterior moments of theta.
    prior : (fit, dim, dim) array
        The learned R.
    seed : int
        Of the sampling of R.

    Returns
    -------
    (fit, dim, dim) array
    """
    # one order in memory, so that a fit read from a file rounds as the one that was saved
    m, s, r = (np.ascontiguousarray(part, dtype=np.float64) for part in (mean, sd, prior))
    if not spec.simple:
        return np.stack([moment_correlations(*moments) for moments in zip(m, s, strict=True)])
    inverse = np.linalg.inv(r)
    precision = s**-2 - np.einsum("fdd->fd", inverse)[:, None, :]
    return latent_correlations(precision * m + m @ inverse, precision, r, seed=seed)


def moment_correlations(mean: Array, sd: Array) -> NDArray[np.float64]:
    """Correlations of the second moments of independent normal posteriors.

    Parameters
    ----------
    mean, sd : (subject, dim) array
        Posterior moments of theta.

    Returns
    -------
    (dim, dim) array
    """
    m, s = np.asarray(mean, dtype=np.float64), np.asarray(sd, dtype=np.float64)
    centred = m - m.mean(axis=0)
    moments = centred.T @ centred / len(m) + np.diag((s**2).mean(axis=0))
    scale = np.sqrt(np.diag(moments))
    return np.asarray(moments / np.outer(scale, scale))


def check_fit(fit: object) -> None:
    """Raise PlanError unless the value is one fit; of many fits it says how to take one."""
    if isinstance(fit, Mapping) and fit:
        raise PlanError(
            f"fit is a dict of {len(fit)}, as irtaudit.fit_all returns; expected one fit of it: "
            f"fits[{next(iter(fit))!r}], say. There are {listed(fit)}."
        )
    check_kind("fit", fit, FitResult, "what irtaudit.fit returns")


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted item response model, every split and restart of it. Numpy and pandas only.

    Attributes
    ----------
    spec : ModelSpec
    subjects, items : tuple of str
    splits : tuple of str
        Name of each split; ``("all",)`` where every observed cell was fitted.
    train_cells : tuple of int
        Training responses per split; every trial of a cell is one.
    means, sds : mapping of arrays
        Posterior mean and SD of each latent site: ``theta`` (split, restart, subject, dim) in SDs of the
        population; ``log_slope`` or ``slope`` (split, restart, loading), log logits or logits per unit of
        theta, (split, restart, dim) in a 1PL; ``intercept``, ``logit_guess`` (split, restart, item), logits.
    hypers : mapping of arrays
        Learned hyperparameters (split, restart), or (split, restart, dim) where each dimension has one;
        ``factor_correlation`` (split, restart, dim, dim) is the prior's matrix R, see
        :attr:`factor_correlations` for the estimate.
    restarts : DataFrame
        Columns ``split, restart, train_log_lik`` (plug-in, nats), ``elbo`` (mean of the last checks, nats),
        ``log_loss, brier`` (plug-in, held-out cells), ``epochs, stop_reason, retries, selected, elbo_best``.
    heldout : DataFrame
        Columns ``split, log_loss`` (plug-in), ``log_loss_predictive`` (posterior predictive), ``brier``, of
        the selected restart; no rows without held-out cells.
    elbo_path : (split, restart, check) array
        ELBO in nats, as training went on.
    seed : int
    preset : Preset
    data_sha256 : str
    predictor : str
        What ``log_loss`` and ``brier`` use.
    warnings : tuple of str
        What did not settle, or sits at a boundary.
    test_cells : tuple of int
        Held-out responses per split, likewise; empty: not known.
    """

    spec: ModelSpec
    subjects: tuple[str, ...]
    items: tuple[str, ...]
    splits: tuple[str, ...]
    train_cells: tuple[int, ...]
    means: Mapping[str, Array]
    sds: Mapping[str, Array]
    hypers: Mapping[str, Array]
    restarts: pd.DataFrame
    heldout: pd.DataFrame
    elbo_path: Array
    seed: int
    preset: Preset
    data_sha256: str
    predictor: str = "plug-in"
    warnings: tuple[str, ...] = ()
    test_cells: tuple[int, ...] = ()

    def __repr__(self) -> str:
        size = f"{len(self.subjects)} subjects x {len(self.items)} items"
        splits = counted(len(self.splits), "split")
        starts = f"{splits} x {counted(self.restarts['restart'].nunique(), 'restart')}"
        return f"FitResult({self.spec.name}, {size}, {starts})"

    @cached_property
    def layout(self) -> Layout:
        """Shapes of the model on this matrix."""
        return Layout(self.spec, len(self.subjects), len(self.items))

    def selected_restart(self, split: int = 0) -> int:
        """Restart with the highest training log-likelihood of a split (by position)."""
        rows = self.restarts[(self.restarts["split"] == self.splits[split]) & self.restarts["selected"]]
        return int(rows["restart"].iloc[0])

    def posterior(
        self, split: int = 0, restart: int | None = None
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Posterior means and SDs of one fit.

        Parameters
        ----------
        split : int
            Position of the split.
        restart : int, optional
            Default the selected one.

        Returns
        -------
        means, sds : dict of arrays
            As :attr:`means` and :attr:`sds`, without their first two axes.
        """
        r = self.selected_restart(split) if restart is None else restart
        return (
            {name: values[split, r] for name, values in self.means.items()},
            {name: values[split, r] for name, values in self.sds.items()},
        )

    def probabilities(self, split: int = 0, restart: int | None = None) -> Array:
        """Plug-in probability of a pass for every cell.

        Parameters
        ----------
        split, restart : int
            As in :meth:`posterior`.

        Returns
        -------
        (subject, item) array
        """
        return pass_probability(self.layout, plug_in(*self.posterior(split, restart)))

    @cached_property
    def abilities(self) -> pd.DataFrame:
        """Abilities by the selected restart of the first split.

        Returns
        -------
        DataFrame indexed by subject
            Columns ``<factor>`` and ``<factor>_sd`` for every factor: posterior mean and SD of theta.
        """
        means, sds = self.posterior()
        columns = {}
        for d, factor in enumerate(self.spec.factors):
            columns[factor] = means["theta"][:, d]
            columns[f"{factor}_sd"] = sds["theta"][:, d]
        return pd.DataFrame(columns, index=pd.Index(self.subjects, name="subject"))

    @cached_property
    def item_parameters(self) -> pd.DataFrame:
        """Item parameters by the selected restart of the first split.

        Returns
        -------
        DataFrame indexed by item
            Columns ``slope_<factor>, slope_<factor>_sd`` (logits per unit of theta), ``intercept,
            intercept_sd`` (logits), and in a 3PL ``guess, guess_sd`` (probability; SD by the delta method).
        """
        means, sds = self.posterior()
        slope, slope_sd = self._slopes(means, sds)
        columns = {}
        for d, factor in enumerate(self.spec.factors):
            columns[f"slope_{factor}"] = slope[:, d]
            columns[f"slope_{factor}_sd"] = slope_sd[:, d]
        columns |= {"intercept": means["intercept"], "intercept_sd": sds["intercept"]}
        if self.spec.family == "3pl":
            guess = expit(means["logit_guess"])
            columns |= {"guess": guess, "guess_sd": guess * (1 - guess) * sds["logit_guess"]}
        return pd.DataFrame(columns, index=pd.Index(self.items, name="item"))

    @cached_property
    def factor_correlations(self) -> pd.DataFrame | None:
        """Correlations of the abilities of this panel, by the selected restart of the first split.

        See :func:`ability_correlations`.

        Returns
        -------
        DataFrame (factor, factor), or None where the model has one factor or fixes them uncorrelated
        """
        if not self.spec.correlated:
            return None
        means, sds = self.posterior()
        theta, factors = (means["theta"][None], sds["theta"][None]), list(self.spec.factors)
        prior = self.hypers["factor_correlation"][0, self.selected_restart()][None]
        found = ability_correlations(self.spec, *theta, prior, seed=self.seed)[0]
        return pd.DataFrame(found, index=factors, columns=factors)

    def _slopes(self, means: Mapping[str, Array], sds: Mapping[str, Array]) -> tuple[Array, Array]:
        """(item, dim) posterior means and SDs of the slopes."""
        mean = slope_matrix(self.layout, plug_in(means, sds))
        site = self.layout.latents[1].name
        if site == "slope":
            return mean, slope_matrix(self.layout, sds)
        # A log-normal slope has SD mean * sqrt(exp(s^2) - 1); logs, so that the matrix is filled alike.
        spread = {site: np.log(np.sqrt(np.expm1(np.asarray(sds[site], np.float64) ** 2)))}
        return mean, mean * slope_matrix(self.layout, spread)
