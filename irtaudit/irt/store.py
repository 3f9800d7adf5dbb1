"""Finished fits on disk: safetensors files with a checksum in their header, found again by digest.

A tile's fits share one file, written atomically when the tile ends. What cannot be read back whole
(truncated, altered, foreign) counts as not there, so its fits are simply run again. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from irtaudit.data.files import atomic_write
from irtaudit.errors import DataError, StorageError

FORMAT = "irtaudit-fits-1"


@dataclass(frozen=True)
class Outcomes:
    """How a batch of fits ended; every array has one row per fit.

    Attributes
    ----------
    loc, log_scale : (fit, width) float32 array
        Variational parameters of the latents, packed as :class:`irtaudit.irt.layout.Layout` says.
    hyper : (fit, hyper_width) float32 array
        Unconstrained hyperparameters.
    elbo : (fit, check) float64 array
        ELBO path in nats; NaN after the end of a shorter path.
    train_log_lik, log_loss, brier : (fit,) float64 array
        Plug-in scores on training and held-out cells; NaN where undefined.
    epochs, retries : (fit,) int64 array
    finite : (fit,) bool array
        False where the fit diverged, its retry included.
    """

    loc: NDArray[np.floating]
    log_scale: NDArray[np.floating]
    hyper: NDArray[np.floating]
    elbo: NDArray[np.float64]
    train_log_lik: NDArray[np.float64]
    log_loss: NDArray[np.float64]
    brier: NDArray[np.float64]
    epochs: NDArray[np.int64]
    retries: NDArray[np.int64]
    finite: NDArray[np.bool_]

    def rows(self, index: Sequence[int]) -> Outcomes:
        """Some of the fits, in the order given."""
        return Outcomes(**{f.name: getattr(self, f.name)[list(index)] for f in fields(self)})


def stack(parts: Sequence[Outcomes]) -> Outcomes:
    """Several batches as one; shorter ELBO paths are filled with NaN."""
    longest = max(part.elbo.shape[1] for part in parts)

    def column(part: Outcomes, name: str) -> NDArray[Any]:
        values: NDArray[Any] = getattr(part, name)
        if name != "elbo":
            return values
        return np.pad(part.elbo, ((0, 0), (0, longest - part.elbo.shape[1])), constant_values=np.nan)

    return Outcomes(**{f.name: np.concatenate([column(p, f.name) for p in parts]) for f in fields(Outcomes)})


def prepare_folder(folder: Path) -> None:
    """Make the folder of a store, so that what cannot be written is found out before anything is fitted.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    StorageError
        When it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be written: {error.strerror or error}.") from error


def save_outcomes(folder: Path, digests: Sequence[str], outcomes: Outcomes) -> Path:
    """Write a batch of fits into a folder, whole or not at all.

    Parameters
    ----------
    folder : Path
        As :func:`prepare_folder` made it.
    digests : sequence of str
        What each fit is found by: a digest of everything that its numbers depend on.
    outcomes : Outcomes

    Returns
    -------
    Path

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    name = hashlib.sha256("".join(digests).encode()).hexdigest()[:32]
    path = folder / f"{name}.safetensors"
    write_arrays(path, asdict(outcomes), {"format": FORMAT, "fits": list(digests)})
    return path


def find_outcomes(folder: Path, wanted: Iterable[str]) -> dict[str, Outcomes]:
    """Fits of a folder by digest, each a batch of one.

    Parameters
    ----------
    folder : Path
    wanted : iterable of str

    Returns
    -------
    dict of Outcomes
        Only what is wanted, there, and whole.
    """
    missing, found = set(wanted), {}
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
        if not missing:
            break
        try:
            header = read_header(path)
            digests = header.get("fits", []) if header.get("format") == FORMAT else []
            if missing.isdisjoint(digests):
                continue
            outcomes = Outcomes(**read_arrays(path)[0])
        except (DataError, StorageError, TypeError):
            continue
        if any(array.shape[:1] != (len(digests),) for array in asdict(outcomes).values()):
            continue
        for row in [i for i, digest in enumerate(digests) if digest in missing]:
            found[digests[row]] = outcomes.rows([row])
        missing -= found.keys()
    return found


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON header to one safetensors file, atomically, with a checksum.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    meta = {"header": json.dumps(header, sort_keys=True)}
    meta["sha256"] = _checksum(tensors, meta["header"])
    atomic_write(path, safetensors.numpy.save(tensors, metadata=meta))


def read_header(path: Path) -> dict[str, Any]:
    """JSON header of a file that :func:`write_arrays` wrote, its arrays unread and unchecked.

    Raises
    ------
    DataError
        When the file is none of ours, or damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["header"])
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a saved fit, or is damaged ({error}).") from error
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not isinstance(header, dict):
        raise DataError(f"{path} is not a saved fit: its header is no JSON object.")
    return header


def read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and JSON header of a file that :func:`write_arrays` wrote.

    Raises
    ------
    DataError
        When the file is none of ours, truncated, or altered.
    StorageError
        When it cannot be read.
    """
    header = read_header(path)
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
            meta = file.metadata()
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run again.") from error
    if meta.get("sha256") != _checksum(arrays, meta["header"]):
        raise DataError(f"{path} does not match its checksum; delete it and run again.")
    return arrays, header


def _checksum(arrays: Mapping[str, NDArray[Any]], header: str) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
