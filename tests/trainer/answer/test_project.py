"""Projections: exact neighbours, reproducible UMAP, and the cache of layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainer import project
from trainer.analysis.projection import pca
from trainer.project import ProjectError, layout, layout_file, nearest, umap_layout
from trainer.store import Workspace


def unit_rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "k"), [(5, 4), (40, 7), (2500, 3)])
def test_nearest_is_the_sorted_distance_matrix(n: int, k: int) -> None:
    vectors = unit_rows(n, 6)
    vectors[1] = vectors[0]
    indices, distances = nearest(vectors, k)
    full = 1 - vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    assert np.array_equal(indices[:, 0], np.arange(n))
    assert np.allclose(distances[:, 0], 0)
    np.fill_diagonal(full, -1)
    assert np.allclose(distances[:, 1:], np.sort(full, axis=1)[:, 1:k], atol=1e-5)
    assert all(len(set(row)) == k for row in indices.tolist())


def test_umap_is_reproducible_tells_progress_and_keeps_clusters_apart() -> None:
    centres = unit_rows(3, 12, seed=4)
    vectors = np.repeat(centres, 30, axis=0) + 0.1 * unit_rows(90, 12, seed=5)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    told: list[float] = []
    first, second = (
        umap_layout(vectors, neighbours=10, min_dist=0.1, seed=3, progress=lambda s, _: told.append(s))
        for _ in range(2)
    )
    assert first.shape == (90, 2)
    assert first.dtype == np.float32
    assert np.array_equal(first, second)
    assert told[0] < 0.5
    assert max(told) == pytest.approx(1.0)
    distance = np.linalg.norm(first[:, None] - first[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(distance.argmin(axis=1) // 30 == np.arange(90) // 30) > 0.95


def test_whatever_the_progress_function_raises_ends_the_fit() -> None:
    class Enough(Exception):
        pass

    def stop(share: float, note: str) -> None:
        if "epoch" in note:
            raise Enough

    with pytest.raises(Enough):
        umap_layout(unit_rows(80, 8), neighbours=10, min_dist=0.1, seed=0, progress=stop)


def test_a_layout_is_computed_once_and_found_again(asked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = asked.snapshots(1)[-1]
    found = layout_file(asked.folder, snapshot.folder, method="pca")
    assert (found.images, found.texts) == (24, 24)
    points = np.load(found.file)
    both = np.concatenate([np.load(snapshot.folder / "image.npy"), np.load(snapshot.folder / "text.npy")])
    assert np.allclose(points, pca(both.astype(np.float32), 2), atol=1e-4)

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(project, "_project", never)
    assert np.array_equal(layout(asked.folder, snapshot.folder, method="pca"), points)
    with pytest.raises(AssertionError, match="computed again"):
        layout(asked.folder, snapshot.folder, method="umap", neighbours=5)


def test_other_vectors_have_another_layout(asked: Workspace) -> None:
    one, two = (layout_file(asked.folder, asked.snapshots(run)[-1].folder) for run in (1, 2))
    assert one.file != two.file


def test_what_cannot_be_projected_is_refused(asked: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="pca, umap"):
        layout(asked.folder, asked.snapshots(1)[0].folder, method="tsne")
