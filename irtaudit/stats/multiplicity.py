"""p-values of several tests that are read together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import false_discovery_control

Method = Literal["holm", "bonferroni", "benjamini-hochberg"]


def adjusted(p: ArrayLike, method: Method = "holm") -> NDArray[Any]:
    """Adjusted p-values of one family.

    Parameters
    ----------
    p : (test,) array
        NaN where a test could not be made: it stays NaN and does not count in the family.
    method : {"holm", "bonferroni", "benjamini-hochberg"}
        The first two hold the family-wise error, the last the false discovery rate.

    Returns
    -------
    (test,) array
    """
    values = np.asarray(p, dtype=float)
    made = ~np.isnan(values)
    result = np.full(values.shape, np.nan)
    if made.any():
        result[made] = _ADJUST[method](values[made])
    return result


def _holm(p: NDArray[Any]) -> NDArray[Any]:
    order = np.argsort(p, kind="stable")
    stepwise = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    result = np.empty(p.size)
    result[order] = np.minimum(stepwise, 1.0)
    return result


_ADJUST: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "holm": _holm,
    "bonferroni": lambda p: np.minimum(p * p.size, 1.0),
    "benjamini-hochberg": lambda p: np.asarray(false_discovery_control(p)),
}
