"""Files that others made: opened only where they are ordinary, and read only as far as they can be meant."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

MOST_SETTINGS: Final = 4 << 20
"""Bytes of a file of settings; a longer one is a mistake or an attack."""


_MOST_UNFOLDED: Final = 400 << 20
_UNFOLDED: Final = {"[": 96, "{": 256, ",": 72, ":": 64}
"""Bytes that Python takes at most for what follows each sign: a list, an object, a number or text, a name."""

MOST_TOKENIZER: Final = 128 << 20
"""Bytes of a tokenizer; the largest that are published have 35 MB."""
MOST_FACTS: Final = 256 << 20
"""Bytes of what is kept beside prepared pictures, some of it for every pair."""


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
        raise OSError(errno.EINVAL, "it is not a regular file, but a pipe, socket or device", str(path))


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


def read_json(path: Path, most: int = MOST_SETTINGS) -> Any:
    """The JSON document in a file that is not longer than `most` bytes.

    Raises:
        OSError: As `read_bytes`.
        ValueError: As `parse_json`.
    """
    return parse_json(read_text(path, most))


def parse_json(text: str) -> Any:
    """The JSON document that a text is.

    Raises:
        ValueError: It is none, too deep, or would take too much memory.
    """
    check_unfolding(text)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


def check_unfolding(text: str) -> None:
    """Passes if JSON takes at most 400 MiB once it is parsed; it may take thirty times its length: `[{},{},{}`.

    It is counted what can hold or part values, wherever it stands: signs in a text count, too.

    Raises:
        ValueError: It takes more.
    """
    needed = len(text) + sum(bytes_each * text.count(sign) for sign, bytes_each in _UNFOLDED.items())
    if needed > _MOST_UNFOLDED:
        raise ValueError(f"it would take about {needed / 2**20:,.0f} MiB of memory once it is parsed")


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
