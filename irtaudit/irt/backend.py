"""Where tiles run: this machine's processes (loky), a dask cluster or a ray cluster, all through joblib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, get_args

import joblib

from irtaudit.errors import PlanError, StorageError

Backend = Literal["loky", "dask", "ray"]


@contextmanager
def parallel_backend(
    backend: Backend = "loky", *, address: str | None = None, workers: int | None = None
) -> Iterator[None]:
    """Run every fit inside the block on a backend.

    Parameters
    ----------
    backend : {"loky", "dask", "ray"}
        ``loky`` starts processes on this machine; the others need the extra of their name.
    address : str, optional
        Scheduler to connect to; default a cluster on this machine, closed when the block ends.
    workers : int, optional
        Worker processes of a cluster on this machine, one thread each; default one per core.

    Raises
    ------
    PlanError
        For an unknown backend, one that is not installed, or an address given to ``loky``.
    StorageError
        When the cluster cannot be reached.
    """
    if backend not in get_args(Backend):
        raise PlanError(f"There is no backend {backend!r}; choose one of {', '.join(get_args(Backend))}.")
    if backend == "loky":
        if address is not None:
            raise PlanError("The loky backend runs on this machine; an address goes with dask or ray.")
        yield
        return
    with _CLUSTERS[backend](address, workers), joblib.parallel_config(backend=backend, n_jobs=-1):
        yield


@contextmanager
def _dask(address: str | None, workers: int | None) -> Iterator[None]:
    distributed = _needed("distributed", "dask")
    options: dict[str, Any] = {"address": address, "set_as_default": True}
    if address is None:
        n_workers = workers or joblib.cpu_count()
        options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    try:
        client = distributed.Client(**options)
    except (OSError, ValueError) as error:
        raise StorageError(f"No dask scheduler answers at {address}: {error}.") from error
    with client:
        yield


@contextmanager
def _ray(address: str | None, workers: int | None) -> Iterator[None]:
    ray = _needed("ray", "ray")
    options: dict[str, Any] = {"address": address, "log_to_driver": False}
    if address is None:
        options = {
            "num_cpus": workers or joblib.cpu_count(),
            "include_dashboard": False,
            "log_to_driver": False,
        }
    try:
        ray.init(**options)
    except (OSError, ValueError) as error:
        raise StorageError(f"No ray cluster answers at {address}: {error}.") from error
    import_module("ray.util.joblib").register_ray()
    try:
        yield
    finally:
        ray.shutdown()


_CLUSTERS = {"dask": _dask, "ray": _ray}


def _needed(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise PlanError(
            f"The {extra} backend needs the package {module!r}: pip install 'irtaudit[{extra}]'."
        ) from None
