"""Promise 26: a workspace that cannot be written is looked at with every command, and refuses in one sentence."""

import contextlib
import ctypes
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import SMALL
from trainer.__main__ import main
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.scheduling import queue
from trainer.store import RunLog, Workspace, ownership

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

_NEW_MOUNTS = 0x00020000
READING = (
    ("runs",), ("runs", "show", "1"), ("runs", "list", "--columns", "note"), ("runs", "--json"), ("compare", "1"),
    ("selections", "list"), ("queue",), ("experiment", "list"), ("doctor",), ("export", "curves", "--runs", "1"),
    ("analyze", "curves", "1"), ("analyze", "config-difference", "1", "2"), ("experiment", "show", "asked"),
    ("runs", "note", "1"), ("runs", "--deleted"), ("runs", "list", "--group-by", "tag"),
)  # fmt: skip
WRITING = (
    ("runs", "tag", "1", "--add", "x"), ("runs", "note", "1", "x"), ("runs", "rename", "1", "x"),
    ("runs", "delete", "1"), ("runs", "purge", "1"), ("runs", "archive", "1"), ("queue", "hold"), ("fit", "1"),
    ("resume", "1"), ("fit", "--preset", "clip-scenes"), ("doctor", "--rebuild"), ("doctor", "--adopt"),
    ("doctor", "--clean"), ("experiment", "stop", "asked"), ("queue", "add", "--preset", "clip-scenes"),
)  # fmt: skip
STATES = ("closed", "left by a killed writer", "its index lost", "written by another", "without a database")


def on_read_only_disk(folder: Path, act: Callable[[], object]) -> bool:
    """Run a function in a child process that sees the folder on a read-only disk; return whether it got through."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS) == 0:
                for words in (["--make-rprivate", "/"], ["--bind", str(folder), str(folder)]):
                    subprocess.run(["mount", *words], check=True)
                subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
                code = 1
                act()
                code = 0
        except BaseException:
            folder.with_name("trouble.txt").write_text(traceback.format_exc())
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 3:
        pytest.skip("this process may not mount a folder read-only")
    return status == 0


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Return a workspace with a run that has stopped, one that waits, and an experiment."""
    if sys.platform != "linux":
        pytest.skip("folders are mounted read-only on Linux alone")
    workspace = Workspace(tmp_path / "space")
    with RunLog.claim(workspace, workspace.runs.create(SMALL)) as log:
        log.scalars(1, {"train/loss": 1.0, "val/image_to_text_R@1": 0.5})
        log.evaluation(1, "scenes", "val", {"image_to_text_R@1": 0.5})
        log.headline(0.5, 0.5)
        log.status("stopped")
    workspace.runs.create(SMALL, status="queued")
    workspace.experiments.add("asked", to_toml(clip_and_cloob(None)))
    workspace.runs.change(1, note="a note", tags="paper")
    workspace.close()
    return workspace.folder


def put_into(state: str, folder: Path) -> sqlite3.Connection | None:
    """Bring the workspace into a state; return what must stay open for it."""
    database = folder / "explorer.db"
    if state == "without a database":
        database.unlink()
    if state in ("closed", "without a database"):
        return None
    writer = sqlite3.connect(database)
    writer.execute("UPDATE run SET note = 'a newer note'")
    writer.commit()
    if state == "written by another":
        return writer
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{database}{ending}", folder / f"kept{ending}")
    writer.close()
    for ending in ("", "-wal", *(["-shm"] if state == "left by a killed writer" else [])):
        (folder / f"kept{ending}").rename(f"{database}{ending}")
    (folder / "kept-shm").unlink(missing_ok=True)
    return None


def said(words: tuple[str, ...]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*words])
    return status, out.getvalue(), err.getvalue()


