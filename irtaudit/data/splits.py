"""Which cells are held out: repeated random splits at the level of single responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irtaudit.data.responses import ResponseMatrix, check_matrix, sorted_order
from irtaudit.errors import DataError, PlanError, check_kind, check_whole, shown_value
from irtaudit.words import counted

MOST_CELLS = 2**33
"""Cells of all splits together, a byte each."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Held-out cells of one or more splits of a response matrix.

    Parameters
    ----------
    test : (split, subject, item) boolean array
        True where the split holds a cell out. Copied; the stored array is read-only.
    seeds : tuple of int or None
        The seed that drew each split; None where the caller gave the cells.

    Raises
    ------
    DataError
        If the mask is not a boolean (split, subject, item) array with a held-out cell in every split, or
        the number of seeds is not the number of splits.
    """

    test: NDArray[np.bool_]
    seeds: tuple[int | None, ...]

    def __post_init__(self) -> None:
        test = np.array(self.test)
        if test.dtype != bool or test.ndim != 3:
            raise DataError(
                "a held-out mask is a boolean (split, subject, item) array; "
                f"found {test.dtype} of shape {test.shape}"
                + ("; one split is mask[None]" if test.ndim == 2 else "")
            )
        if test.shape[0] == 0 or not test.any(axis=(1, 2)).all():
            empty = np.flatnonzero(~test.any(axis=(1, 2))).tolist()
            raise DataError(
                f"every split must hold out at least one cell; {empty or 'there are no splits'} hold none"
            )
        if len(self.seeds) != test.shape[0]:
            raise DataError(f"{len(self.seeds)} seeds for {test.shape[0]} splits; expected one each")
        test.setflags(write=False)
        object.__setattr__(self, "test", test)
        object.__setattr__(self, "seeds", tuple(self.seeds))

    def __repr__(self) -> str:
        n_splits, n_subjects, n_items = self.test.shape
        held_out = f"{self.test.sum() / n_splits:,.0f} cells held out each"
        return f"Splits({counted(n_splits, 'split')} of {n_subjects} subjects x {n_items} items, {held_out})"

    @classmethod
    def from_test_masks(cls, mask: ArrayLike) -> Splits:
        """Splits from a caller's own boolean (split, subject, item) array, True where a cell is held out.

        Raises
        ------
        DataError
            Also where two splits hold out the same cells: they would count as agreeing with each other.
        """
        test = np.asarray(mask)
        splits = cls(test=test, seeds=(None,) * (test.shape[0] if test.ndim else 0))
        _refuse_repeated(splits.test)
        return splits

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return int(self.test.shape[0])

    def heldout(self, matrix: ResponseMatrix) -> NDArray[np.bool_]:
        """(split, subject, item) boolean: cells that are observed and held out.

        Raises
        ------
        DataError
            If the splits are not of this matrix, or a split holds out no observed cell.
        """
        return self._checked(self.test & _observed(self, matrix), "holds out no observed cell")

    def training(self, matrix: ResponseMatrix) -> NDArray[np.bool_]:
        """(split, subject, item) boolean: cells that are observed and not held out.

        Raises
        ------
        DataError
            If the splits are not of this matrix, or a split leaves no cell to train on.
        """
        return self._checked(~self.test & _observed(self, matrix), "leaves no observed cell to train on")

    def align(self, source: ResponseMatrix, target: ResponseMatrix) -> Splits:
        """The same splits for another order or subset of the matrix they belong to, matched by name.

        Parameters
        ----------
        source : ResponseMatrix
            The matrix these splits belong to.
        target : ResponseMatrix
            The matrix wanted, for example `source` after screening; its names all occur in `source`.
        """
        _observed(self, source)
        rows = source.subjects.index.get_indexer(target.subjects.index)
        columns = source.items.index.get_indexer(target.items.index)
        if (rows < 0).any() or (columns < 0).any():
            raise DataError("splits can only be aligned to subjects and items of the matrix they belong to")
        return Splits(self.test[:, rows][:, :, columns], self.seeds)

    def _checked(self, cells: NDArray[np.bool_], complaint: str) -> NDArray[np.bool_]:
        bad = np.flatnonzero(~cells.any(axis=(1, 2)))
        if len(bad):
            raise DataError(f"split {bad[0]} {complaint}")
        return cells


def check_splits(value: object, what: str = "splits") -> None:
    """Raise PlanError unless the value is a set of splits."""
    make = "Splits: make_splits(matrix) draws them, Splits.from_test_masks(mask) takes yours"
    check_kind(what, value, Splits, make)


def _refuse_repeated(test: NDArray[np.bool_]) -> None:
    first: dict[bytes, int] = {}
    for number, cells in enumerate(test):
        same = first.setdefault(cells.tobytes(), number)
        if same != number:
            raise DataError(
                f"splits {same} and {number} (counted from 0) hold out the same cells; the spread over "
                "splits would be too small: leave one out, or hold out other cells"
            )


def _observed(splits: Splits, matrix: ResponseMatrix) -> NDArray[np.bool_]:
    check_matrix(matrix)
    if splits.test.shape[1:] != matrix.responses.shape:
        raise DataError(
            f"the splits are of {splits.test.shape[1]} subjects x {splits.test.shape[2]} items, the matrix "
            f"has {matrix.n_subjects} x {matrix.n_items}; after screening use splits.align(before, after)"
        )
    return matrix.observed


def _check_memory(n_splits: int, n_cells: int) -> None:
    if n_splits * n_cells > MOST_CELLS:
        raise PlanError(
            f"n_splits is {n_splits:,}; a matrix of {n_cells:,} cells is split {MOST_CELLS // n_cells:,} "
            "times at most, and five splits are usual"
        )


def make_splits(
    matrix: ResponseMatrix,
    n_splits: int = 5,
    test_fraction: float = 0.2,
    seed: int = 2026,
    stratified: bool = False,
) -> Splits:
    """Hold out single responses at random, several times over.

    Split s holds out exactly `round(test_fraction * n_observed)` observed cells, drawn without replacement
    by `numpy.random.default_rng(seed + s)` from the cells in the order of their names, each equally likely.
    So the splits belong to the data, not to the order of a file.

    Parameters
    ----------
    matrix : ResponseMatrix
        Usually screened.
    n_splits : int
        How many splits, at least 1.
    test_fraction : float
        Share of the observed cells to hold out, above 0 and below 1.
    seed : int
        Seed of the first split; the next ones use seed + 1, seed + 2, ...
    stratified : bool
        Hold out the same share of passes as of fails (to the nearest cell; the total stays the same). A cell
        of several trials is a pass where more than half of them are.

    Returns
    -------
    Splits

    Raises
    ------
    PlanError
        If the options are impossible, would hold out none or all of the observed cells, or take more memory
        than `MOST_CELLS` cells do.
    DataError
        If `matrix` is no response matrix.
    """
    check_matrix(matrix)
    n_splits, seed = check_whole("n_splits", n_splits, 1), check_whole("seed", seed)
    if not isinstance(test_fraction, Real) or not 0 < test_fraction < 1:
        raise PlanError(
            f"test_fraction is {shown_value(test_fraction)}; expected a share above 0 and below 1"
        )
    _check_memory(n_splits, matrix.responses.size)
    order = np.ix_(sorted_order(matrix.subjects.index), sorted_order(matrix.items.index))
    responses = matrix.responses[order]
    n_observed = int(matrix.observed.sum())
    n_test = round(test_fraction * n_observed)
    if not 0 < n_test < n_observed:
        raise PlanError(f"test_fraction={test_fraction} holds out {n_test} of {n_observed} observed cells")
    seeds = tuple(range(seed, seed + n_splits))
    test = np.zeros((n_splits, *responses.shape), dtype=bool)
    for split, split_seed in enumerate(seeds):
        drawn = _draw(responses, n_test, np.random.default_rng(split_seed), stratified)
        cells = np.zeros(responses.shape, dtype=bool)
        cells.flat[drawn] = True
        test[split][order] = cells
    return Splits(test, seeds)


def _draw(
    responses: NDArray[np.float64], n_test: int, rng: np.random.Generator, stratified: bool
) -> NDArray[np.intp]:
    """Flat positions of `n_test` observed cells."""
    observed = np.flatnonzero(~np.isnan(responses))
    if not stratified:
        return rng.choice(observed, size=n_test, replace=False)
    passed = responses.flat[observed] > 0.5
    n_passed = math.floor(n_test * passed.mean() + 0.5)
    return np.concatenate(
        [
            rng.choice(observed[passed], size=n_passed, replace=False),
            rng.choice(observed[~passed], size=n_test - n_passed, replace=False),
        ]
    )
