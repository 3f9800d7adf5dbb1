"""Fit one model to many panels at once: refitted nulls, parametric bootstraps, power.

Each panel is a fit with responses of its own; a tile holds as many as the caches like, so two hundred
refits cost about as much as two hundred restarts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irtaudit.errors import ConvergenceWarning, DataError
from irtaudit.irt.engine import FitKey
from irtaudit.irt.fit import (
    Progress,
    _devices,
    _hyper_values,
    _n_workers,
    _resolve_device,
    _run,
    _Tile,
    _tile_size,
)
from irtaudit.irt.layout import Layout
from irtaudit.irt.predict import pass_probability, plug_in
from irtaudit.irt.presets import Preset, get_preset
from irtaudit.irt.spec import ModelSpec
from irtaudit.irt.store import stack

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class PanelFits:
    """One model fitted to many panels, one start each. Numpy only.

    Attributes
    ----------
    layout : Layout
        The model and the shape of a panel.
    means, sds : mapping of arrays
        Posterior mean and SD of each latent site: ``theta`` (panel, subject, dim), ``intercept`` (panel,
        item), ..., as in `FitResult` with the axis ``panel`` for split and restart. NaN where a fit diverged.
    hypers : mapping of arrays
        Learned hyperparameters (panel, ...), as in `FitResult`; NaN where a fit diverged.
    train_log_lik : (panel,) array
        Plug-in log-likelihood of the observed responses, nats; NaN where a fit diverged.
    finite : (panel,) bool array
        False where a fit diverged, its retry included.
    """

    layout: Layout
    means: Mapping[str, Array]
    sds: Mapping[str, Array]
    hypers: Mapping[str, Array]
    train_log_lik: NDArray[np.float64]
    finite: NDArray[np.bool_]

    def __repr__(self) -> str:
        size = f"{self.layout.n_subjects} subjects x {self.layout.n_items} items"
        fitted = f"{int(self.finite.sum())} of {len(self.finite)} panels fitted"
        return f"PanelFits({self.layout.spec.name}, {size}, {fitted})"

    def probabilities(self, panels: slice = slice(None)) -> Array:
        """Plug-in probability of a pass for every cell.

        Parameters
        ----------
        panels : slice
            Default every panel.

        Returns
        -------
        (panel, subject, item) float64 array
        """
        means, sds = ({name: values[panels] for name, values in m.items()} for m in (self.means, self.sds))
        return pass_probability(self.layout, plug_in(means, sds))


def fit_panels(
    spec: ModelSpec,
    panels: ArrayLike,
    *,
    preset: str | Preset = "default",
    seed: int = 0,
    first: int = 0,
    device: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    trials: NDArray[np.int64] | None = None,
) -> PanelFits:
    """Fit a model to every observed cell of each of many panels.

    Parameters
    ----------
    spec : ModelSpec
    panels : (panel, subject, item) array of 0, 1 and NaN, or of shares of `trials`
        NaN: not observed.
    preset : {"default", "paper", "quick"} or Preset
    seed : int
        Panel p has the noise of split ``first + p``, restart 0: neither tiles nor workers matter, and the
        first panel's fit is that of :func:`irtaudit.irt.fit.fit` with one restart.
    first : int
        Number of the first panel, so that a long series may be fitted in parts.
    device, workers, progress
        As in :func:`irtaudit.irt.fit.fit`.
    trials : (subject, item) array, optional
        Trials of each cell, the same in every panel; a response is the share of them that passed.

    Returns
    -------
    PanelFits

    Raises
    ------
    DataError
        When `panels` has another shape or holds other values.
    PlanError
        When the model does not fit the panels, or for an unknown preset or device.

    Warns
    -----
    ConvergenceWarning
        When fits diverged, retries included.
    """
    responses, observed = _checked(panels, trials)
    layout = Layout(spec, *responses.shape[1:])
    spec.pattern(layout.n_items)
    where = _resolve_device(device)
    tiles = _panel_tiles(layout, responses, observed, trials, get_preset(preset), seed, first, where)
    report = progress or (lambda _done, _total: None)
    done: dict[str, Any] = {}
    for digests, outcomes in _run(tiles, _n_workers(workers, tiles, where)):
        done |= {digest: outcomes.rows([i]) for i, digest in enumerate(digests)}
        report(len(done), len(responses))
    outcomes = stack([done[str(p)] for p in range(len(responses))])
    if not outcomes.finite.all():
        n = int((~outcomes.finite).sum())
        message = f"{n} of {len(responses)} panels could not be fitted with {spec.name}: the fits diverged."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    loc, scale, hyper = (
        np.where(outcomes.finite[:, None], packed, np.nan)
        for packed in (outcomes.loc, np.exp(outcomes.log_scale), outcomes.hyper)
    )
    return PanelFits(
        layout,
        layout.unpack(loc),
        layout.unpack(scale),
        _hyper_values(layout, hyper),
        outcomes.train_log_lik,
        outcomes.finite,
    )


def _checked(
    panels: ArrayLike, trials: NDArray[np.int64] | None
) -> tuple[NDArray[np.uint8] | NDArray[np.float64], NDArray[np.bool_]]:
    """Responses, 0 where not observed, and (1 or panel, subject, item) which are observed."""
    cells = np.asarray(panels)
    if cells.ndim != 3 or not cells.size:
        raise DataError(f"Panels have shape {cells.shape}; expected (panel, subject, item), none of them 0.")
    observed = ~np.isnan(cells)
    passes = cells if trials is None else cells * trials
    if not (np.isclose(passes, np.rint(passes)) & (cells >= 0) & (cells <= 1) | ~observed).all():
        raise DataError("Panels hold other values than 0, 1 and NaN (not observed), or shares of no trials.")
    shared = bool((observed == observed[0]).all())
    known = (cells == 1).astype(np.uint8) if trials is None else np.nan_to_num(cells)
    return known, observed[:1] if shared else observed


def _panel_tiles(
    layout: Layout,
    responses: NDArray[np.uint8] | NDArray[np.float64],
    observed: NDArray[np.bool_],
    trials: NDArray[np.int64] | None,
    preset: Preset,
    seed: int,
    first: int,
    device: str,
) -> list[_Tile]:
    """Batches of panels, dealt to the devices."""
    devices, n = _devices(device), len(responses)
    size = min(-(-n // len(devices)), *(_tile_size(layout, d, own_cells=True) for d in devices))
    none = np.zeros((1, layout.n_subjects, layout.n_items), dtype=bool)
    tiles: list[_Tile] = []
    for start in range(0, n, size):
        part = range(start, min(start + size, n))
        tile = _Tile(
            layout=layout,
            responses=responses[part.start : part.stop],
            train=observed if len(observed) == 1 else observed[part.start : part.stop],
            test=none,
            keys=tuple(FitKey(seed, first + p, 0) for p in part),
            digests=tuple(str(p) for p in part),
            preset=preset,
            device=devices[len(tiles) % len(devices)],
            trials=None if trials is None else trials[None],
        )
        tiles.append(tile)
    return tiles
