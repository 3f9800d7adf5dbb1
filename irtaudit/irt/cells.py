"""What a tile is fitted to, packed in rows that the hot path reads."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from irtaudit.irt.layout import Layout


@dataclass(frozen=True)
class Cells:
    """Training responses of a tile.

    Attributes
    ----------
    success : (1 or fit, cell_width) Tensor
        1 where a training response is a pass, else 0; of several trials of a cell the number of passes.
    mask : (1 or fit, cell_width) Tensor
        1 where a response is used for training, else 0; of several trials of a cell their number.
    """

    success: Tensor
    mask: Tensor


def as_cells(packed: Tensor, layout: Layout, subjects: slice = slice(None)) -> Tensor:
    """View packed cells (fit, cell_width), or a block of them, as (fit, subject, item).

    Parameters
    ----------
    packed : (fit, width) Tensor
        Rows that begin with the first cell of the block.
    layout : Layout
    subjects : slice
        The block; default every subject.
    """
    n, j = len(range(layout.n_subjects)[subjects]), layout.n_items
    return packed.as_strided((packed.shape[0], n, j), (packed.stride(0), j, 1), packed.storage_offset())


def pack_cells(values: Tensor, layout: Layout) -> Tensor:
    """Pack (panel, subject, item) numbers into rows (panel, cell_width), padded with zeros."""
    packed = values.new_zeros(values.shape[0], layout.cell_width)
    as_cells(packed, layout).copy_(values)
    return packed


def block_columns(layout: Layout, subjects: slice) -> slice:
    """Columns of packed cells that hold a block of subjects, the padding with the last of them."""
    last = subjects.stop == layout.n_subjects
    return slice(
        subjects.start * layout.n_items, layout.cell_width if last else subjects.stop * layout.n_items
    )
