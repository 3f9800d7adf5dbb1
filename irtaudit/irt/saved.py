"""A whole FitResult as one safetensors file: arrays as tensors, everything else as JSON in its header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.files import as_path
from irtaudit.errors import DataError, PlanError, check_kind, check_whole
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult, check_fit
from irtaudit.irt.spec import ModelSpec
from irtaudit.irt.store import read_arrays, write_arrays

FORMAT = "irtaudit-fit-result-1"
_GROUPS = ("means", "sds", "hypers")
_FRAMES = ("restarts", "heldout")
_RESTARTS = (
    *("split", "restart", "train_log_lik", "elbo", "log_loss", "brier"),
    *("epochs", "stop_reason", "retries", "selected", "elbo_best"),
)
_HELDOUT = ("split", "log_loss", "log_loss_predictive", "brier")
_PLAIN = ("subjects", "items", "splits", "train_cells", "seed", "data_sha256", "predictor", "warnings")
_LATER = ("test_cells",)
"""Plain fields that files of the first releases lack."""


def save_fit(fit: FitResult, path: str | Path) -> Path:
    """Write a fit, every restart of it, to one file; atomically, with a checksum.

    Parameters
    ----------
    fit : FitResult
    path : str or Path
        Usually ending in ``.safetensors``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    check_fit(fit)
    path = as_path("path", path)
    arrays = {f"{group}/{name}": a for group in _GROUPS for name, a in getattr(fit, group).items()}
    header = {
        "format": FORMAT,
        "spec": asdict(fit.spec),
        "preset": asdict(fit.preset),
        **{name: getattr(fit, name) for name in _PLAIN + _LATER},
        **{name: getattr(fit, name).to_dict("split", index=False) for name in _FRAMES},
    }
    write_arrays(path, arrays | {"elbo_path": fit.elbo_path}, header)
    return path


def load_fit(path: str | Path) -> FitResult:
    """Read a fit that :func:`save_fit` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    FitResult

    Raises
    ------
    DataError
        When the file is not one of these, is damaged, or lacks what belongs to the fit of its model.
    PlanError
        When `path` is no path.
    StorageError
        When it cannot be read.
    """
    path = as_path("path", path)
    arrays, header = read_arrays(path)
    if header.get("format") != FORMAT:
        raise DataError(
            f"{path} holds {header.get('format')!r}, not a saved fit result; files under fits/ are a run's "
            "own store and are read by running it again."
        )
    try:
        fit = _assembled(arrays, header)
        _check_facts(fit)
        _check_arrays(fit)
        _check_frames(fit)
    except (TypeError, ValueError, PlanError) as error:
        raise DataError(
            f"{path} is no fit as this version of irtaudit saves it: {error}. Save the fit anew."
        ) from error
    return fit


def _assembled(arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> FitResult:
    _check_names("header", header, ("format", "spec", "preset", *_PLAIN, *_FRAMES), optional=_LATER)
    groups = {name.partition("/")[0] for name in arrays}
    _check_names("groups of arrays", groups, ("elbo_path",), optional=_GROUPS)  # without hypers: no group
    grouped: dict[str, Any] = {group: {} for group in _GROUPS}
    for name, array in arrays.items():
        group, _, site = name.partition("/")
        if group in _GROUPS:
            grouped[group][site] = array
    spec = {name: _tuples(value) for name, value in dict(header["spec"]).items()}
    fields: dict[str, Any] = {name: pd.DataFrame(**header[name]) for name in _FRAMES}
    fields |= {name: _tuples(header[name]) for name in _PLAIN}
    fields |= {name: _tuples(header.get(name, [])) for name in _LATER}
    preset = Preset(**header["preset"])
    return FitResult(ModelSpec(**spec), preset=preset, elbo_path=arrays["elbo_path"], **grouped, **fields)


def _check_facts(fit: FitResult) -> None:
    for name in ("subjects", "items", "splits", "warnings"):
        _check(_all_are(str, getattr(fit, name)), f"{name} is no list of text")
    for name in ("subjects", "items", "splits"):
        names = getattr(fit, name)
        _check(names and len(set(names)) == len(names), f"{name} is empty, or a name stands in it twice")
    for name in ("train_cells", "test_cells"):
        _check(_all_are(int, getattr(fit, name)), f"{name} is no list of counts")
    n = len(fit.splits)
    _check(len(fit.train_cells) == n and len(fit.test_cells) in (0, n), f"train_cells is not of {n} splits")
    check_whole("seed", fit.seed)
    check_kind("data_sha256", fit.data_sha256, str, "text")
    check_kind("predictor", fit.predictor, str, "text")


def _check_arrays(fit: FitResult) -> None:
    """Every array has the shape that the model gives it."""
    fits, k = (len(fit.splits), len(fit.restarts) // len(fit.splits)), fit.spec.dims
    sites = {name: (n,) for name, n in fit.layout.sizes.items()} | {"theta": (len(fit.subjects), k)}
    shapes = {"correlation": (k, k), "dim": (k,)}
    hypers = {one.name: shapes.get(one.support, shapes.get(str(one.plate), ())) for one in fit.layout.hypers}
    for group, expected in (("means", sites), ("sds", sites), ("hypers", hypers)):
        _check_names(group, getattr(fit, group), expected)
        for name, shape in expected.items():
            _check_shape(f"{group}/{name}", getattr(fit, group)[name], (*fits, *shape))
    _check_shape("elbo_path", fit.elbo_path, (*fits, *fit.elbo_path.shape[2:3]))


def _check_frames(fit: FitResult) -> None:
    """The tables are about the fit's own splits and restarts, and one restart of each split is selected."""
    restarts, heldout, splits = fit.restarts, fit.heldout, list(fit.splits)
    _check_names("restarts", restarts.columns, _RESTARTS)
    _check_names("heldout", heldout.columns, _HELDOUT)
    each = list(range(len(restarts) // len(splits)))
    rows = [(split, restart) for split in splits for restart in each]
    found = list(zip(restarts["split"], restarts["restart"], strict=True))
    _check(found == rows, "restarts does not have every restart of every split")
    _check(_all_are(bool, tuple(restarts["selected"].tolist())), "restarts does not say which is selected")
    chosen = restarts.loc[restarts["selected"], "split"].tolist()
    _check(chosen == splits, "restarts does not select one of each split")
    _check(heldout["split"].tolist() in ([], splits), "heldout is of other splits")
    for name in ("train_log_lik", "log_loss", "brier", "elbo"):
        _check(restarts[name].dtype.kind == "f", f"restarts has {name} that are no numbers")


def _check_names(
    what: str, found: Iterable[Any], expected: Iterable[str], optional: Iterable[str] = ()
) -> None:
    there, needed = set(map(str, found)), set(expected)
    _check(not needed - there, f"its {what} lack {', '.join(sorted(needed - there))}")
    foreign = sorted(there - needed - set(optional))
    _check(not foreign, f"its {what} have {', '.join(foreign)}, which no fit of this model has")


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    found = f"{array.dtype} of shape {array.shape}"
    _check(array.dtype.kind == "f" and array.shape == shape, f"{name} is {found}, expected {shape}")


def _all_are(kind: type, values: object) -> bool:
    return isinstance(values, tuple) and all(type(value) is kind for value in values)


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
