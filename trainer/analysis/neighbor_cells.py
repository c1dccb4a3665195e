"""The nearest rows of any number: exact ones of many, nearly all of very many by cells that are next to each other.

It is an inverted file (Jegou, Douze, Schmid, Product quantization for nearest neighbor search, 2011) turned into matrix
products: a cell's rows ask together. Whether a neighbor is found depends only on whether its cell is looked into, so
the recall for any number of cells is known from some hundred rows whose true neighbors are computed, before the search.
Clusters are easy; on a smooth manifold of many dimensions even a quarter of all cells may miss a tenth. No graph index
is used there: none is a dependency of this program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Float32, Int

from trainer.analysis.compiled import compiled
from trainer.analysis.progress import Progress, between, silent
from trainer.analysis.tiled_neighbors import KERNELS, nearest, neighbors_of_each
from trainer.analysis.tiled_ranks import EDGE
from trainer.analysis.tiles import exact, row_blocks
from trainer.analysis.unit_rows import normalized
from trainer.analysis.worker_threads import share_out

MOST_EXACT: Final = 150_000
"""Rows up to which the neighbors of all are exact: half a minute on two cores."""
_WORTH_CELLS: Final = 30_000
"""Rows from which on cells are quicker than all products."""
WANTED: Final = 0.98
"""Share of the true neighbors that is to be found."""
ASKED: Final = 300
"""Rows whose true neighbors are computed to know it."""
_LEARNED_ROWS: Final = 40
"""Rows of each cell that its middle is learned from."""
_ROUNDS: Final = 8
_MOST_SHARE: Final = 0.25
"""Of all cells at most this share is looked into: then half of the products of an exact search are spared."""


@dataclass(frozen=True)
class FoundNeighbors:
    """Neighbors of each row, and how many of the true ones they are."""

    rows: Int[np.ndarray, "n k"]  # Of each row its `k` nearest, nearest first.
    cosines: Float[np.ndarray, "n k"]  # To them.
    # Share of the true neighbors that is found, measured on `asked` rows drawn at random; 1 where all are.
    recall: float
    asked: int  # How many these are; 0 where the search is exact.

    @property
    def words(self) -> str:
        """How the neighbors were found."""
        if not self.asked:
            return "exact neighbors"
        return f"neighbors by cells, {self.recall:.3f} of the true ones (measured on {self.asked:,} points)"


def neighbors_of_all(
    vectors: Float[np.ndarray, "n d"], k: int, progress: Progress = silent, *, seed: int = 0, quick: bool = False
) -> FoundNeighbors:
    """Return the `k` nearest other rows of each unit row: exact up to `MOST_EXACT` rows, by cells of more.

    Args:
        vectors: Unit rows.
        k: Neighbors of each.
        quick: Take cells for fewer rows, too, where they find `WANTED` of the neighbors: at 100,000 in a fifth of the
            time.
    """
    if len(vectors) > MOST_EXACT or (quick and len(vectors) >= _WORTH_CELLS):
        near = neighbors_by_cells(vectors, k, seed=seed, progress=progress, enough=len(vectors) > MOST_EXACT)
        if near is not None:
            return near
    rows, cosines = neighbors_of_each(vectors, k, progress=progress)
    return FoundNeighbors(rows, cosines, 1.0, 0)


def neighbors_by_cells(
    vectors: Float[np.ndarray, "n d"], k: int, *, seed: int = 0, progress: Progress = silent, enough: bool = True
) -> FoundNeighbors | None:
    """Return the neighbors of each row among others, at least `WANTED` of the true ones where cells can find them.

    The work grows with n^1.5. The same seed gives the same, on any number of threads.

    Args:
        vectors: Unit rows.
        k: Neighbors of each.
        seed: Of the first middles and of the rows that are asked.
        enough: Whether fewer are enough where cells cannot find `WANTED`; else None is returned there.
    """
    rng = np.random.default_rng(seed)
    progress(0.0, "learning cells")
    cells = _Cells(vectors, _middles(vectors, rng))
    questions = np.sort(rng.choice(len(vectors), min(ASKED, len(vectors)), replace=False))
    asking = between(progress, 0.05, 0.1)
    truth, _ = nearest(vectors[questions], vectors, k, self_rows=questions, progress=asking, certain=False)
    shares = cells.recalls(questions, truth)
    most = max(1, math.ceil(_MOST_SHARE * cells.count))
    probes = min(int(np.searchsorted(shares, WANTED)) + 1, most)
    if shares[probes - 1] < WANTED and not enough:
        return None
    rows, cosines = cells.search(k, probes, between(progress, 0.1, 1.0))
    return FoundNeighbors(rows, cosines, float(shares[probes - 1]), len(questions))


def _middles(vectors: Float[np.ndarray, "n d"], rng: np.random.Generator) -> Float32[np.ndarray, "c d"]:
    """Return the middles of about sqrt(n) cells, learned from a part of the rows (spherical k-means)."""
    n, count = len(vectors), math.isqrt(len(vectors))
    some = np.asarray(vectors[np.linspace(0, n, min(n, _LEARNED_ROWS * count), endpoint=False).astype(int)], np.float32)
    middles = some[np.sort(rng.choice(len(some), count, replace=False))].copy()
    for _ in range(_ROUNDS):
        cell = _nearest_middle(some, middles)
        order = np.argsort(cell, kind="stable")
        sizes = np.bincount(cell, minlength=count)
        sums = np.add.reduceat(some[order], np.minimum(np.cumsum(sizes) - sizes, len(some) - 1), axis=0)
        empty = np.flatnonzero(sizes == 0)
        sums[empty] = some[rng.choice(len(some), len(empty))]
        middles = normalized(sums).astype(np.float32)
    return middles


def _nearest_middle(vectors: Float[np.ndarray, "n d"], middles: Float32[np.ndarray, "c d"]) -> Int[np.ndarray, " n"]:
    cell = np.empty(len(vectors), np.int64)

    def assign(rows: slice, _: None) -> None:
        cell[rows] = (exact(vectors[rows]) @ middles.T).argmax(axis=1)

    share_out([*row_blocks(len(vectors), 1, cells=EDGE)], assign, lambda: None)
    return cell


class _Cells:
    """Rows by cells."""

    def __init__(self, vectors: Float[np.ndarray, "n d"], middles: Float32[np.ndarray, "c d"]) -> None:
        self._vectors, self.count = vectors, len(middles)
        self._cell = _nearest_middle(vectors, middles)
        self._order = np.argsort(self._cell, kind="stable")
        self._starts = np.append(0, np.cumsum(np.bincount(self._cell, minlength=self.count)))
        similarity = middles @ middles.T
        np.fill_diagonal(similarity, np.inf)
        self._near = np.argsort(-similarity, axis=1, kind="stable")

    def recalls(self, questions: Int[np.ndarray, " q"], truth: Int[np.ndarray, "q k"]) -> Float[np.ndarray, " c"]:
        """Return what share of the true neighbors is found if 1, 2, ... cells are looked into."""
        order_of = np.empty((self.count, self.count), np.int32)
        np.put_along_axis(order_of, self._near, np.arange(self.count, dtype=np.int32)[None], axis=1)
        turns = order_of[self._cell[questions][:, None], self._cell[truth]]
        return np.cumsum(np.bincount(turns.ravel(), minlength=self.count)) / max(truth.size, 1)

    def search(
        self, k: int, probes: int, progress: Progress
    ) -> tuple[Int[np.ndarray, "n k"], Float32[np.ndarray, "n k"]]:
        """Return the nearest rows among those of the `probes` nearest cells."""
        n = len(self._vectors)
        best, number = np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64)
        keep = compiled(KERNELS).keep

        def look(cell: int, _: None) -> None:
            self._look(cell, probes, keep, best, number)

        share_out([*range(self.count)], look, lambda: None, progress=progress, note="finding neighbors by cells")
        rows, cosines = np.empty_like(number), np.empty_like(best)
        rows[self._order], cosines[self._order] = self._order[number], best
        return rows, cosines

    def _look(self, cell: int, probes: int, keep: Callable[..., Any], best: np.ndarray, number: np.ndarray) -> None:
        """Compare the rows of a cell with those of its nearest cells; lines and numbers are places in the order."""
        lines = slice(self._starts[cell], self._starts[cell + 1])
        self_rows = np.arange(lines.start, lines.stop)
        asking = exact(self._vectors[self._order[lines]])
        for other in self._near[cell, :probes] if len(asking) else ():
            first = self._starts[other]
            for part in row_blocks(self._starts[other + 1] - first, 1, cells=EDGE):
                columns = slice(first + part.start, first + part.stop)
                tile = asking @ exact(self._vectors[self._order[columns]]).T
                keep(tile, best[lines], number[lines], 0, columns.start, self_rows)
