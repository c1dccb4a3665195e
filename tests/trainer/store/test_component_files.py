"""Components of large snapshots are computed once, found again, and never used for other embeddings."""

from pathlib import Path

import numpy as np
import pytest

from trainer.analysis.camera_3d import components
from trainer.store import component_files
from trainer.store.component_files import kept_components, snapshot_components
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot, write_snapshot

N = 30


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_files, "WORTH_KEEPING", 2 * N)


def written(workspace: Path, *, seed: int = 0, n: int = N) -> Snapshot:
    rng = np.random.default_rng(seed)
    image, text = rng.normal(size=(2, n, 6)).astype(np.float16)
    folder = workspace / "runs" / "0001-one" / "snapshots" / "scenes-heldout@000010"
    (workspace / "runs" / "0001-one").mkdir(parents=True, exist_ok=True)
    words = [""] * n
    items = Items(np.arange(n), words, words, words, words)
    write_snapshot(folder, image=image, text=text, items=items, step=10, dataset="s", split="h", model="one")
    return read_snapshot(folder)


def naive(snapshot: Snapshot) -> np.ndarray:
    """Return components by the singular values of all rows at once, in float64."""
    rows = np.concatenate([snapshot.image, snapshot.text]).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= rows.mean(0)
    axes = np.linalg.svd(rows, full_matrices=False)[2][:3]
    axes = axes * np.sign([axis[np.abs(axis).argmax()] for axis in axes])[:, None]
    return rows @ axes.T


def test_they_are_computed_once_and_then_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    snapshot = written(tmp_path)
    assert kept_components(tmp_path, snapshot) is None
    first = snapshot_components(tmp_path, snapshot, keep=True)
    assert first == pytest.approx(naive(snapshot), abs=1e-5)
    monkeypatch.setattr(component_files, "components", lambda *_: pytest.fail("computed again"))
    again = snapshot_components(tmp_path, read_snapshot(snapshot.folder), keep=True)
    assert np.array_equal(again, first)
    assert [file.suffixes for file in (tmp_path / "layouts").iterdir()] == [[".components", ".npy"]]


def test_other_embeddings_are_not_given_them(tmp_path: Path):
    snapshot_components(tmp_path, written(tmp_path), keep=True)
    other = written(tmp_path, seed=1)
    assert kept_components(tmp_path, other) is None
    assert snapshot_components(tmp_path, other, keep=True) == pytest.approx(naive(other), abs=1e-5)


def test_nothing_is_written_where_it_is_not_wanted_or_not_worth_it(tmp_path: Path):
    snapshot_components(tmp_path, written(tmp_path), keep=False)
    snapshot_components(tmp_path, written(tmp_path, n=N - 1), keep=True)
    assert not (tmp_path / "layouts").exists()


@pytest.mark.parametrize(
    "content",
    [np.zeros((2 * N, 2), np.float32), np.full((2 * N, 3), np.nan, np.float32), np.zeros((2 * N, 3)), None],
    ids=["another shape", "no numbers", "another type", "no array"],
)
def test_what_is_damaged_is_computed_anew(tmp_path: Path, content: np.ndarray | None):
    snapshot = written(tmp_path)
    expected = snapshot_components(tmp_path, snapshot, keep=True)
    (file,) = (tmp_path / "layouts").iterdir()
    if content is None:
        file.write_bytes(b"\x93NUMPY nothing")
    else:
        np.save(file, content)
    assert kept_components(tmp_path, snapshot) is None
    assert np.array_equal(snapshot_components(tmp_path, snapshot, keep=True), expected)
    assert np.array_equal(kept_components(tmp_path, snapshot), expected)


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path):
    snapshot = written(tmp_path / "w")
    expected = snapshot_components(tmp_path / "w", snapshot, keep=True)
    (file,) = (tmp_path / "w" / "layouts").iterdir()
    np.save(tmp_path / "elsewhere.npy", expected)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere.npy")
    assert kept_components(tmp_path / "w", snapshot) is None


def test_a_workspace_that_takes_no_files_still_has_a_map(tmp_path: Path):
    snapshot = written(tmp_path)
    (tmp_path / "layouts").write_text("a file where the folder would be")
    assert snapshot_components(tmp_path, snapshot, keep=True) == pytest.approx(naive(snapshot), abs=1e-5)


def test_a_narrow_cone_has_the_components_of_its_own_spread(tmp_path: Path):
    """Rows differ from their mean in the fourth digit, which products of the rows alone would lose."""
    rng = np.random.default_rng(3)
    rows = (np.ones(8) + 1e-4 * rng.normal(size=(400, 8)) * [9, 4, 2, 1, 1, 1, 1, 1]).astype(np.float32)
    unit = rows.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    unit -= unit.mean(0)
    spread = np.linalg.svd(unit, full_matrices=False)[1][:3]
    found = components((rows,)).astype(np.float64)
    # Single precision keeps three digits of what differs in the fourth, and sums in the order of the processor.
    assert np.sqrt((found**2).sum(0)) == pytest.approx(spread, rel=1e-4)
