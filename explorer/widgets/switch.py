"""A toggle switch."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from explorer.theme import color, smooth_painter, theme

_WIDTH, _HEIGHT, _MARGIN = 32, 18, 3


class Switch(QAbstractButton):
    """A checkable button that looks like a switch; Space or a click toggles it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, checkable=True, focusPolicy=Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH + 2 * _MARGIN, _HEIGHT + 2 * _MARGIN)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = smooth_painter(self)
        top = (self.height() - _HEIGHT) / 2
        track = QRectF(_MARGIN, top, _WIDTH, _HEIGHT)
        painter.setPen(QPen(color("outline"), 1))
        if theme().has_ring(self):
            # Apart from the track, whose color is nearly that of the ring.
            painter.setPen(QPen(color("focus"), 1.5))
            ring = track.adjusted(-2.25, -2.25, 2.25, 2.25)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)
            painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("accent" if self.isChecked() else "sunken"))
        painter.drawRoundedRect(track, _HEIGHT / 2, _HEIGHT / 2)
        left = _MARGIN + (_WIDTH - _HEIGHT if self.isChecked() else 0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color("accent_text" if self.isChecked() else "secondary"))
        painter.drawEllipse(QRectF(left, top, _HEIGHT, _HEIGHT).adjusted(4, 4, -4, -4))
