"""Fit models: cut the work into tiles, run them on one core or many, keep what is done, gather results."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from irtaudit.data.files import as_path
from irtaudit.data.responses import ResponseMatrix, check_matrix
from irtaudit.data.splits import Splits, check_splits
from irtaudit.errors import ConvergenceWarning, FitError, PlanError, check_kind, check_whole, shown_value
from irtaudit.irt.engine import FINAL_CHECKS, FitKey, TileState, one_thread, run_tile
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells, ItemAxis
from irtaudit.irt.predict import pass_probability, plug_in, posterior_predictive
from irtaudit.irt.presets import MOST_RESTARTS, RETRY, Preset, get_preset
from irtaudit.irt.prior import correlation_cholesky
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec, check_models
from irtaudit.irt.store import Outcomes, find_outcomes, prepare_folder, save_outcomes, stack
from irtaudit.stats.scoring import brier, log_likelihood, log_loss

Progress = Callable[[int, int], None]

A_MODEL = "ModelSpec.unidimensional('2pl')"
ENGINE_VERSION = 4
"""Raised whenever the same settings give other numbers, so that old saved fits are not taken for new ones."""
CELLS_PER_TILE = 700_000
MAX_FITS_PER_TILE = 20
TILES_AT_A_TIME = 64
"""Tiles sent to a backend that answers only when all are done; an interruption costs these."""
BYTES = 4
GPU_SHARE = 0.6
"""Part of a GPU's free memory that a tile may take; the rest is left to the products' workspaces."""
GPU_PANEL_ROWS = 6
"""Cells of a panel in memory: successes and mask as they came, laid out, and with the residual's unit."""
GPU_CELL_ROWS, GPU_CELL_ROWS_3PL = 2, 7
"""Cells per fit while the ELBO is valued: eta and its softplus; of a 3PL also what its logarithms need."""
GPU_LATENT_ROWS = 40
"""Packed rows per fit: parameters, gradients, Adam's moments, noise, work space, the ELBO in float64."""
SECONDS_PER_CELL = 3e-9
SECONDS_WORTH_A_WORKER = 20.0
NEAR_BOUNDARY = 0.05


@dataclass(frozen=True, eq=False)
class _Tile:
    """One batch of fits of one model, ready to be sent to a worker.

    `responses`, `train` and `test` are (1 or fit, subject, item): cells that all fits share, or each its own.
    With `trials` (1, subject, item) a response is the share of the cell's trials that passed.
    """

    layout: Layout
    responses: NDArray[np.uint8] | NDArray[np.float64]
    train: NDArray[np.bool_]
    test: NDArray[np.bool_]
    keys: tuple[FitKey, ...]
    digests: tuple[str, ...]
    preset: Preset
    device: str
    trials: NDArray[np.int64] | None = None

    def rows(self, index: Sequence[int]) -> _Tile:
        """Some of the fits, in the order given."""
        return replace(
            self,
            keys=tuple(self.keys[i] for i in index),
            digests=tuple(self.digests[i] for i in index),
            responses=_rows(self.responses, index),
            train=_rows(self.train, index),
            test=_rows(self.test, index),
        )


def _rows(cells: NDArray[Any], index: Sequence[int]) -> NDArray[Any]:
    return cells if len(cells) == 1 else cells[list(index)]


