"""All actions of the window with names and keys: for shortcuts, the palette and the sheet of shortcuts."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget


class Command(Struct, frozen=True):
    """One command: its heading, text, keys (may be empty), function, and second keys."""

    group: str
    words: str
    keys: str
    do: Callable[[], object]
    name: str = ""
    also: str = ""


class Actions:
    """The actions of a window by heading, in the order added."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self.groups: dict[str, list[QAction]] = {}

    def add(self, command: Command) -> None:
        """Create an action that works anywhere in the window."""
        action = QAction(command.words, self._window)
        action.setObjectName(command.name or command.words.replace(" ", ""))
        if command.keys:
            action.setShortcuts([QKeySequence(keys) for keys in (command.keys, command.also) if keys])
        action.triggered.connect(lambda _checked=False: command.do())
        self._window.addAction(action)
        self.groups.setdefault(command.group, []).append(action)

    def by_name(self) -> dict[str, QAction]:
        """Return object name -> action."""
        return {action.objectName(): action for actions in self.groups.values() for action in actions}

    def keys(self) -> dict[str, list[tuple[str, str]]]:
        """Return heading -> (keys, text) of actions with keys, for the sheet of shortcuts."""
        lines_of = {
            group: [(a.shortcut().toString(), a.text().replace("&", "")) for a in actions if not a.shortcut().isEmpty()]
            for group, actions in self.groups.items()
        }
        return {group: lines for group, lines in lines_of.items() if lines}
