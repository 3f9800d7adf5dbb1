"""Where every number of a fit lies: the packed rows that the hot path, the store and the result share.

A row holds theta dim-major, then slopes dim-major, intercepts and guesses, padded so that no vectorised
loop has a tail: then a fit's arithmetic does not depend on which other fits share its batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irtaudit.irt.sites import Hyper, Latent, hypers, latents
from irtaudit.irt.spec import ModelSpec

LANES = 32
"""Rows are padded to a multiple of this many numbers: twice the widest vector register's float32 lanes."""
ALIGNED = 16
"""Float32 numbers in a cache line: operands of products begin at a multiple of them."""


def padded(n: int, multiple: int = LANES) -> int:
    """The next multiple of `LANES`, or of another number."""
    return -(-n // multiple) * multiple


@dataclass(frozen=True)
class Layout:
    """Where each site of a model lies in the packed rows of a fit.

    Attributes
    ----------
    spec : ModelSpec
    n_subjects, n_items : int
    """

    spec: ModelSpec
    n_subjects: int
    n_items: int

    @cached_property
    def latents(self) -> tuple[Latent, ...]:
        """Latent sites in packed order."""
        return latents(self.spec)

    @cached_property
    def hypers(self) -> tuple[Hyper, ...]:
        """Hyperparameters in packed order."""
        return hypers(self.spec)

    @cached_property
    def pattern(self) -> NDArray[np.bool_]:
        """(item, dim) loading pattern."""
        return self.spec.pattern(self.n_items)

    @cached_property
    def loading_index(self) -> NDArray[np.int64]:
        """(loading,) position of each loading in the dim-major (dim, item) slope matrix.

        Loadings are ordered item by item; exploratory ones dimension by dimension, as the matrix lies.
        """
        if not self.spec.positive:
            return np.arange(self.spec.dims * self.n_items)
        items, dims = np.nonzero(self.pattern)
        return dims * self.n_items + items

    @cached_property
    def factor_columns(self) -> tuple[slice, ...]:
        """Items of each dimension, where slopes are positive, one an item, and dimensions follow in order."""
        one_each = self.spec.positive and (self.pattern.sum(axis=1) == 1).all()
        if not one_each or (np.diff(self.factor_order) < 0).any():
            return ()
        dims = self.pattern.argmax(axis=1)
        ends = np.cumsum(np.bincount(dims, minlength=self.spec.dims)).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @cached_property
    def factor_order(self) -> NDArray[np.int64]:
        """(item,) items factor by factor, where each has one positive slope; else as they are."""
        if not self.spec.positive or not (self.pattern.sum(axis=1) == 1).all():
            return np.arange(self.n_items)
        return np.argsort(self.pattern.argmax(axis=1), kind="stable")

    def reordered(self, order: NDArray[np.int64]) -> Layout:
        """The layout of the same model with its items in another order."""
        if self.spec.loadings is None:
            return self
        loadings = tuple(self.spec.loadings[i] for i in order)
        return replace(self, spec=replace(self.spec, loadings=loadings))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Numbers per latent site."""
        per_plate = {
            "subject": self.n_subjects * self.spec.dims,
            "loading": len(self.loading_index),
            "dim": self.spec.dims,
            "item": self.n_items,
        }
        return {site.name: per_plate[site.plate] for site in self.latents}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Columns of each latent site in a packed row."""
        ends = np.cumsum(list(self.sizes.values())).tolist()
        return {name: slice(end - n, end) for (name, n), end in zip(self.sizes.items(), ends, strict=True)}

    @cached_property
    def width(self) -> int:
        """Length of a packed row of latents, padding included."""
        return padded(sum(self.sizes.values()))

    @cached_property
    def hyper_slices(self) -> dict[str, slice]:
        """Columns of each hyperparameter in a packed row of unconstrained values."""
        k = self.spec.dims
        free = {"correlation": k * (k - 1) // 2}
        sizes = [free.get(h.support, k if h.plate == "dim" else 1) for h in self.hypers]
        ends = np.cumsum([0, *sizes]).tolist()
        return {h.name: slice(a, b) for h, a, b in zip(self.hypers, ends, ends[1:], strict=False)}

    @cached_property
    def hyper_width(self) -> int:
        """Length of a packed row of hyperparameters, padding included."""
        return padded(max((s.stop for s in self.hyper_slices.values()), default=0))

    @property
    def n_cells(self) -> int:
        """Cells of a panel."""
        return self.n_subjects * self.n_items

    def blocks(self, cells: int) -> list[slice]:
        """Cut the subjects into blocks of about so many cells each.

        Parameters
        ----------
        cells : int

        Returns
        -------
        list of slice
            At least one; all start at a multiple of `LANES` subjects.
        """
        rows = max(LANES, cells // self.n_items // LANES * LANES)
        return [slice(a, min(a + rows, self.n_subjects)) for a in range(0, self.n_subjects, rows)]

    def unpack(self, packed: NDArray[np.floating]) -> dict[str, NDArray[np.floating]]:
        """Split packed latents into sites.

        Parameters
        ----------
        packed : (..., width) array

        Returns
        -------
        dict of arrays
            ``theta`` (..., subject, dim); every other latent site (..., its plate).
        """
        sites = {name: packed[..., columns] for name, columns in self.slices.items()}
        theta = sites["theta"].reshape(*packed.shape[:-1], self.spec.dims, self.n_subjects)
        return sites | {"theta": np.swapaxes(theta, -1, -2)}
