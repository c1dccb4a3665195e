"""A workspace that is moved keeps its images: what lies in it is stored relative to it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainer import config
from trainer.store import Items, Workspace, owner_key, ownership, picture_paths, read_snapshot, write_snapshot
from trainer.store.replay_records import ReplayRecord, read_replay, write_replay
from trainer.store.snapshot_files import StoreError
from trainer.store.task_records import TaskRecord, evaluation_folder, read_records, write_task

pytestmark = pytest.mark.slow

SCENES = "data/scenes-0123456789ab/train"


def pictures(workspace: Path, outside: Path) -> list[str]:
    """Make three images: two in the workspace, one of them a member of a tar, and one outside."""
    folder = workspace / SCENES
    folder.mkdir(parents=True)
    outside.mkdir(exist_ok=True)
    for path in (folder / "0.png", folder / "1.tar", outside / "2.png"):
        path.write_bytes(b"pixels")
    return [str(folder / "0.png"), f"{folder / '1.tar'}::0+3::a b.png", str(outside / "2.png")]


def snapshot(run_folder: Path, paths: list[str]) -> Path:
    n = len(paths)
    items = Items(np.arange(n), paths, ["c"] * n, [""] * n, ["train"] * n)
    folder = run_folder / "snapshots" / "scenes-train@000001"
    rows = np.ones((n, 2), np.float32)
    about = {"step": 1, "dataset": "scenes", "split": "train", "model": "m"}
    write_snapshot(folder, image=rows, text=rows, items=items, **about)
    return folder


def stored(folder: Path) -> list[str]:
    return pq.read_table(folder / "items.parquet").column("path").to_pylist()


def with_paths(folder: Path, paths: list[str]) -> None:
    """Store other paths, without the manifest that would tell."""
    table = pq.read_table(folder / "items.parquet")
    place = table.column_names.index("path")
    pq.write_table(table.set_column(place, "path", pa.array(paths)), folder / "items.parquet")
    (folder / "manifest.json").unlink()


@pytest.fixture
def made(workspace, tiny, tmp_path) -> tuple[Workspace, Path, list[str]]:
    run_folder = workspace.runs.get(workspace.runs.create(tiny)).folder
    paths = pictures(workspace.folder, tmp_path / "outside")
    return workspace, snapshot(run_folder, paths), paths


def moved(workspace: Workspace, to: Path) -> Workspace:
    workspace.close()
    return Workspace(workspace.folder.rename(to))


def at(paths: list[str], old: Path, new: Path) -> list[str]:
    return [path.replace(f"{old}/", f"{new}/") for path in paths]


def test_what_lies_in_the_workspace_is_stored_relative_to_it(made, tmp_path):
    workspace, folder, paths = made
    assert stored(folder)[:2] == [f"workspace:{SCENES}/0.png", f"workspace:{SCENES}/1.tar::0+3::a b.png"]
    assert stored(folder)[2] == paths[2]
    assert list(read_snapshot(folder).items.path) == paths
    there = moved(workspace, tmp_path / "moved").folder
    found = read_snapshot(there / folder.relative_to(workspace.folder)).items.path
    assert list(found) == at(paths, workspace.folder, there)


def test_a_folder_of_the_user_is_not_taken_for_a_former_place(workspace, tiny, tmp_path):
    """The same folders stand in another folder of the user, which is still there: it never was this workspace."""
    run_folder = workspace.runs.get(workspace.runs.create(tiny)).folder
    pictures(workspace.folder, tmp_path / "outside")
    others = pictures(tmp_path / "other", tmp_path / "outside")
    folder = snapshot(run_folder, others)
    assert list(read_snapshot(folder).items.path) == others


@pytest.mark.parametrize(
    "path",
    ["workspace:../outside/2.png", "workspace:data/../../outside/2.png", "workspace:/etc/passwd", "workspace:C:\\a"],
)
def test_a_relative_path_that_leads_out_is_refused(made, path):
    _, folder, _paths = made
    with_paths(folder, [f"workspace:{SCENES}/0.png", path, "a.png"])
    with pytest.raises(StoreError, match="leads out of the workspace"):
        read_snapshot(folder)


@pytest.mark.parametrize("way", ["../../outside/2.png", "link/2.png"])
def test_an_absolute_path_is_not_led_out_of_the_workspace(made, tmp_path, way):
    workspace, folder, _paths = made
    (workspace.folder / "data/kept").mkdir()
    (workspace.folder / "data/kept/link").symlink_to(tmp_path / "outside")
    given = [f"/gone/data/kept/{way}"] * 3
    with_paths(folder, given)
    assert list(read_snapshot(folder).items.path) == given


def test_evaluations_and_replays_follow_the_workspace(made, tmp_path):
    workspace, snapshot_folder, paths = made
    run_folder = snapshot_folder.parents[1]
    rows = (np.ones((3, 2), np.float32),) * 2
    lines = np.zeros((1, 3))
    write_replay(run_folder, ReplayRecord(1, 0, 2, 0.5, ("c",) * 3, tuple(paths), ("own",), lines, (1.0,), rows, rows))
    folder = evaluation_folder(run_folder, "scenes", "train", 1)
    write_task(folder, TaskRecord("knn", {"knn_acc1": 1.0}, 3, 3, arrays={"path": np.asarray(paths)}))
    assert str(workspace.folder) not in (run_folder / "replays/step_000001.json").read_text()
    there = moved(workspace, tmp_path / "moved").folder
    run_there = there / run_folder.relative_to(workspace.folder)
    expected = at(paths, workspace.folder, there)
    assert list(read_replay(run_there, 1).paths) == expected
    assert read_records(run_there / folder.relative_to(run_folder))[0].arrays["path"].tolist() == expected


def test_an_imported_run_finds_the_images_where_it_is_from(made, tmp_path):
    _workspace, folder, paths = made
    other = Workspace(tmp_path / "other")
    number = other.import_run(folder.parents[1])
    found = read_snapshot(other.runs.get(number).folder / "snapshots" / folder.name).items.path
    assert list(found) == paths
    other.close()


def test_data_in_the_workspace_follows_it_and_other_data_do_not(made, tmp_path):
    workspace, _, _ = made
    inside, outside = workspace.folder / "data", tmp_path / "outside"
    folder = config.Folder(path=str(inside), heldout_path=str(outside))
    assert picture_paths.data_here(workspace.folder, folder) == folder
    there = moved(workspace, tmp_path / "moved")
    assert there.runs.all()
    led = picture_paths.data_here(there.folder, folder)
    assert led == replace(folder, path=str(there.folder / "data"))
    never = config.Folder(path="/never/was/here/data")
    assert picture_paths.data_here(there.folder, never) == never


def test_former_places_are_codes_and_belong_to_this_user(made, tmp_path, monkeypatch):
    workspace, _, _ = made
    old = workspace.folder
    there = moved(workspace, tmp_path / "moved")
    assert there.runs.all()
    assert ownership.was_at(there.folder, old)
    assert not ownership.was_at(there.folder, tmp_path)
    words = (there.folder / ownership.NAME).read_text()
    assert str(tmp_path) not in words
    assert len(json.loads(words)["former"]) == 1
    monkeypatch.setattr(owner_key, "_READ", {owner_key.path(): b"another user's key, of 32 bytes."})
    assert not ownership.was_at(there.folder, old)
