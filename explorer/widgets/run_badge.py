"""The letter of a run in its color."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.accessible import present


class RunBadge(QWidget):
    """A letter on a small square in the run's color, readable without color."""

    def __init__(self, letter: str, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.letter, self._color = letter, lambda: theme.run_color(index, self)
        present(self, "Graphic", letter)
        self.setFixedSize(self.sizeHint())
        theme.theme().changed.connect(self.update)

    def show_run(self, index: int, color: Callable[[], str]) -> None:
        """Show the letter of the run at this index, in its color of the current theme; it hides at -1."""
        self.letter, self._color = chr(ord("A") + index), color
        self.setAccessibleName(self.letter)
        if index < 0 or self.parent() is not None:  # else it would be a window, which takes the keys from the real one
            self.setVisible(index >= 0)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(20, 20)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        paint_badge(painter, QRectF(self.rect()), self.letter, QColor(self._color()))


def paint_badge(painter: QPainter, rect: QRectF, letter: str, ground: QColor) -> None:
    """Paint a letter on a run's color: black or white, whichever is more readable on it."""
    theme.fill_with(painter, ground)
    painter.drawRoundedRect(rect, rect.height() / 4, rect.height() / 4)
    size = min(theme.SMALL_PX, round(rect.height()) - 5)
    painter.setFont(theme.pixel_font(size, weight=QFont.Weight.DemiBold))
    painter.setPen(theme.ink_on(ground))
    painter.drawText(rect, int(Qt.AlignmentFlag.AlignCenter), letter)
