"""A field that elides its text in the middle while it is not edited; the tool tip then has all of it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame, QToolButton, QToolTip

from explorer import theme

INSET_PX = 2
"""Between the frame of a field and its text."""


class ElidedLine(QLineEdit):
    """A field for paths and names: start and end tell them apart."""

    @property
    def elided(self) -> str:
        """The text painted while the field has no focus."""
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, self._room().width())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip and self.elided != self.text():
            QToolTip.showText(event.globalPos(), self.text(), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus() or self.elided == self.text():
            super().paintEvent(event)
            return
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        painter.setPen(theme.color("text" if self.isEnabled() else "disabled"))
        painter.drawText(self._room(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.elided)

    def _room(self) -> QRect:
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        room = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        buttons = [button.x() for button in self.findChildren(QToolButton) if button.isVisible()]
        return room.adjusted(INSET_PX, 0, min([0, *(x - room.right() for x in buttons)]) - INSET_PX, 0)
