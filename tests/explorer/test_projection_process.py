"""Projections by the real process: PCA with new points, an aligned series of steps, UMAP, a real cancel."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from explorer.model_client.client import ModelClient
from trainer.charts.point_placement import PointPlacement
from trainer.messages import Failure, PlaceRows, Project
from trainer.store import Items, Workspace, write_snapshot

N = 150
"""Pairs: 300 points."""


class Heard:
    """Records the outcome of one request."""

    def __init__(self, client: ModelClient, question: Project | PlaceRows) -> None:
        self.answer: Any = None
        self.failure: Failure | None = None
        self.notes: list[str] = []
        self.give_up: ModelClient | None = None
        self.number = client.ask(question, done=self._done, failed=self._failed, progress=self._told)

    @property
    def over(self) -> bool:
        return self.answer is not None or self.failure is not None

    def _done(self, answer: Any) -> None:
        self.answer = answer

    def _failed(self, failure: Failure) -> None:
        self.failure = failure

    def _told(self, _share: float, note: str) -> None:
        self.notes.append(note)
        if self.give_up is not None:
            self.give_up.cancel(self.number)
            self.give_up = None


@pytest.fixture
def client(qapp: QObject, tmp_path: Path) -> Iterator[ModelClient]:
    workspace = Workspace(tmp_path / "workspace")
    made = ModelClient(workspace)
    yield made
    made.close()
    workspace.close()


def snapshots(folder: Path) -> tuple[list[Path], np.ndarray]:
    """Return two steps of one run; the later embeddings are the earlier ones, rotated, plus noise."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 12))
    image = centers[np.arange(N) % 5] + 0.3 * rng.normal(size=(N, 12))
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    items = Items(np.arange(N), [""] * N, [""] * N, [""] * N, [""] * N)
    made = []
    for step, vectors in ((10, image), (20, image @ turn + 0.01 * rng.normal(size=(N, 12)))):
        parts = [vectors, vectors + 0.1 * rng.normal(size=(N, 12))]
        image_, text = ((part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float32) for part in parts)
        made.append(folder / f"made-heldout@{step:06d}")
        about = {"step": step, "dataset": "made", "split": "heldout", "model": "a run"}
        write_snapshot(made[-1], image=image_, text=text, items=items, **about)
    return made, image_


def test_pca_of_a_series_and_new_points(qtbot: QtBot, client: ModelClient, tmp_path: Path) -> None:
    (early, late), image = snapshots(tmp_path / "snapshots")
    np.save(tmp_path / "new.npy", image[[7, 40]])
    asked = {"snapshot": str(late), "series": (str(early),), "place": str(tmp_path / "new.npy")}
    pca = Heard(client, Project(placement=PointPlacement(), **asked))
    qtbot.waitUntil(lambda: pca.over, timeout=180_000)
    assert pca.failure is None
    layout = np.load(pca.answer.layout)
    assert layout.shape == (2 * N, 2)
    # A copy of image 7 stands where image 7 does, and the earlier step faces the later one.
    np.testing.assert_allclose(pca.answer.placed, layout[[7, 40]], atol=1e-4)
    (earlier,) = (np.load(file) for file in pca.answer.layouts)
    assert np.abs(earlier - layout).mean() < 0.1 * np.abs(layout).mean()


@pytest.mark.timeout(500)
@pytest.mark.nightly  # UMAP takes half a minute to compile; tests/trainer/projection has it in the plain suite
def test_umap_of_a_series_and_new_points_and_a_real_cancel(qtbot: QtBot, client: ModelClient, tmp_path: Path) -> None:
    (early, late), image = snapshots(tmp_path / "snapshots")
    np.save(tmp_path / "new.npy", image[[7, 40]])
    asked = {"snapshot": str(late), "series": (str(early),), "place": str(tmp_path / "new.npy")}
    umap_placement = PointPlacement(method="umap", neighbors=10, seed=3)
    # Cancelled at the first sign that it has begun.
    given_up = Heard(client, Project(snapshot=str(early), placement=umap_placement))
    given_up.give_up = client
    qtbot.waitUntil(lambda: given_up.over, timeout=10_000)
    assert given_up.answer is None
    assert given_up.failure is not None
    assert given_up.failure.kind == "cancelled"

    umap = Heard(client, Project(placement=umap_placement, **asked))
    qtbot.waitUntil(lambda: umap.over, timeout=400_000)  # compiled first, where no cache has its kernels
    assert umap.failure is None, umap.failure
    layout = np.load(umap.answer.layout)
    assert layout.shape == (2 * N, 2)
    assert np.isfinite(layout).all()
    spread = layout.std(axis=0).max()
    assert np.abs(np.asarray(umap.answer.placed) - layout[[7, 40]]).max() < spread
    assert len(umap.answer.layouts) == 1
    assert umap.notes

    words = Heard(client, PlaceRows(run=1, vectors=str(tmp_path / "new.npy"), placement=PointPlacement(method="umap")))
    qtbot.waitUntil(lambda: words.over, timeout=60_000)
    assert "2 points are too few" in words.failure.message
