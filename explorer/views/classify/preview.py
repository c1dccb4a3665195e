"""A large preview of the current image with its name and the caption from the text file of the same name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.thumbnails import NoThumbnail, thumbnail
from explorer.widgets import layouts
from explorer.widgets.image_box import ImageBox
from trainer.analysis.lru_cache import LruCache

EDGE: Final = 960
KEPT: Final = 6
CAPTION_CHARACTERS: Final = 300


class ImagePreview(QWidget):
    """Shows one image file, decoded off the GUI thread; its thumbnail until then."""

    def __init__(
        self, background: Background, thumbnail_of: Callable[[str], QPixmap | None], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._background, self._thumbnail_of = background, thumbnail_of
        self._path = ""
        self._known: LruCache[str, tuple[QPixmap | None, str]] = LruCache(KEPT)
        self.picture = ImageBox()
        self.picture.setObjectName("classifyPreview")
        self.name = layouts.text(role="strong", name="classifyName")
        self.caption = layouts.text(role="secondary", name="classifyCaption", wrap=True)
        layouts.column(
            (self.picture, 1),
            theme.SPACE,
            self.name,
            self.caption,
            gap=theme.SPACE,
            margins=(0, 0, theme.BETWEEN, 0),
            of=self,
        )

    def look_at(self, path: str) -> None:
        """Show the file; nothing for an empty path."""
        self._path = path
        self.name.setText(Path(path).name if path else "")
        self.name.setToolTip(path)
        if path in self._known:
            pixmap, caption = self._known[path]
            self.picture.show_picture(pixmap, broken=pixmap is None)
            self.caption.setText(caption)
            return
        self.picture.show_picture(self._thumbnail_of(path) if path else None)
        self.caption.setText("")
        if path:
            self._background.run(self, read_preview, path, done=lambda read: self._keep(path, *read), key="preview")

    def _keep(self, path: str, image: QImage | None, caption: str) -> None:
        self._known[path] = (QPixmap.fromImage(image) if image is not None else None, caption)
        if path == self._path:
            self.look_at(path)


def read_preview(path: str) -> tuple[QImage | None, str]:
    """Return the image for display (None if unreadable) and the caption in the text file of the same name, if any."""
    try:
        return thumbnail(path, EDGE), _caption_beside(Path(path))
    except NoThumbnail:
        return None, ""


def _caption_beside(image: Path) -> str:
    beside = image.with_suffix(".txt")
    try:
        if not beside.is_file():
            return ""
        with beside.open(encoding="utf-8", errors="replace") as file:
            return f"Its caption: {' '.join(file.read(CAPTION_CHARACTERS).split())}"
    except OSError:
        return ""
