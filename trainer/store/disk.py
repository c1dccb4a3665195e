"""Disk errors as messages that name the disk, the space needed and the space available."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from trainer.store.rows import StoreError

# Windows knows no quotas, nor these of networks.
_FULL: Final = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_AWAY: Final = {
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EIO, errno.ENODEV, errno.ENXIO),
    *(getattr(errno, "ESTALE", errno.EIO), errno.ENOTCONN, errno.ETIMEDOUT),
}
_CUT_OFF: Final = re.compile(r"\d+ requested and \d+ written")
_MIB: Final = 2**20

SPARE: Final = 64 * 2**20
"""Bytes that are left free whatever is kept."""
_MOST_OF_FREE: Final = 0.8
"""Share of the free space that a cache takes unasked; checkpoints and snapshots need some, too."""


def room_for_cache(free: int) -> int:
    """Return the bytes a run may use for prepared images; beyond that, images are decoded again in every epoch."""
    return int(min(_MOST_OF_FREE * free, free - SPARE))


class DiskTrouble(StoreError):
    """A disk that cannot be written at present: full, read-only, missing. Retrying helps once that is fixed.

    Attributes:
        place: What could not be written.
        need: Bytes that it takes.
        full: Whether room is all that lacks.
    """

    def __init__(self, message: str, *, path: Path, need: int, full: bool) -> None:
        super().__init__(message)
        self.place, self.need, self.full = path, need, full

    def mended(self) -> bool:
        """Return whether there is enough space now; True also if only a retry can tell."""
        return not self.full or _free(self.place) >= self.need


@contextmanager
def writing(what: str, path: Path, need: int = 0) -> Iterator[None]:
    """Convert disk errors of writers to `DiskTrouble`; other errors pass unchanged.

    Args:
        what: What is written, for the sentence: `The checkpoint of step 5`.
        need: About how many bytes.
    """
    try:
        yield
    except Exception as error:
        disk_trouble = trouble(error, what, path, need)
        if disk_trouble is None or disk_trouble is error:
            raise
        raise disk_trouble from error


def trouble(error: BaseException, what: str, path: Path, need: int = 0) -> DiskTrouble | None:
    """Return the error as a `DiskTrouble`; None if the disk is not the cause."""
    if isinstance(error, DiskTrouble):
        return error
    numbers = set(_numbers(error))
    # torch hides a full disk behind an error of its own that names neither the disk nor the cause.
    torch_failed = "PytorchStreamWriter" in str(error) or "inline_container" in str(error)
    if numbers & _FULL or _is_cut_off(error) or (torch_failed and _free(path) < need):
        free = _free(path)
        message = (
            f"The disk of {path} ({disk_of(path)}) is full: {what[0].lower()}{what[1:]} needs {_size(need)} and "
            f"{_size(free)} are free. Free some space there."
        )
        return DiskTrouble(message, path=path, need=need, full=True)
    if numbers & _AWAY or torch_failed:
        why = os.strerror(min(numbers & _AWAY)) if numbers & _AWAY else str(error).partition("\n")[0]
        message = f"{what} cannot be written to {path}: {why}. Check the disk ({disk_of(path)}) and its rights."
        return DiskTrouble(message, path=path, need=need, full=False)
    return None


def _is_cut_off(error: BaseException) -> bool:
    """Return whether numpy wrote a part of an array: its error for a full disk has no number."""
    return isinstance(error, OSError) and _CUT_OFF.search(str(error)) is not None


def disk_of(path: Path) -> Path:
    """Return the mount point of the disk that holds `path`."""
    path = _existing(path)
    while not os.path.ismount(path) and path != path.parent:
        path = path.parent
    return path


def _numbers(error: BaseException | None) -> Iterator[int]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # an error may be a cause of its own
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno is not None:
            yield error.errno
        # safetensors tells its error as text.
        yield from (int(number) for number in re.findall(r"os error (\d+)", str(error)))
        error = error.__cause__ or error.__context__


def _free(path: Path) -> int:
    try:
        return shutil.disk_usage(_existing(path)).free
    except OSError:
        return 0


def _existing(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _size(count: int) -> str:
    return f"{count / _MIB:,.0f} MiB" if count >= 10 * _MIB else f"{count / 1024:,.0f} KiB"
