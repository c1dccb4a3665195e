"""A workspace that is moved or renamed during use: a message, and no empty one at the old place."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked_code
from tests.nightly import few_plain, nightly_except
from trainer.__main__ import main
from trainer.scheduling import launch, queue
from trainer.store import StoreError, Workspace
from trainer.untrusted import confined

pytestmark = pytest.mark.slow

MOVED_WHILE_IT_STARTS = """
import os, sys
from pathlib import Path
from trainer import data
from trainer.__main__ import main
from trainer.training import fit
space, moved = Path(sys.argv[1]), Path(sys.argv[2])
load = data.load
def move_first(*arguments, **options):
    if {where!r} == "before":
        space.rename(moved)
        return load(*arguments, **options)
    found = load(*arguments, **options)
    space.rename(moved)
    (space / "gone.parquet").read_bytes()
fit.data.load = move_first
sys.exit(main(["fit", sys.argv[3], "--workspace", str(space)]))
"""


@pytest.mark.parametrize("where", nightly_except(["before", "after"], "before"))
def test_a_workspace_moved_while_a_run_is_prepared(workspace, tmp_path, where):
    from dataclasses import replace

    from trainer.config.presets import preset

    run = preset("clip-scenes")
    run = replace(run, data=replace(run.data, train_pairs=128, heldout_pairs=16))
    number = workspace.runs.create(run)
    log = workspace.runs.get(number).folder / "log.txt"
    workspace.close()
    moved = tmp_path / "moved"
    code = MOVED_WHILE_IT_STARTS.replace("{where!r}", repr(where))
    command = forked_code.command(code, str(workspace.folder), str(moved), str(number), trains=True)
    with log.open("ab") as words:
        ended = subprocess.run(command, stdout=words, stderr=words, check=False)
    assert ended.returncode == 2
    assert not workspace.folder.exists(), "nothing is made at the old place"
    there = Workspace(moved)
    said = (moved / log.relative_to(workspace.folder)).read_text()
    assert "Traceback" not in said
    there.reconcile()
    row = there.runs.get(number)
    assert row.status == "interrupted"
    assert "was moved, renamed or removed" in row.reason
    assert "Resume continues" in row.reason
    there.close()


def test_a_trainer_that_finds_no_workspace_says_so_and_makes_none(workspace, number, tmp_path, monkeypatch):
    moved = tmp_path / "moved"
    spawn = launch.spawn

    def move_first(command: list[str], log, **more):
        process = spawn([sys.executable, "-c", "import sys; sys.stdin.read()"], log, **more)
        process.wait()
        workspace.folder.rename(moved)
        return spawn(command, log, **more)

    monkeypatch.setattr(launch, "spawn", move_first)
    launch.start_detached(workspace, number)
    workspace.close()
    there = Workspace(moved)
    log = there.runs.get(number).folder / "log.txt"
    deadline = launch.time.monotonic() + 90
    while "trainer fit" not in log.read_text() and launch.time.monotonic() < deadline:
        launch.time.sleep(0.1)
    assert f"There is no workspace at {workspace.folder}: it was moved" in log.read_text()
    assert not workspace.folder.exists()
    there.close()


def test_who_has_it_open_makes_none_at_the_old_place(workspace, tiny, tmp_path):
    workspace.runs.create(tiny, status="queued")
    workspace.folder.rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="moved, renamed or removed"):
        queue.start_due(workspace)
    with pytest.raises((StoreError, FileNotFoundError)):
        workspace.runs.create(tiny)
    workspace.close()
    with pytest.raises(StoreError, match="moved, renamed or removed"):
        workspace.runs.all()
    assert not workspace.folder.exists()


@few_plain(1, "command", [["fit", "1"], ["resume", "1"], ["fit", "1", "--detach"]])
def test_commands_about_a_run_make_no_workspace(tmp_path: Path, capsys, command):
    gone = tmp_path / "gone"
    assert main([*command, "--workspace", str(gone)]) == 2
    assert "There is no workspace at" in capsys.readouterr().err
    assert not gone.exists()


def test_a_folder_is_made_without_a_look_at_all_workspaces_of_the_process(tmp_path, monkeypatch):
    class Asked(set):
        __iter__ = None  # it took ten milliseconds a folder after 3,000 workspaces

    monkeypatch.setattr(confined, "_NEVER_MADE", Asked([tmp_path / "gone"]))
    assert confined.make_folder(tmp_path, "new").is_dir()
    with pytest.raises(FileNotFoundError, match="moved"):
        confined.make_folder(tmp_path / "gone" / "runs", "new")
