"""Detect live processes: an OS lock that ends with its process, and identities beyond reusable process ids."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from trainer.store.rows import StoreError
from trainer.untrusted import confined
from trainer.untrusted.documents import parse

_WITHOUT_LOCKS: Final = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""What a file system says that cannot lock: some network and FUSE mounts."""


_CLOCK_TICKS: Final = 200
"""Hundredths of a second by which two looks at the start of one process differ, where it is told by the clock."""
_LOOKS: Final = 4
_MOST_OF_HOLDER: Final = 1_000
"""Bytes of what a lock says of the process that holds it."""
_BETWEEN_LOOKS_S: Final = 0.005


@dataclass(frozen=True)
class Identity:
    """A process: id, start in clock ticks since boot, and boot id; together they are unique.

    Systems other than Linux tell no ticks: there it is the start in hundredths of a second since 1970, and for the boot
    its second. Either of them may move when the clock is set, so compare by `is_same`.
    """

    pid: int
    start_ticks: int
    boot_id: str

    def is_same(self, other: Identity | None) -> bool:
        """Return whether both are one process, even if the clock has been set in between."""
        if other is None or self.pid != other.pid:
            return False
        if not (self._counts_by_clock and other._counts_by_clock):
            return self == other
        # A clock that is set moves the start, or the boot, or both alike: one of the two distances stays.
        since = abs(self.start_ticks - other.start_ticks)
        if since <= _CLOCK_TICKS or not (self.boot_id and other.boot_id):
            return since <= _CLOCK_TICKS
        boots = 100 * (int(self.boot_id) - int(other.boot_id))
        return abs(self.start_ticks - other.start_ticks - boots) <= _CLOCK_TICKS

    @property
    def _counts_by_clock(self) -> bool:
        # Rows may hold anything: a start that is not known, a boot of a thousand digits.
        if self.start_ticks is None:
            return False
        return not self.boot_id or (len(self.boot_id) < 20 and self.boot_id.isascii() and self.boot_id.isdigit())


class ProcessLock:
    """Holds a lock file, such as `alive.lock` of a run folder, from `take` until `release` or the end of the process.

    A forked child inherits the descriptor, and with it the lock: it would hold the run when its parent is gone, and
    release it while its parent trains. So each child closes the descriptor without unlocking.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._pid = os.getpid()
        _HELD.add(self)

    @property
    def is_mine(self) -> bool:
        """Whether this process took it; a forked child did not."""
        return self._pid == os.getpid()

    @classmethod
    def take(cls, path: Path, *, wait_s: float = 1.0) -> ProcessLock | None:
        """Return the lock, or None if another process holds it.

        Waits a little, because `is_held` of a watching window holds the lock for an instant.
        """
        file = confined.open_file(path.parent, path.name, "ab+")
        deadline = time.monotonic() + wait_s
        while not _try_lock(file, shared=False):
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(0.02)
        with contextlib.suppress(OSError):  # a full disk: then only the database tells which process it is
            confined.cut(file, 0)
            # Windows lets nobody read the first byte, which is what is locked.
            file.write(b"\n" + json.dumps(asdict(identity() or Identity(os.getpid(), -1, ""))).encode())
        return cls(file)

    def release(self) -> None:
        """Release the lock, unless a parent of this process holds it."""
        if self.is_mine and not self._file.closed:
            _unlock(self._file)
            self._file.close()


_HELD: Final[weakref.WeakSet[ProcessLock]] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Close the descriptors of inherited locks, which stay locked as long as the parent has them open."""
    for lock in list(_HELD):
        lock._file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def is_held(path: Path) -> bool:
    """Return whether a live process holds the lock at `path`; False if the file does not exist.

    Two that look at once do not take each other for it: they share the lock, and where a system has none to share
    (Windows) they look again, for a looker lets go at once.
    """
    try:
        file = _opened(path)
    except (FileNotFoundError, confined.NotConfined):
        return False
    with file:
        for look in range(1 if _CAN_SHARE else _LOOKS):
            time.sleep(_BETWEEN_LOOKS_S if look else 0.0)
            if _try_lock(file, shared=True):
                _unlock(file)
                return False
        return True


def _opened(path: Path) -> IO[bytes]:
    try:
        return confined.open_file(path.parent, path.name, "rb+")
    except PermissionError:
        pass
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    return confined.open_file(path.parent, path.name)  # a lock is asked for there, too


def holder_of(path: Path) -> Identity | None:
    """Return the live process that holds the lock at `path`, as the file and the system tell; None if none is known."""
    if not is_held(path):
        return None
    try:
        with confined.open_file(path.parent, path.name) as file:
            file.seek(1)
            holder = parse(file.read(_MOST_OF_HOLDER), Identity)
        return holder if holder.pid > 0 and holder.is_same(identity(holder.pid)) else None
    except (OSError, ValueError, OverflowError):  # a stranger's
        return None


def identity(pid: int | None = None) -> Identity | None:
    """Return the identity of process `pid` (default: this one); None if it has ended or is a zombie."""
    pid = os.getpid() if pid is None else pid
    if sys.platform.startswith("linux"):
        ticks = _linux_start_ticks(pid)
        return None if ticks is None else Identity(pid, ticks, _boot_id())
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Identity(pid, int(process.create_time() * 100), str(int(psutil.boot_time())))
    except psutil.Error:
        return None


def is_stopped(process: Identity) -> bool:
    """Return whether the process is stopped until continued: SIGSTOP, Ctrl+Z, a debugger."""
    import psutil

    try:
        status = psutil.Process(process.pid).status()
    except psutil.Error:
        return False
    return status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) and process.is_same(identity(process.pid))


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

    _CAN_SHARE = False

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

    _CAN_SHARE = True

    def _try_lock(file: IO[bytes], *, shared: bool) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _WITHOUT_LOCKS:
                raise StoreError(
                    f"The file system of {file.name} has no locks ({error.strerror}), so it is unknown whether a run "
                    "is being trained. Put the workspace on another disk."
                ) from error
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
