"""Files and links that the system asks this application to open: on a Mac they come as events, not as arguments."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtGui import QFileOpenEvent


class OpenedFiles(QObject):
    """Passes the address of each file or link that is to be opened."""

    def __init__(self, application: QCoreApplication, take: Callable[[str], object]) -> None:
        """Listen to the application; `take` gets a `file:` URL or a link."""
        super().__init__(application)
        self._take = take
        application.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            self._take(event.url().toString())
            return True
        return False
