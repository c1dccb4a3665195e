"""Undo and redo, with a message that names the change, because it may belong to another view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.widgets.banner import Banner

if TYPE_CHECKING:
    from PySide6.QtGui import QUndoStack


class Undo:
    """Undoes and redoes the changes of a stack."""

    def __init__(self, stack: QUndoStack, banner: Banner) -> None:
        self._stack, self._banner = stack, banner

    def undo(self) -> None:
        """Undo the last change."""
        text = self._stack.undoText()
        self._stack.undo()
        self._show(f"Undone: {text}." if text else "There is nothing to undo.", "Redo", self._stack.canRedo())

    def redo(self) -> None:
        """Make the change again that was undone last."""
        text = self._stack.redoText()
        self._stack.redo()
        self._show(f"Redone: {text}." if text else "There is nothing to redo.", "Undo", self._stack.canUndo())

    def _show(self, message: str, other: str, is_possible: bool) -> None:
        if not self._banner.is_grave:
            action = (other, self.redo if other == "Redo" else self.undo) if is_possible else None
            self._banner.show_message(message, tone="info", action=action)
