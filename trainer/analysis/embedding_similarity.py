"""Similarity of two embeddings of the same items: per item (neighbors, Procrustes) and overall (CKA, RSA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.tiles import exact, inner_products, ranked, row_blocks

SQUARE: Final = 4_096
"""Rows and columns of a tile when all rows ask for their neighbors."""


def neighbor_rows(
    vectors: Float[np.ndarray, "n d"],
    k: int,
    *,
    rows: Int[np.ndarray, " m"] | None = None,
    progress: Progress | None = None,
) -> Int[np.ndarray, "m k"]:
    """Return the `k` rows most similar to each by inner product, nearest first, without itself.

    Equally near vectors come by row number; `tiles.inner_products` says what is equally near. At most n - 1 columns.
    Not-a-number vectors are nobody's neighbors before all others. Block by block: memory is O(n k).

    Args:
        vectors: Unit embeddings.
        k: Neighbors of each.
        rows: The rows that ask; None: all.
        progress: Told after each block.
    """
    n = len(vectors)
    vectors = ranked(vectors, n * n)
    count = max(0, min(k, n - 1))
    if n > 2 * SQUARE and 0 < count < SQUARE and (rows is None or len(rows) == n):
        return _all_neighbors(vectors, count, progress)
    queries = np.arange(n) if rows is None else rows
    nearest = np.empty((len(queries), count), np.int64)
    if not count:
        return nearest
    for block in row_blocks(len(queries), n):
        if progress is not None:
            progress(block.start / len(queries), "")
        similarity = inner_products(vectors[queries[block]], vectors)
        np.copyto(similarity, -np.inf, where=np.isnan(similarity))
        similarity[np.arange(len(similarity)), queries[block]] = -np.inf
        nearest[block] = largest(similarity, count)
    return nearest


def _all_neighbors(vectors: Float[np.ndarray, "n d"], k: int, progress: Progress | None) -> Int[np.ndarray, "n k"]:
    """Return the neighbors of every row from half of the products, because a tile serves its rows and its columns.

    Every block of rows meets the tiles of its columns in ascending order, so what comes later must be strictly nearer
    to take a place: equally near rows stay in the order of their numbers.
    """
    n = len(vectors)
    best, nearest = np.full((n, k), -np.inf, vectors.dtype), np.zeros((n, k), np.int64)
    blocks = [slice(start, min(start + SQUARE, n)) for start in range(0, n, SQUARE)]
    tiles, done = len(blocks) * (len(blocks) + 1) / 2, 0
    for number, rows in enumerate(blocks):
        for columns in blocks[number:]:
            if progress is not None:
                progress(done / tiles, "")
            similarity = vectors[rows] @ vectors[columns].T
            if rows == columns:
                np.fill_diagonal(similarity, -np.inf)
            _take_nearer(similarity, best[rows], nearest[rows], columns.start)
            if rows != columns:
                _take_nearer(similarity.T, best[columns], nearest[columns], rows.start)
            done += 1
    return nearest


def _take_nearer(
    similarity: Float[np.ndarray, "b m"], best: Float[np.ndarray, "b k"], nearest: Int[np.ndarray, "b k"], start: int
) -> None:
    """Merge the nearer columns of a tile into `best` and `nearest`, nearest first."""
    k = best.shape[1]
    if start == 0:
        first = np.ascontiguousarray(similarity)
        np.copyto(first, -np.inf, where=np.isnan(first))
        nearest[:] = largest(first, k)
        best[:] = np.take_along_axis(first, nearest, axis=1)
        return
    nearer = similarity > best[:, -1:]
    if nearer.flags.c_contiguous:
        line, column = np.divmod(np.flatnonzero(nearer), nearer.shape[1])
    else:  # read in the order of the memory, whichever way the tile lies
        column, line = np.divmod(np.flatnonzero(nearer.T), nearer.shape[0])
    if not len(line):
        return
    touched, inverse = np.unique(line, return_inverse=True)
    owner = np.concatenate([np.repeat(np.arange(len(touched)), k), inverse.reshape(-1)])
    value = np.concatenate([best[touched].reshape(-1), similarity[line, column]])
    number = np.concatenate([nearest[touched].reshape(-1), column + start])
    order = np.lexsort((number, -value, owner))
    counts = np.bincount(owner, minlength=len(touched))
    chosen = order[(np.cumsum(counts) - counts)[:, None] + np.arange(k)]
    best[touched], nearest[touched] = value[chosen], number[chosen]


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


def jaccard(first: Int[np.ndarray, "n k"], second: Int[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    """Return the Jaccard index of line i of both, 0 to 1; members are unique per line."""
    shared = shared_members(first, second).sum(1)
    either = first.shape[1] + second.shape[1] - shared
    return np.where(either > 0, shared / np.maximum(either, 1), np.nan)


def shared_members(first: Int[np.ndarray, "n k"], second: Int[np.ndarray, "n j"]) -> Bool[np.ndarray, "n k"]:
    """Return whether each member of `first` is in the same line of `second`."""
    shared = np.zeros(first.shape, bool)
    for rows in row_blocks(len(first), first.shape[1] * max(second.shape[1], 1)):
        shared[rows] = (first[rows, :, None] == second[rows, None, :]).any(2)
    return shared


def procrustes_residuals(first: Float[np.ndarray, "n d"], second: Float[np.ndarray, "n e"]) -> Float[np.ndarray, " n"]:
    """Return each item's distance after the best rotation, reflection and scaling of `first` to `second`.

    Both are centered and brought to root mean square length 1; then `|s x_i R - y_i|` with the orthogonal R and the
    scale s of least squares: 0 the same shape, 1 as far as a typical item is from the center. Unlike widths are
    padded with zeros. The mean square is 1 minus the squared correlation of both configurations.

    Schönemann, A generalized solution of the orthogonal Procrustes problem, 1966; Gower, 1975. NaN without spread.
    """
    center_1, length_1 = _center(first)
    center_2, length_2 = _center(second)
    if not (length_1 > 0 and length_2 > 0):
        return np.full(len(first), np.nan)
    n, width = len(first), max(first.shape[1], second.shape[1])
    cross = np.zeros((width, width))
    for rows in row_blocks(n, width):
        x, y = _padded(first[rows], center_1, length_1, width), _padded(second[rows], center_2, length_2, width)
        cross += x.T @ y
    if not np.isfinite(cross).all():
        return np.full(n, np.nan)
    left, values, right = np.linalg.svd(cross / n)
    turn = values.sum() * (left @ right)
    residuals = np.empty(n)
    for rows in row_blocks(n, width):
        x, y = _padded(first[rows], center_1, length_1, width), _padded(second[rows], center_2, length_2, width)
        residuals[rows] = np.linalg.norm(x @ turn - y, axis=1)
    return residuals


def cka_profile(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return centered rows in float32, scaled to unit Frobenius norm of `X' X`; NaN if constant."""
    centered = exact(vectors) - exact(vectors).mean(0, dtype=np.float64)
    gram = float(np.linalg.norm(centered.T @ centered))
    if not gram > 1e-12 * max(len(centered), 1):
        return np.full(centered.shape, np.nan, np.float32)
    return (centered / np.sqrt(gram)).astype(np.float32)