def check(state: str, folder: Path, out: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    empty = state == "without a database"
    for command in commands:
        more = ("--out", str(out / "curves.csv")) if command[0] == "export" else ()
        status, printed, told = said((*command, *more, "--workspace", str(folder)))
        if command in WRITING:
            assert status == 2, (command, printed, told)
            assert told.count("\n") == 1, told
            assert "look only, because it cannot be written" in told or empty, told
            assert "Traceback" not in told
        elif empty:
            assert status in (0, 1, 2), told
            assert "cannot be opened" not in told
        else:
            assert status in (0, 1), (command, printed, told)
            if command == ("runs", "note", "1"):
                assert printed.strip() == ("a note" if state == "closed" else "a newer note")
    assert queue.start_due(Workspace(folder)) == []


def test_every_command_looks_at_a_read_only_workspace(filled: Path, tmp_path: Path, faults) -> None:
    (tmp_path / "out").mkdir()
    tried = 0
    every = [*READING, *WRITING]
    for number, state in enumerate(STATES):
        if faults.whole:
            commands = tuple(every)
        elif faults.part == 10:
            commands = tuple(every[number::2])
        else:  # two that import little: each child begins anew
            commands = (READING[number % 4], WRITING[number])
        folder = tmp_path / state
        shutil.copytree(filled, folder)
        ownership.sign(folder)
        opened = put_into(state, folder)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
        act = lambda state=state, folder=folder, commands=commands: check(state, folder, tmp_path / "out", commands)  # noqa: E731
        assert on_read_only_disk(folder, act), (state, folder.with_name("trouble.txt").read_text())
        assert {
            path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-shm"
        } == before
        tried += len(commands)
        if opened is not None:
            opened.close()
    faults.row(26, "a command on a workspace that cannot be written", "shown, or refused in words", tried, tried)


def test_what_another_writes_meanwhile_is_seen(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of a group: this user may read it, and its owner goes on."""
    monkeypatch.setattr("trainer.store.database_access.is_writable", lambda path: False)
    monkeypatch.setattr("trainer.store.ownership.is_writable", lambda path: False)
    looking = Workspace(filled)
    assert looking.look_only == "it cannot be written"
    assert [looking.runs.get(1).note, looking.changes()] == ["a note", looking.changes()]
    before = looking.changes()
    writer = sqlite3.connect(filled / "explorer.db")
    for note in ("second", "third"):
        writer.execute("UPDATE run SET note = ?", (note,))
        writer.commit()
        assert looking.runs.get(1).note == note
        assert looking.changes() != before
        before = looking.changes()
    writer.close()
    assert looking.runs.get(1).note == "third"
    looking.close()


WINDOW = """
import sys
from PySide6.QtCore import QTimer
import explorer.__main__ as program
from explorer.window import Window
seen = {}
def look():
    import json
    from PySide6.QtWidgets import QApplication, QToolButton
    window = next(w for w in QApplication.topLevelWidgets() if isinstance(w, Window))
    rooms = getattr(window, "rooms", None)
    if rooms is None or not rooms.jobs.look_only:
        return
    seen["look_only"] = rooms.jobs.look_only
    seen["runs"] = [run.name for run in rooms.jobs.runs]
    seen["banner"] = window.banner.isVisible()
    seen["buttons"] = [b.text() for b in window.banner.findChildren(QToolButton) if b.isVisible()]
    seen["errors"] = window.hooks.caught_count
    print(json.dumps(seen), flush=True)
    window.close()
timer = QTimer(interval=200)
timer.timeout.connect(look)
first = Window.show
def show(self):
    first(self)
    timer.start()
Window.show = show
sys.exit(program.main(["--workspace", sys.argv[1]]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("state", STATES[:4])
def test_the_window_opens_it_look_only(state: str, filled: Path, faults) -> None:
    opened = put_into(state, filled)
    script = (
        'mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1"'
    )
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("this process may not mount a folder read-only")
    command = ["unshare", "-m", "sh", "-c", script, "sh", str(filled), sys.executable, WINDOW]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert seen["look_only"] == "it cannot be written"
    assert seen["runs"] == ["small", "small 2"]
    assert (seen["banner"], seen["errors"]) == (True, 0)
    assert "Make it mine" not in seen["buttons"]
    if opened is not None:
        opened.close()
    faults.row(26, "the window on a workspace that cannot be written", "opens look only with every run", 1, 1)
