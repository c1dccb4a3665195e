"""Sums of fine cells against a loop over the points, and the pictures that are drawn of them."""

import dataclasses

import numpy as np
import pytest
from PySide6.QtCore import QPointF

from explorer.widgets.point_map import layer as layer_module
from explorer.widgets.point_map import rasterizer
from explorer.widgets.point_map.cell_sums import MOST_PIXELS, CellSums, cell_sums, fitting
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.loading import load_kernels
from tests.explorer.test_point_map import PALETTE, deep, drag, kernels, make_map

__all__ = ["deep", "kernels", "make_map"]  # fixtures

N = 60_000
pytestmark = pytest.mark.slow


@pytest.fixture
def grid() -> PointGrid:
    xy = np.random.default_rng(0).normal(size=(N, 2))
    xy[:3] = np.nan
    return PointGrid(xy, kernels=load_kernels())


def arranged(grid: PointGrid, **states: np.ndarray) -> rasterizer.GridPoints:
    look = rasterizer.PointStyle((np.arange(N) % 3).astype(np.uint16), np.zeros(N, bool), PALETTE)
    return rasterizer.arrange(grid, look, rasterizer.States(**states), load_kernels())


def by_loop(grid: PointGrid, points: rasterizer.GridPoints, factor: int) -> np.ndarray:
    """Return blue, green, red, points in color and dimmed points of every fine cell."""
    side = grid.side * factor
    sums = np.zeros((side, side, 5))
    for x, y, ink in zip(grid.x.tolist(), grid.y.tolist(), points.ink.tolist(), strict=True):
        row, column = (min(int(at / (step / factor)), side - 1) for at, step in ((y, grid.cell[1]), (x, grid.cell[0])))
        if ink >> 14 == 2:
            sums[row, column] += (*points.linear[ink & 0x1FFF], 1, 0)
        elif ink >> 14 == 1:
            sums[row, column, 4] += 1
    return sums


def dense(sums: CellSums) -> np.ndarray:
    side = len(sums.row_start) - 1
    rows = np.repeat(np.arange(side), np.diff(sums.row_start))
    mean = (np.stack([sums.color & 255, (sums.color >> 8) & 255, sums.color >> 16], axis=1) / 255) ** 2.2
    table = np.zeros((side, side, 5))
    table[rows, sums.column] = np.column_stack([mean * sums.plain[:, None], sums.plain, sums.dimmed])
    return table


def test_each_fine_cell_has_the_sums_of_its_points(grid: PointGrid):
    points = arranged(grid, lit=np.arange(N) % 5 != 0, shown=np.arange(N) % 7 != 0)
    sums = cell_sums(grid, points.ink, points.linear, load_kernels())
    assert [each.factor for each in sums] == [2]
    expected, found = by_loop(grid, points, 2), dense(sums[0])
    moved = np.abs(expected[..., 3:] - found[..., 3:]).sum() / 2  # on the border of two cells, by rounding
    assert moved <= 5
    assert found[..., 3:].sum() == expected[..., 3:].sum() == (points.ink >> 14 > 0).sum()
    same = (expected[..., 3] == found[..., 3]) & (expected[..., 3] > 0)
    error = np.abs(expected[same][:, :3] - found[same][:, :3]) / expected[same][:, 3:4]
    assert error.max() < 0.006  # half a step of a byte


def test_the_coarsest_sums_whose_cells_are_small_enough_are_drawn(grid: PointGrid):
    points = arranged(grid)
    coarse = cell_sums(grid, points.ink, points.linear, load_kernels())[0]
    sums = (coarse, CellSums(4, *[np.empty(0)] * 5))
    pixels = float(grid.cell.max())
    assert fitting(sums, grid, (2 * MOST_PIXELS / pixels,) * 2) is sums[0]
    assert fitting(sums, grid, (2.1 * MOST_PIXELS / pixels,) * 2) is sums[1]
    assert fitting(sums, grid, (4.1 * MOST_PIXELS / pixels,) * 2) is None


@pytest.mark.parametrize("moved", [0.0, 0.37])
@pytest.mark.parametrize("dims", [False, True])
def test_a_picture_of_sums_is_close_to_one_of_points(deep: PointGrid, moved: float, dims: bool):
    color = (deep.xy[:, 0] > 0).astype(np.uint16)
    lit = None if not dims else np.abs(deep.xy[:, 1]) < 1
    look = rasterizer.PointStyle(color, np.zeros(len(deep), bool), PALETTE)
    points = rasterizer.arrange(deep, look, rasterizer.States(lit=lit), load_kernels())
    points = dataclasses.replace(points, some=None)  # as where more are selected than are drawn one by one
    left, bottom, right, top = deep.bounds
    across = moved * (right - left) / 220
    sight = rasterizer.Viewport(left + across, bottom, right + across, top, 220, 220)
    request = rasterizer.RasterRequest(deep, points, sight, ground=(255, 255, 255), most_stamps=0, wants_density=True)
    whole = rasterizer.render(request, load_kernels())
    sums = cell_sums(deep, points.ink, points.linear, load_kernels())
    drawn = rasterizer.render(dataclasses.replace(request, budget=60_000, sums=sums), load_kernels())
    assert (whole.summed, drawn.summed) == (False, True)
    assert drawn.drawn == drawn.visible == whole.visible
    # Points on the edges of the bounds fall just outside of the picture, or cells lie across its edge.
    assert drawn.density.sum() == pytest.approx(whole.density.sum(), rel=0.001)
    blocks = [picture.density.reshape(44, 5, 44, 5).sum(axis=(1, 3)) for picture in (whole, drawn)]
    assert np.abs(blocks[0] - blocks[1]).sum() / blocks[0].sum() < 0.05
    off = np.abs(whole.pixels.astype(int) - drawn.pixels.astype(int)).max(axis=2)
    assert np.sqrt((off**2).mean()) < 12


def test_with_sums_a_map_that_moves_stands_for_every_point(qtbot, make_map, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layer_module, "MOVING_POINTS", 30_000)
    monkeypatch.setattr("explorer.widgets.point_map.grid.FIRST_LEVEL", 5_000)
    shown = make_map(np.random.default_rng(0).normal(size=(150_000, 2)))
    shown.resize(200, 200)
    qtbot.waitUntil(lambda: shown.layer.still and bool(shown.layer.sums[1]), timeout=10_000)
    at_rest, frames = shown.layer.frame, []
    shown.layer.framed.connect(lambda: frames.append(shown.layer.frame))
    drag(shown, [QPointF(90, 90), QPointF(100, 90), QPointF(105, 92)])
    qtbot.waitUntil(lambda: len(frames) > 1 and shown.layer.still, timeout=10_000)
    assert at_rest.exact
    assert not frames[0].exact
    assert frames[0].drawn == frames[0].visible > 30_000
    assert frames[-1].exact
    shown.set_selected(np.arange(150_000) % 2 == 0)  # the sums of before are of other colors
    qtbot.waitUntil(lambda: shown.layer.still and shown.layer.sums[0] is shown.layer.arranged[1], timeout=10_000)
    qtbot.waitUntil(lambda: bool(shown.layer.sums[1]), timeout=10_000)
    assert shown.layer.sums[1][0].dimmed.sum() == 75_000
