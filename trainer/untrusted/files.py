"""Files that others made: opened only where they are ordinary, and read only as far as they can be meant."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

MOST_SETTINGS: Final = 4 << 20
"""Bytes of a file of settings; a longer one is a mistake or an attack."""


_refusal_of_downloads: Callable[[], str] = str


def guard_downloads(refusal: Callable[[], str]) -> None:
    """From here on this process downloads only while `refusal` has no words; the words are said instead."""
    global _refusal_of_downloads
    _refusal_of_downloads = refusal


def refusal_of_downloads() -> str:
    """Why nothing may be downloaded now, a sentence; empty when it may."""
    return _refusal_of_downloads()


def check_ordinary(path: Path) -> None:
    """Passes for an ordinary file, or a link to one; reads nothing.

    A pipe would wait for ever for somebody to write, and a device has no end.

    Raises:
        OSError: It is missing, may not be looked at, or is a folder, pipe, socket or device.
    """
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a name with a NUL in it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file, but a pipe, socket or device", str(path))


def open_ordinary(path: Path) -> BinaryIO:
    """The bytes of an ordinary file.

    Raises:
        OSError: As `check_ordinary`.
    """
    check_ordinary(path)
    return path.open("rb")


def read_bytes(path: Path, most: int) -> bytes:
    """All of an ordinary file that is not longer than `most` bytes.

    Raises:
        OSError: As `check_ordinary`, or it is longer.
    """
    with open_ordinary(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(path))
    return content


def read_text(path: Path, most: int = MOST_SETTINGS) -> str:
    """The same as UTF-8 text, with or without its mark.

    Raises:
        OSError: As `read_bytes`.
        UnicodeDecodeError: It is no UTF-8.
    """
    return read_bytes(path, most).decode("utf-8-sig")


def is_text(words: str) -> bool:
    """Whether every letter of it can be written to a file: half of a surrogate pair, or a byte of a name, cannot."""
    try:
        words.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def spelled(words: str, *, keep: str = "") -> str:
    """The words with what is no letter spelled out: half letters, line ends, escapes of terminals, turns of direction.

    Args:
        words: Of others, on their way to a terminal, a list or a message.
        keep: Signs that stay, a line end for example.
    """
    plain = words.encode("utf-8", "backslashreplace").decode("utf-8")
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in plain)


def expanded(words: str) -> Path:
    """The path, with `~` as the person's own folder where it stands for one."""
    path = Path(words)
    try:
        return path.expanduser()
    except RuntimeError:  # nobody here is called so
        return path
