"""Every point of many, summed in cells finer than a pixel: a picture of them costs cells, not points.

Each cell of `PointGrid` is divided into `factor` x `factor` fine cells, of which only those with points are kept. A
point is drawn at the middle of its fine cell, at most a third of a pixel from its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Float32, Int32, UInt16, UInt32
from msgspec import Struct

from explorer.widgets.point_map.grid import PointGrid

CELLS_PER_POINT: Final = 1.7
"""Fine cells at most, empty ones included: most of a map is empty, so that some quarter of a cell a point is kept."""
MOST_PIXELS: Final = 0.66
"""Pixels along one side of a fine cell at most, where it is drawn."""


class CellSums(Struct, frozen=True):
    """Sums over the points of each fine cell that has any, row by row.

    Attributes:
        factor: Fine cells along one side of a cell of the grid.
        row_start: Where each row of fine cells begins in the arrays below.
        column: Column of each fine cell.
        plain, dimmed: Number of points in color, and of dimmed ones.
        color: Mean of the points in color: gamma-encoded blue, 256 times green, 65,536 times red.
    """

    factor: int
    row_start: Int32[np.ndarray, " rows+1"]
    column: UInt16[np.ndarray, " cells"]
    plain: Float32[np.ndarray, " cells"]
    dimmed: Float32[np.ndarray, " cells"]
    color: UInt32[np.ndarray, " cells"]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All arrays in this order, as the kernels take them."""
        return self.row_start, self.column, self.plain, self.dimmed, self.color


def cell_sums(
    grid: PointGrid, ink: UInt16[np.ndarray, " n"], linear: Float32[np.ndarray, "k 3"], kernels: ModuleType
) -> tuple[CellSums, ...]:
    """Return the sums at every useful factor, coarsest first.

    Args:
        ink: Color, shape and state of each, in the grid's order.
        linear: Colors as linear blue, green, red.
        kernels: The compiled kernels.
    """
    factors = [2]
    while (grid.side * factors[-1] * 2) ** 2 <= CELLS_PER_POINT * len(grid.order):
        factors.append(2 * factors[-1])
    return tuple(_summed(grid, ink, linear, factor, kernels) for factor in factors)


def _summed(grid: PointGrid, ink: np.ndarray, linear: np.ndarray, factor: int, kernels: ModuleType) -> CellSums:
    side = grid.side * factor
    most = min(len(grid.order), side**2)
    # What is not written to takes no memory, and the copies are as long as is needed.
    column, color = np.empty(most, np.uint16), np.empty(most, np.uint32)
    plain, dimmed = np.empty(most, np.float32), np.empty(most, np.float32)
    row_start = np.zeros(side + 1, np.int32)
    points, cells = (grid.x, grid.y, ink), (grid.start, grid.side, grid.levels)
    fine_cell = (float(grid.cell[0] / factor), float(grid.cell[1] / factor))
    into = (row_start, column, plain, dimmed, color)
    n = kernels.sum_fine_cells(points, cells, fine_cell, factor, linear, into)
    return CellSums(factor, row_start, column[:n].copy(), plain[:n].copy(), dimmed[:n].copy(), color[:n].copy())


def fitting(sums: Sequence[CellSums], grid: PointGrid, scale: tuple[float, float]) -> CellSums | None:
    """Return the coarsest sums whose cells are small enough at a scale of pixels per unit; None if none are."""
    widest = max(float(grid.cell[0]) * scale[0], float(grid.cell[1]) * scale[1])
    return next((each for each in sums if widest <= MOST_PIXELS * each.factor), None)
