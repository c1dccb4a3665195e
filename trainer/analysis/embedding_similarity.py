"""Similarity of two embeddings of the same items: per item (neighbors, Procrustes) and overall (CKA, RSA)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.geometry import weighted_sum
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.tiled_neighbors import neighbors_of_each
from trainer.analysis.tiles import exact, row_blocks


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
    from scipy.stats import rankdata

    # Rows repeat, and with them cosines: those that differ by the order of summing only are ties.
    cosines = _cosines(vectors)[np.triu_indices(len(vectors), 1)].round(12)
    if len(cosines) < 2 or not np.isfinite(cosines).all():
        return np.full(len(cosines), np.nan)
    ranked = rankdata(cosines)
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
        near.append(neighbors_of_each(vectors, k)[0])
        ranked.append(rsa_profile(vectors[few]))
        profiles.append(cka_profile(vectors))
        for j in range(i + 1):
            progress((i * (i + 1) // 2 + j) / n_pairs, f"{i + 1} of {count} spaces")
            matrices["cka"][i, j] = matrices["cka"][j, i] = cka_of_profiles(profiles[i], profiles[j])
            matrices["rsa"][i, j] = matrices["rsa"][j, i] = rsa_of_profiles(ranked[i], ranked[j])
            matrices["neighbors"][i, j] = matrices["neighbors"][j, i] = float(jaccard(near[i], near[j]).mean())
    return matrices


def _cosines(vectors: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    vectors = exact(vectors).astype(np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(length > 0, length, 1)
    return vectors @ vectors.T


def _center(vectors: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, " d"], float]:
    """Return the mean row and the RMS distance to it; 0 if only rounding error is left."""
    if not len(vectors):
        return np.zeros(vectors.shape[1]), 0.0
    center = weighted_sum(vectors) / len(vectors)
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
