"""Ranks in both directions from one product, exact for any number of rows.

Tiles of cosines are in single precision, which is twice as fast as double. Each line has a threshold: the cosine of its
best right answer in double precision. A cosine that is farther from it than rounding can reach is certain; the few
others are computed again in double precision, where `tiles.on_grid` says what ties. So the ranks are those of a float64
loop. Columns have thresholds of their own, which the same tile is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.distinct import DistinctItems
from trainer.analysis.progress import Progress
from trainer.analysis.tiles import exact, on_grid, row_blocks
from trainer.analysis.worker_threads import share_out

EDGE: Final = 1_024
"""Lines and columns of a tile: at 512 numbers a row the product is as fast as it gets, in a buffer near the caches."""
_SINGLE: Final = 2.0**31
"""Multiplications up to which one thread is enough."""
_DOUBTFUL_SHARE: Final = 256
"""Where more than one of so many cells of a tile are doubtful, the whole tile is computed again."""


@dataclass(frozen=True)
class RightCells:
    """The right answers of each line, as columns: those of one line after those of the one before.

    Attributes:
        column: Of each right answer.
        starts: Where those of each line begin, and where the last ends.
        cosine: With each right answer, in double precision.
        best: The largest of each line; NaN if one is not a number.
    """

    column: Int[np.ndarray, " e"]
    starts: Int[np.ndarray, " n+1"]
    cosine: Float[np.ndarray, " e"]
    best: Float[np.ndarray, " n"]


@dataclass
class AheadCounts:
    """What one thread has counted.

    Attributes:
        lines: Of each line, the wrong columns that are not below its best right answer.
        columns: The same of each column; None where these were not asked for.
        hardest: Of each line, the cosine of its most similar wrong column; None where it was not asked for.
        buffers: Room for a tile and for its comparisons.
    """

    lines: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " m"] | None
    hardest: Float[np.ndarray, " n"] | None
    buffers: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)

    def room(self, name: str, shape: tuple[int, int], dtype: np.dtype | type) -> np.ndarray:
        """Return a kept buffer of this shape: a new one would cost more than the arithmetic."""
        size = shape[0] * shape[1]
        buffer = self.buffers.get((name, size))
        if buffer is None:
            buffer = self.buffers[name, size] = np.empty(size, dtype)
        return buffer.reshape(shape)


def right_cells(
    query: Float[np.ndarray, "n d"], gallery: Float[np.ndarray, "m d"], answers: DistinctItems, questions: np.ndarray
) -> RightCells:
    """Return the right answers of some questions and the best cosine of each.

    Args:
        query: The vector that asks each of them.
        gallery: One vector of each distinct answer.
        answers: Which are right.
        questions: Their numbers in `answers`.
    """
    line, column, first = answers.cells(questions)
    cosine = np.empty(len(line))
    for part in row_blocks(len(line), query.shape[1]):
        cosine[part] = _double(query, gallery, line[part], column[part])
    best = np.maximum.reduceat(cosine, first) if len(first) else cosine
    return RightCells(column, np.append(first, len(line)), cosine, best)


def count_ahead(
    query: Float[np.ndarray, "n d"],
    gallery: Float[np.ndarray, "m d"],
    right: RightCells,
    back: RightCells | None = None,
    *,
    hardest: bool = False,
    progress: Progress | None = None,
    note: str = "ranking",
) -> AheadCounts:
    """Count the wrong columns of each line that are not below its best right one; ties and NaN count.

    Where the best right answer is not a number all wrong columns count.

    Args:
        query: Vectors of the lines.
        gallery: Vectors of the columns.
        right: The right columns of each line.
        back: The right lines of each column, to count along the columns, too: the same pairs as in `right`.
        hardest: Whether the largest wrong cosine of each line is wanted.
        progress: Told the share done; may raise to cancel.
        note: What it is told.
    """
    passing = _Pass(query, gallery, right, back, hardest)
    tiles = list(row_blocks(len(query), 1, cells=EDGE))
    alone = 2.0 * len(query) * len(gallery) * query.shape[1] <= _SINGLE
    parts = share_out(tiles, passing.take, passing.scratch, workers=1 if alone else None, progress=progress, note=note)
    return passing.merged(parts)


@dataclass(frozen=True)
class _Thresholds:
    """What each line is compared with; below `low` is certainly behind, above `high` certainly ahead."""

    exactly: Float[np.ndarray, " n"]
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]

    def of(self, rows: slice) -> _Thresholds:
        return _Thresholds(self.exactly[rows], self.low[rows], self.high[rows])


class _Pass:
    """All tiles of a product."""

    def __init__(
        self, query: np.ndarray, gallery: np.ndarray, right: RightCells, back: RightCells | None, hardest: bool
    ) -> None:
        self._query, self._gallery, self._right, self._hardest = query, gallery, right, hardest
        self._dtype = np.result_type(query.dtype, gallery.dtype, np.float32)
        reach = product_rounding(query, gallery, self._dtype)
        self._lines = _thresholds(right.best, reach, self._dtype)
        self._columns = None if back is None else _thresholds(back.best, reach, self._dtype)

    def scratch(self) -> AheadCounts:
        columns = None if self._columns is None else np.zeros(len(self._gallery), np.int64)
        hardest = np.full(len(self._query), -np.inf) if self._hardest else None
        return AheadCounts(np.zeros(len(self._query), np.int64), columns, hardest)

    def merged(self, parts: list[AheadCounts]) -> AheadCounts:
        first = parts[0]
        for part in parts[1:]:
            first.lines += part.lines
            if first.columns is not None and part.columns is not None:
                first.columns += part.columns
            if first.hardest is not None and part.hardest is not None:
                np.maximum(first.hardest, part.hardest, out=first.hardest)
        return first

    def take(self, rows: slice, counts: AheadCounts) -> None:
        """Count the tiles of some lines."""
        query = np.asarray(self._query[rows], self._dtype)
        lines, right = self._lines.of(rows), _by_column(self._right, rows)
        for columns in row_blocks(len(self._gallery), 1, cells=EDGE):
            stored = np.asarray(self._gallery[columns], self._dtype)
            tile = counts.room("tile", (len(query), len(stored)), self._dtype)
            np.matmul(query, stored.T, out=tile)
            right_cells_of_tile = _within(right, columns)
            tile[right_cells_of_tile] = -np.inf
            # Wherever more than a few are doubtful, as all are of a collapsed model, double precision is cheaper.
            if self._dtype == np.float64 or self._is_doubtful(tile, lines, columns, counts):
                tile = on_grid(np.matmul(query.astype(np.float64), stored.astype(np.float64).T))
                tile[right_cells_of_tile] = -np.inf
                counts.lines[rows] += _along(~(tile < lines.exactly[:, None]))
                if self._columns is not None and counts.columns is not None:
                    counts.columns[columns] += _down(~(tile < self._columns.exactly[columns]))
            else:
                self._count(tile, rows, columns, counts)
            if counts.hardest is not None:
                self._keep_hardest(tile, rows, columns, counts.hardest)

    def _is_doubtful(self, tile: np.ndarray, lines: _Thresholds, columns: slice, counts: AheadCounts) -> bool:
        """Return whether too many cells of every 32nd line are within the reach of rounding."""
        some = slice(None, None, 32)
        part = tile[some]
        near = (part <= lines.high[some, None]) & ~(part < lines.low[some, None])
        cells = np.count_nonzero(near)
        if self._columns is not None:
            each = self._columns.of(columns)
            cells = max(cells, np.count_nonzero((part <= each.high) & ~(part < each.low)))
        return bool(cells * _DOUBTFUL_SHARE > part.size + 16 * _DOUBTFUL_SHARE)

    def _count(self, tile: np.ndarray, rows: slice, columns: slice, counts: AheadCounts) -> None:
        lines = self._lines.of(rows)
        not_ahead, doubtful = _compared(tile, lines.low[:, None], lines.high[:, None], counts)
        counts.lines[rows] += tile.shape[1] - _along(not_ahead)
        self._repair(doubtful, tile.shape[1], rows, columns, lines.exactly, counts.lines[rows], along=True)
        if self._columns is None or counts.columns is None:
            return
        each = self._columns.of(columns)
        not_ahead, doubtful = _compared(tile, each.low, each.high, counts)
        counts.columns[columns] += tile.shape[0] - _down(not_ahead)
        self._repair(doubtful, tile.shape[1], rows, columns, each.exactly, counts.columns[columns], along=False)

    def _repair(
        self,
        doubtful: Int[np.ndarray, " c"],
        width: int,
        rows: slice,
        columns: slice,
        exactly: Float[np.ndarray, " k"],
        ahead: Int[np.ndarray, " k"],
        *,
        along: bool,
    ) -> None:
        """Decide the doubtful cells in double precision."""
        line, column = np.divmod(doubtful, width)
        for part in row_blocks(len(line), self._query.shape[1]):
            cosine = _double(self._query, self._gallery, line[part] + rows.start, column[part] + columns.start)
            at = (line if along else column)[part]
            np.add.at(ahead, at, ~(cosine < exactly[at]))

    def _keep_hardest(self, tile: np.ndarray, rows: slice, columns: slice, hardest: np.ndarray) -> None:
        """Keep the largest cosine of each line, where a tile may have a larger one, in double precision."""
        column = tile.argmax(axis=1)
        largest = tile[np.arange(len(tile)), column]
        larger = np.flatnonzero(~(largest <= hardest[rows]) & ~np.isneginf(largest))
        cosine = _double(self._query, self._gallery, larger + rows.start, column[larger] + columns.start)
        hardest[larger + rows.start] = np.maximum(hardest[larger + rows.start], cosine)


def _double(
    query: np.ndarray, gallery: np.ndarray, line: Int[np.ndarray, " c"], column: Int[np.ndarray, " c"]
) -> Float[np.ndarray, " c"]:
    """Return the cosines of some cells in double precision, where equal ones are ties."""
    return on_grid(np.einsum("cd,cd->c", query[line].astype(np.float64), gallery[column].astype(np.float64)))


def product_rounding(query: np.ndarray, gallery: np.ndarray, dtype: np.dtype) -> float:
    """Return how far a product in single precision can be from the true one: d * 2^-24 of the lengths' product."""
    if dtype == np.float64:
        return 0.0
    longest = [
        max((float(_squares(side[rows]).max(initial=0)) for rows in row_blocks(len(side), side.shape[1])), default=0.0)
        for side in (query, gallery)
    ]
    return (query.shape[1] + 4) * 2.0**-24 * float(np.sqrt(longest[0] * longest[1]))


