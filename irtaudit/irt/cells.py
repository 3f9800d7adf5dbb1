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
        1 where a training response is a pass, else 0.
    mask : (1 or fit, cell_width) Tensor
        1 where a response is used for training, else 0.
    """

    success: Tensor
    mask: Tensor


def as_cells(packed: Tensor, layout: Layout) -> Tensor:
    """View packed cells (fit, cell_width) as (fit, subject, item)."""
    n, j = layout.n_subjects, layout.n_items
    return packed.as_strided((packed.shape[0], n, j), (packed.stride(0), j, 1))


def pack_cells(values: Tensor, layout: Layout) -> Tensor:
    """Pack (panel, subject, item) numbers into rows (panel, cell_width), padded with zeros."""
    packed = values.new_zeros(values.shape[0], layout.cell_width)
    as_cells(packed, layout).copy_(values)
    return packed
