"""Place a dropped image or a typed sentence in an existing map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float

from trainer.analysis.out_of_sample_placement import place
from trainer.analysis.procrustes import procrustes
from trainer.analysis.projection import pca, principal_axes
from trainer.projection.fitting import PLACED_BY, ProjectError
from trainer.projection.layouts import Layout, unit_rows
from trainer.projection.neighbors import nearest_among
from trainer.store.snapshot_files import read_snapshot
from trainer.untrusted.bounded.arrays import load_npy


def place_new(
    snapshot_folder: Path, layout: Layout, vectors: Float[np.ndarray, "q d"], *, images: bool = True
) -> Float[np.ndarray, "q 2"]:
    """Return positions of new vectors in `layout`, which stays unchanged.

    PCA: the projection on the same axes. Any other method: the weighted middle of the nearest points of the same
    modality (`trainer.analysis.out_of_sample_placement`); between images and texts there is a gap, and a new image
    belongs on its side.

    Raises:
        ProjectError: Embeddings of another width.
    """
    stored, xy = unit_rows(read_snapshot(snapshot_folder)), load_npy(layout.file)
    vectors = np.asarray(vectors, np.float32).reshape(-1, np.shape(vectors)[-1])
    if vectors.shape[1] != stored.shape[1]:
        raise ProjectError(
            f"The new vectors have {vectors.shape[1]} numbers and those of the map {stored.shape[1]}: embed them with "
            "the model of the map."
        )
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    if layout.method == "pca":
        mean, axes, _ = principal_axes(stored, 2)
        turn = procrustes(pca(stored, 2), xy)
        return turn.apply((vectors.astype(np.float64) - mean) @ axes).astype(np.float32)
    same_side = slice(0, layout.images) if images else slice(layout.images, None)
    if not len(xy[same_side]):
        same_side = slice(None)
    neighbors, distances = nearest_among(vectors, PLACED_BY, stored[same_side])
    return place(neighbors, distances, xy[same_side])
