"""Confined file access for paths from untrusted sources: nothing outside a folder is touched.

A name is relative to a folder that is trusted (the workspace a person chose, a run's folder that was checked). Each
part of it is looked at without following links: a link is refused, wherever it points, and so is what is neither file
nor folder. Files are opened with `O_NOFOLLOW`, part by part, where the system has it. Imports no torch.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import shutil
import stat
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import IO, BinaryIO, Final

_AT: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
_FLAGS: Final = {
    "rb": os.O_RDONLY,
    "rb+": os.O_RDWR,
    "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "ab+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    "wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
}
_ALWAYS: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


_NEVER_MADE: Final[set[Path]] = set()


class NotConfined(OSError):
    """A name that leads, or may lead, out of its folder; the message says which and what to do."""


def parts(name: str | PurePath) -> tuple[str, ...]:
    """Return the parts of a relative name without parent references.

    Raises:
        NotConfined: It is empty, absolute on some system, or has `..` or a NUL in it.
    """
    return _parts(str(name))


@functools.lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[str, ...]:
    names = PurePath(text).parts
    absolute = PurePosixPath(text).is_absolute() or PureWindowsPath(text).anchor
    if not names or absolute or "\0" in text or ".." in (*names, *PureWindowsPath(text).parts):
        raise NotConfined(errno.EINVAL, "it is not a name within a folder", text)
    return names


def inside(root: Path, name: str | PurePath) -> Path:
    """Return the path of `name` in `root`, without links; its last part may be missing.

    Raises:
        NotConfined: A part is a link, or the last one neither a file nor a folder.
        OSError: It may not be looked at.
    """
    path = Path(root)
    for part in parts(name):
        path = path / part
        mode = _mode(path)
        if mode is not None:
            _check(path, mode)
    return path


def is_inside(root: Path, name: str | PurePath) -> bool:
    """Return whether `inside` would return a path."""
    try:
        inside(root, name)
    except (OSError, ValueError):
        return False
    return True


def open_file(root: Path, name: str | PurePath, mode: str = "rb") -> BinaryIO:
    """Open a regular file, unbuffered; `mode` is `rb`, `rb+`, `ab`, `ab+` or `wb`. A new one is private.

    Raises:
        NotConfined: As `inside`.
        OSError: It cannot be opened.
    """
    path = inside(root, name)
    descriptor = _open(Path(root), parts(name), path, _FLAGS[mode] & ~os.O_TRUNC | _ALWAYS)
    try:
        _check(path, os.fstat(descriptor).st_mode, file_only=True)
        if mode == "wb":
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode, buffering=0)  # type: ignore[return-value]
    except BaseException:
        os.close(descriptor)
        raise


def read(root: Path, name: str | PurePath, most: int) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes.

    Raises:
        OSError: As `open_file`, or it is longer.
    """
    with open_file(root, name) as file:
        content = bytearray()
        while len(content) <= most and (more := file.read(most + 1 - len(content))):
            content += more
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(name))
    return bytes(content)


def write(root: Path, name: str | PurePath, content: bytes) -> None:
    """Replace the contents of a file, not atomically.

    Raises:
        OSError: As `open_file`, or the disk is full.
    """
    with open_file(root, name, "wb") as file:
        left = memoryview(content)
        while left:
            left = left[file.write(left) :]


def copy(source: Path, root: Path, name: str | PurePath) -> None:
    """Copy a regular file that is no link, with its times, to `name` in `root`.

    Raises:
        OSError: The source is something else or cannot be read, or as `open_file`.
    """
    with open_file(source.parent, source.name) as file, io.BufferedWriter(open_file(root, name, "wb")) as target:  # type: ignore[type-var]
        shutil.copyfileobj(file, target, 1 << 20)
        state = os.fstat(file.fileno())
    os.utime(inside(root, name), ns=(state.st_atime_ns, state.st_mtime_ns))


def replace(root: Path, source: str | PurePath, target: str | PurePath) -> None:
    """Move a file or folder within `root`, replacing another.

    Raises:
        OSError: As `inside`, or it cannot be moved.
    """
    os.replace(inside(root, source), inside(root, target))


def give_name(root: Path, source: str | PurePath, target: str | PurePath) -> None:
    """Move a file within `root` to a name that no file has, at once; one that has the name stays as it is.

    Raises:
        OSError: As `inside`, or it cannot be moved.
    """
    draft, path = inside(root, source), inside(root, target)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except (OSError, AttributeError, NotImplementedError):  # a file system or system without second names
        if not os.path.lexists(path):
            os.replace(draft, path)