def cka_of_profiles(first: Float[np.ndarray, "n d"], second: Float[np.ndarray, "n e"]) -> float:
    """Return linear centered kernel alignment of two spaces by their profiles, 0 to 1, accurate to about 1e-5.

    `|Yc' Xc|² / (|Xc' Xc| |Yc' Yc|)` with Frobenius norms: 1 for rotation, scaling and translation only. With fewer
    items than dimensions it is near 1 for anything, so give n with it. Kornblith et al., Similarity of Neural Network
    Representations Revisited, 2019, https://arxiv.org/abs/1905.00414, equation 4 onwards. NaN where one side does not
    vary.
    """
    return float(np.minimum(np.square(first.T @ second, dtype=np.float64).sum(), 1.0))


def rsa_profile(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " m"]:
    """Return the ranks of all n (n - 1) / 2 cosines, centered, with unit norm; NaN if constant.

    Give a sample of at most some thousand rows.
    """
    # Rows repeat, and with them cosines: those that differ by the order of summing only are ties.
    cosines = _cosines(vectors)[np.triu_indices(len(vectors), 1)].round(12)
    if len(cosines) < 2 or not np.isfinite(cosines).all():
        return np.full(len(cosines), np.nan)
    ranked = _ranked(cosines)
    ranked -= ranked.mean()
    length = float(np.linalg.norm(ranked))
    return ranked / length if length > 0 else np.full(len(cosines), np.nan)