def _squares(rows: np.ndarray) -> Float[np.ndarray, " n"]:
    plain = exact(rows)
    return np.nan_to_num(np.einsum("nd,nd->n", plain, plain))


def _thresholds(best: Float[np.ndarray, " n"], reach: float, dtype: np.dtype) -> _Thresholds:
    if dtype == np.float64:
        return _Thresholds(best, best, best)
    low, high = (best - reach).astype(np.float32), (best + reach).astype(np.float32)
    return _Thresholds(best, np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf)))


def _by_column(right: RightCells, rows: slice) -> tuple[Int[np.ndarray, " e"], Int[np.ndarray, " e"]]:
    """Return line and column of the right answers of some lines, by column."""
    column = right.column[right.starts[rows.start] : right.starts[rows.stop]]
    line = np.repeat(np.arange(rows.stop - rows.start), np.diff(right.starts[rows.start : rows.stop + 1]))
    order = np.argsort(column, kind="stable")
    return line[order], column[order]


def _within(cells: tuple[np.ndarray, np.ndarray], columns: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of some columns, counted from the first of these."""
    line, column = cells
    start, stop = np.searchsorted(column, (columns.start, columns.stop))
    return line[start:stop], column[start:stop] - columns.start


def _compared(
    tile: np.ndarray, low: np.ndarray, high: np.ndarray, counts: AheadCounts
) -> tuple[Bool[np.ndarray, "b n"], Int[np.ndarray, " c"]]:
    """Return which cells are not certainly ahead, and the numbers of those of them that are not certainly behind."""
    behind, not_ahead = (counts.room(name, tile.shape, bool) for name in ("behind", "not ahead"))
    np.less(tile, low, out=behind)
    np.less_equal(tile, high, out=not_ahead)
    np.not_equal(behind, not_ahead, out=behind)
    return not_ahead, np.flatnonzero(behind)


def _along(flags: Bool[np.ndarray, "b n"]) -> Int[np.ndarray, " b"]:
    return np.count_nonzero(flags, axis=1)


def _down(flags: Bool[np.ndarray, "b n"]) -> Int[np.ndarray, " n"]:
    """Count each column in bytes, 255 lines at a time, which is ten times as fast as in integers."""
    lines = flags.view(np.uint8)
    return sum((part.sum(0, dtype=np.uint8) for part in _bytes(lines)), np.zeros(flags.shape[1], np.int64))


def _bytes(lines: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(lines), 255):
        yield lines[start : start + 255]
