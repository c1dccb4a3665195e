"""Which pixels a PixelCNN sees: the plain one with its blind spot, and the gated one with two stacks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool

Pixels = Bool[np.ndarray, "s s"]
FIRST_SIDE = 7
"""Side of the first kernel; that of all others is 3."""


def plain_field(size: int, row: int, column: int, blocks: int) -> Pixels:
    """Return what `trainer.models.pixel_cnn.PixelCnn` sees of a picture at a pixel, that pixel included."""
    seen = _one(size, row, column)
    for _ in range(blocks):
        seen = _spread(seen, _before(3, with_center=True))
    return _spread(seen, _before(FIRST_SIDE, with_center=True))


def gated_field(size: int, row: int, column: int, layers: int) -> Pixels:
    """Return what `trainer.models.gated_pixel_cnn.GatedPixelCnn` sees of a picture at a pixel, that pixel included."""
    horizontal, vertical = _one(size, row, column), np.zeros((size, size), bool)
    for layer in reversed(range(layers)):
        reach = (3 if layer else FIRST_SIDE) // 2
        rows = vertical | _spread(horizontal, [(-1, 0)])
        vertical = _spread(rows, [(-up, side) for up in range(reach + 1) for side in range(-reach, reach + 1)])
        horizontal = _spread(horizontal, [(0, -left) for left in range(reach + 1)])
    return horizontal | vertical


def blind_spot(size: int, row: int, column: int, seen: Pixels) -> Pixels:
    """Return the pixels before this one, in reading order, that are not seen."""
    order = np.arange(size * size).reshape(size, size)
    return (order < order[row, column]) & ~seen


def _one(size: int, row: int, column: int) -> Pixels:
    field = np.zeros((size, size), bool)
    field[row, column] = True
    return field


def _before(side: int, *, with_center: bool) -> list[tuple[int, int]]:
    """Return the offsets of a masked kernel: all rows above, and to the left in its own row."""
    reach = side // 2
    above = [(-up, across) for up in range(1, reach + 1) for across in range(-reach, reach + 1)]
    return [*above, *((0, -left) for left in range(0 if with_center else 1, reach + 1))]


def _spread(field: Pixels, offsets: Iterable[tuple[int, int]]) -> Pixels:
    """Return the union of the field moved by each offset; what leaves the picture is lost."""
    size, union = len(field), np.zeros_like(field)
    for down, right in offsets:
        rows = slice(max(0, -down), min(size, size - down))
        columns = slice(max(0, -right), min(size, size - right))
        moved = field[rows, columns]
        union[max(0, down) : max(0, down) + len(moved), max(0, right) : max(0, right) + moved.shape[1]] |= moved
    return union
