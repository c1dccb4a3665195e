"""A splitter with a thin handle that is easy to grab."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle, QWidget

from explorer.theme import INSIDE, color


class HairlineSplitter(QSplitter):
    """A splitter whose handle is 1 px wide visually but 9 px for the mouse."""

    def __init__(self, orientation: Qt.Orientation, parent: QWidget | None = None) -> None:
        super().__init__(orientation, parent)
        self.setHandleWidth(INSIDE + 1)
        self.setChildrenCollapsible(False)

    def createHandle(self) -> QSplitterHandle:
        return _Handle(self.orientation(), self)


class _Handle(QSplitterHandle):
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(color("focus" if self.underMouse() else "line"))
        middle = self.rect().center()
        if self.orientation() == Qt.Orientation.Vertical:
            painter.drawLine(0, middle.y(), self.width(), middle.y())
        else:
            painter.drawLine(middle.x(), 0, middle.x(), self.height())
