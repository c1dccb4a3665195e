"""UMAP's graph and arranging, on all cores and yet the same for a seed, on any number of threads.

McInnes, Healy, Melville, UMAP: Uniform Manifold Approximation and Projection, 2018, https://arxiv.org/abs/1802.03426.
umap-learn moves both ends of an edge at once, so with several threads its result depends on who came first. Here the
vertices are moved in blocks, each by its own edges, from where all stood when the block began: nothing depends on the
order within it. The quality is that of umap-learn at the same number of epochs (a test compares them). The work grows
with n times epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from jaxtyping import Float32, Int
from scipy import sparse

from trainer.analysis.compiled import compiled
from trainer.analysis.progress import Progress
from trainer.analysis.worker_threads import cores

EPOCHS: Final = ((200_000, 200), (500_000, 100))
"""Points -> epochs of up to so many; umap-learn takes 200 of more than 10,000."""
FEWEST_EPOCHS: Final = 50
"""Epochs of more points."""
SHOWN_EVERY: Final = 10
"""Epochs after which the points are shown."""
_BLOCKS: Final = 8
"""In which an epoch moves the vertices; any number up to 64 gives maps of the same quality."""
_REPELLING: Final = 5
_SIDE: Final = 10.0
"""Of the square in which the points begin."""
KERNELS: Final = "trainer.projection.umap_kernels"


def epochs_of(points: int) -> int:
    """Return in how many epochs this number of points is arranged."""
    return next((epochs for most, epochs in EPOCHS if points <= most), FEWEST_EPOCHS)


def fuzzy_graph(neighbors: Int[np.ndarray, "n k"], distances: Float32[np.ndarray, "n k"]) -> sparse.csr_array:
    """Return the symmetric weights of UMAP's graph from each point's nearest others, nearest first."""
    n, k = neighbors.shape
    weights = np.empty((n, k), np.float32)
    compiled(KERNELS).weigh(distances.astype(np.float32), weights, np.log2(k + 1))
    starts = np.arange(0, n * k + 1, k)
    directed = sparse.csr_array((weights.ravel(), neighbors.ravel().astype(np.int32), starts), shape=(n, n))
    directed.sort_indices()
    back = directed.T.tocsr()
    return (directed + back - directed.multiply(back)).tocsr()


def curve_of(min_dist: float) -> tuple[float, float]:
    """Return a and b of 1 / (1 + a d^2b), fitted to 1 up to `min_dist` and an exponential fall after it."""
    from scipy import optimize  # a third of a second, which other projections do not need

    distance = np.linspace(0, 3, 300)
    falling = np.where(distance < min_dist, 1.0, np.exp(-(distance - min_dist)))
    (a, b), _ = optimize.curve_fit(lambda x, a, b: 1 / (1 + a * x ** (2 * b)), distance, falling)
    return float(a), float(b)


def arranged(
    graph: sparse.csr_array,
    start: Float32[np.ndarray, "n 2"],
    *,
    min_dist: float,
    seed: int,
    progress: Progress,
    epochs: int | None = None,
    rate: float = 1.0,
    workers: int | None = None,
    show: Callable[[Float32[np.ndarray, "n 2"]], None] | None = None,
) -> Float32[np.ndarray, "n 2"]:
    """Return the positions of the graph's points after all epochs.

    Args:
        graph: Of `fuzzy_graph`.
        start: Where the points begin.
        min_dist: How close points may lie.
        seed: Of the random others that each is pushed away from.
        progress: Told each epoch; what it raises ends the arranging.
        epochs: How many; None: `epochs_of` the points.
        rate: Of the first epoch; it falls to 0 along a line.
        workers: Threads; None: one for each processor. The result is the same.
        show: Called with the positions after every `SHOWN_EVERY` epochs.
    """
    kernels: Any = compiled(KERNELS)
    n, epochs, workers = len(start), epochs or epochs_of(len(start)), workers or cores()
    points = np.array(start, np.float32)
    table = kernels.curve_table(*curve_of(min_dist))
    weight = graph.data
    with np.errstate(divide="ignore"):
        # An edge that is too light to be used once is never used.
        period = np.where(weight < weight.max() / epochs, np.inf, weight.max() / weight).astype(np.float32)
    height = -(-n // _BLOCKS)
    room = np.empty((height, 2), np.float32)
    with ThreadPoolExecutor(workers) as pool:
        for epoch in range(epochs):
            progress(epoch / epochs, f"epoch {epoch} of {epochs}")
            step = np.float32(rate * (1 - epoch / epochs))
            for turn in range(_BLOCKS):
                # The blocks come in another order in each epoch.
                first = ((7 * turn + 3 * epoch) % _BLOCKS) * height
                last = min(first + height, n)
                edges = np.linspace(first, max(first, last), workers + 1).astype(int)
                list(
                    pool.map(
                        lambda low, high, first=first, epoch=epoch, step=step: kernels.move(
                            *(points, room, first, low, high, graph.indptr, graph.indices, period),
                            *(table, step, epoch, seed, _REPELLING),
                        ),
                        edges[:-1],
                        edges[1:],
                    )
                )
                points[first:last] = room[: max(0, last - first)]
            if show is not None and (epoch + 1) % SHOWN_EVERY == 0:
                show(points.copy())
    progress(1.0, f"epoch {epochs} of {epochs}")
    return points


def in_square(points: Float32[np.ndarray, "n 2"]) -> Float32[np.ndarray, "n 2"]:
    """Return the points stretched to the square in which UMAP begins."""
    low, extent = points.min(0), np.ptp(points, axis=0)
    return (_SIDE * (points - low) / np.where(extent > 0, extent, 1)).astype(np.float32)
