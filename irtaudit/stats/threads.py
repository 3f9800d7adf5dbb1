"""Linear algebra on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run numpy's linear algebra on one thread, and leave the caller's setting as it was.

    Many small products or decompositions gain nothing from more threads; on busy cores they made the same
    work 20 times slower.
    """
    with threadpool_limits(1, user_api="blas"):  # type: ignore[no-untyped-call]  # it has no annotations
        yield
