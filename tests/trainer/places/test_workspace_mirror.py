"""A workspace of another computer is mirrored, read-only, and stays as it is while that computer is away."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from explorer.__main__ import main as explorer
from tests.trainer.places.test_ssh import Box, box, wait  # noqa: F401  # a fixture
from trainer import api as ce
from trainer.__main__ import main
from trainer.places.workspace_mirror import WorkspaceMirror
from trainer.scheduling import launch
from trainer.store import LookOnly, Workspace, read_snapshot

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STEPS, ROWS = (10, 20), 12


def log(folder: Path, name: str) -> None:
    """Log a run of two steps with embeddings."""
    random = np.random.default_rng(len(name))
    with ce.log_run(folder, name=name, total_steps=20) as logger:
        for step in STEPS:
            logger.metrics(step, {"train/loss": 1 / step})
            logger.embeddings(step, image=random.normal(size=(ROWS, 4)), text=random.normal(size=(ROWS, 4)))


def check_equal(here: Workspace, there: Workspace) -> None:
    """Check that a mirror has the runs of the other workspace, with their numbers, curves and embeddings."""
    assert [(row.id, row.name, row.status, row.step) for row in here.runs.all()] == [
        (row.id, row.name, row.status, row.step) for row in there.runs.all()
    ]
    for row in there.runs.all():
        curves = [workspace.results.series(row.id, "train/loss") for workspace in (here, there)]
        for mirrored, original in zip(*curves, strict=True):
            np.testing.assert_array_equal(mirrored, original)
        images = [
            [read_snapshot(snapshot.folder).image for snapshot in workspace.results.snapshots(row.id)]
            for workspace in (here, there)
        ]
        assert len(images[0]) == len(STEPS)
        np.testing.assert_array_equal(*images)


def test_a_workspace_elsewhere_is_looked_at_here(
    box: Box,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    far = tmp_path / "far runs"
    log(far, "first")
    there, address = Workspace(far), f"ssh://box{far}"
    assert main(["places", "mirror", address, "--once", "--json", "--workspace", str(tmp_path / "mine")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["runs"], answer["trouble"]) == (1, "")
    here = Workspace(Path(answer["folder"]))
    check_equal(here, there)
    assert here.look_only == "it mirrors a workspace of another computer"
    assert not here.may_be_adopted
    with pytest.raises(LookOnly):
        here.check_mine()
    with pytest.raises((LookOnly, launch.LaunchError)):
        launch.start_detached(here, 1)
    # What is new comes, and what is away stays.
    log(far, "second")
    mirror = WorkspaceMirror(address)
    while not mirror.step():
        assert not mirror.trouble
    check_equal(Workspace(here.folder), there)
    assert box.cut() > 0
    assert not mirror.step()
    assert mirror.trouble.startswith("out of reach (box, last seen ")
    check_equal(Workspace(here.folder), there)
    box.mend()
    log(far, "third")
    while not mirror.step():
        pass
    check_equal(Workspace(here.folder), there)
    mirror.close()


@pytest.mark.quick
def test_what_is_no_address_opens_no_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert explorer(["--workspace", "ssh://box"]) == 2
    assert "is not an address of a folder" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.real_process
def test_the_window_of_a_workspace_elsewhere_opens_and_ends_its_mirror(
    box: Box,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    log(tmp_path / "far runs", "first")
    command = [sys.executable, "-m", "explorer", "--workspace", f"ssh://box{tmp_path / 'far runs'}", "--safe"]
    window = subprocess.Popen(command, cwd=Path(__file__).parents[3])
    try:
        wait(lambda: bool(mirrors(tmp_path)), "nothing was mirrored")
        wait(lambda: len(Workspace(mirrors(tmp_path)[0]).results.snapshots(1)) == len(STEPS), "no snapshots came", 90)
        assert window.poll() is None
        (process,) = psutil.Process(window.pid).children()
        window.send_signal(signal.SIGINT)
        assert window.wait(60) == 0
        assert not process.is_running()
    finally:
        window.kill()


def mirrors(folder: Path) -> list[Path]:
    """Return the mirrors whose database is there."""
    return [file.parent for file in (folder / "cache" / "contrastive-explorer" / "mirrors").glob("*/explorer.db")]