def cut(file: IO[bytes], size: int) -> None:
    """Cut an open file to `size` bytes.

    Raises:
        OSError: It cannot be cut.
    """
    file.truncate(size)


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing what has that name; a link at either place is renamed or replaced itself.

    Raises:
        OSError: It cannot be moved.
    """
    os.replace(source, target)


def remove(root: Path, name: str | PurePath) -> None:
    """Remove a file, or a link without its target; no error if it is missing.

    Raises:
        OSError: As `inside`, or it cannot be removed.
    """
    *above, last = parts(name)
    folder = inside(root, PurePath(*above)) if above else Path(root)
    (folder / last).unlink(missing_ok=True)


def remove_tree(root: Path, name: str | PurePath) -> None:
    """Remove a folder with its contents as far as possible, and links without their targets.

    A link at its place goes alone; a name that leads outside removes nothing.
    """
    try:
        path = inside(root, name)
    except OSError:
        return
    if path.is_dir():
        remove_folder(path)


def remove_folder(path: Path) -> None:
    """Remove a folder that is not a link, with its contents as far as possible; for a checked place only."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # it calls itself for each level, and a stranger's may be thousands
        _remove_deep(path)


def _remove_deep(path: Path) -> None:
    folders = [str(path)]
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def make_folder(root: Path, name: str | PurePath) -> Path:
    """Create the folder and missing parents in `root`, private to its owner, and return it.

    Raises:
        OSError: As `inside`, or it cannot be made.
    """
    path = Path(root)
    inside(root, name)
    check_not_moved(path)
    path.mkdir(parents=True, exist_ok=True)
    for part in parts(name):
        path = path / part
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def never_make(folder: Path) -> None:
    """Prevent this process from creating anything in `folder` after it was moved."""
    _NEVER_MADE.add(folder)


def is_moved(folder: Path) -> bool:
    """Return whether a folder registered with `never_make` is gone."""
    return folder in _NEVER_MADE and not folder.is_dir()


def check_not_moved(path: Path) -> None:
    """Raise an error if the path is in a moved folder registered with `never_make`.

    Raises:
        FileNotFoundError: It does.
    """
    for folder in (path, *path.parents):
        if is_moved(folder):
            raise FileNotFoundError(errno.ENOENT, "it was moved, renamed or removed", str(folder))


def make_in_run(run_folder: Path, name: str) -> Path:
    """Create a folder in a run folder (`WORKSPACE/runs/NUMBER-NAME`), neither of which may be a link."""
    *_, runs, run = run_folder.parts
    return make_folder(run_folder.parents[1], PurePath(runs, run, name))


def relative(root: Path, path: Path) -> PurePath:
    """Return the name of `path` relative to `root`.

    Raises:
        NotConfined: It lies elsewhere, by its words.
    """
    if not path.is_relative_to(root):
        raise NotConfined(errno.EINVAL, f"it is not inside {root}", str(path))
    return PurePath(*parts(path.relative_to(root)))


def _mode(path: Path) -> int | None:
    try:
        state = os.lstat(path)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise NotConfined(errno.ENOTDIR, "a part of it is not a folder", str(path)) from error
    # On Windows a junction is no link to Python 3.11, and leads elsewhere all the same.
    if getattr(state, "st_reparse_tag", 0) in _REPARSED:
        return stat.S_IFLNK
    return state.st_mode


_REPARSED: Final = tuple(
    getattr(stat, name) for name in ("IO_REPARSE_TAG_SYMLINK", "IO_REPARSE_TAG_MOUNT_POINT") if hasattr(stat, name)
)


def _check(path: Path, mode: int, *, file_only: bool = False) -> None:
    if stat.S_ISLNK(mode):
        raise NotConfined(
            errno.ELOOP,
            "it is a link, and might lead out of the workspace: put the file or folder itself there",
            str(path),
        )
    if not stat.S_ISREG(mode) and (file_only or not stat.S_ISDIR(mode)):
        raise NotConfined(errno.EINVAL, "it is not a regular file", str(path))


def _open(root: Path, names: tuple[str, ...], path: Path, flags: int) -> int:
    if not _AT:
        return os.open(path, flags, 0o600)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(names[-1], flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
