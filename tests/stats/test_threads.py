"""Linear algebra on one thread, and the caller's setting afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from irtaudit.stats.threads import one_blas_thread


def _threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@one_blas_thread()
def _inside() -> set[int]:
    return _threads()


def test_one_thread_inside_and_the_callers_number_after() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert _threads() == {2}, f"numpy {np.__version__} needs a BLAS whose threads can be set"
        assert _inside() == {1}
        assert _threads() == {2}
        assert _inside() == {1}, "a decorated function may run again"
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            _ = 1 / 0
        assert _threads() == {2}
