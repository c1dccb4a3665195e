"""A button of two lines: what it does, and what that costs."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from explorer import theme

HEIGHT_PX: Final = 60
_ICON_PX: Final = 18
_TEXT_LEFT: Final = 49
_RIGHT: Final = 40


class WayButton(QPushButton):
    """An icon, a title over a line of detail, and an arrow; the role `primary` makes it the loud one.

    Screen readers hear the title as its name and the detail as its description.
    """

    def __init__(
        self, name: str, icon: str, title: str, detail: str, *, primary: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, objectName=name, accessibleName=title, accessibleDescription=detail)
        self._icon = icon
        theme.set_role(self, "primary" if primary else "way")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(280, HEIGHT_PX)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, HEIGHT_PX)

    @property
    def detail(self) -> str:
        """The line under the title; of why it is disabled the first part, whose rest is in the tool tip."""
        text = self.accessibleDescription()
        return text if self.isEnabled() else text.partition(": ")[0]

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)  # its ground and its focus: it has no text of its own
        painter = QPainter(self)
        middle = (self.height() - _ICON_PX) // 2
        for name, left in ((self._icon, 18), ("chevron-right", self.width() - 34)):
            theme.icon(name, _ICON_PX, self._role("secondary")).paint(painter, left, middle, _ICON_PX, _ICON_PX)
        top = self.height() // 2
        title = "text" if self.isEnabled() else "secondary"
        self._write(painter, self.accessibleName(), top - 20, title, theme.BODY_PX, QFont.Weight.DemiBold)
        self._write(painter, self.detail, top, "secondary", theme.SMALL_PX, QFont.Weight.Normal)

    def _role(self, role: str) -> str:
        return "accent_text" if self.property("role") == "primary" and self.isEnabled() else role

    def _write(self, painter: QPainter, text: str, top: int, role: str, size: int, weight: QFont.Weight) -> None:
        theme.text_pen(painter, size, self._role(role), weight=weight)
        line = QRect(_TEXT_LEFT, top, self.width() - _TEXT_LEFT - _RIGHT, 20)
        shortened = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shortened)
