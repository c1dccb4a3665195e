"""A heading that collapses the content below it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from explorer.theme import BODY_PX, CONTROL_PX, RADIUS, SPACE, color, icon, pixel_font, smooth_painter, theme

_ARROW = 16


class DisclosureButton(QAbstractButton):
    """A label with an arrow; while checked, the content below is shown. Space, Enter or a click toggles it."""

    def __init__(self, text: str, *, strong: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent, checkable=True, focusPolicy=Qt.FocusPolicy.StrongFocus)
        self.setText(text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFont(pixel_font(BODY_PX, weight=QFont.Weight.DemiBold if strong else QFont.Weight.Normal))
        theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_ARROW + 3 * SPACE + self.fontMetrics().horizontalAdvance(self.text()), CONTROL_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = smooth_painter(self)
        middle = (self.height() - _ARROW) // 2
        sign = icon("chevron-down" if self.isChecked() else "chevron-right", _ARROW, "secondary")
        sign.paint(painter, 0, middle, _ARROW, _ARROW)
        painter.setPen(color("text"))
        painter.setFont(self.font())
        text_rect = QRectF(self.rect()).adjusted(_ARROW + SPACE, 0, 0, 0)
        painter.drawText(text_rect, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), self.text())
        if theme().has_ring(self):
            painter.setPen(QPen(color("focus"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS, RADIUS)
