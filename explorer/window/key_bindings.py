"""Which keys do what: the shortcuts of the window's commands, as people changed them.

They are kept in this user's own configuration, never in a workspace: a stranger's would decide what a key press does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence

from explorer.state.settings import Settings
from trainer.untrusted import confined

KEYS_KEY: Final = "window/keys"
"""Name of an action -> its keys as portable text of Qt; only what a person changed."""


class KeyBindings(QObject):
    """Changes the shortcuts of actions and remembers the changes."""

    changed = Signal()  # At least one shortcut is another.

    def __init__(
        self, actions: Iterable[QAction], folder: Path, parent: QObject | None = None, *, remember: bool = True
    ) -> None:
        """Apply the shortcuts kept in this user's folder; without `remember`, none is read or kept."""
        super().__init__(parent)
        self.actions = {action.objectName(): action for action in actions}
        self._defaults = {name: list(action.shortcuts()) for name, action in self.actions.items()}
        self._folder, self._remember = folder, remember
        self._settings = Settings(folder, self, remember=remember)
        self._apply()

    def keys_of(self, name: str) -> str:
        """Return the first shortcut of an action as portable text; empty if it has none."""
        return self.actions[name].shortcut().toString(QKeySequence.SequenceFormat.PortableText)

    def is_own(self, name: str) -> bool:
        """Return whether a person changed this action's shortcut."""
        return name in self._custom_keys()

    def assign(self, name: str, keys: QKeySequence, others: Iterable[QAction] = ()) -> str:
        """Give an action these keys (none: no shortcut); return why not, in words, or nothing.

        The keys of `others`, such as the actions of the views, are taken too.
        """
        if refusal := self._refusal(name, keys, others):
            return refusal
        self._save({**self._custom_keys(), name: keys.toString()})
        self.changed.emit()
        return ""

    def reset(self, name: str) -> str:
        """Give an action its default shortcuts; return why not, in words, or nothing."""
        for keys in self._defaults[name]:
            if refusal := self._refusal(name, keys, ()):
                return refusal
        self._save({other: keys for other, keys in self._custom_keys().items() if other != name})
        self.changed.emit()
        return ""

    def reset_all(self) -> None:
        """Give every action its default shortcuts."""
        self._save({})
        self.changed.emit()

    def _save(self, custom: dict[str, str]) -> None:
        if self._remember:
            # Where it cannot be made, the shortcuts hold for this window.
            with contextlib.suppress(OSError):
                confined.make_folder(self._folder.parent, self._folder.name)
        self._settings.set(KEYS_KEY, custom)
        self._apply()

    def _refusal(self, name: str, keys: QKeySequence, others: Iterable[QAction]) -> str:
        if keys.isEmpty():
            return ""
        if keys.count() > 1:
            return "A shortcut is one key with modifiers, not several keys in a row."
        for action in (*self.actions.values(), *others):
            if action is not self.actions[name] and keys in action.shortcuts():
                label = action.text().replace("&", "")
                return f"{keys.toString()} already belongs to “{label}”. Choose other keys, or change that first."
        return ""

    def _custom_keys(self) -> dict[str, str]:
        saved = self._settings.value(KEYS_KEY, {})
        return {name: keys for name, keys in saved.items() if name in self.actions and isinstance(keys, str)}

    def _apply(self) -> None:
        custom = self._custom_keys()
        for name, action in self.actions.items():
            keys = custom.get(name)
            action.setShortcuts(self._defaults[name] if keys is None else [QKeySequence(keys)] if keys else [])