def fit(
    matrix: ResponseMatrix,
    spec: ModelSpec,
    splits: Splits | None = None,
    *,
    n_restarts: int = 20,
    preset: str | Preset = "default",
    seed: int = 0,
    device: str = "auto",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> FitResult:
    """Fit one model by stochastic variational inference, every split and restart of it.

    Parameters
    ----------
    matrix : ResponseMatrix
        Screened responses, subjects x items. Where cells count trials the likelihood is binomial, every trial
        one response.
    spec : ModelSpec
    splits : Splits, optional
        Held-out cells; default none, so that every observed cell is fitted.
    n_restarts : int
        Random starts per split. The one with the highest training log-likelihood is selected; held-out
        cells never select.
    preset : {"default", "paper", "quick"} or Preset
    seed : int
        With the split and the restart it names the noise of a fit, so neither tiles nor workers matter.
    device : str
        ``auto`` (CUDA where there is one), ``cpu``, ``cuda``, ``cuda:1``, ...
    workers : int, optional
        Processes; default as many as there are cores where the work is worth it. joblib runs them, so
        ``joblib.parallel_config(backend="dask")`` sends the tiles to a cluster.
    store : str or Path, optional
        Folder in which finished fits are kept and looked for.
    progress : callable, optional
        Called with the numbers of fits done and in all.

    Returns
    -------
    FitResult

    Raises
    ------
    FitError
        When every restart of a split diverged, retries included.
    PlanError
        When the model or an option does not fit the matrix, or is of the wrong type.
    DataError
        When `matrix` is no response matrix.

    Warns
    -----
    ConvergenceWarning
        When restarts diverged or a learned scale sits near its boundary.
    """
    return fit_all(
        matrix,
        [spec],
        splits,
        n_restarts=n_restarts,
        preset=preset,
        seed=seed,
        device=device,
        workers=workers,
        store=store,
        progress=progress,
    )[spec.name]


def fit_all(
    matrix: ResponseMatrix,
    specs: Iterable[ModelSpec],
    splits: Splits | None = None,
    *,
    n_restarts: int = 20,
    preset: str | Preset = "default",
    seed: int = 0,
    device: str = "auto",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, FitResult]:
    """Fit several models to the same cells; their tiles share the workers.

    Parameters
    ----------
    specs : iterable of ModelSpec
        Models with different names.
    matrix, splits, n_restarts, preset, seed, device, workers, store, progress
        As in :func:`fit`.

    Returns
    -------
    dict of FitResult
        By model name, in the order of `specs`.

    Raises
    ------
    FitError, PlanError, DataError
        As in :func:`fit`.
    """
    check_kind("specs", specs, Iterable, f"a list of models: [{A_MODEL}]")
    models = list(specs)
    _check(matrix, models, splits)
    n_restarts, seed = check_whole("n_restarts", n_restarts, 1, MOST_RESTARTS), check_whole("seed", seed)
    workers = None if workers is None else check_whole("workers", workers, 1)
    if progress is not None and not callable(progress):
        raise PlanError(f"progress is {shown_value(progress)}; expected a function of fits done and in all.")
    chosen, where = get_preset(preset), _resolve_device(device)
    store = None if store is None else as_path("store", store)
    tests = _held_out(matrix, splits)
    wanted = {
        spec.name: _digests(matrix, spec, matrix.observed & ~tests, chosen, seed, n_restarts, where)
        for spec in models
    }
    every = [digest for rows in wanted.values() for row in rows for digest in row]
    done = {}
    if store is not None:
        prepare_folder(store)
        done = find_outcomes(store, every)
    tiles = [
        tile
        for spec in models
        for tile in _tiles(matrix, spec, tests, wanted[spec.name], done, chosen, seed, where)
    ]
    report = progress or (lambda _done, _total: None)
    report(len(done), len(every))
    for digests, outcomes in _run(tiles, _n_workers(workers, tiles, where)):
        if store is not None:
            save_outcomes(store, digests, outcomes)
        done |= {digest: outcomes.rows([i]) for i, digest in enumerate(digests)}
        report(len(done), len(every))
    return {
        spec.name: _gather(matrix, spec, splits, tests, wanted[spec.name], done, chosen, seed)
        for spec in models
    }


# Cutting the work ------------------------------------------------------------------------------------


def _check(matrix: ResponseMatrix, specs: Sequence[ModelSpec], splits: Splits | None) -> None:
    check_matrix(matrix)
    for spec in specs:
        check_kind("a model", spec, ModelSpec, f"a ModelSpec: {A_MODEL}")
    if splits is not None:
        check_splits(splits)
    names = [spec.name for spec in specs]
    if not names:
        raise PlanError("No model was named; give at least one.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"Two models are named {twice!r}; give each its own name.")
    shape = (matrix.n_subjects, matrix.n_items)
    if splits is not None and splits.test.shape[1:] != shape:
        raise PlanError(f"The splits are for a {splits.test.shape[1:]} matrix, but this one is {shape}.")
    check_models(specs, *shape)
    for spec in specs:
        spec.pattern(matrix.n_items)
        if spec.items is not None and spec.items != tuple(matrix.items.index):
            raise PlanError(
                f"The labels of {spec.name} are for other items, or in another order, than the matrix (the "
                f"first is {spec.items[0]!r}, there {matrix.items.index[0]!r}). Line them up: "
                "labels.reindex(matrix.items.index)."
            )


def _resolve_device(device: str) -> str:
    check_kind("device", device, str, "auto, cpu, cuda or cuda:<number>")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise PlanError(f"There is no device {device!r}; use auto, cpu, cuda or cuda:<number>.") from error
    if kind not in ("cpu", "cuda"):
        raise PlanError(f"Device {device!r} is not supported; use auto, cpu, cuda or cuda:<number>.")
    if kind == "cuda" and not torch.cuda.is_available():
        raise PlanError(f"Device {device!r} was asked for, but this machine has no usable CUDA device.")
    return device


def _held_out(matrix: ResponseMatrix, splits: Splits | None) -> NDArray[np.bool_]:
    """(split, subject, item): the observed cells that each split holds out."""
    if splits is None:
        return np.zeros((1, matrix.n_subjects, matrix.n_items), dtype=bool)
    return splits.test & matrix.observed


def _digests(
    matrix: ResponseMatrix,
    spec: ModelSpec,
    trains: NDArray[np.bool_],
    preset: Preset,
    seed: int,
    n_restarts: int,
    device: str,
) -> list[list[str]]:
    """(split, restart): a digest of everything that the numbers of a fit depend on."""
    names = json.dumps([list(matrix.subjects.index), list(matrix.items.index)])
    cells = matrix.cell_bytes(np.arange(matrix.n_subjects), np.arange(matrix.n_items))
    base = hashlib.sha256(names.encode() + cells)
    settings = {
        "engine": ENGINE_VERSION,
        "spec": {k: v for k, v in asdict(spec).items() if k not in ("name", "factors", "items")}
        | {"dims": spec.dims},
        "preset": {k: v for k, v in asdict(preset).items() if k != "name"},
        "seed": seed,
        "device": torch.device(device).type,
    }
    base.update(json.dumps(settings, sort_keys=True).encode())
    rows = []
    for s, train in enumerate(trains):
        of_split = base.copy()
        of_split.update(np.packbits(train).tobytes() + f"split {s}".encode())
        digest = of_split.hexdigest()
        rows.append([hashlib.sha256(f"{digest} restart {r}".encode()).hexdigest() for r in range(n_restarts)])
    return rows


def _tiles(
    matrix: ResponseMatrix,
    spec: ModelSpec,
    tests: NDArray[np.bool_],
    digests: Sequence[Sequence[str]],
    done: Mapping[str, Outcomes],
    preset: Preset,
    seed: int,
    device: str,
) -> list[_Tile]:
    """Batches of the fits that are not done, each within one split."""
    layout = Layout(spec, matrix.n_subjects, matrix.n_items)
    counts = None if matrix.trials is None else matrix.trials[None]
    responses = np.nan_to_num(matrix.responses[None], nan=0.0)
    responses = responses if counts is not None else responses.astype(np.uint8)
    devices = _devices(device)
    size = min(_tile_size(layout, where) for where in devices)
    if len(devices) > 1:
        size = min(size, -(-sum(map(len, digests)) // len(devices)))
    tiles: list[_Tile] = []
    for s, test in enumerate(tests):
        open_ = [r for r, digest in enumerate(digests[s]) if digest not in done]
        for start in range(0, len(open_), size):
            part = open_[start : start + size]
            keys = tuple(FitKey(seed, s, r) for r in part)
            found = tuple(digests[s][r] for r in part)
            where = devices[len(tiles) % len(devices)]
            train = (matrix.observed & ~test)[None]
            tiles.append(_Tile(layout, responses, train, test[None], keys, found, preset, where, counts))
    return tiles


def _devices(device: str) -> list[str]:
    """The devices that tiles are dealt to: every GPU where ``cuda`` names none."""
    if device != "cuda":
        return [device]
    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]


def _tile_size(layout: Layout, device: str, own_cells: bool = False) -> int:
    """Fits per batch: what the caches like on a CPU, what memory allows on a GPU."""
    if torch.device(device).type == "cpu":
        return max(1, min(MAX_FITS_PER_TILE, CELLS_PER_TILE // layout.n_cells))
    torch.cuda.empty_cache()  # what earlier tiles left with torch is free, too
    free, _ = torch.cuda.mem_get_info(torch.device(device))
    shared, per_fit = tile_bytes(layout, own_cells)
    return max(1, int(GPU_SHARE * free - shared) // per_fit)


def tile_bytes(layout: Layout, own_cells: bool = False) -> tuple[int, int]:
    """Bytes that a tile takes of a GPU at most.

    Parameters
    ----------
    layout : Layout
    own_cells : bool
        Whether each fit has responses of its own.

    Returns
    -------
    shared, per_fit : int
    """
    panel = layout.n_subjects * ItemAxis.of(layout.reordered(layout.factor_order)).length
    rows = GPU_CELL_ROWS_3PL if layout.spec.family == "3pl" else GPU_CELL_ROWS
    fit_floats = rows * panel + GPU_LATENT_ROWS * (layout.width + layout.hyper_width)
    cells = GPU_PANEL_ROWS * panel
    return BYTES * (0 if own_cells else cells), BYTES * (fit_floats + (cells if own_cells else 0))


# Running it ------------------------------------------------------------------------------------------


def _n_workers(workers: int | None, tiles: Sequence[_Tile], device: str) -> int:
    """Processes for the tiles; -1 leaves it to a cluster that the caller chose."""
    if torch.device(device).type != "cpu":
        return max(1, len({tile.device for tile in tiles}))
    if workers is not None:
        return min(workers, max(1, len(tiles)))
    if type(get_active_backend()[0]).__name__ != "LokyBackend":
        return -1
    seconds = sum(len(t.keys) * t.preset.epochs * t.layout.n_cells * SECONDS_PER_CELL for t in tiles)
    return max(1, min(joblib.cpu_count(), len(tiles), int(seconds // SECONDS_WORTH_A_WORKER) + 1))


def _run(tiles: Sequence[_Tile], workers: int) -> Iterator[tuple[tuple[str, ...], Outcomes]]:
    """Outcomes of the tiles as they end: in processes, or in one thread per GPU."""
    job = joblib.delayed(_fit_tile)
    if any(torch.device(tile.device).type != "cpu" for tile in tiles):
        for turn in _turns(tiles):
            pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", require="sharedmem")
            yield from pool(job(tile) for tile in turn)
        return
    if workers == 1 or get_active_backend()[0].supports_return_generator:
        pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        yield from pool(job(tile) for tile in tiles)
        return
    for start in range(0, len(tiles), TILES_AT_A_TIME):  # ray's backend gives lists alone
        yield from joblib.Parallel(n_jobs=workers)(job(t) for t in tiles[start : start + TILES_AT_A_TIME])


def _turns(tiles: Sequence[_Tile]) -> Iterator[list[_Tile]]:
    """Tiles that may run side by side, one per device: each was sized to the memory of a whole device."""
    lanes = ([t for t in tiles if t.device == device] for device in dict.fromkeys(t.device for t in tiles))
    for turn in zip_longest(*lanes):
        yield [tile for tile in turn if tile is not None]


def _fit_tile(tile: _Tile) -> tuple[tuple[str, ...], Outcomes]:
    """Run a tile, give its diverged fits their second chance, and score it."""
    with one_thread():
        outcomes = _attempt(tile, tile.preset, 0)
        again = np.flatnonzero(~outcomes.finite).tolist()
        if again:
            second = _attempt(tile.rows(again), RETRY, 1)
            kept = [i for i in range(len(tile.keys)) if i not in again]
            order = np.argsort(kept + again).tolist()
            outcomes = stack([outcomes.rows(kept), second]).rows(order)
    return tile.digests, outcomes


def _attempt(tile: _Tile, preset: Preset, attempt: int) -> Outcomes:
    keys = [replace(key, attempt=attempt) for key in tile.keys]
    order = tile.layout.factor_order
    layout = tile.layout.reordered(order)
    state = run_tile(layout, _cells(tile, order), keys, preset)
    return _outcomes(tile, _in_item_order(state, layout, order), preset, attempt)


def _cells(tile: _Tile, order: NDArray[np.int64]) -> Cells:
    """Training cells of a tile, its items in the order that the layout wants.

    A cell with y passes of n trials enters with ``y log P + (n - y) log(1 - P)``: the binomial likelihood
    without its constant, log of n over y.
    """
    device = torch.device(tile.device)
    train = torch.tensor(tile.train[:, :, order], device=device, dtype=torch.float32)
    if tile.trials is not None:
        train = train * torch.tensor(tile.trials[:, :, order], device=device, dtype=torch.float32)
    passes = torch.tensor(tile.responses[:, :, order], device=device, dtype=torch.float32).mul(train).round()
    return Cells(passes, train)


def _in_item_order(state: TileState, layout: Layout, order: NDArray[np.int64]) -> TileState:
    """The state of a tile whose items were reordered, in the matrix's own order of items."""
    columns = np.arange(layout.width)
    for site in layout.latents:
        if layout.sizes[site.name] == len(order) and site.plate in ("item", "loading"):
            at = layout.slices[site.name]
            columns[at] = columns[at][np.argsort(order)]
    return replace(state, loc=state.loc[:, columns], log_scale=state.log_scale[:, columns])


def _outcomes(tile: _Tile, state: TileState, preset: Preset, retries: int) -> Outcomes:
    n = len(state.finite)
    scores = np.full((3, n), np.nan)
    for i in np.flatnonzero(state.finite).tolist():
        scores[:, i] = _scores(tile.rows([i]), state.loc[i], state.log_scale[i])
    train_log_lik, held_out_log_loss, held_out_brier = scores
    return Outcomes(
        loc=state.loc,
        log_scale=state.log_scale,
        hyper=state.hyper,
        elbo=state.elbo,
        train_log_lik=train_log_lik,
        log_loss=held_out_log_loss,
        brier=held_out_brier,
        epochs=np.full(n, preset.epochs),
        retries=np.full(n, retries),
        finite=state.finite,
    )


def _scores(tile: _Tile, loc: NDArray[np.floating], log_scale: NDArray[np.floating]) -> tuple[float, ...]:
    """Training log-likelihood, held-out log-loss and Brier score of one fit, plug-in."""
    sites = plug_in(tile.layout.unpack(loc), tile.layout.unpack(np.exp(log_scale)))
    p, y = pass_probability(tile.layout, sites), tile.responses[0]
    n = None if tile.trials is None else tile.trials[0]
    return (
        float(log_likelihood(y, p, tile.train[0], trials=n)),
        float(log_loss(y, p, tile.test[0], trials=n)),
        float(brier(y, p, tile.test[0], trials=n)),
    )


# Gathering it ----------------------------------------------------------------------------------------


def _gather(
    matrix: ResponseMatrix,
    spec: ModelSpec,
    splits: Splits | None,
    tests: NDArray[np.bool_],
    digests: Sequence[Sequence[str]],
    done: Mapping[str, Outcomes],
    preset: Preset,
    seed: int,
) -> FitResult:
    layout = Layout(spec, matrix.n_subjects, matrix.n_items)
    names = _split_names(splits)
    shape = (len(digests), len(digests[0]))
    outcomes = stack([done[digest] for row in digests for digest in row])
    restarts = _restart_table(spec, names, shape, outcomes)
    notes = _warnings(layout, restarts, outcomes)
    for note in notes:
        warnings.warn(f"{spec.name}: {note}", ConvergenceWarning, stacklevel=4)
    grid = {name: getattr(outcomes, name).reshape(*shape, -1) for name in ("loc", "log_scale", "hyper")}
    result = FitResult(
        spec=spec,
        subjects=tuple(matrix.subjects.index),
        items=tuple(matrix.items.index),
        splits=names,
        train_cells=tuple(map(int, matrix.n_responses(~tests))),
        means=layout.unpack(grid["loc"]),
        sds=layout.unpack(np.exp(grid["log_scale"])),
        hypers=_hyper_values(layout, grid["hyper"]),
        restarts=restarts,
        heldout=pd.DataFrame(columns=["split", "log_loss", "log_loss_predictive", "brier"]),
        elbo_path=outcomes.elbo.reshape(*shape, -1),
        seed=seed,
        preset=preset,
        data_sha256=matrix.sha256,
        warnings=notes,
        test_cells=tuple(map(int, matrix.n_responses(tests))),
    )
    return result if splits is None else replace(result, heldout=_heldout(result, matrix, tests))


def _split_names(splits: Splits | None) -> tuple[str, ...]:
    if splits is None:
        return ("all",)
    names = [f"split {s + 1}" if seed is None else str(seed) for s, seed in enumerate(splits.seeds)]
    unique = len(set(names)) == len(names)
    return tuple(names if unique else [f"split {s + 1}" for s in range(len(names))])


def _restart_table(
    spec: ModelSpec, splits: Sequence[str], shape: tuple[int, int], outcomes: Outcomes
) -> pd.DataFrame:
    lik = outcomes.train_log_lik.reshape(shape)
    late = [row[np.isfinite(row)][-FINAL_CHECKS:] for row in outcomes.elbo]
    elbo = np.array([row.mean() if row.size else np.nan for row in late])
    elbo = np.where(outcomes.finite, elbo, np.nan)
    failed = [split for split, row in zip(splits, lik, strict=True) if np.isnan(row).all()]
    if failed:
        raise FitError(
            f"Every restart of {spec.name} diverged on split {failed[0]}, retries at a lower learning rate "
            "included. Simplify the model, or drop subjects and items with very few responses."
        )
    best = np.nanargmax(lik, axis=1)[:, None] == np.arange(shape[1])
    best_elbo = np.nanargmax(elbo.reshape(shape), axis=1)[:, None] == np.arange(shape[1])
    return pd.DataFrame(
        {
            "split": np.repeat(splits, shape[1]),
            "restart": np.tile(np.arange(shape[1]), shape[0]),
            "train_log_lik": outcomes.train_log_lik,
            "elbo": elbo,
            "log_loss": outcomes.log_loss,
            "brier": outcomes.brier,
            "epochs": outcomes.epochs,
            "stop_reason": np.where(outcomes.finite, "schedule ended", "diverged"),
            "retries": outcomes.retries,
            "selected": best.ravel(),
            "elbo_best": best_elbo.ravel(),
        }
    )


def _hyper_values(layout: Layout, packed: NDArray[np.floating]) -> dict[str, NDArray[np.floating]]:
    values: dict[str, NDArray[np.floating]] = {}
    for hyper in layout.hypers:
        free = packed[..., layout.hyper_slices[hyper.name]]
        if hyper.support == "correlation":
            factor = correlation_cholesky(torch.as_tensor(free), layout.spec.dims).numpy()
            values[hyper.name] = factor @ np.swapaxes(factor, -1, -2)
        else:
            points = np.exp(free) if hyper.support == "positive" else free
            values[hyper.name] = points if hyper.plate == "dim" else points[..., 0]
    return values


def _warnings(layout: Layout, restarts: pd.DataFrame, outcomes: Outcomes) -> tuple[str, ...]:
    notes = []
    diverged = int((~outcomes.finite).sum())
    if diverged:
        notes.append(f"{diverged} of {len(restarts)} restarts diverged, retries included, and are left out.")
    values = _hyper_values(layout, outcomes.hyper[restarts["selected"].to_numpy()])
    for hyper in layout.hypers:
        if hyper.support == "positive" and (values[hyper.name] < NEAR_BOUNDARY).any():
            notes.append(
                f"The learned {hyper.name} is {values[hyper.name].min():.3f}, near its boundary at zero: the "
                "items hardly differ in it, or are too few to tell."
            )
    return tuple(notes)


def _heldout(result: FitResult, matrix: ResponseMatrix, tests: NDArray[np.bool_]) -> pd.DataFrame:
    chosen = result.restarts[result.restarts["selected"]].set_index("split")
    rows = []
    for s, (name, test) in enumerate(zip(result.splits, tests, strict=True)):
        seed = (result.seed, s, result.selected_restart(s))
        p = posterior_predictive(result.layout, *result.posterior(s), seed=seed)
        averaged = float(log_loss(matrix.responses, p, test, trials=matrix.trials))
        rows.append((name, chosen.loc[name, "log_loss"], averaged, chosen.loc[name, "brier"]))
    return pd.DataFrame(rows, columns=["split", "log_loss", "log_loss_predictive", "brier"])
