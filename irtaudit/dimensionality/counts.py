"""How many quantities a model fits, and the information criteria that follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irtaudit.irt.spec import ModelSpec


class Counts(NamedTuple):
    """Fitted quantities: item parameters and latent scores together.

    Attributes
    ----------
    paper : int
        As the source paper counts: every loading of a 2PL or 3PL brings an intercept of its own.
    exact : int
        One intercept per item, one common slope per dimension in a 1PL, and learned factor correlations.
    """

    paper: int
    exact: int


def fitted_quantities(spec: ModelSpec, n_subjects: int, n_items: int) -> Counts:
    """Count the fitted quantities of a model.

    Parameters
    ----------
    spec : ModelSpec
    n_subjects, n_items : int
        Size of the screened matrix.

    Returns
    -------
    Counts

    Notes
    -----
    With L loadings (J in one dimension and in simple structure, J k in exploratory models) the paper's count
    is L (1PL) or 2 L (2PL, 3PL), plus J guessing parameters (3PL), plus N k scores. On 81 x 398: 877 for the
    unidimensional 2PL, 1,039 for three confirmatory factors, 8,770 for ten exploratory dimensions.
    """
    loadings = int(spec.pattern(n_items).sum())
    guesses = n_items if spec.family == "3pl" else 0
    scores = n_subjects * spec.dims
    paper = loadings * (1 if spec.family == "1pl" else 2)
    slopes = spec.dims if spec.family == "1pl" else loadings
    correlations = spec.dims * (spec.dims - 1) // 2 if spec.correlated else 0
    return Counts(paper + guesses + scores, slopes + n_items + guesses + correlations + scores)


def aic(quantities: ArrayLike, log_likelihood: ArrayLike) -> NDArray[np.float64]:
    """Akaike's criterion, ``2 k - 2 log L`` (Akaike 1974)."""
    return np.asarray(2 * np.asarray(quantities) - 2 * np.asarray(log_likelihood), dtype=float)


def bic(quantities: ArrayLike, log_likelihood: ArrayLike, responses: ArrayLike) -> NDArray[np.float64]:
    """Schwarz's criterion, ``k log n - 2 log L``, n the number of training responses (Schwarz 1978).

    Every trial of a counted cell is a response: the criterion is that of the single trials.
    """
    penalty = np.asarray(quantities) * np.log(np.asarray(responses, dtype=float))
    return np.asarray(penalty - 2 * np.asarray(log_likelihood))
