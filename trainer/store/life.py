"""Who is alive: an OS lock that ends with its process, and what identifies a process beyond its reusable number."""

from __future__ import annotations

import errno
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from trainer import confined
from trainer.store.rows import StoreError

_WITHOUT_LOCKS: Final = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""What a file system says that cannot lock: some network and FUSE mounts."""


@dataclass(frozen=True)
class Identity:
    """A process: number, start in clock ticks since boot, and which boot; no other process ever has all three."""

    pid: int
    start_ticks: int
    boot_id: str


class AliveLock:
    """Holds `alive.lock` of a run folder from `take` until `release` or the end of the process."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @classmethod
    def take(cls, path: Path, *, wait_s: float = 1.0) -> AliveLock | None:
        """The lock, or None when another process holds it.

        Waits a little, because `is_held` of a watching window holds the lock for an instant.
        """
        file = confined.open_file(path.parent, path.name, "ab+")
        deadline = time.monotonic() + wait_s
        while not _try_lock(file, shared=False):
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(0.02)
        return cls(file)

    def release(self) -> None:
        """Lets others take the lock."""
        if not self._file.closed:
            _unlock(self._file)
            self._file.close()


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock at `path`; False when the file does not exist."""
    try:
        file = confined.open_file(path.parent, path.name, "rb+")
    except (FileNotFoundError, confined.NotConfined):
        return False
    with file:
        if not _try_lock(file, shared=True):
            return True
        _unlock(file)
        return False


def identity(pid: int | None = None) -> Identity | None:
    """What identifies the process `pid` (default: this one); None when it has ended, a zombie included."""
    pid = os.getpid() if pid is None else pid
    if sys.platform.startswith("linux"):
        ticks = _linux_start_ticks(pid)
        return None if ticks is None else Identity(pid, ticks, _boot_id())
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Identity(pid, int(process.create_time() * 100), "")
    except psutil.Error:
        return None


def is_stopped(process: Identity) -> bool:
    """Whether the process lives and does nothing until it is continued: SIGSTOP, Ctrl+Z, a debugger."""
    import psutil

    try:
        status = psutil.Process(process.pid).status()
    except psutil.Error:
        return False
    return status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) and identity(process.pid) == process


def _linux_start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses: count fields from the last one.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZX" else int(start)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes], *, shared: bool) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes], *, shared: bool) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _WITHOUT_LOCKS:
                raise StoreError(
                    f"The file system of {file.name} has no locks ({error.strerror}), so nobody could tell whether a "
                    "run is being trained. Put the workspace on another disk."
                ) from error
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
