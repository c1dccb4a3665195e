"""The letter of a run in its color."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer import theme


class RunBadge(QWidget):
    """A letter on a small square in the run's color, readable without color."""

    def __init__(self, letter: str, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._letter, self._index = letter, index
        self.setFixedSize(self.sizeHint())
        theme.theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(20, 20)

    def paintEvent(self, _event: QPaintEvent) -> None:
        ground = theme.run_color(self._index)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(self.rect(), 5, 5)
        font = theme.pixel_font(theme.SMALL_PX)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(theme.ink_on(QColor(ground)))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._letter)
