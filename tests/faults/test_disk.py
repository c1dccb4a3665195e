"""Promises 4 and 19: a run whose disk is full, read-only or missing waits, reports it, and continues automatically."""

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.ballast import fill
from tests.faults.breakable_trainer import start_trainer
from trainer.errors import UserError
from trainer.store import RunLog, Workspace, reserve

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

FILLS = (
    *("checkpoints.begun:3", "journal.appended:4", "run.json.begun:9", "said:3", "snapshots.begun:4"),
    *("checkpoints.begun:1", "scalars.stored:2", "metrics.jsonl.begun:1", "snapshots.begun:1", "checkpoints.begun:5"),
    *("journal.appended:1", "run.json.begun:3", "said:5", "snapshots.begun:9", "scalars.stored:1"),
    *("checkpoints.begun:2", "journal.appended:12", "run.json.begun:20", "tokenizer.json.begun:1", "said:4"),
)
"""When the disk is filled to its last byte: before a checkpoint, the curves, a row, a line of the log, embeddings."""
KINDS = {"read-only": errno.EROFS, "permission denied": errno.EACCES, "drive unplugged": errno.EIO, "folder gone": 0}
MOMENTS = (
    "checkpoints.begun:2",
    "snapshots.begun:4",
    "checkpoints.begun:4",
    "checkpoints.begun:1",
    "snapshots.begun:1",
)

