"""A menu that stays inside the window of its button."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QMenu, QWidget


class WindowMenu(QMenu):
    """A menu that opens further to the left where it would leave the window: Qt knows the screen's edge only."""

    def __init__(self, parent: QWidget, actions: Sequence[QAction]) -> None:
        super().__init__(parent)
        self.setToolTipsVisible(True)
        self.addActions(actions)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        parent = self.parentWidget()
        assert parent is not None
        beyond = self.geometry().right() - parent.window().geometry().right()
        self.move(self.x() - max(0, beyond), self.y())
