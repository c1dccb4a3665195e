"""Prototypes of embeddings as in PCL: clusters, their concentration, the bound of the EM, and how pure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.unit_rows import normalized

TAU: Final = 0.2
SMOOTHING: Final = 10.0
STARTS: Final = 5


class Prototypes(Struct, frozen=True):
    """A clustering of unit rows."""

    assigned: Int[np.ndarray, " n"]  # Cluster of each row.
    centers: Float[np.ndarray, "k d"]  # Unit centroids.
    phi: Float[np.ndarray, " k"]  # Concentration of each cluster, of mean `TAU`; small where it is dense.
    bound: float  # Mean over rows of the log-probability of the own prototype, the variable part of PCL's bound.
    purity: float  # Share of the labeled rows whose cluster's most frequent label is theirs; NaN without labels.
    names: tuple[str, ...]  # Most frequent label of each cluster, or empty.


def prototypes(rows: Float[np.ndarray, "n d"], labels: Sequence[str], clusters: int, seed: int) -> Prototypes:
    """Return the prototypes of unit rows, by the k-means of scikit-learn (the best of `STARTS`)."""
    from sklearn.cluster import KMeans

    exact = np.asarray(rows, np.float64)
    fitted = KMeans(clusters, n_init=STARTS, random_state=seed).fit(exact)
    assigned, means = fitted.labels_.astype(np.int64), fitted.cluster_centers_
    distance = np.linalg.norm(exact - means[assigned], axis=1)
    phi = concentration(distance, assigned, clusters)
    centers = normalized(means)
    purity, names = purity_of(assigned, labels, clusters)
    return Prototypes(assigned, centers, phi, bound(exact, centers, assigned, phi), purity, names)


def concentration(
    distance: Float[np.ndarray, " n"], assigned: Int[np.ndarray, " n"], clusters: int
) -> Float[np.ndarray, " k"]:
    """Return each cluster's phi as `trainer.losses.proto_nce.concentration` has it, in numpy."""
    count = np.bincount(assigned, minlength=clusters)
    total = np.bincount(assigned, distance, minlength=clusters)
    phi = np.where(count > 1, total / np.maximum(count, 1) / np.log(count + SMOOTHING), 0.0)
    phi = np.where(count > 1, phi, phi.max())
    phi = np.clip(phi, *np.quantile(phi, [0.1, 0.9]))
    if phi.max() <= 0:
        return np.full(clusters, TAU)
    phi = np.maximum(phi, 0.01 * phi.max())
    return TAU * phi / phi.mean()


def bound(
    rows: Float[np.ndarray, "n d"],
    centers: Float[np.ndarray, "k d"],
    assigned: Int[np.ndarray, " n"],
    phi: Float[np.ndarray, " k"],
) -> float:
    """Return mean_i log(exp(v_i c_s / phi_s) / sum_j exp(v_i c_j / phi_j)), s the cluster of i.

    Li et al., Prototypical Contrastive Learning, 2021, https://arxiv.org/abs/2005.04966, equations 8 to 10: the bound
    that the E step tightens and the M step raises, up to the constant of the uniform prior.
    """
    from scipy.special import logsumexp

    scores = rows @ centers.T / phi
    return float((scores[np.arange(len(rows)), assigned] - logsumexp(scores, axis=1)).mean())


def purity_of(assigned: Int[np.ndarray, " n"], labels: Sequence[str], clusters: int) -> tuple[float, tuple[str, ...]]:
    """Return the share of labeled rows that have their cluster's most frequent label, and these labels."""
    right, labeled, names = 0, 0, []
    said = np.asarray(labels, dtype=str)
    for cluster in range(clusters):
        cluster_labels = said[(assigned == cluster) & (said != "")]
        values, counts = np.unique(cluster_labels, return_counts=True)
        names.append(str(values[counts.argmax()]) if len(values) else "")
        right += int(counts.max()) if len(counts) else 0
        labeled += len(cluster_labels)
    return (right / labeled if labeled else float("nan")), tuple(names)
