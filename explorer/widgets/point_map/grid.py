"""Which point lies here, which lie in this lasso: a regular grid over the points, without Qt and without numba."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

POINTS_PER_CELL: Final = 4
MOST_CELLS: Final = 1024
"""Cells along one side at most: past it a cell holds more points, and the index stays 4 MB."""


class PointGrid:
    """The points sorted into the cells of a square grid, row by row; inside a cell they stand in random order.

    Random order keeps one class from covering another where points overlap. Points that are not finite belong to
    no cell: they are never drawn, picked or selected.

    Attributes:
        order: Point numbers, cell after cell.
        start: `start[c]` is where cell c begins in `order`; cell (row, column) has the number row * side + column.
        side: Cells along one side.
    """

    def __init__(self, xy: Float[np.ndarray, "n 2"]) -> None:
        self.xy = np.ascontiguousarray(xy, dtype=np.float64)
        good = np.flatnonzero(np.isfinite(self.xy).all(axis=1))
        self.side = int(np.clip(np.sqrt(len(good) / POINTS_PER_CELL), 1, MOST_CELLS))
        low, high = (self.xy[good].min(axis=0), self.xy[good].max(axis=0)) if len(good) else (np.zeros(2), np.ones(2))
        self.low = low
        self.cell = np.where(high > low, (high - low) / self.side, 1.0)
        good = np.random.default_rng(0).permutation(good)
        number = self._cell_of(self.xy[good])
        self.order: Int[np.ndarray, " n"] = good[np.argsort(number.astype(np.int32))].astype(np.int32)
        self.start = np.concatenate([[0], np.bincount(number, minlength=self.side**2).cumsum()])

    def __len__(self) -> int:
        return len(self.xy)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top of all points; the unit square where there is none."""
        right, top = self.low + self.cell * self.side
        return float(self.low[0]), float(self.low[1]), float(right), float(top)

    def ranges(self, left: float, bottom: float, right: float, top: float) -> Int[np.ndarray, "k 2"]:
        """Stretches of `order` that together hold every point of the rectangle (and some just outside it)."""
        columns = self._clipped(np.array([left, right]), 0)
        rows = self._clipped(np.array([bottom, top]), 1)
        row = np.arange(rows[0], rows[1] + 1) * self.side
        found = np.stack([self.start[row + columns[0]], self.start[row + columns[1] + 1]], axis=1)
        return np.ascontiguousarray(found[found[:, 1] > found[:, 0]])

    def nearest(
        self, x: float, y: float, *, reach: tuple[float, float], allowed: Bool[np.ndarray, " n"] | None = None
    ) -> int:
        """The point nearest to (x, y) within an ellipse of half axes `reach`, -1 if there is none.

        Nearness is measured in units of `reach`, so it is nearness on the screen when `reach` is a radius in pixels.
        """
        near = self._points_near(x - reach[0], y - reach[1], x + reach[0], y + reach[1])
        if allowed is not None:
            near = near[allowed[near]]
        if not len(near):
            return -1
        distance = (((self.xy[near] - (x, y)) / reach) ** 2).sum(axis=1)
        best = int(np.argmin(distance))
        return int(near[best]) if distance[best] <= 1 else -1

    def in_rectangle(self, left: float, bottom: float, right: float, top: float) -> Int[np.ndarray, " k"]:
        """Ascending numbers of the points of the closed rectangle."""
        near = self._points_near(left, bottom, right, top)
        x, y = self.xy[near, 0], self.xy[near, 1]
        return np.sort(near[(x >= left) & (x <= right) & (y >= bottom) & (y <= top)])

    def in_polygon(self, polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
        """Ascending numbers of the points that the closed polygon winds around.

        Where the line crosses itself, what it encloses twice is inside (the nonzero rule): a lasso that overshoots
        its start leaves no hole. Cells that no edge touches are decided whole; only the others are tested by point.
        """
        if len(polygon) < 3:
            return np.empty(0, np.int64)
        corners = (np.asarray(polygon, np.float64) - self.low) / self.cell
        touched = self._touched(corners)
        inside = _winding_of_cells(corners, self.side) != 0
        per_point = np.repeat(np.arange(self.side**2), np.diff(self.start))
        whole = self.order[(inside & ~touched).ravel()[per_point]]
        close = self.order[touched.ravel()[per_point]]
        close = close[winding(self.xy[close], np.asarray(polygon, np.float64)) != 0]
        return np.sort(np.concatenate([whole, close]))

    def _cell_of(self, xy: Float[np.ndarray, "k 2"]) -> Int[np.ndarray, " k"]:
        column, row = np.clip((xy - self.low) / self.cell, 0, self.side - 1).astype(np.int64).T
        return row * self.side + column

    def _clipped(self, values: np.ndarray, axis: int) -> np.ndarray:
        cells = np.floor((values - self.low[axis]) / self.cell[axis])
        return np.clip(np.nan_to_num(cells), 0, self.side - 1).astype(np.int64)

    def _points_near(self, left: float, bottom: float, right: float, top: float) -> Int[np.ndarray, " k"]:
        stretches = self.ranges(left, bottom, right, top)
        if not len(stretches):
            return np.empty(0, np.int64)
        return np.concatenate([self.order[a:b] for a, b in stretches]).astype(np.int64)

    def _touched(self, corners: Float[np.ndarray, "m 2"]) -> Bool[np.ndarray, "side side"]:
        """Cells that an edge passes, and their neighbours: rounding can put no point in a wrong cell."""
        touched = np.zeros((self.side, self.side), bool)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if x0 > x1:
                x0, y0, x1, y1 = x1, y1, x0, y0
            first, last = max(int(np.floor(x0)) - 1, 0), min(int(np.floor(x1)) + 1, self.side - 1)
            slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
            for column in range(first, last + 1):
                a = y0 if column <= x0 else y0 + slope * (column - x0)
                b = y1 if column + 1 >= x1 else y0 + slope * (column + 1 - x0)
                low, high = int(np.floor(min(a, b))) - 1, int(np.floor(max(a, b))) + 2
                touched[max(low, 0) : max(high, 0), column] = True
        return touched


def winding(points: Float[np.ndarray, "k 2"], polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
    """How often the polygon goes around each point, counted against the clock (Sunday's crossing test)."""
    turns = np.zeros(len(points), np.int64)
    x, y = points[:, 0], points[:, 1]
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = np.flatnonzero((y >= min(y0, y1)) & (y < max(y0, y1)))
        left = (x1 - x0) * (y[crosses] - y0) - (x[crosses] - x0) * (y1 - y0)
        up = y1 > y0
        turns[crosses] += np.where(left > 0, 1, 0) if up else np.where(left < 0, -1, 0)
    return turns


def _winding_of_cells(corners: Float[np.ndarray, "m 2"], side: int) -> Int[np.ndarray, "side side"]:
    """Winding number of every cell's centre: each edge adds its turn to the cells right of it, row by row."""
    steps = np.zeros((side, side + 1), np.int64)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        low, high = min(y0, y1), max(y0, y1)
        # Clipped before they are whole numbers: points that nearly coincide put corners 1e22 cells away.
        first, last = np.clip(np.ceil((low - 0.5, high - 0.5)), 0, side).astype(np.int64)
        rows = np.arange(first, last)
        if len(rows):
            x = x0 + (rows + 0.5 - y0) * (x1 - x0) / (y1 - y0)
            columns = np.clip(np.ceil(x - 0.5), 0, side).astype(np.int64)
            steps[rows, columns] += 1 if y1 < y0 else -1
    return steps.cumsum(axis=1)[:, :side]
