"""A run that trains elsewhere: written by a log of the store, with a clock of its own."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.trainer.places.object_store import ObjectStore, environment_of
from trainer import config
from trainer.places.source import FolderSource
from trainer.places.storage import Storage
from trainer.store import Items, Question, RunLog, Workspace, snapshot_name, write_snapshot
from trainer.store.elsewhere import Elsewhere, write_elsewhere
from trainer.store.manifests import write_manifest

DAY = 86_400.0


class There:
    """The other computer: a workspace with one run, whose clock is a day behind."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)
        with self.clock():
            self.run = self.workspace.runs.create(config.Run(name="far"))
        self.folder = self.workspace.runs.get(self.run).folder
        self.log: RunLog | None = None

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        now = time.time
        with mock.patch("time.time", side_effect=lambda: now() - DAY):
            yield

    def begin(self, *, rewind: int | None = None) -> None:
        with self.clock():
            self.log = RunLog.claim(self.workspace, self.run)
            if rewind is not None:
                self.log.rewind(rewind)

    def train(self, steps: range, rng: np.random.Generator) -> None:
        assert self.log is not None
        with self.clock():
            for step in steps:
                values = {"train/loss": float(rng.standard_normal()), "train/rate": float("nan")}
                self.log.scalars(step, values)
                self.log.progress(step=step, total_steps=100, phase="training")
            self.log.flush(patience_s=5)

    def measure(self, step: int, rng: np.random.Generator) -> None:
        assert self.log is not None
        image = rng.standard_normal((6, 4)).astype(np.float32)
        image /= np.linalg.norm(image, axis=1, keepdims=True)
        words = [f"a {word}" for word in "abcdef"]
        items = Items(np.arange(6), [f"{i}.png" for i in range(6)], words, ["x"] * 6, ["val"] * 6)
        folder = self.folder / "snapshots" / snapshot_name(dataset="toy", split="val", step=step)
        with self.clock():
            write_snapshot(
                folder, image=image, text=image, items=items, step=step, dataset="toy", split="val", model="far"
            )
            self.log.snapshot(step, "toy", "val", folder, 6, 4)
            self.log.evaluation(
                step, "toy", "val", {"R@1": float(rng.random())}, {"retrieval": Question("retrieval", 6)}
            )
            self.log.headline(float(rng.random()), 0.9)

    def keep(self, step: int, rng: np.random.Generator, *, best: bool) -> None:
        assert self.log is not None
        folder = self.folder / "checkpoints" / f"step-{step:06d}"
        with self.clock():
            folder.mkdir(parents=True, exist_ok=True)
            for file in folder.iterdir():
                file.unlink()
            (folder / "model.bin").write_bytes(rng.bytes(3_000))
            write_manifest(folder, {})
            self.log.checkpoint(step, folder, best=best)

    def end(self, status: str = "finished") -> None:
        assert self.log is not None
        with self.clock():
            self.log.status(status)
            self.log.close()
        self.log = None


class WorkspaceSource(FolderSource):
    """Reads as `trainer remote` answers: the row of this moment, and the folder."""

    def __init__(self, there: There) -> None:
        super().__init__(there.folder)
        self._there = there
        self.requests: list[str] = []

    def state(self) -> dict[str, Any]:
        return self._there.workspace.document(self._there.run)

    def ask(self, what: str) -> None:
        self.requests.append(what)
        self._there.workspace.runs.ask(self._there.run, what)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    found = There(tmp_path / "there")
    yield found
    if found.log is not None:
        found.log.close()
    found.workspace.close()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Workspace]:
    """Return a workspace whose run 2 trains elsewhere."""
    workspace = Workspace(tmp_path / "here")
    workspace.runs.create(config.Run(name="near"))
    run = workspace.runs.create(config.Run(name="far"))
    write_elsewhere(workspace.runs.get(run).folder, Elsewhere("box", "0" * 32, sent=True))
    yield workspace
    workspace.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Workspace]:
    """Return an empty workspace as if a window looked: mirrors are then brought up to date every second."""
    workspace = Workspace(tmp_path / "here")
    workspace.folder.mkdir()
    (workspace.folder / "explorer.lock").write_text(f"{os.getpid()}\n")
    yield workspace
    workspace.close()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the environment for an S3: a stand-in, or where `S3_FOR_TESTS` says (`moto_server`, with a bucket)."""
    if elsewhere := os.environ.get("S3_FOR_TESTS"):
        server, endpoint = None, elsewhere
    else:
        server = ObjectStore()
        endpoint = server.endpoint
    for name, value in environment_of(endpoint).items():
        monkeypatch.setenv(name, value)
    yield
    if server is not None:
        server.end()


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an empty folder of a store; that in Google's where an emulator runs (`gcp-storage-emulator`)."""
    return _in_store(request, tmp_path)


@pytest.fixture(params=["disk", "s3", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Return an empty folder, of this disk or of a store."""
    return Storage(str(tmp_path / "runs") if request.param == "disk" else _in_store(request, tmp_path))


def _in_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "gs" and "STORAGE_EMULATOR_HOST" not in os.environ:
        pytest.skip("STORAGE_EMULATOR_HOST names no emulator of Google's store")
    if request.param == "s3":
        request.getfixturevalue("store")
    return f"{request.param}://bucket/{tmp_path.name}"
