"""Files of the arrows and check marks in the stylesheet, which can refer to files but not draw.

They lie in the user's cache, in a folder of what they hold: windows share them, and one that is killed leaves nothing
behind that the next one would not use.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from PySide6.QtCore import QDir, QTemporaryDir

from trainer.untrusted import confined

PREFIX = "theme"
"""What the stylesheet writes before their names."""


class MarkFiles:
    """The folder with this process's mark files."""

    def __init__(self) -> None:
        self._temporary: QTemporaryDir | None = None

    def write(self, drawings: Mapping[str, bytes], current: Mapping[str, bytes]) -> bool:
        """Make `theme:NAME` in a stylesheet resolve to each of `current`; return whether a folder was available.

        Where the cache cannot be written they lie in a temporary folder, which goes with this process.

        Args:
            drawings: File name -> content of all there are; their folder is named after them.
            current: Those that are shown now.
        """
        for folder in self._folders(drawings):
            try:
                _fill(folder, current)
            except OSError:
                continue
            if str(folder) not in QDir.searchPaths(PREFIX):
                QDir.addSearchPath(PREFIX, str(folder))
            return True
        return False

    def _folders(self, drawings: Mapping[str, bytes]) -> Iterator[Path]:
        yield cache() / _version(drawings)
        self._temporary = self._temporary or QTemporaryDir()
        if self._temporary.isValid():
            yield Path(self._temporary.path())


def cache() -> Path:
    """Return the cache folder of the drawings of all versions; it may not exist."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("contrastive-explorer", appauthor=False)) / "theme"


def _version(drawings: Mapping[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, drawing in sorted(drawings.items()):
        digest.update(f"{name}\0{len(drawing)}\0".encode() + drawing)
    return digest.hexdigest()


def _fill(folder: Path, drawings: Mapping[str, bytes]) -> None:
    """Write missing files; another window may do the same concurrently."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings.items():
        file = folder / name
        if not _holds(file, drawing):
            _replace(file, drawing)


def _holds(file: Path, drawing: bytes) -> bool:
    try:
        return file.read_bytes() == drawing
    except OSError:
        return False


def _replace(file: Path, drawing: bytes) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(drawing)
        confined.replace(file.parent, draft.name, file.name)
    except OSError:
        with contextlib.suppress(OSError):
            confined.remove(file.parent, draft.name)
        raise
