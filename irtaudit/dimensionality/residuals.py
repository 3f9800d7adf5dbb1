"""The refitted one-factor null: does anything go together beyond one dimension?

A one-dimensional model is fitted to the observed panel; panels are simulated from that fit, and the model is
fitted to each of them with the same settings. Whatever is computed from a panel and its own fit is then
computed alike for the observed panel and for the simulated ones, so that fitting noise cancels.

The test of "more than one factor" is the largest eigenvalue of the standardised residuals
``(y - P) / sqrt(P (1 - P))``, each item's brought to mean 0 and variance 1 over its observed cells as in
:mod:`irtaudit.dimensionality.eigenvalues`. Its size and power are measured in ``experiments/eigenvalues``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import refuse_counts
from irtaudit.dimensionality.eigenvalues import EigenvalueNull, varying_cells
from irtaudit.errors import FitError, PlanError
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.random_panels import bernoulli_cells
from irtaudit.stats.spectrum import spectrum, standardised_columns
from irtaudit.stats.threads import one_blas_thread

if TYPE_CHECKING:
    from irtaudit.irt.panels import PanelFits

Array = NDArray[Any]
Progress = Callable[[int, int], None]

PANELS = 200
PRESET = "quick"
"""Preset of the refits: with it the test holds its size (``experiments/eigenvalues``)."""
CELLS_AT_A_TIME = 16_000_000
"""Simulated cells held in memory together."""
CELLS_IN_CACHE = 500_000
CERTAIN = 1e-6
"""Distance from 0 and 1 at which probabilities are clipped."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels with the probabilities of their own fits: what a statistic is computed from.

    Attributes
    ----------
    responses : (panel, subject, item) float32 array
        0 where not observed.
    probability : (panel, subject, item) float32 array
        Of a pass by the panel's own fit.
    observed : (subject, item) bool array
    """

    responses: Array
    probability: Array
    observed: Array

    @property
    def variance(self) -> Array:
        """(panel, subject, item) variance of a response by the fit."""
        return np.asarray(self.probability * (1 - self.probability))

    @property
    def residuals(self) -> Array:
        """(panel, subject, item) response minus probability; 0 where not observed."""
        return np.asarray((self.responses - self.probability) * self.observed)


Statistic = Callable[[Panels], Array]
"""From panels to (panel, ...) values."""


@dataclass(frozen=True, eq=False)
class Refitted:
    """Statistics of a panel and of panels simulated from its fit, all refitted with the same settings.

    Attributes
    ----------
    spec : ModelSpec
    preset : str
    seed : int
    panel : Panels
        The observed panel alone.
    stacks : mapping of (1 + simulation, ...) arrays
        By name of the statistic, the observed panel first. Simulated panels whose fit diverged are left out.
    """

    spec: ModelSpec
    preset: str
    seed: int
    panel: Panels
    stacks: Mapping[str, Array]

    @property
    def n_panels(self) -> int:
        """Simulated panels that could be refitted."""
        return len(next(iter(self.stacks.values()))) - 1


@one_blas_thread()
def refit(
    matrix: ResponseMatrix,
    spec: ModelSpec,
    statistics: Mapping[str, Statistic],
    *,
    n_panels: int = PANELS,
    preset: str = PRESET,
    seed: int = 0,
    workers: int | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Refitted:
    """Compute statistics of a panel and of refitted panels simulated from its fit.

    Parameters
    ----------
    matrix : ResponseMatrix
        The screened matrix; missing cells are missing in every simulated panel.
    spec : ModelSpec
        The null: a model with one dimension, for the one-factor tests.
    statistics : mapping of functions
        From :class:`Panels` to (panel, ...) arrays.
    n_panels : int
        Simulated panels; items that come out constant in one are drawn again, as the screen would drop them.
    preset : str
        Of all fits, the observed panel's included; one start each.
    seed : int
        Names the noise of the fits and the simulated responses.
    workers, device
        As in `irtaudit.irt.fit.fit`.
    progress : callable, optional
        Called with the numbers of fits done and in all.

    Returns
    -------
    Refitted

    Raises
    ------
    PlanError
        Where an item is constant, no panel is asked for, or cells count several trials.
    FitError
        When the fit to the observed panel diverged.
    """
    from irtaudit.irt.panels import fit_panels

    if n_panels < 1:
        raise PlanError(f"n_panels is {n_panels}; expected at least 1.")
    refuse_counts(matrix, "The check of a model by simulated panels")
    cells, observed = _screened(matrix)
    report = progress or (lambda _done, _total: None)
    done = 0

    def fitted(panels: Array, first: int) -> PanelFits:
        return fit_panels(
            spec,
            np.where(observed, panels, np.float32(np.nan)),
            preset=preset,
            seed=seed,
            first=first,
            workers=workers,
            device=device,
            progress=lambda n, _total: report(done + n, 1 + n_panels),
        )

    own = fitted(cells[None], 0)
    if not own.finite.all():
        raise FitError(f"{spec.name} cannot be fitted to the observed panel with preset {preset!r}.")
    panel = _panels(cells[None], own, observed, slice(None))
    draw = bernoulli_cells(own.probabilities()[0], observed)
    rng = np.random.default_rng([seed, *b"one factor"])
    values = {name: [statistic(panel)] for name, statistic in statistics.items()}
    size = max(1, CELLS_AT_A_TIME // cells.size)
    for first in range(1, 1 + n_panels, size):
        done = first
        simulated = draw(rng, min(size, 1 + n_panels - first))
        fits = fitted(simulated, first)
        for part in _parts(simulated, fits, observed):
            for name, statistic in statistics.items():
                values[name].append(statistic(part))
    stacks = {name: np.concatenate(parts) for name, parts in values.items()}
    return Refitted(spec, preset, seed, panel, stacks)


def residual_eigenvalues(panels: Panels) -> Array:
    """Eigenvalues of the standardised residuals; the statistic of the one-factor test is the first.

    Parameters
    ----------
    panels : Panels

    Returns
    -------
    (panel, rank) array
    """
    standardised = panels.residuals / np.sqrt(panels.variance)
    return spectrum(standardised_columns(standardised, panels.observed))


def residual_null(refitted: Refitted, name: str = "residual") -> EigenvalueNull:
    """The one-factor test from refitted panels on which :func:`residual_eigenvalues` was computed.

    Parameters
    ----------
    refitted : Refitted
    name : str
        Name of that statistic.

    Returns
    -------
    EigenvalueNull
        ``residual``; its test stands on the first rank.
    """
    stack = refitted.stacks[name]
    return EigenvalueNull("residual", stack[0], stack[1:], 1, refitted.seed)


def one_factor_test(matrix: ResponseMatrix, spec: ModelSpec | None = None, **options: Any) -> EigenvalueNull:
    """Test "more than one factor" by the largest eigenvalue of refitted standardised residuals.

    Parameters
    ----------
    matrix : ResponseMatrix
    spec : ModelSpec, optional
        Model of one factor; default the unidimensional 2PL.
    **options
        As in :func:`refit`.

    Returns
    -------
    EigenvalueNull
    """
    null = spec or ModelSpec.unidimensional("2pl")
    return residual_null(refit(matrix, null, {"residual": residual_eigenvalues}, **options))


def _screened(matrix: ResponseMatrix) -> tuple[Array, Array]:
    cells, observed = varying_cells(matrix)
    if cells.shape[1] < matrix.n_items:
        n = matrix.n_items - cells.shape[1]
        raise PlanError(f"{n} of {matrix.n_items} items are constant; screen the matrix first.")
    return cells, observed


def _panels(responses: Array, fits: PanelFits, observed: Array, part: slice) -> Panels:
    probability = np.clip(fits.probabilities(part), CERTAIN, 1 - CERTAIN).astype(np.float32)
    return Panels(responses[part], probability, observed)


def _parts(responses: Array, fits: PanelFits, observed: Array) -> Iterator[Panels]:
    """The fitted panels a cache-full at a time, without those whose fit diverged."""
    size = max(1, CELLS_IN_CACHE // observed.size)
    for start in range(0, len(responses), size):
        part = slice(start, start + size)
        panels, kept = _panels(responses, fits, observed, part), fits.finite[part]
        if kept.any():
            yield Panels(panels.responses[kept], panels.probability[kept], observed)
