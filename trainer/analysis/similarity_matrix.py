"""The matrix of all cosines at any zoom level, and an order that reveals its structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress, part_of, silent
from trainer.analysis.tiles import exact, row_blocks

LEAVES: Final = 512
"""Most things that are put in order by a tree; more are put into clusters first, and the clusters in order."""

_ITERATIONS: Final = 12


def block_means(
    image: Float[np.ndarray, "n d"],
    text: Float[np.ndarray, "m d"],
    rows: Sequence[Int[np.ndarray, " k"]] | Int[np.ndarray, " k"],
    columns: Sequence[Int[np.ndarray, " k"]] | Int[np.ndarray, " k"],
    *,
    progress: Progress = silent,
) -> Float[np.ndarray, "r c"]:
    """Return the mean cosine of every group of images with every group of texts, in float32.

    The mean of the cosines of two groups is the inner product of the groups' mean vectors, so no cell is computed:
    a picture of 100,000 x 100,000 cosines costs one reading of the vectors, and is exact.

    Args:
        image: Unit embeddings, a memory map perhaps: only the rows asked for are read.
        text: Unit embeddings.
        rows: Numbers of the images in each group; a flat array: each its own group.
        columns: Numbers of the texts in each group.
    """
    first = group_means(image, rows, progress=part_of(progress, 0, 2))
    return first @ group_means(text, columns, progress=part_of(progress, 1, 2)).T


def group_means(
    vectors: Float[np.ndarray, "n d"],
    groups: Sequence[Int[np.ndarray, " k"]] | Int[np.ndarray, " k"],
    *,
    progress: Progress = silent,
) -> Float[np.ndarray, "g d"]:
    """Return the mean vector of each group's rows, in float32; zeros if empty. Block by block."""
    if isinstance(groups, np.ndarray):
        return exact(vectors[groups]).astype(np.float32)
    sizes = np.array([len(group) for group in groups], np.int64)
    members = np.concatenate([np.asarray(g, np.int64) for g in groups]) if len(groups) else np.zeros(0, np.int64)
    owner = np.repeat(np.arange(len(groups)), sizes)
    sums = np.zeros((len(groups), vectors.shape[1]))
    for block in row_blocks(len(members), vectors.shape[1]):
        progress(block.start / len(members), "reading embeddings")
        # Sorted reading: a memory map in random order would seek for every row.
        order = np.argsort(members[block], kind="stable")
        read = np.empty((len(order), vectors.shape[1]), np.float64)
        read[order] = vectors[members[block][order]]
        starts = np.flatnonzero(np.diff(owner[block], prepend=-1))
        sums[owner[block][starts]] += np.add.reduceat(read, starts, axis=0)
    return (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)


def spans(order: Int[np.ndarray, " n"], first: int, last: int, most: int) -> list[Int[np.ndarray, " k"]]:
    """Return the items at places `first` to `last` (exclusive) of an order, in at most `most` equal groups."""
    return np.array_split(order[first:last], min(most, max(last - first, 0))) if last > first else []


def seriate(
    vectors: Float[np.ndarray, "n d"], labels: Sequence[str] | None = None, *, progress: Progress = silent
) -> Int[np.ndarray, " n"]:
    """Return a permutation of the rows that places similar ones next to each other.

    Classes (or, without labels, clusters of spherical k-means) are put in the order of the leaves of an average-linkage
    tree of the cosines of their means, flipped so that neighbors are as similar as they can be (Bar-Joseph et al.,
    Fast optimal leaf ordering for hierarchical clustering, 2001). Inside a class rows are ordered the same way if they
    are few, else along their first principal axis.
    """
    n = len(vectors)
    if labels is None and n <= LEAVES:
        return leaf_order(exact(vectors[:]))
    class_of = None if labels is None else np.unique(np.asarray(labels, str), return_inverse=True)[1].ravel()
    group_of = _clusters(vectors, progress) if class_of is None else class_of
    groups = [np.flatnonzero(group_of == group) for group in np.unique(group_of)]
    if labels is not None and len(groups) > LEAVES:
        return seriate(vectors, None, progress=progress)
    ordered = []
    for index, group in enumerate(leaf_order(group_means(vectors, groups))):
        progress(0.5 + index / len(groups) / 2, "ordering")
        rows = groups[group]
        ordered.append(rows[_order_inside(exact(vectors[rows]))])
    return np.concatenate(ordered) if ordered else np.zeros(0, np.int64)


def leaf_order(vectors: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """Return the leaf order of the average-linkage tree of the rows' cosines, optimally flipped; n^2 memory."""
    if len(vectors) < 3:
        return np.arange(len(vectors))
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    unit = vectors.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    distance = np.clip(1 - unit @ unit.T, 0, 2)
    distance = np.nan_to_num((distance + distance.T) / 2, nan=2.0)
    np.fill_diagonal(distance, 0)
    flat = squareform(distance, checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(flat, "average"), flat)).astype(np.int64)


def _order_inside(vectors: np.ndarray) -> np.ndarray:
    if len(vectors) <= LEAVES // 2:
        return leaf_order(vectors)
    centered = vectors - vectors.mean(0)
    # Power iteration: near enough for an order, and a hundred times as quick as all eigenvectors of wide embeddings.
    axis = centered[np.linalg.norm(centered, axis=1).argmax()]
    for _ in range(_ITERATIONS):
        axis = centered.T @ (centered @ axis)
        axis = axis / max(float(np.linalg.norm(axis)), 1e-30)
    return np.argsort(centered @ axis, kind="stable")


def _clusters(vectors: np.ndarray, progress: Progress) -> np.ndarray:
    """Cluster by spherical k-means with about sqrt(n) centers (256 at most), fitted to a sample of 20,000 rows."""
    n, rng = len(vectors), np.random.default_rng(0)
    k = int(min(256, max(2, round(n**0.5))))
    sample = exact(vectors[np.sort(rng.choice(n, min(n, 20_000), replace=False))])
    centers = sample[rng.choice(len(sample), k, replace=False)]
    for iteration in range(_ITERATIONS):
        progress(0.4 * iteration / _ITERATIONS, "clustering")
        nearest = (sample @ centers.T).argmax(1)
        sums = np.zeros((k, sample.shape[1]))
        np.add.at(sums, nearest, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centers = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centers).astype(sample.dtype)
    assigned = np.empty(n, np.int64)
    for block in row_blocks(n, max(k, vectors.shape[1])):
        assigned[block] = (exact(vectors[block]) @ centers.T).argmax(1)
    return assigned
