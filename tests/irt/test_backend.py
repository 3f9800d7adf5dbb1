"""Clusters give the numbers of one process, also when a worker dies."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from typing import Any

import numpy as np
import pytest
from panels import random_matrix

from irtaudit.errors import PlanError, StorageError
from irtaudit.irt import fit as fit_module
from irtaudit.irt.backend import parallel_backend
from irtaudit.irt.fit import fit
from irtaudit.irt.presets import Preset
from irtaudit.irt.spec import ModelSpec

distributed = pytest.importorskip("distributed", reason="the extra irtaudit[dask] is not installed")

SLOW = Preset("slow", 1500, 0.05, "cosine", True)
UNI = ModelSpec.unidimensional("2pl")


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_matrix(40, 20)
    monkeypatch.setattr(fit_module, "MAX_FITS_PER_TILE", 1)
    alone = fit(matrix, UNI, n_restarts=6, preset=SLOW, workers=1)
    killed: list[int] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def kill_one(done: int, _total: int) -> None:
            if done >= 1 and not killed:
                victim = next(iter(cluster.workers.values())).pid
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        with parallel_backend("dask", address=cluster.scheduler_address):
            spread = fit(matrix, UNI, n_restarts=6, preset=SLOW, progress=kill_one)
    assert killed
    np.testing.assert_array_equal(spread.means["theta"], alone.means["theta"])
    assert spread.restarts.equals(alone.restarts)


def test_an_unreachable_scheduler_is_one_clear_error() -> None:
    with (
        pytest.raises(StorageError, match=r"No dask scheduler answers at tcp://127\.0\.0\.1:9"),
        distributed.worker.dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        parallel_backend("dask", address="tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"backend": "spark"}, "no backend 'spark'"),
        ({"backend": "loky", "address": "tcp://127.0.0.1:1"}, "goes with dask or ray"),
    ],
)
def test_impossible_backends_are_refused(arguments: Any, found: str) -> None:
    with pytest.raises(PlanError, match=found), parallel_backend(**arguments):
        pass


def test_a_backend_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PlanError, match=r"pip install 'irtaudit\[ray\]'"), parallel_backend("ray"):
        pass


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="the extra irtaudit[ray] is not installed"
)
def test_ray_gives_the_same_numbers() -> None:
    matrix = random_matrix(12, 9)
    alone = fit(matrix, UNI, n_restarts=2, workers=1)
    with parallel_backend("ray", workers=2):
        spread = fit(matrix, UNI, n_restarts=2)
    np.testing.assert_array_equal(spread.means["theta"], alone.means["theta"])