def rsa_of_profiles(first: Float[np.ndarray, " m"], second: Float[np.ndarray, " m"]) -> float:
    """Return representational similarity by profiles: Spearman correlation of both spaces' pairwise cosines, -1 to 1.

    NaN where one side's cosines are all equal or there are fewer than two pairs. Kriegeskorte, Mur & Bandettini,
    Representational similarity analysis, 2008, https://doi.org/10.3389/neuro.06.004.2008
    """
    return float(np.clip(first @ second, -1.0, 1.0)) if len(first) else float("nan")


def compare_spaces(
    spaces: Sequence[Float[np.ndarray, "n _"]], k: int, most_rsa: int, progress: Progress
) -> dict[str, Float[np.ndarray, "m m"]]:
    """Return linear CKA, RSA (of at most `most_rsa` rows) and mean overlap of `k` neighbors for all pairs of spaces.

    A symmetric matrix for each; NaN where a space does not vary. What is computed of one space alone is computed once.
    Rows must be of different units: copies are neighbors of each other in any space.
    """
    count = len(spaces)
    matrices = {key: np.full((count, count), np.nan) for key in ("cka", "rsa", "neighbors")}
    few = at_most(len(spaces[0]), most_rsa, seed=1)
    near: list[np.ndarray] = []
    ranked: list[np.ndarray] = []
    profiles: list[np.ndarray] = []
    n_pairs = count * (count + 1) // 2
    for i, vectors in enumerate(spaces):
        near.append(neighbor_rows(vectors, k))
        ranked.append(rsa_profile(vectors[few]))
        profiles.append(cka_profile(vectors))
        for j in range(i + 1):
            progress((i * (i + 1) // 2 + j) / n_pairs, f"{i + 1} of {count} spaces")
            matrices["cka"][i, j] = matrices["cka"][j, i] = cka_of_profiles(profiles[i], profiles[j])
            matrices["rsa"][i, j] = matrices["rsa"][j, i] = rsa_of_profiles(ranked[i], ranked[j])
            matrices["neighbors"][i, j] = matrices["neighbors"][j, i] = float(jaccard(near[i], near[j]).mean())
    return matrices


def _ranked(values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Return the mean rank of each value."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[inverse.reshape(-1)]


def _cosines(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    vectors = exact(vectors).astype(np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(length > 0, length, 1)
    return vectors @ vectors.T


def _center(vectors: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], float]:
    """Return the mean row and the RMS distance to it; 0 if only rounding error is left."""
    if not len(vectors):
        return np.zeros(vectors.shape[1]), 0.0
    center = exact(vectors).mean(0, dtype=np.float64)
    squares = 0.0
    for rows in row_blocks(len(vectors), vectors.shape[1]):
        squares += float(((vectors[rows].astype(np.float64) - center) ** 2).sum())
    length = float(np.sqrt(squares / len(vectors)))
    return center, length if length > 1e-7 else 0.0


def _padded(
    rows: Float[np.ndarray, "b d"], center: Float[np.ndarray, " d"], length: float, width: int
) -> Float[np.ndarray, "b width"]:
    centered = (rows.astype(np.float64) - center) / length
    return np.pad(centered, ((0, 0), (0, width - centered.shape[1])))
