"""Differences of other systems and file systems, by fakes of their calls."""

import errno
import os
import signal
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.builders import locked
from trainer.scheduling import launch
from trainer.store import StoreError, files, process_lock, stop_flag
from trainer.store.process_lock import Identity


def _refused(number: int):
    def call(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_told(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "alive.lock").touch()
    monkeypatch.setattr(fcntl, "flock", _refused(number))
    with pytest.raises(StoreError, match=r"has no locks.*Put the workspace on another disk"):
        process_lock.is_held(tmp_path / "alive.lock")
    with pytest.raises(StoreError, match="has no locks"):
        process_lock.ProcessLock.take(tmp_path / "alive.lock", wait_s=0.0)


def test_a_lock_of_another_is_held_and_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "alive.lock").touch()
    monkeypatch.setattr(fcntl, "flock", _refused(errno.EWOULDBLOCK))
    assert process_lock.is_held(tmp_path / "alive.lock")
    assert process_lock.ProcessLock.take(tmp_path / "alive.lock", wait_s=0.0) is None


def test_a_number_that_is_gone_is_no_error_on_windows(monkeypatch: pytest.MonkeyPatch):
    gone = OSError(errno.EINVAL, "The parameter is incorrect")
    gone.winerror = 87  # type: ignore[attr-defined]

    def kill(*_: object) -> None:
        raise gone

    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(os, "kill", kill)
    assert launch.send(Identity(4_000_000, 1, ""), signal.SIGTERM) is False
    gone.winerror = 5  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="parameter"):
        launch.send(Identity(4_000_000, 1, ""), signal.SIGTERM)


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "file"])
def test_a_move_waits_for_a_reader_as_windows_wants_it(folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    replace, tries = os.replace, []

    def busy(source: Path, target: Path) -> None:
        tries.append(source)
        if len(tries) < 4:
            raise PermissionError(errno.EACCES, "used by another process")
        replace(source, target)

    place = tmp_path / "snapshot" if folder else tmp_path / "run.json"

    def write(draft: Path) -> None:
        if folder:
            draft.mkdir()
        (draft / "a" if folder else draft).write_text("new", encoding="utf-8")

    files.write_atomically(place, write)
    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(PermissionError):
        files.write_atomically(place, write)
    tries.clear()
    monkeypatch.setattr(files, "_PATIENCE_S", 60.0)
    files.write_atomically(place, write)
    assert len(tries) >= 4
    assert [each.name for each in tmp_path.iterdir()] == [place.name]


def test_the_window_has_a_name_that_is_not_the_file_manager():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commands = project["gui-scripts"]
    assert commands["contrastive-explorer"] == commands["explorer"] == "explorer.__main__:main"


def test_who_looks_at_once_with_another_is_no_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "alive.lock").touch()
    looks = []

    def busy(*_: object, shared: bool) -> bool:
        looks.append(shared)
        return len(looks) == 3  # the other looker has let go

    monkeypatch.setattr(process_lock, "_CAN_SHARE", False)
    monkeypatch.setattr(process_lock, "_try_lock", busy)
    assert not process_lock.is_held(tmp_path / "alive.lock")
    monkeypatch.setattr(process_lock, "_try_lock", lambda *_, shared: False)
    assert process_lock.is_held(tmp_path / "alive.lock")


def test_two_lookers_share_the_lock_where_the_system_can(tmp_path: Path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "alive.lock").touch()
    with (tmp_path / "alive.lock").open("rb+") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not process_lock.is_held(tmp_path / "alive.lock")
        fcntl.flock(other, fcntl.LOCK_EX)
        assert process_lock.is_held(tmp_path / "alive.lock")


BOOT = 1_700_000_000
START = 100 * BOOT + 12_345_678


