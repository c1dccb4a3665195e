"""The nearest rows by cosine, exact for any number of rows: in order of the cosine, then of the number.

A tile of cosines in single precision serves its lines and, among rows of one set, its columns as well, so that half of
the products are enough. A few more than `k` are kept of each line and ordered in double precision; a line of which
rounding may have lost one (more rows tie than are kept) is compared with all rows again. The work grows with n^2: 14 s
for 100,000 rows of 512 on two cores; `neighbor_cells` is for more.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.compiled import compiled
from trainer.analysis.progress import Progress, silent
from trainer.analysis.tiled_ranks import EDGE, multiplied, product_rounding
from trainer.analysis.tiles import DOUBLE_CELLS, exact, inner_products, on_grid, row_blocks
from trainer.analysis.worker_threads import share_out

_SPARE: Final = 8
"""Rows that are kept of each line besides the nearest."""
KERNELS: Final = "trainer.analysis.neighbor_kernels"


def nearest(
    query: Float[np.ndarray, "n d"],
    stored: Float[np.ndarray, "m d"],
    k: int,
    *,
    self_rows: Int[np.ndarray, " n"] | None = None,
    progress: Progress = silent,
    certain: bool = True,
) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """Return the `k` stored rows most similar to each query, nearest first, and their cosines.

    Equally near rows come by number; `tiles.on_grid` says what is equally near. Rows that are not a number come last.
    At most m columns, or m - 1 where queries are among the stored rows. Memory is O(n k).

    Args:
        query: Rows that ask.
        stored: Rows that can be neighbors.
        self_rows: Of each query, the stored row that it is, which is no neighbor of its own; None: they are others.
        certain: Whether lines of which rounding may have lost a row are compared with all again.
    """
    k = max(0, min(k, len(stored) - (self_rows is not None)))
    if not k or len(query) * len(stored) <= DOUBLE_CELLS:
        return _by_all(query, stored, k, self_rows, progress)
    pass_ = _Tiles(query, stored, k, np.full(len(query), -1) if self_rows is None else self_rows)
    share_out([*row_blocks(len(query), 1, cells=EDGE)], pass_.take, dict, progress=progress, note="finding neighbors")
    return pass_.decided(self_rows, certain=certain)


def neighbors_of_each(
    vectors: Float[np.ndarray, "n d"], k: int, *, progress: Progress = silent
) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """Return `nearest` of every row among all others, from half of the products.

    Args:
        vectors: Rows that ask and answer.
        k: Neighbors of each; at most n - 1.
    """
    self_rows = np.arange(len(vectors))
    k = max(0, min(k, len(vectors) - 1))
    if not k or len(vectors) ** 2 <= DOUBLE_CELLS:
        return _by_all(vectors, vectors, k, self_rows, progress)
    pass_ = _Tiles(vectors, vectors, k, self_rows)
    blocks = [*row_blocks(len(vectors), 1, cells=EDGE)]
    # By diagonals: tiles that are computed at the same time share no rows, and no thread waits for another.
    pairs = [(blocks[a], blocks[a + off]) for off in range(len(blocks)) for a in range(len(blocks) - off)]
    share_out(pairs, pass_.take_both, dict, progress=progress, note="finding neighbors")
    return pass_.decided(self_rows)


def compile_kernels() -> None:
    """Compile, or load from the cache, what many rows need, so that their first neighbors do not wait for it."""
    rows = np.eye(4, dtype=np.float32)
    tiles = _Tiles(rows, rows, 2, np.arange(4))
    tiles.take(slice(0, 4), {})
    tiles.take_both((slice(0, 2), slice(2, 4)), {})


def _by_all(
    query: np.ndarray, stored: np.ndarray, k: int, self_rows: np.ndarray | None, progress: Progress
) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """Return the neighbors from all cosines in double precision."""
    rows, cosines = np.empty((len(query), k), np.int64), np.empty((len(query), k))
    for block in row_blocks(len(query) if k else 0, len(stored)):
        progress(block.start / len(query), "finding neighbors")
        asking = query[block].astype(np.float64)
        similarity = np.empty((len(asking), len(stored)))
        for columns in row_blocks(len(stored), stored.shape[1]):
            similarity[:, columns] = inner_products(asking, stored[columns].astype(np.float64))
        np.copyto(similarity, -np.inf, where=np.isnan(similarity))
        if self_rows is not None:
            similarity[np.arange(len(similarity)), self_rows[block]] = -np.inf
        rows[block] = largest(similarity, k)
        cosines[block] = np.take_along_axis(similarity, rows[block], axis=1)
    return rows, cosines


class _Tiles:
    """What is kept of each line."""

    def __init__(self, query: np.ndarray, stored: np.ndarray, k: int, self_rows: Int[np.ndarray, " n"]) -> None:
        self._query, self._stored, self._k, self._own = query, stored, k, self_rows.astype(np.int64)
        self._kernels: Any = compiled(KERNELS)
        self._dtype = np.result_type(query.dtype, stored.dtype, np.float32)
        count = min(k + _SPARE, len(stored))
        self._best = np.full((len(query), count), -np.inf, self._dtype)
        self._number = np.full((len(query), count), -1, np.int64)
        self._locks = [threading.Lock() for _ in range(len(query) // EDGE + 1)]

    def take(self, rows: slice, buffers: dict[tuple[int, int], np.ndarray]) -> None:
        """Compare some queries with all stored rows."""
        query = np.asarray(self._query[rows], self._dtype)
        for columns in row_blocks(len(self._stored), 1, cells=EDGE):
            tile = self._product(query, columns, buffers)
            self._kernels.keep(tile, self._best, self._number, rows.start, columns.start, self._own)

    def take_both(self, blocks: tuple[slice, slice], buffers: dict[tuple[int, int], np.ndarray]) -> None:
        """Compare some rows with some others of the same set."""
        rows, columns = blocks
        tile = self._product(np.asarray(self._query[rows], self._dtype), columns, buffers)
        first, second = self._locks[rows.start // EDGE], self._locks[columns.start // EDGE]
        # Blocks shorter than a tile may share one lock, which is not taken twice.
        with first, nullcontext() if second is first else second:
            if rows == columns:
                self._kernels.keep(tile, self._best, self._number, rows.start, columns.start, self._own)
            else:
                self._kernels.keep_both(tile, self._best, self._number, rows.start, columns.start)

    def _product(self, query: np.ndarray, columns: slice, buffers: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
        return multiplied(query, np.asarray(exact(self._stored[columns]), self._dtype), buffers)

    def decided(
        self, self_rows: Int[np.ndarray, " n"] | None, *, certain: bool = True
    ) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
        """Return the nearest by double precision; lines of which rounding may have lost one are computed again."""
        exactly = np.empty(self._number.shape)
        share_out([*row_blocks(len(self._query), 1, cells=EDGE)], lambda rows, _: self._decide(rows, exactly), dict)
        order = np.lexsort((self._number, -exactly), axis=1)[:, : self._k]
        rows, cosines = (np.take_along_axis(array, order, axis=1) for array in (self._number, exactly))
        width = self._number.shape[1]
        uncertain = (self._number < 0).any(axis=1)
        if certain and width < len(self._stored):
            reach = product_rounding(self._query, self._stored, self._dtype)
            # A step of the grid more: what differs by less than that ties, also in double precision.
            uncertain |= ~(cosines[:, -1] > self._best[:, -1] + reach + 2.0**-36)
        again = np.flatnonzero(uncertain)
        if len(again):
            rows[again], cosines[again] = _by_all(
                self._query[again], self._stored, self._k, None if self_rows is None else self_rows[again], silent
            )
        return rows, cosines

    def _decide(self, rows: slice, exactly: np.ndarray) -> None:
        """Compute the cosines of what is kept of some lines in double precision; what is missing is the farthest."""
        for part in row_blocks(rows.stop - rows.start, self._number.shape[1] * self._query.shape[1]):
            lines = slice(rows.start + part.start, rows.start + part.stop)
            query, stored = (
                side.astype(np.float64) for side in (self._query[lines], self._stored[self._number[lines]])
            )
            exactly[lines] = on_grid(np.einsum("nd,nkd->nk", query, stored))
        exactly[rows][self._number[rows] < 0] = -np.inf


def largest(values: Float[np.ndarray, "b n"], k: int) -> Int[np.ndarray, "b k"]:
    """Return the columns of the `k` largest values per line, largest first, ties by column. No NaN, k <= n."""
    if 4 * k >= values.shape[1]:
        return np.argsort(-values, axis=1, kind="stable")[:, :k]
    few = np.argpartition(values, values.shape[1] - k, axis=1)[:, values.shape[1] - k :]
    line = np.arange(len(values))[:, None]
    least = values[line, few].min(1, keepdims=True)
    few.sort(axis=1)
    # Where more than k reach the k-th value, the partition chose among equals by accident: choose by number.
    for tied in np.flatnonzero((values >= least).sum(1) > k):
        reach = np.flatnonzero(values[tied] >= least[tied])
        few[tied] = np.sort(reach[np.argsort(-values[tied, reach], kind="stable")[:k]])
    order = np.argsort(-values[line, few], axis=1, kind="stable")
    return few[line, order]
