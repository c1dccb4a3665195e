"""Synthetic points like those of an embedding map: clusters of all sizes, some texts, a few outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, UInt8, UInt16

CLUSTERS = 60


@dataclass(frozen=True)
class Cloud:
    """Points for a map: positions, clusters, which are texts, and the clusters' colors."""

    xy: Float32[np.ndarray, "n 2"]
    cluster: UInt16[np.ndarray, " n"]
    text: Bool[np.ndarray, " n"]
    palette: UInt8[np.ndarray, "k 3"]


def cloud(n: int, *, seed: int = 0, texts: bool = True) -> Cloud:
    """Return `n` seeded points: clusters of unequal size and width as in UMAP, and one outlier in a thousand."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, CLUSTERS)
    center = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 12 * np.sqrt(rng.random(CLUSTERS))[:, None]
    width = rng.gamma(3, 0.22, (CLUSTERS, 2))
    share = rng.gamma(1.2, 1, CLUSTERS)
    cluster = rng.choice(CLUSTERS, n, p=share / share.sum()).astype(np.uint16)
    xy = rng.standard_normal((n, 2), dtype=np.float32)
    # Bent, so that clusters are no ellipses.
    xy[:, 1] += 0.35 * (xy[:, 0] ** 2 - 1)
    xy *= width.astype(np.float32)[cluster]
    xy += center.astype(np.float32)[cluster]
    strays = rng.integers(0, n, n // 1000)
    xy[strays] = rng.standard_normal((len(strays), 2)) * 4.5
    text = rng.random(n, dtype=np.float32) < 0.5 if texts else np.zeros(n, bool)
    return Cloud(xy, cluster, text, palette())


def palette() -> UInt8[np.ndarray, "k 3"]:
    """Return the clusters' colors in the current theme."""
    from PySide6.QtGui import QColor

    from explorer.theme import class_colors

    return np.array([QColor(name).getRgb()[:3] for name in class_colors(CLUSTERS)], np.uint8)
