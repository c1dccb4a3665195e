"""Ranks in both directions from one product, exact for any number of rows.

Tiles of cosines are in single precision, which is twice as fast as double. Each line has a threshold: the cosine of its
best right answer in double precision. A cosine that is farther from it than rounding can reach is certain; the few
others are computed again in double precision, where `tiles.on_grid` says what ties. So the ranks are those of a float64
loop. Columns have thresholds of their own, which the same tile is compared with. Of up to `DOUBLE_CELLS` cosines all
are in double precision, and nothing is compiled.

Lines are taken in a fixed random order, so that those which are done are a growing sample of the questions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from msgspec import Struct

from trainer.analysis.compiled import compiled
from trainer.analysis.distinct import DistinctItems
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiles import DOUBLE_CELLS, exact, on_grid, row_blocks
from trainer.analysis.worker_threads import cores, share_out

EDGE: Final = 1_024
"""Lines and columns of a tile: at 512 numbers a row the product is as fast as it gets, in a buffer near the caches."""
KERNELS: Final = "trainer.analysis.rank_kernels"
_SINGLE: Final = 2.0**31
"""Multiplications up to which one thread is enough."""
_DOUBTFUL_SHARE: Final = 256
"""Where more than one of so many cells of a tile are doubtful, the whole tile is computed again."""


class RightCells(Struct, frozen=True):
    """The right answers of each line, as columns: those of one line after those of the one before."""

    column: Int[np.ndarray, " e"]  # Of each right answer.
    starts: Int[np.ndarray, " n+1"]  # Where those of each line begin, and where the last ends.
    cosine: Float[np.ndarray, " e"]  # With each right answer, in double precision.
    best: Float[np.ndarray, " n"]  # The largest of each line; NaN if one is not a number.


class AheadCounts(Struct):
    """What is counted so far."""

    lines: Int[np.ndarray, " n"]  # Of each line, the wrong columns that are not below its best right answer.
    columns: Int[np.ndarray, " m"] | None  # The same of each column; None where these were not asked for.
    # Of each line, the cosine of its most similar wrong column; None where it was not asked for.
    hardest: Float[np.ndarray, " n"] | None
    done: Bool[np.ndarray, " n"]  # Which lines were compared with all columns; the others have 0 and -inf.


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
    progress: Progress = silent,
    counts: AheadCounts | None = None,
    seen: Callable[[AheadCounts], None] | None = None,
) -> AheadCounts:
    """Count the wrong columns of each line that are not below its best right one; ties and NaN count.

    Where the best right answer is not a number all wrong columns count.

    Args:
        query: Vectors of the lines.
        gallery: Vectors of the columns.
        right: The right columns of each line.
        back: The right lines of each column, to count along the columns, too: the same pairs as in `right`.
        hardest: Whether the largest wrong cosine of each line is wanted.
        counts: What was counted before, to go on with; None: nothing.
        seen: Shown what is counted, whenever `progress` is told; it changes meanwhile for nobody.
    """
    if counts is None:
        columns = None if back is None else np.zeros(len(gallery), np.int64)
        nothing = np.full(len(query), -np.inf) if hardest else None
        counts = AheadCounts(np.zeros(len(query), np.int64), columns, nothing, np.zeros(len(query), bool))
    passing = _Pass(query, gallery, right, back, counts)
    # A fixed order, whatever was done before: what is done is a random sample then, too.
    order = np.random.default_rng(0).permutation(len(query))
    left = order[~counts.done[order]]
    alone = 2.0 * len(query) * len(gallery) * query.shape[1] <= _SINGLE
    workers = 1 if alone else cores()
    blocks = [left[rows] for rows in row_blocks(len(left), 1, cells=min(EDGE, -(-len(left) // workers) or 1))]

    def report(share: float, note: str) -> None:
        progress(1 - (1 - share) * len(left) / max(len(query), 1), note)
        if seen is not None:
            with passing.lock:
                seen(counts)

    share_out(blocks, passing.take, dict, workers=workers, progress=report, note="ranking")
    return counts


class _Thresholds(Struct, frozen=True):
    """What each line is compared with; below `low` is certainly behind, above `high` certainly ahead."""

    exactly: Float[np.ndarray, " n"]
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]


class _Pass:
    """All tiles of a product."""

    def __init__(
        self, query: np.ndarray, gallery: np.ndarray, right: RightCells, back: RightCells | None, counts: AheadCounts
    ) -> None:
        self._query, self._gallery, self._right, self._counts = query, gallery, right, counts
        self._dtype = np.result_type(query.dtype, gallery.dtype, np.float32)
        if len(query) * len(gallery) <= DOUBLE_CELLS:
            self._dtype = np.dtype(np.float64)
        reach = product_rounding(query, gallery, self._dtype)
        self._lines = _thresholds(right.best, reach, self._dtype)
        # Where columns are not counted, every tile has the same limits, which nothing reaches.
        self._columns = _thresholds(np.full(EDGE, np.inf) if back is None else back.best, reach, self._dtype)
        self._kernels: Any = None if self._dtype == np.float64 else compiled(KERNELS)
        self.lock = threading.Lock()

    def take(self, rows: Int[np.ndarray, " b"], buffers: dict[tuple[int, int], np.ndarray]) -> None:
        """Count the tiles of some lines, and add what they have."""
        query, width = np.asarray(self._query[rows], self._dtype), len(self._gallery)
        low, high, exactly = self._lines.low[rows], self._lines.high[rows], self._lines.exactly[rows]
        right = _by_column(self._right, rows)
        ahead, ahead_of = np.zeros(len(rows), np.int64), np.zeros(len(self._columns.exactly), np.int64)
        hardest = np.full(len(rows), -np.inf if self._counts.hardest is not None else np.inf, self._dtype)
        hardest_column = np.full(len(rows), -1)
        cells, used = np.empty(8 * (EDGE * EDGE // _DOUBTFUL_SHARE + 16), np.int64), 0
        for columns in row_blocks(width, 1, cells=EDGE):
            stored = np.asarray(exact(self._gallery[columns]), self._dtype)
            tile = multiplied(query, stored, buffers)
            tile[_within(right, columns)] = -np.inf
            at = columns if self._counts.columns is not None else slice(len(stored))
            listed, most = -1, tile.size // _DOUBTFUL_SHARE + 16
            if self._kernels is not None:
                if used + most > len(cells):
                    self._repair(cells[:used], rows, ahead, ahead_of)
                    used = 0
                listed = self._kernels.count(
                    *(tile, low, high, self._columns.low[at], self._columns.high[at]),
                    *(ahead, ahead_of[at], hardest, hardest_column, columns.start, width, cells, used, most),
                )
            if listed >= 0:
                used = listed
                continue
            # Wherever more than a few are doubtful, as all are of a collapsed model, double precision is cheaper.
            if self._dtype != np.float64:
                tile = query.astype(np.float64) @ stored.astype(np.float64).T
            tile = on_grid(tile)
            tile[_within(right, columns)] = -np.inf
            ahead += np.count_nonzero(~(tile < exactly[:, None]), axis=1)
            ahead_of[at] += np.count_nonzero(~(tile < self._columns.exactly[at]), axis=0)
            column = tile.argmax(axis=1)
            harder = tile[np.arange(len(tile)), column] > hardest
            hardest[harder], hardest_column[harder] = tile.max(axis=1)[harder], columns.start + column[harder]
        self._repair(cells[:used], rows, ahead, ahead_of)
        some = np.flatnonzero(hardest_column >= 0)
        cosine = _double(self._query, self._gallery, rows[some], hardest_column[some])
        with self.lock:
            self._counts.lines[rows] = ahead
            if self._counts.columns is not None:
                self._counts.columns += ahead_of
            if self._counts.hardest is not None:
                self._counts.hardest[rows[some]] = cosine
            self._counts.done[rows] = True

    def _repair(self, cells: Int[np.ndarray, " c"], rows: np.ndarray, ahead: np.ndarray, ahead_of: np.ndarray) -> None:
        """Decide the doubtful cells in double precision."""
        line, column = np.divmod(cells // 4, len(self._gallery))
        for part in row_blocks(len(cells), self._query.shape[1]):
            cosine = _double(self._query, self._gallery, rows[line[part]], column[part])
            kinds = [(1, ahead, line[part], self._lines.exactly[rows[line[part]]])]
            if self._counts.columns is not None:
                kinds += [(2, ahead_of, column[part], self._columns.exactly[column[part]])]
            for kind, sums, at, limit in kinds:
                np.add.at(sums, at, (cells[part] & kind).astype(bool) & ~(cosine < limit))


def multiplied(query: np.ndarray, stored: np.ndarray, buffers: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    """Return the product in a kept buffer of its shape: a new one would cost more than the arithmetic."""
    shape = len(query), len(stored)
    if shape not in buffers:
        buffers[shape] = np.empty(shape, query.dtype)
    return np.matmul(query, stored.T, out=buffers[shape])


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


def _by_column(right: RightCells, rows: Int[np.ndarray, " b"]) -> tuple[Int[np.ndarray, " e"], Int[np.ndarray, " e"]]:
    """Return line and column of the right answers of some lines, by column."""
    first = right.starts[rows]
    sizes = right.starts[rows + 1] - first
    line = np.repeat(np.arange(len(rows)), sizes)
    column = right.column[np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(len(line))]
    order = np.argsort(column, kind="stable")
    return line[order], column[order]


def _within(cells: tuple[np.ndarray, np.ndarray], columns: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of some columns, counted from the first of these."""
    line, column = cells
    start, stop = np.searchsorted(column, (columns.start, columns.stop))
    return line[start:stop], column[start:stop] - columns.start
