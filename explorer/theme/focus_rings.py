"""Focus rings: shown where a key moved the focus, not where the mouse clicked."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QAbstractButton, QAbstractSlider, QApplication, QWidget

RING: Final = "ring"
"""Dynamic property of a button or slider whose focus the stylesheet shows."""
_KEYS: Final = (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride)


class FocusRings(QObject):
    """Follows whether the last input was a key.

    Attributes:
        by_keys: It was, or there was none yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.by_keys = True

    def follow(self, application: QApplication) -> None:
        """Watch the windows of the application as they come to the front."""
        application.focusWindowChanged.connect(self._watch)
        application.focusChanged.connect(self._mark)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonPress:
            self.by_keys = False
            self._mark(None, QApplication.focusWidget())
        elif event.type() in _KEYS:
            self.by_keys = True
        return False

    def _watch(self, window: QWindow | None) -> None:
        # A filter of the application would see each of thousands of events.
        if window is not None:
            window.installEventFilter(self)

    def _mark(self, _before: QWidget | None, now: QWidget | None) -> None:
        if not isinstance(now, QAbstractButton | QAbstractSlider):
            if now is not None:
                now.update()
        elif bool(now.property(RING)) != self.by_keys:
            now.setProperty(RING, self.by_keys)
            now.style().unpolish(now)
            now.style().polish(now)
