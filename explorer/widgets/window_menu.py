"""Menus that stay inside the window of their button, or open on what is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QAction, QCursor, QHideEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget


class ChoiceMenu(QMenu):
    """A menu of checkable entries that opens on the checked one, as a list does: Down goes to the next."""

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if (checked := next((action for action in self.actions() if action.isChecked()), None)) is not None:
            self.setActiveAction(checked)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        # After Qt has ended the popup: the pointer left the button for the menu, and it would look hovered for ever.
        QTimer.singleShot(0, self, self._leave_button)

    def _leave_button(self) -> None:
        if (button := self.parentWidget()) and not button.rect().contains(button.mapFromGlobal(QCursor.pos())):
            QApplication.sendEvent(button, QEvent(QEvent.Type.Leave))


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