@pytest.mark.parametrize(
    ("later", "same"),
    [
        (Identity(7, START, f"{BOOT}"), True),
        (Identity(7, START + 3, f"{BOOT + 3_600}"), True),  # the clock was set: the boot moved (Windows)
        (Identity(7, START - 360_000, f"{BOOT - 3_600}"), True),  # start and boot moved (macOS)
        (Identity(7, START, ""), True),  # a row of an older version
        (Identity(7, START + 360_000, ""), False),
        (Identity(7, START + 360_000, f"{BOOT}"), False),  # the number was used again
        (Identity(7, START + 8_640_000, f"{BOOT + 80_000}"), False),  # and after a restart
        (Identity(8, START, f"{BOOT}"), False),
        (Identity(7, START + 360_000, "9" * 9_000), False),
        (Identity(7, None, f"{BOOT}"), False),  # type: ignore[arg-type]
        (Identity(7, START, "0f1e2d3c-1111-2222-3333-444455556666"), False),
        (None, False),
    ],
)
def test_a_process_stays_itself_when_the_clock_is_set(later: Identity | None, same: bool):
    first = Identity(7, START, f"{BOOT}")
    assert first.is_same(later) is same
    assert later is None or later.is_same(first) is same


def test_ticks_of_a_boot_are_compared_to_the_tick():
    first = Identity(7, 1_000, "0f1e2d3c-1111-2222-3333-444455556666")
    assert first.is_same(Identity(7, 1_000, first.boot_id))
    assert not first.is_same(Identity(7, 1_001, first.boot_id))
    assert not first.is_same(Identity(7, 1_000, "another"))


def test_without_ticks_a_process_is_told_by_the_clock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process_lock, "sys", SimpleNamespace(platform="darwin"))
    found = process_lock.identity()
    assert found is not None
    assert found.boot_id.isdigit()
    assert found.is_same(process_lock.identity())
    assert process_lock.identity(4_194_305) is None


LISTENER = """
import signal
from trainer.training.control import ControlFlags
print("held", flush=True)
with log, ControlFlags(log) as wishes:
    # As on Windows: told by this signal, it ends and saves nothing.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while wishes.now() != "stop":
        time.sleep(0.02)
    log.status("stopped", "It heard.")
sys.exit(0)
"""


@pytest.mark.slow
def test_a_trainer_is_told_by_a_file_while_the_database_is_locked(workspace, number, hold, monkeypatch):
    monkeypatch.setattr(launch, "_BY_FLAG", True)
    monkeypatch.setattr(launch, "_ASK_MS", 50)
    trainer = hold(number, LISTENER)
    folder = workspace.runs.get(number).folder
    with locked(workspace):
        assert launch.stop(workspace, number), "the wish could be told without the database"
        assert trainer.wait(timeout=60) == 0
    assert not (folder / stop_flag.NAME).exists()
    workspace.reconcile()
    row = workspace.runs.get(number)
    assert (row.status, row.reason) == ("stopped", "It heard.")


@pytest.mark.slow
@pytest.mark.parametrize("obeys", [True, False])
def test_ending_a_trainer_gives_it_time_to_save_without_a_signal(obeys: bool, workspace, number, hold, monkeypatch):
    monkeypatch.setattr(launch, "_BY_FLAG", True)
    trainer = hold(number, LISTENER if obeys else "")
    assert launch.end(workspace, number, grace_s=60 if obeys else 0.2)
    assert trainer.wait(timeout=60) == (0 if obeys else -signal.SIGKILL)
    assert workspace.runs.get(number).status == ("stopped" if obeys else "interrupted")


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 900, b'{"pid": "x"}', b"x" * 5_000, None], ids=str)
def test_a_flag_of_another_trainer_or_of_a_stranger_stops_nobody(content: bytes | None, tmp_path: Path):
    me = process_lock.identity()
    assert not stop_flag.is_for(tmp_path, me)
    if content is None:
        stop_flag.put(tmp_path, replace(me, start_ticks=me.start_ticks - 100_000))
    else:
        (tmp_path / stop_flag.NAME).write_bytes(content)
    assert not stop_flag.is_for(tmp_path, me)
    stop_flag.put(tmp_path, me)
    assert stop_flag.is_for(tmp_path, me)
    assert not stop_flag.is_for(tmp_path, None)
    stop_flag.remove(tmp_path)
    assert not stop_flag.is_for(tmp_path, me)
