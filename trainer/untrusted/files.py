"""Untrusted files: only regular ones are opened, and only up to a plausible size."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import heapq
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

MOST_SETTINGS: Final = 4 << 20
"""Bytes of a file of settings; a longer one is a mistake or an attack."""


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes half of a character."""
_MOST_UNFOLDED: Final = 400 << 20
_SMALL: Final = 1 << 20
"""Characters of JSON that can never take as much."""
_UNFOLDED: Final = {"[": 96, "{": 256, ",": 72, ":": 64}
"""Bytes that Python takes at most for what follows each sign: a list, an object, a number or text, a name."""

MOST_TOML: Final = 1 << 19
"""Characters of a TOML document: an experiment of twelve arms has 40,000."""
_MOST_DOTS: Final = 32
_KEY: Final = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DEEP_KEY: Final = re.compile(rf"(?<![\\\w-])(?>{_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{{_MOST_DOTS}}})")
"""`a.b.c...`: Python reads such a key in quadratic time, 40 kB of it in 5 s."""

MOST_TOKENIZER: Final = 128 << 20
"""Bytes of a tokenizer; the largest that are published have 35 MB."""
MOST_FACTS: Final = 256 << 20
"""Bytes of what is kept beside prepared pictures, some of it for every pair."""


_refusal_of_downloads: Callable[[], str] = str


@contextlib.contextmanager
def guard_downloads(refusal: Callable[[], str]) -> Iterator[None]:
    """Refuse downloads in this process, while the context lasts, whenever `refusal` returns a message."""
    global _refusal_of_downloads
    before, _refusal_of_downloads = _refusal_of_downloads, refusal
    try:
        yield
    finally:
        _refusal_of_downloads = before


def refusal_of_downloads() -> str:
    """Return why downloads are refused at present, as a sentence; empty if they are allowed."""
    return _refusal_of_downloads()


def newest(folder: Path, pattern: str, most: int) -> list[Path]:
    """Return the regular files in a folder that match, the newest first, up to a limit; none if it is missing."""
    files = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if fnmatch.fnmatchcase(entry.name, pattern) and entry.is_file(follow_symlinks=False):
                    files.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    except OSError:
        return []
    return [folder / name for _, name in heapq.nlargest(most, files)]


_MOST_VISITS: Final = 100
_HIDDEN: Final = (".", "@eaDir", "#recycle", "@Recycle", "$RECYCLE.BIN", "System Volume Information")
"""How names begin that are hidden, or that NAS and Windows keep beside pictures: small copies, and what was deleted."""
"""Times that one folder is visited through links; folders of links to folders of links would take for ever."""


