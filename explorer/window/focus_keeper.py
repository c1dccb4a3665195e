"""Keeps the focus where it was when the button that has it disables or hides itself."""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget


class FocusKeeper(QObject):
    """Gives the focus to the page of a button that disables itself or goes, and back to the button once it is enabled.

    Qt gives it to the next widget instead, where the next key does something that nobody meant.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._button: QAbstractButton | None = None
        self._page: QWidget | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.EnabledChange and watched is self._button and self._button.isEnabled():
            self._return()
        return False

    def _on_focus(self, before: QWidget | None, now: QWidget | None) -> None:
        if before is None or now is None or not isinstance(before, QAbstractButton) or not shiboken6.isValid(before):
            return
        gone = not (before.isEnabled() and before.isVisible()) and before.window() is self._window is now.window()
        page = _page_of(before) if gone else None
        if page is not None and page.isVisible() and page is not now:
            self._forget()
            self._button, self._page = before, page
            before.installEventFilter(self)
            page.setFocus(Qt.FocusReason.OtherFocusReason)

    def _return(self) -> None:
        button, page = self._button, self._page
        self._forget()
        if button is not None and page is not None and shiboken6.isValid(page) and page.hasFocus():
            button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _forget(self) -> None:
        if self._button is not None and shiboken6.isValid(self._button):
            self._button.removeEventFilter(self)
        self._button = self._page = None


def _page_of(widget: QWidget) -> QWidget | None:
    """Return the nearest widget above that has no role but to hold others: a view, or a row of the window."""
    above = widget.parentWidget()
    while above is not None and not above.isWindow():
        if above.property("role") == "view" or above.objectName() in ("bar", "rail"):
            return above
        above = above.parentWidget()
    return None
