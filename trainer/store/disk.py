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

    def __init__(self, words: str, *, place: Path, need: int, full: bool) -> None:
        super().__init__(words)
        self.place, self.need, self.full = place, need, full

    def mended(self) -> bool:
        """Return whether there is enough space now; True also if only a retry can tell."""
        return not self.full or _free(self.place) >= self.need


@contextmanager
def writing(what: str, place: Path, need: int = 0) -> Iterator[None]:
    """Convert disk errors of writers to `DiskTrouble`; other errors pass unchanged.

    Args:
        what: What is written, for the sentence: `The checkpoint of step 5`.
        place: Where to.
        need: About how many bytes.
    """
    try:
        yield
    except Exception as error:
        found = trouble(error, what, place, need)
        if found is None or found is error:
            raise
        raise found from error


def trouble(error: BaseException, what: str, place: Path, need: int = 0) -> DiskTrouble | None:
    """Return the error as a `DiskTrouble`; None if the disk is not the cause."""
    if isinstance(error, DiskTrouble):
        return error
    numbers = set(_numbers(error))
    # torch hides a full disk behind an error of its own that names neither the disk nor the cause.
    torch_failed = "PytorchStreamWriter" in str(error) or "inline_container" in str(error)
    if numbers & _FULL or (torch_failed and _free(place) < need):
        free = _free(place)
        words = (
            f"The disk of {place} ({disk_of(place)}) is full: {what[0].lower()}{what[1:]} needs {_size(need)} and "
            f"{_size(free)} are free. Free some space there."
        )
        return DiskTrouble(words, place=place, need=need, full=True)
    if numbers & _AWAY or torch_failed:
        why = os.strerror(min(numbers & _AWAY)) if numbers & _AWAY else str(error).partition("\n")[0]
        words = f"{what} cannot be written to {place}: {why}. Check the disk ({disk_of(place)}) and its rights."
        return DiskTrouble(words, place=place, need=need, full=False)
    return None


def disk_of(place: Path) -> Path:
    """Return the mount point of the disk that holds `place`."""
    place = _existing(place)
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place


def _numbers(error: BaseException | None) -> Iterator[int]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # an error may be a cause of its own
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno is not None:
            yield error.errno
        # safetensors tells its error as text.
        yield from (int(number) for number in re.findall(r"os error (\d+)", str(error)))
        error = error.__cause__ or error.__context__


def _free(place: Path) -> int:
    try:
        return shutil.disk_usage(_existing(place)).free
    except OSError:
        return 0


def _existing(place: Path) -> Path:
    place = place.absolute()
    return next(path for path in (place, *place.parents) if path.exists())


def _size(count: int) -> str:
    return f"{count / _MIB:,.0f} MiB" if count >= 10 * _MIB else f"{count / 1024:,.0f} KiB"