def walk(root: Path, problems: list[tuple[str, str]] | None = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield folder, names of its folders and names of its files, by name, as `os.walk` does with links followed.

    torchvision follows links to folders, too. Here those are passed over that would never end: to a folder that the
    link lies in, or above the root; and what is visited a hundred times.

    Args:
        root: Where it begins; hidden folders below are not entered.
        problems: Receives (path below the root, why) of each folder that is not entered, but for hidden ones.
    """
    problems = [] if problems is None else problems
    visits: Counter[tuple[int, int]] = Counter()
    pending: list[tuple[str, frozenset[tuple[int, int]]]] = [(str(root), frozenset())]
    while pending:
        folder, above = pending.pop()
        relative = os.path.relpath(folder, root)
        try:
            state = os.stat(folder)
            identity = state.st_dev, state.st_ino
            if folder == str(root):
                above = frozenset(_identities(Path(os.path.realpath(folder)).parents))
            if identity in above:
                problems.append((relative, "It is a link to a folder that it lies in."))
                continue
            visits[identity] += 1
            if visits[identity] > _MOST_VISITS:
                problems.append((relative, f"It is a link to a folder that {_MOST_VISITS} others lead to."))
                continue
            with os.scandir(folder) as entries:
                parts = sorted((entry.name, is_dir(entry)) for entry in entries)
        except OSError as error:
            problems.append((relative, f"The folder cannot be read: {error.strerror}."))
            continue
        below = [name for name, is_dir in parts if is_dir]
        yield folder, below, [name for name, is_dir in parts if not is_dir]
        inner = above | {identity}
        pending += [(os.path.join(folder, name), inner) for name in reversed(below) if not is_hidden(name)]


def is_hidden(name: str) -> bool:
    """Return whether a name is hidden, or that of a folder of thumbnails or trash."""
    return name.startswith(_HIDDEN)


def is_dir(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a link to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _identities(folders: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for folder in folders:
        with contextlib.suppress(OSError):
            state = os.stat(folder)
            yield state.st_dev, state.st_ino


def check_ordinary(path: Path) -> None:
    """Check that the path is a regular file or a link to one, without reading it.

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
    """Open a regular file for reading.

    Raises:
        OSError: As `check_ordinary`.
    """
    check_ordinary(path)
    return path.open("rb")


def read_bytes(path: Path, most: int) -> bytes:
    """Return all bytes of a regular file of at most `most` bytes.

    Raises:
        OSError: As `check_ordinary`, or it is longer.
    """
    with open_ordinary(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(path))
    return content


def read_text(path: Path, most: int = MOST_SETTINGS) -> str:
    """Return the file's UTF-8 text, with or without a byte order mark.

    Raises:
        OSError: As `read_bytes`.
        UnicodeDecodeError: It is no UTF-8.
    """
    return read_bytes(path, most).decode("utf-8-sig")


def read_json(path: Path, most: int = MOST_SETTINGS) -> Any:
    """Return the JSON document in a file of at most `most` bytes.

    Raises:
        OSError: As `read_bytes`.
        ValueError: As `parse_json`.
    """
    return parse_json(read_text(path, most))


def read_record(path: Path, most: int = MOST_SETTINGS) -> dict[str, Any]:
    """Return the JSON object in a file; half characters in its texts, which nothing can write or draw, are spelled.

    Raises:
        OSError: As `read_bytes`.
        ValueError: As `parse_json`, or it is no object.
    """
    text = read_text(path, most)
    document = parse_json(text)
    if not isinstance(document, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return _encodable(document) if _HALF.search(text) else document


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    if isinstance(value, dict):
        return {encodable(name): _encodable(inner) for name, inner in value.items()}
    return value


def encodable(text: str) -> str:
    """Return the text with lone surrogates spelled, so that it can be written as UTF-8."""
    return text if is_text(text) else text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_json(text: str) -> Any:
    """Parse a JSON document.

    Raises:
        ValueError: It is none, too deep, or would take too much memory.
    """
    check_unfolding(text)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        ValueError: It is none, too long or too deep.
    """
    import tomllib  # 2 % of the time to the first paint, which reads none

    if len(text) > MOST_TOML:
        raise ValueError(f"it is longer than {MOST_TOML:,} characters")
    if _DEEP_KEY.search(text):
        raise ValueError(f"a name in it has more than {_MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


def check_unfolding(text: str) -> None:
    """Check that JSON needs at most 400 MiB when parsed; it may expand thirtyfold: `[{},{},{}`.

    It is counted what can hold or part values, wherever it stands: signs in a text count, too.

    Raises:
        ValueError: It takes more.
    """
    if len(text) <= _SMALL:
        return
    needed = len(text) + sum(bytes_each * text.count(sign) for sign, bytes_each in _UNFOLDED.items())
    if needed > _MOST_UNFOLDED:
        raise ValueError(f"it would take about {needed / 2**20:,.0f} MiB of memory once it is parsed")


def is_text(text: str) -> bool:
    """Return whether every character can be encoded; lone surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def spelled(text: str, *, keep: str = "") -> str:
    """Escape nonprintable characters: surrogates, line ends, terminal escapes, bidirectional controls.

    Args:
        text: Of others, on their way to a terminal, a list or a message.
        keep: Signs that stay, a line end for example.
    """
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in plain)


def expanded(text: str) -> Path:
    """Return the path with `~` expanded to the user's home folder if possible."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:  # nobody here is called so
        return path
