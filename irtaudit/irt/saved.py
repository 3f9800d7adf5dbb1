"""A whole FitResult as one safetensors file: arrays as tensors, everything else as JSON in its header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from irtaudit.errors import DataError
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.irt.store import read_arrays, write_arrays

FORMAT = "irtaudit-fit-result-1"
_GROUPS = ("means", "sds", "hypers")
_FRAMES = ("restarts", "heldout")
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
    arrays = {f"{group}/{name}": a for group in _GROUPS for name, a in getattr(fit, group).items()}
    header = {
        "format": FORMAT,
        "spec": asdict(fit.spec),
        "preset": asdict(fit.preset),
        **{name: getattr(fit, name) for name in _PLAIN + _LATER},
        **{name: getattr(fit, name).to_dict("split", index=False) for name in _FRAMES},
    }
    write_arrays(Path(path), arrays | {"elbo_path": fit.elbo_path}, header)
    return Path(path)


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
        When the file is not one of these, or is damaged.
    StorageError
        When it cannot be read.
    """
    arrays, header = read_arrays(Path(path))
    if header.get("format") != FORMAT:
        raise DataError(
            f"{path} holds {header.get('format')!r}, not a saved fit result; files under fits/ are a run's "
            "own store and are read by running it again."
        )
    fields: dict[str, Any] = {group: {} for group in _GROUPS}
    for name, array in arrays.items():
        group, _, site = name.partition("/")
        if site:
            fields[group][site] = array
    fields |= {name: pd.DataFrame(**header[name]) for name in _FRAMES}
    fields |= {name: _tuples(header[name]) for name in _PLAIN}
    fields |= {name: _tuples(header.get(name, [])) for name in _LATER}
    return FitResult(
        spec=_spec(header["spec"]),
        preset=Preset(**header["preset"]),
        elbo_path=arrays["elbo_path"],
        **fields,
    )


def _spec(fields: Mapping[str, Any]) -> ModelSpec:
    return ModelSpec(**{name: _tuples(value) for name, value in fields.items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
