"""A workspace of another computer is mirrored, read-only, and stays as it is while that computer is away."""

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
from trainer.charts import ChartError
from trainer.charts.snapshots import choose_snapshot
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.places.workspace_mirror import WorkspaceMirror
from trainer.scheduling import launch
from trainer.store import LookOnly, RunLog, Workspace, on_demand, read_snapshot
from trainer.store.manifests import write_manifest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STEPS, ROWS = (10, 20), 12


def log(folder: Path, name: str) -> None:
    """Log a run of two steps with embeddings."""
    random = np.random.default_rng(len(name))
    with ce.log_run(folder, name=name, total_steps=20) as logger:
        for step in STEPS:
            logger.metrics(step, {"train/loss": 1 / step})
            logger.embeddings(step, image=random.normal(size=(ROWS, 4)), text=random.normal(size=(ROWS, 4)))


def save_checkpoint(there: Workspace, step: int) -> Path:
    """Add a checkpoint to a run that has ended."""
    folder = there.runs.get(1).folder / "checkpoints" / f"step-{step:06d}"
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(np.random.default_rng(step).bytes(3_000))
    write_manifest(folder, {})
    with RunLog.claim(there, 1) as logger:
        logger.checkpoint(step, folder, best=False)
        logger.status("finished")
    return folder / "model.bin"


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
    saved = {step: save_checkpoint(there, step) for step in STEPS}
    assert main(["places", "mirror", address, "--once", "--json", "--workspace", str(tmp_path / "mine")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["runs"], answer["trouble"]) == (1, "")
    here = Workspace(Path(answer["folder"]))
    # Curves come at once, snapshots and checkpoints where somebody asks.
    assert here.results.series(1, "train/loss")[0].tolist() == [*STEPS]
    assert not here.results.snapshots(1)
    with pytest.raises(ChartError, match="on their way"):
        choose_snapshot(here, here.runs.get(1))
    mirror = WorkspaceMirror(address)
    assert mirror.step()
    check_equal(here, there)
    kept = here.runs.get(1).folder / "checkpoints"
    assert not kept.exists()
    with pytest.raises(AnswerError, match="on its way"):
        ModelCache(here).get(1)
    assert mirror.step()
    assert [folder.name for folder in kept.iterdir()] == [saved[20].parent.name]
    assert main(["places", "fetch", "1", "--step", "10", "--workspace", str(here.folder)]) == 0
    assert (kept / saved[10].parent.name / "model.bin").read_bytes() == saved[10].read_bytes()
    assert here.look_only == f"it mirrors {address}"
    assert not here.may_be_adopted
    with pytest.raises(LookOnly):
        here.check_mine()
    with pytest.raises((LookOnly, launch.LaunchError)):
        launch.start_detached(here, 1)
    # What is away stays, and what is new comes.
    assert box.cut() > 0
    assert not mirror.step()
    assert mirror.trouble.startswith("out of reach (box, last seen ")
    assert Workspace(here.folder).look_only == f"it mirrors {address}, {mirror.trouble}"
    assert main(["places", "fetch", "1", "--workspace", str(here.folder)]) == 2
    check_equal(Workspace(here.folder), there)
    box.mend()
    log(far, "second")
    assert mirror.step()
    mirror.ask("second")
    assert mirror.step()
    check_equal(Workspace(here.folder), there)
    assert Workspace(here.folder).look_only == f"it mirrors {address}"
    mirror.close()


@pytest.mark.quick
def test_a_strangers_workspace_that_says_to_be_a_mirror_is_asked_nothing(tmp_path: Path) -> None:
    log(tmp_path, "first")
    on_demand.mark(tmp_path, "ssh://stranger/folder")
    assert not on_demand.ask(tmp_path / "runs" / "0001-first", "snapshots")
    assert not (tmp_path / "asked").exists()


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
