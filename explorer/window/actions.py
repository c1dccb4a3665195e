"""Everything the window can be told, as actions with names and keys: for shortcuts, the palette and the cheat sheet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget


@dataclass(frozen=True)
class Command:
    """One thing to do: its heading, words, keys (may be empty) and function."""

    group: str
    words: str
    keys: str
    do: Callable[[], object]
    name: str = ""


class Actions:
    """The actions of a window by heading, in the order they were added."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self.groups: dict[str, list[QAction]] = {}

    def add(self, command: Command) -> QAction:
        """Makes an action that works anywhere in the window."""
        action = QAction(command.words, self._window)
        action.setObjectName(command.name or command.words.replace(" ", ""))
        if command.keys:
            action.setShortcut(command.keys)
        action.triggered.connect(lambda _checked=False: command.do())
        return self.adopt(command.group, action)

    def adopt(self, group: str, action: QAction) -> QAction:
        """Takes an action that is there already, e.g. an undo stack's."""
        self._window.addAction(action)
        self.groups.setdefault(group, []).append(action)
        return action

    def keys(self) -> dict[str, list[tuple[str, str]]]:
        """Heading -> (keys, words) of what has keys, for the cheat sheet."""
        found = {
            group: [(a.shortcut().toString(), a.text().replace("&", "")) for a in actions if not a.shortcut().isEmpty()]
            for group, actions in self.groups.items()
        }
        return {group: lines for group, lines in found.items() if lines}
