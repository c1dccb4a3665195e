"""A cache of thumbnails by path, decoded in the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage, QPixmap

from explorer.event_loop.background import Background
from explorer.thumbnails import NoThumbnail, thumbnail
from trainer.analysis.lru_cache import LruCache
from trainer.errors import reason_words

KEPT: Final = 2_000
"""Decoded thumbnails in memory: at 96 pixels some 70 MB at most."""


class Thumbnails(QObject):
    """Decodes thumbnails off the GUI thread and caches the most recent ones."""

    arrived = Signal(str)  # The thumbnail of this path is there now, or is known to be unreadable.

    def __init__(
        self,
        background: Background,
        parent: QObject | None = None,
        *,
        edge: int = 96,
        decode: Callable[[Path | str, int], QImage] = thumbnail,
    ) -> None:
        super().__init__(parent)
        self._background, self._edge, self.decode = background, edge, decode
        self._known: LruCache[str, QPixmap | str] = LruCache(KEPT)
        self._waiting: set[str] = set()

    def get(self, path: str) -> QPixmap | None:
        """Return the thumbnail, or None if it is not decoded; `arrived` signals when it is."""
        if path in self._known:
            picture = self._known[path]
            return picture if isinstance(picture, QPixmap) else None
        if path and path not in self._waiting:
            self._waiting.add(path)
            self._background.run(
                self,
                self.decode,
                path,
                self._edge,
                done=lambda image: self._keep(path, QPixmap.fromImage(image)),
                failed=lambda error: self._refuse(path, error),
                key=path,
                urgent=True,
            )
        return None

    def problem(self, path: str) -> str:
        """Return an error message if there is no thumbnail for this path; empty otherwise."""
        picture = self._known.get(path)
        return picture if isinstance(picture, str) else ""

    def _refuse(self, path: str, error: Exception) -> None:
        if not isinstance(error, NoThumbnail):
            self._background.failed.emit(error)
        self._keep(path, reason_words(error))

    def _keep(self, path: str, picture: QPixmap | str) -> None:
        self._waiting.discard(path)
        self._known[path] = picture
        self.arrived.emit(path)
