"""Find points at a position or in a lasso: a pyramid of grids over the points, without Qt.

The compiled kernels do the work where they are loaded; numpy does the same, slower, until then.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from explorer.widgets.point_map.loaded import loaded_kernels
from trainer.analysis.worker_threads import cores, share_out

POINTS_PER_CELL: Final = 4
MOST_CELLS: Final = 1024
"""Cells along one side at most: past it a cell holds more points, and the index stays small."""
FIRST_LEVEL: Final = 300_000
"""Points of the coarsest level; each further one has four times as many, together with those before it."""

_MANY: Final = 4_000_000
"""Points that are worth a thread for each processor."""
_MOST_PARTS: Final = 16

Progress = Callable[[float], None]


class PointGrid:
    """The points sorted into the cells of a square grid, row by row, for each level of a pyramid.

    Level 0 holds a few points of every cell that has any, each further level more of them: the first levels are a
    sample that leaves no cell out, and with `counts` a cell's true density is known from it. Inside a cell points
    stand in random order, which keeps one class from covering another. Points that are not finite belong to no cell:
    they are never drawn, picked or selected.

    Attributes:
        xy: The places, as they came.
        order: Point numbers, level after level, cell after cell.
        start: `start[level * side**2 + c]` is where cell c of a level begins in `order`; cell (row, column) has the
            number row * side + column.
        counts: Points of each cell, of all levels together.
        side: Cells along one side.
        levels: How many levels there are.
        share: Share of the points that are sorted; less than 1 if they are a sample.
        x, y: Places in this order, from the lowest corner `low`, rounded to 32 bits.
    """

    def __init__(
        self,
        xy: Float[np.ndarray, "n 2"],
        *,
        kernels: ModuleType | None = None,
        progress: Progress = lambda _: None,
        bounds: tuple[float, float, float, float] | None = None,
    ) -> None:
        """Sort the points, between the bounds (left, bottom, right, top) of more of them if these are given."""
        self.xy, self.share = _floats(xy), 1.0
        bounds = _bounds(self.xy, kernels) if bounds is None else bounds
        if not np.isfinite(bounds).all():
            bounds = (0.0, 0.0, 1.0, 1.0)
        self.low, high = np.array(bounds[:2]), np.array(bounds[2:])
        self.side = int(np.clip(np.sqrt(len(self.xy) / POINTS_PER_CELL), 1, MOST_CELLS))
        self.cell = np.where(high > self.low, (high - self.low) / self.side, 1.0)
        progress(0.05)
        number, counted = self._numbers(kernels)
        self.counts = counted.sum(axis=0, dtype=np.int32)
        progress(0.25)
        n = int(self.counts.sum())
        shares = level_shares(n)
        self.levels = len(shares)
        self.order = np.empty(n, np.int32)
        self.start = np.empty(self.levels * self.side**2 + 1, np.int32)
        if kernels:
            _order_in_parallel(kernels, number, counted, shares, self.order, self.start)
        else:
            order_cells(number, self.counts, shares, self.order, self.start)
        del number
        progress(0.7)
        self.x, self.y = np.empty(n, np.float32), np.empty(n, np.float32)
        if kernels:
            in_parallel(
                *(n, parts_of(n)),
                lambda _, first, last: kernels.offsets(self.xy, self.order, first, last, *self.low, self.x, self.y),
            )
        else:
            self.x[:], self.y[:] = (self.xy[self.order].astype(np.float64) - self.low).T
        progress(1.0)

    @classmethod
    def of_sample(cls, xy: Float[np.ndarray, "n 2"], most: int, *, kernels: ModuleType | None = None) -> PointGrid:
        """Sort `most` of the points, one drawn at random of each of as many stretches; the bounds are of all."""
        xy = _floats(xy)
        rows = sample_rows(len(xy), most)
        grid = cls(xy[rows], kernels=kernels, bounds=_bounds(xy, kernels))
        grid.xy, grid.order, grid.share = xy, rows[grid.order].astype(np.int32), len(rows) / len(xy)
        return grid

    def __len__(self) -> int:
        return len(self.xy)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top of all points; the unit square if there are none."""
        right, top = self.low + self.cell * self.side
        return float(self.low[0]), float(self.low[1]), float(right), float(top)

    def window(self, left: float, bottom: float, right: float, top: float) -> tuple[int, int, int, int]:
        """Return first and last column, first and last row of the cells covering the rectangle."""
        columns, rows = self._clipped(np.array([left, right]), 0), self._clipped(np.array([bottom, top]), 1)
        return int(columns[0]), int(columns[1]), int(rows[0]), int(rows[1])

    def per_level(self, window: tuple[int, int, int, int]) -> Int[np.ndarray, " levels"]:
        """Return how many points of each level are in a window of cells."""
        begin, end = self._stretches(window)
        return (end.astype(np.int64) - begin).sum(axis=1)

    def ranges(self, window: tuple[int, int, int, int], *, levels: int | None = None) -> Int[np.ndarray, "k 2"]:
        """Return slices of `order` with the points of a window, of the first levels or of all."""
        begin, end = (part[:levels].ravel() for part in self._stretches(window))
        return np.stack([begin, end], axis=1)[end > begin]

    def nearest(
        self, x: float, y: float, *, reach: tuple[float, float], allowed: Bool[np.ndarray, " n"] | None = None
    ) -> int:
        """Return the point nearest to (x, y) within an ellipse of half axes `reach`, -1 if there is none.

        Nearness is measured in units of `reach`, so it is nearness on the screen when `reach` is a radius in pixels.
        """
        if not len(self.order):
            return -1
        window = self.window(x - reach[0], y - reach[1], x + reach[0], y + reach[1])
        if kernels := loaded_kernels():
            slack = float((self.cell * self.side / reach).sum()) * 2.0**-22
            mask = np.empty(0, bool) if allowed is None else writable(allowed, bool)
            points = (self.x, self.y, *map(float, self.low), *map(float, self.cell))
            center, radii = (float(x), float(y)), (float(reach[0]), float(reach[1]))
            cells = (self.start, self.side, self.levels)
            return int(kernels.nearest(self.xy, points, cells, window, self.order, mask, center, radii, slack))
        near = self._points_in(window)
        if allowed is not None:
            near = near[allowed[near]]
        if not len(near):
            return -1
        distance = (((self.xy[near].astype(np.float64) - (x, y)) / reach) ** 2).sum(axis=1)
        best = int(np.argmin(distance))
        return int(near[best]) if distance[best] <= 1 else -1

    def in_rectangle(self, left: float, bottom: float, right: float, top: float) -> Int[np.ndarray, " k"]:
        """Return the points in the closed rectangle, ascending."""
        near = self._points_in(self.window(left, bottom, right, top))
        return np.sort(near[self._within(near, left, bottom, right, top)])

    def sample(
        self, left: float, bottom: float, right: float, top: float, *, most: int, allowed: np.ndarray | None = None
    ) -> Int[np.ndarray, " k"]:
        """Return at most `most` points of the rectangle, spread evenly over its cells."""
        parts: list[np.ndarray] = []
        window = self.window(left, bottom, right, top)
        begin, end = self._stretches(window)
        for level in range(self.levels):
            near = np.concatenate([self.order[a:b] for a, b in zip(begin[level], end[level], strict=True)])
            near = near[self._within(near, left, bottom, right, top)]
            parts.append(near if allowed is None else near[allowed[near]])
            if sum(map(len, parts)) >= most:
                break
        points = np.concatenate(parts).astype(np.int64)
        if len(points) > most:
            points = points[np.linspace(0, len(points) - 1, most).astype(np.int64)]
        return points

    def in_polygon(self, polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
        """Return the points inside the closed polygon, ascending.

        Where the line crosses itself, what it encloses twice is inside (the nonzero rule): a lasso that overshoots
        its start leaves no hole. The kernels decide cells that no edge touches whole.
        """
        polygon = writable(polygon, np.float64)
        if len(polygon) < 3 or not len(self.order):
            return np.empty(0, np.int64)
        if kernels := loaded_kernels():
            n, corners = len(self.xy), (polygon - self.low) / self.cell
            inside = np.empty(n, bool)
            shape = (*self.low, *(1 / self.cell), polygon, kernels.outline(self.side, corners), inside)
            in_parallel(n, parts_of(n), lambda _, first, last: kernels.mark_inside(self.xy, first, last, *shape))
            return _marked(kernels, inside)
        near = self._points_in(self.window(*polygon.min(axis=0), *polygon.max(axis=0)))
        return np.sort(near[winding(self.xy[near].astype(np.float64), polygon) != 0])

    def _within(self, points: np.ndarray, left: float, bottom: float, right: float, top: float) -> np.ndarray:
        # In 64 bits: a place of 32 bits is compared as it is, not with a rounded edge.
        x, y = self.xy[points].astype(np.float64).T
        return (x >= left) & (x <= right) & (y >= bottom) & (y <= top)

    def _numbers(self, kernels: ModuleType | None) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, "parts cells"]]:
        """Return each point's cell, -1 if not finite, and the number of points per cell, for each part of them."""
        n = len(self.xy)
        if kernels:
            number, counted = np.empty(n, np.int32), np.zeros((parts_of(n), self.side**2), np.int32)
            shape = (*self.low, *self.cell, self.side, number)
            in_parallel(
                *(n, len(counted)),
                lambda part, first, last: kernels.number_cells(self.xy, first, last, *shape, counted[part]),
            )
            return number, counted
        number = np.full(n, -1, np.int32)
        good = np.flatnonzero(np.isfinite(self.xy).all(axis=1))
        column, row = np.clip((self.xy[good] - self.low) / self.cell, 0, self.side - 1).astype(np.int64).T
        number[good] = row * self.side + column
        return number, np.bincount(number[good], minlength=self.side**2).astype(np.int32)[None]

    def _clipped(self, values: np.ndarray, axis: int) -> np.ndarray:
        cells = np.floor((values - self.low[axis]) / self.cell[axis])
        return np.clip(np.nan_to_num(cells), 0, self.side - 1).astype(np.int64)

    def _stretches(self, window: tuple[int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return begin and end in `order` of each level's rows of a window."""
        rows = np.arange(window[2], window[3] + 1) * self.side
        base = np.arange(self.levels)[:, None] * self.side**2 + rows
        return self.start[base + window[0]], self.start[base + window[1] + 1]

    def _points_in(self, window: tuple[int, int, int, int]) -> Int[np.ndarray, " k"]:
        stretches = self.ranges(window)
        if not len(stretches):
            return np.empty(0, np.int64)
        return np.concatenate([self.order[a:b] for a, b in stretches]).astype(np.int64)


def sample_rows(n: int, most: int) -> Int[np.ndarray, " k"]:
    """Return at most `most` of n rows, ascending: a random one of each of as many stretches, the same at every call."""
    stretches = np.arange(min(n, most) + 1) * n // max(min(n, most), 1)
    return np.random.default_rng(0).integers(stretches[:-1], stretches[1:])


def level_shares(n: int) -> Float[np.ndarray, " levels"]:
    """Return the cumulative share of all points in each level; the last is 1."""
    shares = [1.0]
    while n * shares[0] > 2 * FIRST_LEVEL:
        shares.insert(0, shares[0] / 4)
    return np.array(shares)


def order_cells(
    number: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " cells"],
    shares: Float[np.ndarray, " levels"],
    order: Int[np.ndarray, " k"],
    start: Int[np.ndarray, " starts"],
) -> None:
    """Fill `order` and `start` with numpy, as `_order_in_parallel` does."""
    good = np.random.default_rng(0).permutation(np.flatnonzero(number >= 0))
    by_cell = good[np.argsort(number[good], kind="stable")]
    cell = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(by_cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = np.clip(np.ceil(np.outer(shares, counts)), np.minimum(counts, 1), counts).astype(np.int64)
    level = (rank >= taken[:, cell]).sum(axis=0)
    key = level * len(counts) + cell
    order[:] = by_cell[np.argsort(key, kind="stable")]
    start[0] = 0
    np.cumsum(np.bincount(key, minlength=len(start) - 1), out=start[1:])


def _order_in_parallel(
    kernels: ModuleType,
    number: Int[np.ndarray, " n"],
    counted: Int[np.ndarray, "parts cells"],
    shares: Float[np.ndarray, " levels"],
    order: Int[np.ndarray, " k"],
    start: Int[np.ndarray, " starts"],
) -> None:
    """Fill `order` and `start`, the same on any number of threads."""
    counts = counted.sum(axis=0, dtype=np.int32)
    begin = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    filled = begin[:-1] + np.cumsum(counted, axis=0, dtype=np.int64) - counted
    by_cell = np.empty(len(order), np.int32)
    in_parallel(
        *(len(number), len(counted)),
        lambda part, first, last: kernels.sort_points(number, first, last, filled[part], by_cell),
    )
    kernels.level_starts(counts, shares, start)
    in_parallel(
        *(len(counts), 2 * len(counted)),  # some cells hold more points than others
        lambda _, first, last: kernels.fill_levels(begin, shares, first, last, by_cell, start, order),
    )


def _marked(kernels: ModuleType, marked: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " k"]:
    """Return the places of what is marked, ascending."""
    parts = parts_of(len(marked))
    edges = _edges(len(marked), parts)
    ends = np.cumsum([0, *(np.count_nonzero(marked[first:last]) for first, last in pairwise(edges))])
    rows = np.empty(ends[-1], np.int64)
    in_parallel(
        *(len(marked), parts),
        lambda part, first, last: kernels.write_marked(marked, first, last, rows[ends[part] : ends[part + 1]]),
    )
    return rows


def parts_of(n: int) -> int:
    """Return the number of parts that `n` points are divided into: one for each processor above `_MANY`."""
    return min(cores(), _MOST_PARTS) if n >= _MANY else 1


def _edges(count: int, parts: int) -> list[int]:
    return [count * part // parts for part in range(parts + 1)]


def in_parallel(count: int, parts: int, work: Callable[[int, int, int], None]) -> None:
    """Call `work` with the number of each part, its first and the one after its last, on as many threads as may run."""
    tasks = [(part, *ends) for part, ends in enumerate(pairwise(_edges(count, parts)))]
    share_out(tasks, lambda task, _: work(*task), lambda: None)


def winding(points: Float[np.ndarray, "k 2"], polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
    """Return the polygon's winding number around each point, counterclockwise (Sunday's crossing test)."""
    turns = np.zeros(len(points), np.int64)
    x, y = points[:, 0], points[:, 1]
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = np.flatnonzero((y >= min(y0, y1)) & (y < max(y0, y1)))
        left = (x1 - x0) * (y[crosses] - y0) - (x[crosses] - x0) * (y1 - y0)
        up = y1 > y0
        turns[crosses] += np.where(left > 0, 1, 0) if up else np.where(left < 0, -1, 0)
    return turns


def _floats(xy: np.ndarray) -> Float[np.ndarray, "n 2"]:
    """Return the positions uncopied if they are contiguous, writable floats; else as float64."""
    xy = np.asarray(xy)
    return writable(xy, xy.dtype if xy.dtype in (np.float32, np.float64) else np.float64)


def writable(array: np.ndarray, kind: np.typing.DTypeLike) -> np.ndarray:
    """Return a contiguous, writable array of this type, copying only if needed.

    The kernels are compiled for arrays that may be written to; others would have them compiled again, in the window.
    """
    array = np.ascontiguousarray(array, kind)
    return array if array.flags.writeable else array.copy()


def _bounds(xy: Float[np.ndarray, "n 2"], kernels: ModuleType | None) -> tuple[float, float, float, float]:
    """Return left, bottom, right, top of the finite points; infinite if there are none."""
    if not kernels:
        good = xy[np.isfinite(xy).all(axis=1)]
        if not len(good):
            return (np.inf, np.inf, -np.inf, -np.inf)
        return (*map(float, good.min(axis=0)), *map(float, good.max(axis=0)))
    ends = np.empty((parts_of(len(xy)), 4))

    def bound(part: int, first: int, last: int) -> None:
        ends[part] = kernels.bounds(xy, first, last)

    in_parallel(len(xy), len(ends), bound)
    return (*ends[:, :2].min(axis=0), *ends[:, 2:].max(axis=0))
