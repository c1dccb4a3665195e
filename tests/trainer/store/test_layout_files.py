"""Layouts of runs that are gone are counted and removed; those of other runs stay."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts.point_placement import PointPlacement
from trainer.projection import layout_file
from trainer.store import Items, Workspace, component_files, layout_files, write_snapshot
from trainer.store.component_files import snapshot_components

pytestmark = pytest.mark.slow


def filled(workspace: Workspace, name: str) -> tuple[int, Path]:
    """Return a run with a snapshot of its own, and the snapshot's folder."""
    number = workspace.runs.create(config.Run(name=name))
    folder = workspace.runs.get(number).folder / "snapshots" / "scenes-train@000001"
    rows = np.random.default_rng(number).normal(size=(12, 4)).astype(np.float32)
    words = [f"{i}" for i in range(12)]
    items = Items(np.arange(12), words, words, [""] * 12, ["train"] * 12)
    write_snapshot(folder, image=rows, text=rows, items=items, step=1, dataset="scenes", split="train", model=name)
    return number, folder


@pytest.fixture
def two(workspace, monkeypatch) -> tuple[Workspace, int, set[str], set[str]]:
    """Return a workspace, the first run, what is laid out of it alone, and of the second alone."""
    monkeypatch.setattr(component_files, "WORTH_KEEPING", 1)
    first, folder = filled(workspace, "first")
    _, other = filled(workspace, "second")
    kept: list[set[str]] = []
    for one in (folder, other):
        before = names(workspace)
        layout_file(workspace.folder, one)
        from trainer.store import read_snapshot

        snapshot_components(workspace.folder, read_snapshot(one), keep=True)
        kept.append(names(workspace) - before)
    layout_file(workspace.folder, other, PointPlacement(seed=1), onto=(folder,))
    return workspace, first, *kept


def names(workspace: Workspace) -> set[str]:
    folder = workspace.folder / "layouts"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def test_purge_removes_the_layouts_of_the_run_and_no_other(two):
    workspace, first, of_first, of_second = two
    assert len(of_first) == len(of_second) == 3  # points, facts and components
    assert names(workspace) > of_first | of_second
    assert layout_files.orphans(workspace.folder).names == ()
    workspace.purge(first)
    assert names(workspace) == of_second
    assert layout_files.orphans(workspace.folder).names == ()


def test_doctor_counts_and_removes_what_no_run_needs(two, capsys):
    workspace, first, _of_first, of_second = two
    everything = names(workspace)
    import shutil

    shutil.rmtree(workspace.runs.get(first).folder)
    assert set(layout_files.orphans(workspace.folder).names) == everything - of_second
    main(["doctor", "--workspace", str(workspace.folder), "--json"])
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert told["layouts"]["value"].startswith(f"{len(everything - of_second)} files of runs that are gone")
    assert names(workspace) == everything
    main(["doctor", "--clean", "--workspace", str(workspace.folder), "--json"])
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert told["removed"]["value"].startswith(f"{len(everything - of_second)} files")
    assert "layouts" not in told
    assert names(workspace) == of_second


def test_layouts_that_name_no_snapshot_stay_as_long_as_a_run_has_a_snapshot(two):
    workspace, _first, of_first, _ = two
    for name in of_first:
        if name.endswith(".json"):
            file = workspace.folder / "layouts" / name
            file.write_text(json.dumps({k: v for k, v in json.loads(file.read_text()).items() if k != "of"}))
    assert layout_files.orphans(workspace.folder).names == ()
    for row in workspace.runs.all():
        workspace.purge(row.id)
    assert len(layout_files.remove_orphans(workspace.folder).names) == 2
    assert names(workspace) == set()


def test_what_is_being_written_stays_and_what_a_killed_process_left_goes(two):
    workspace, *_ = two
    for name in ("a.npy.1.tmp", "b.npy", "c.txt"):
        (workspace.folder / "layouts" / name).write_bytes(b"x")
    assert layout_files.orphans(workspace.folder).names == ()
    for name in ("a.npy.1.tmp", "b.npy", "c.txt"):
        os.utime(workspace.folder / "layouts" / name, (1, 1))
    assert layout_files.orphans(workspace.folder).names == ("a.npy.1.tmp", "b.npy")


@pytest.mark.parametrize("of", [["../../etc"], ["/etc"], [7, None], "runs", {"a": 1}, ["runs/0001-first\0"]])
def test_facts_of_a_stranger_remove_nothing_else(two, tmp_path, of):
    workspace, first, _of_first, of_second = two
    outside = tmp_path / "outside.npy"
    outside.write_bytes(b"mine")
    facts = workspace.folder / "layouts" / "zz.json"
    facts.write_text(json.dumps({"of": of}))
    (workspace.folder / "layouts" / "zz.npy").symlink_to(outside)
    workspace.purge(first)
    layout_files.remove_orphans(workspace.folder)
    assert outside.read_bytes() == b"mine"
    assert of_second <= names(workspace)


def test_a_link_in_the_place_of_layouts_is_left_alone(two, tmp_path):
    workspace, first, *_ = two
    (workspace.folder / "layouts").rename(tmp_path / "elsewhere")
    (workspace.folder / "layouts").symlink_to(tmp_path / "elsewhere")
    before = {path.name for path in (tmp_path / "elsewhere").iterdir()}
    workspace.purge(first)
    assert layout_files.remove_orphans(workspace.folder).names == ()
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == before


def test_a_layout_is_found_by_its_snapshot_and_method(two):
    workspace, first, *_ = two
    folder = workspace.runs.get(first).folder / "snapshots" / "scenes-train@000001"
    assert layout_files.has_layout(workspace.folder, [folder], "pca")
    assert not layout_files.has_layout(workspace.folder, [folder], "umap")
    assert not layout_files.has_layout(workspace.folder, [folder, folder.with_name("another@000001")], "pca")
    (workspace.folder / "layouts" / "zz.json").write_text("{")
    assert layout_files.has_layout(workspace.folder, [folder], "pca"), "a damaged file is no layout"
