"""Run every compiled kernel once on minimal data, so that none compiles during use."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np

from explorer.widgets.point_map import rasterizer
from explorer.widgets.point_map.cell_sums import cell_sums
from explorer.widgets.point_map.grid import PointGrid


def run_each(kernels: ModuleType) -> None:
    """Call all kernels with the argument types the map uses: float32 and float64 positions."""
    empty = np.empty(0, bool)
    for kind in (np.float32, np.float64):
        xy = np.array([[0.2, 0.2], [0.8, 0.8]], kind)
        grid = PointGrid(xy, kernels=kernels)
        cells, window = (grid.start, grid.side, grid.levels), (0, 0, 0, 0)
        coordinates = (grid.x, grid.y, 0.2, 0.2, 0.1, 0.1)
        kernels.nearest(xy, coordinates, cells, window, grid.order, empty, (0.2, 0.2), (0.1, 0.1), 1e-6)
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        shape = (*grid.low, *(1 / grid.cell), corners, kernels.outline(1, corners), inside := np.empty(2, bool))
        kernels.mark_inside(xy, 0, 2, *shape)
        kernels.write_marked(inside, 0, 2, np.empty(2, np.int64))
    look = rasterizer.PointStyle(np.array([0, 0], np.uint16), np.zeros(2, bool), np.zeros((1, 3), np.uint8))
    for lit in (None, np.array([True, False])):
        points = rasterizer.arrange(grid, look, rasterizer.States(lit=lit), kernels)
        near, far = (rasterizer.Viewport(-edge, -edge, edge, edge, 8, 8) for edge in (1, 50))
        request = rasterizer.RasterRequest(grid, points, near, wants_density=True)
        sums = cell_sums(grid, points.ink, points.linear, kernels)
        for change in ({"most_stamps": 0}, {"most_stamps": 9}, {"most_stamps": 0, "budget": 0, "sums": sums}):
            rasterizer.render(replace(request, sight=far if "sums" in change else near, **change), kernels)
