"""What other systems and file systems do differently, by stand-ins for their calls."""

from __future__ import annotations

import errno
import os
import signal
import tomllib
from pathlib import Path

import pytest

from trainer import launch
from trainer.store import StoreError, files, life
from trainer.store.life import Identity


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
        life.is_held(tmp_path / "alive.lock")
    with pytest.raises(StoreError, match="has no locks"):
        life.AliveLock.take(tmp_path / "alive.lock", wait_s=0.0)


def test_a_lock_of_another_is_held_and_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "alive.lock").touch()
    monkeypatch.setattr(fcntl, "flock", _refused(errno.EWOULDBLOCK))
    assert life.is_held(tmp_path / "alive.lock")
    assert life.AliveLock.take(tmp_path / "alive.lock", wait_s=0.0) is None


def test_a_number_that_is_gone_is_no_error_on_windows(monkeypatch: pytest.MonkeyPatch):
    gone = OSError(errno.EINVAL, "The parameter is incorrect")
    gone.winerror = 87  # type: ignore[attr-defined]

    def kill(*_: object) -> None:
        raise gone

    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(os, "kill", kill)
    assert launch._send(Identity(4_000_000, 1, ""), signal.SIGTERM) is False
    gone.winerror = 5  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="parameter"):
        launch._send(Identity(4_000_000, 1, ""), signal.SIGTERM)


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
