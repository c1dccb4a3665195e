"""A browser-like history of opened views; undo is for changes."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject

from explorer.state.selection import Selection

MOST: Final = 100


class ViewHistory(QObject):
    """Records which views the selection opens."""

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._back: list[str] = []
        self._forth: list[str] = []
        self._now = selection.view
        selection.view_changed.connect(self._note)

    def back(self) -> None:
        """Open the previous view, if there is one."""
        self._walk(self._back, self._forth)

    def forth(self) -> None:
        """Undo one step back."""
        self._walk(self._forth, self._back)

    def forget(self) -> None:
        """Clear the history."""
        self._back.clear()
        self._forth.clear()
        self._now = self._selection.view

    def _walk(self, source: list[str], target: list[str]) -> None:
        if source:
            target.append(self._now)
            self._now = source.pop()
            self._selection.view = self._now

    def _note(self) -> None:
        if self._selection.view == self._now:
            return
        self._back = [*self._back, self._now][-MOST:]
        self._forth.clear()
        self._now = self._selection.view
