"""Standardised columns with missing cells, and the eigenvalues of what they share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

NO_SPREAD = 1e-9
"""Variance at and below which a column counts as constant."""


def standardised_columns(cells: Array, observed: Array) -> Array:
    """Columns centred and scaled over their observed cells; 0 where not observed, and in constant columns.

    Parameters
    ----------
    cells : (..., unit, column) array
        0 where not observed.
    observed : (unit, column) bool array

    Returns
    -------
    (..., unit, column) array
        Of the cells' precision.
    """
    seen = np.maximum(observed.sum(axis=0), 1).astype(cells.dtype)
    centred = cells - (cells.sum(axis=-2) / seen)[..., None, :]
    if not observed.all():
        centred *= observed
    variance = np.einsum("...ij,...ij->...j", centred, centred) / seen
    scale = np.zeros_like(variance)
    np.divide(1, np.sqrt(variance), out=scale, where=variance > NO_SPREAD)
    centred *= scale[..., None, :]
    return np.asarray(centred)


def spectrum(columns: Array) -> Array:
    """Eigenvalues of ``Z'Z / N`` for N units and columns Z, from the smaller of its two sides.

    Parameters
    ----------
    columns : (..., unit, column) array

    Returns
    -------
    (..., rank) float64 array
        Largest first, as many as the smaller side is long. Of complete standardised columns these are the
        eigenvalues of the correlation matrix that can differ from 0.
    """
    n, j = columns.shape[-2:]
    across = np.swapaxes(columns, -1, -2)
    gram = columns @ across if n <= j else across @ columns
    return np.asarray(np.linalg.eigvalsh(gram.astype(np.float64) / n)[..., ::-1])
