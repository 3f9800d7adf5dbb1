"""Killed, starved of disk or run twice at once: nothing that was saved is lost or wrong."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panels import random_matrix

from irtaudit.data.splits import make_splits
from irtaudit.errors import StorageError
from irtaudit.irt import fit as fit_module
from irtaudit.irt.fit import fit
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec

TINY = Preset("tiny", 60, 0.1, "cosine", True)
N_RESTARTS, N_SPLITS = 6, 2


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "MAX_FITS_PER_TILE", 1)


def test_kill_9_at_ten_random_moments_costs_only_the_fits_in_flight(tmp_path: Path) -> None:
    whole = _fit(None)
    started = time.perf_counter()
    _in_child(lambda: _fit(tmp_path / "unhurried"))
    seconds = time.perf_counter() - started
    rng, saved = np.random.default_rng(10), 0
    store = tmp_path / "fits"
    for _ in range(10):
        _in_child(lambda: _fit(store), kill_after=float(rng.uniform(0, seconds)))
        now = len(list(store.glob("*.safetensors"))) if store.exists() else 0
        assert now >= saved
        saved = now
    done_first: list[int] = []
    resumed = _fit(store, lambda done, _total: done_first.append(done))
    assert done_first[0] == saved, "nothing that was saved is fitted again"
    _assert_same(resumed, whole)


def test_two_runs_in_one_folder_at_once_are_safe(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=_fit, args=(tmp_path,)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    _assert_same(_fit(tmp_path), _fit(None))
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}


@pytest.mark.parametrize("damage", ["truncate", "flip"])
def test_damaged_files_are_fitted_again(damage: str, tmp_path: Path) -> None:
    whole = _fit(tmp_path)
    for path in sorted(tmp_path.iterdir())[:5]:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 16
        path.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    done_first: list[int] = []
    _assert_same(_fit(tmp_path, lambda done, _total: done_first.append(done)), whole)
    assert done_first[0] == N_RESTARTS * N_SPLITS - 5
    _assert_same(_fit(tmp_path, lambda done, _total: done_first.append(done)), whole)
    assert done_first[-1] == N_RESTARTS * N_SPLITS, "the damaged files were replaced by whole ones"


def test_a_full_disk_is_one_error_and_leaves_no_debris(tmp_path: Path) -> None:
    def starved() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
        with pytest.raises(StorageError, match=r"safetensors cannot be written: File too large"):
            _fit(tmp_path)

    assert _in_child(starved) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_found_out_before_anything_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(fit_module, "_fit_tile", None)
    with pytest.raises(StorageError, match="file"):
        _fit(tmp_path / "file" / "fits")


def _fit(store: Path | None, progress: Any = None) -> FitResult:
    matrix = random_matrix(12, 9, missing=0.1)
    return fit(
        matrix,
        ModelSpec.unidimensional("2pl"),
        make_splits(matrix, n_splits=N_SPLITS),
        n_restarts=N_RESTARTS,
        preset=TINY,
        workers=1,
        store=store,
        progress=progress,
    )


def _in_child(work: Callable[[], object], kill_after: float | None = None) -> int | None:
    """Run in a forked process, killed with signal 9 after so many seconds; its exit code."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    return child.exitcode


def _assert_same(one: FitResult, other: FitResult) -> None:
    np.testing.assert_array_equal(one.means["theta"], other.means["theta"])
    assert one.restarts.equals(other.restarts)
    assert one.heldout.equals(other.heldout)
