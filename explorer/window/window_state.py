"""Size, position and selection of a window: restored at its start, saved while it is used."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QRect, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow

from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.widgets.layouts import FRAME

GEOMETRY_KEY: Final = "window/geometry"
SELECTION_KEY: Final = "selection"
SIZE: Final = (1280, 800)
SAVE_AFTER_MS: Final = 1_000
"""Between a change of the selection and its being saved."""


class WindowState(QObject):
    """Restores and saves what a window looked like."""

    def __init__(self, window: QMainWindow, selection: Selection, settings: Settings) -> None:
        super().__init__(window)
        self._window, self._selection, self._settings = window, selection, settings
        self._save_soon = QTimer(self, singleShot=True, interval=SAVE_AFTER_MS, timeout=self._save)

    def restore(self) -> None:
        """Restore the saved state, or the defaults."""
        self._selection.restore(self._settings.value(SELECTION_KEY, {}))
        if not self._window.restoreGeometry(self._settings.state(GEOMETRY_KEY)):
            geometry = first_geometry(QGuiApplication.primaryScreen().availableGeometry())
            self._window.resize(geometry.size())
            self._window.move(geometry.topLeft())

    def follow(self) -> None:
        """Save every change of the selection, shortly after it."""
        selection = self._selection
        for signal in (
            selection.runs_changed,
            selection.step_changed,
            selection.dataset_changed,
            selection.pairs_changed,
            selection.queries_changed,
            selection.view_changed,
        ):
            signal.connect(lambda *_: self._save_soon.start())

    def close(self) -> None:
        """Save the state at once: the window closes."""
        self._save_soon.stop()
        self._remember()
        self._settings.flush()

    def _save(self) -> None:
        self._remember()
        self._settings.write_beside()

    def _remember(self) -> None:
        self._settings.set(SELECTION_KEY, self._selection.remember())
        self._settings.set_state(GEOMETRY_KEY, self._window.saveGeometry())


def first_geometry(screen: QRect) -> QRect:
    """Return the size of a new window and the position of its frame in the available part of a screen."""
    width, height = min(SIZE[0], screen.width() - FRAME[0]), min(SIZE[1], screen.height() - FRAME[1])
    left, top = (screen.width() - width - FRAME[0]) // 2, (screen.height() - height - FRAME[1]) // 2
    return QRect(screen.left() + left, screen.top() + top, width, height)
