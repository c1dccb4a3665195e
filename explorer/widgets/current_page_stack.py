"""A stack that needs the room of its open page only."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QStackedWidget, QWidget


class OpenPage(QStackedWidget):
    """Qt's stack needs as much room as the greediest of its pages, also of those that nobody sees."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.currentChanged.connect(lambda _place: self.updateGeometry())

    def minimumSizeHint(self) -> QSize:
        page = self.currentWidget()
        return QSize() if page is None else page.minimumSizeHint().expandedTo(page.minimumSize())

    def hasHeightForWidth(self) -> bool:
        # A stack's height for a width is that of all its pages, and none gives way.
        return False