QUICK = """
from trainer.training import disk_guard
from trainer.training.text_log import TextLog
from trainer.store import crash_points, run_log
disk_guard.RETRY_S = run_log._RETRY_S = 0.3
def at(moment, act):
    where, count = moment.split(":")
    seen = [0]
    def point(name):
        if name == where:
            seen[0] += 1
            act(seen[0] - int(count))
    crash_points.point = point
    if where == "said":
        say = TextLog.say
        def saying(self, line):
            point("said")
            say(self, line)
        TextLog.say = saying
"""
FILL = """
import pathlib
from tests.faults.ballast import fill
at({moment!r}, lambda turn: turn == 0 and fill(pathlib.Path({ballast!r})))
"""
BREAK = """
import os
def refuse(turn):
    if turn < 0 or os.path.exists({mended!r}):
        return
    if not {number}:
        if turn == 0:
            os.rename({folder!r}, {aside!r})
        return
    raise OSError({number}, os.strerror({number}), "somewhere")
at({moment!r}, refuse)
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a separate disk of 100 MB, the smallest that holds the images of a run."""
    folder = tmp_path_factory.mktemp("disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("only root may mount the small disk that is filled")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def on_disk(disk: Path) -> Iterator[Workspace]:
    workspace = Workspace(disk / "space")
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def unhurt(on_disk, small, straight):
    """Return the outcome of the same run on the small disk, after filling it once."""
    run = small(on_disk)
    assert start_trainer(on_disk, run).wait() == 0
    return straight.of(on_disk, run)


def until_paused(workspace: Workspace, run: int) -> str:
    """Return why the run waits; empty if it never does, or ends without."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        row = workspace.runs.get(run)
        if row.status == "paused" and "disk" in row.alerts:
            return row.reason
        if row.status == "finished":
            break
        time.sleep(0.05)
    return ""


DRAW = """
import errno, os
from trainer.training import disk_guard
from trainer.store import disk
from trainer.data.scenes import writing
disk.SPARE, disk_guard.RETRY_S = 0, 0.3
draw = writing.{function}
def drawing(*words, **options):
    if not os.path.exists({mended!r}):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
    return draw(*words, **options)
writing.{function} = drawing
"""


def test_a_disk_that_is_full_while_scenes_are_drawn_pauses_the_run(tmp_path, small, straight, faults):
    workspace = Workspace(tmp_path / "space")
    run = small(workspace)
    mended = tmp_path / "mended"
    trainer = start_trainer(workspace, run, before=DRAW.format(mended=str(mended), function="_draw_split"))
    reason = until_paused(workspace, run)
    mended.touch()
    assert trainer.wait() == 0
    assert "is full" in reason
    assert straight.of(workspace, run) == straight
    workspace.close()
    faults.row(4, "the disk fills while Scenes are drawn", "paused, went on by itself, bit-identical", 1, 1)


def test_a_full_disk_pauses_the_run(disk, on_disk, small, unhurt, faults):
    tried, good, wrong = faults.times(20), 0, []
    assert len(FILLS) == 20
    ballast = disk / "ballast"
    for moment in FILLS[:tried]:
        run = small(on_disk)
        trainer = start_trainer(on_disk, run, before=QUICK + FILL.format(ballast=str(ballast), moment=moment))
        reason = until_paused(on_disk, run)
        ballast.unlink()
        ended = trainer.wait()
        row = on_disk.runs.get(run)
        said = f"({disk}) is full" in reason and " needs " in reason and " are free" in reason
        # A disk that is nearly full may still be told of: it is that small.
        told = row.alerts.get("disk", {}).get("words", "")
        went_on = ended == 0 and row.status == "finished" and not row.reason and "waits" not in told
        log = (row.folder / "log.txt").read_text(encoding="utf-8")
        heard = "is full" in log and "continuing" in log
        same = unhurt.same_as(unhurt.of(on_disk, run))
        good += said and went_on and heard and same
        if not (said and went_on and heard and same):
            wrong.append((moment, said, went_on, heard, same, reason, ended, row.status, row.reason))
        on_disk.purge(run)
    words = "paused, named disk, need and free, went on by itself, bit-identical"
    faults.row(4, "disk filled to the last byte while training", words, tried, good)
    assert good == tried, wrong


def test_a_run_is_claimed_in_the_room_that_its_launcher_reserved(disk, on_disk, small):
    run, ballast = small(on_disk), disk / "ballast"
    reserve.take(on_disk.folder, on_disk.runs.get(run).folder)
    fill(ballast)
    try:
        with RunLog.claim(on_disk, run) as log:
            assert on_disk.runs.get(run).status == "running"
            # Something is left for what comes next, whatever else fills the disk again.
            fill(disk / "more")
            log.give_reserve()
            log.status("stopped", "Stopped with one sentence.")
        assert on_disk.runs.get(run).reason == "Stopped with one sentence."
    finally:
        ballast.unlink()
        (disk / "more").unlink(missing_ok=True)
    assert not list(on_disk.runs.get(run).folder.glob(".tmp-*"))
    on_disk.purge(run)


def test_a_run_that_waits_for_its_disk_can_be_stopped_and_resumed(disk, on_disk, small, unhurt):
    ballast = disk / "ballast"
    run = small(on_disk)
    before = QUICK + FILL.format(ballast=str(ballast), moment="checkpoints.begun:3")
    trainer = start_trainer(on_disk, run, before=before)
    assert until_paused(on_disk, run)
    os.kill(trainer.pid, 15)
    assert trainer.wait() == 0
    ballast.unlink()
    assert on_disk.runs.get(run).status == "stopped"
    assert "is full" in on_disk.runs.get(run).reason
    assert start_trainer(on_disk, run).wait() == 0
    assert unhurt.same_as(unhurt.of(on_disk, run))


def test_a_disk_that_is_read_only_forbidden_or_gone_pauses_the_run(space, small, straight, tmp_path, faults):
    tried, good = faults.times(20), 0
    cases = [(kind, moment) for moment in MOMENTS for kind in KINDS]
    assert len(cases) == 20
    chosen = cases if tried == 20 else [cases[7], cases[1]][:tried]
    assert len(chosen) == tried
    for number, (kind, moment) in enumerate(chosen):
        run = small()
        folder, mended = space.runs.get(run).folder, tmp_path / f"mended-{number}"
        aside = folder.with_name(f"unplugged-{folder.name}")
        places = {"mended": str(mended), "folder": str(folder), "aside": str(aside)}
        before = QUICK + BREAK.format(number=KINDS[kind], moment=moment, **places)
        trainer = start_trainer(space, run, before=before)
        reason = until_paused(space, run)
        assert not [row.id for row in space.reconcile() if row.id == run], "a living run was taken for dead"
        mended.touch()
        if aside.exists():
            aside.rename(folder)
        ended = trainer.wait()
        said = "cannot be written" in reason and "Check the disk" in reason
        row = space.runs.get(run)
        good += said and ended == 0 and row.status == "finished" and straight.same_as(straight.of(space, run))
    words = "paused, named, went on by itself, bit-identical"
    faults.row(19, "disk read-only, forbidden, unplugged, or the run's folder gone", words, tried, good)
    assert good == tried


def test_an_export_to_a_full_disk_leaves_the_old_file(disk, faults):
    from trainer.render_mpl.files import NumberRows, write_figure

    tried, good = faults.times(20), 0
    ballast = disk / "ballast"
    for number in range(tried):
        file = disk / f"old-{number}.{('csv', 'parquet')[number % 2]}"
        file.write_text("old")
        fill(ballast)
        table = NumberRows(("a", "b"), [(i, os.urandom(8).hex()) for i in range(20_000)])
        try:
            write_figure([file], figure=lambda: None, rows=lambda table=table: table, command="")
        except UserError as error:
            left = [path.name for path in disk.iterdir() if path.name.startswith(".tmp")]
            good += file.read_text() == "old" and str(file) in str(error) and not left
        ballast.unlink()
    faults.row(4, "export to a full disk", "named; the old file whole, no half file", tried, good)
    assert good == tried
