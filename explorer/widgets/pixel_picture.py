"""A small picture of pixels in a square, enlarged without smoothing, so that what was drawn is seen."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QImage, QPainter, QPainterPath, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.thumbnails import image_of

PREFERRED_PX = 108


class PixelPicture(QWidget):
    """A square picture; an empty square without one."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=name)
        self.image: QImage | None = None
        theme.theme().changed.connect(self.update)

    def show_pixels(self, pixels: UInt8[np.ndarray, "s s 3"] | None, description: str) -> None:
        """Show a picture; `description` describes it for screen readers and as a tip."""
        self.image = None if pixels is None else image_of(pixels)
        self._show_message(description)

    def show_pixmap(self, pixmap: QPixmap | None, description: str) -> None:
        """Show the center square of a thumbnail."""
        self.image = None
        if pixmap is not None and not pixmap.isNull():
            side = min(pixmap.width(), pixmap.height())
            left, top = (pixmap.width() - side) // 2, (pixmap.height() - side) // 2
            self.image = pixmap.copy(left, top, side, side).toImage()
        self._show_message(description)

    def sizeHint(self) -> QSize:
        return QSize(PREFERRED_PX, PREFERRED_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        side = min(self.width(), self.height())
        room = QRectF(0, 0, side, side)
        clip = QPainterPath()
        clip.addRoundedRect(room, theme.RADIUS, theme.RADIUS)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(clip, theme.color("sunken"))
        if self.image is not None:
            painter.setClipPath(clip)
            painter.drawImage(room, self.image)

    def _show_message(self, description: str) -> None:
        self.setAccessibleName(description)
        self.setToolTip(description)
        self.update()
