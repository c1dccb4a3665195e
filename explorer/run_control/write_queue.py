"""A queue of store changes, run in order off the GUI thread; and undoable changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand

from explorer.event_loop.background import Background
from trainer.errors import reason_words


class WriteQueue(QObject):
    """Runs the queued functions one at a time."""

    written = Signal()  # One is done, well or not.
    failed = Signal(str)  # A sentence: why one could not be done.

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], object] | None]] = deque()
        self._busy = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is written and nothing waits."""
        return not self._busy and not self._waiting

    def add(self, function: Callable[[], Any], done: Callable[[Any], object] | None = None) -> None:
        """Run `function` after all earlier ones; `done` receives its result."""
        self._waiting.append((function, done))
        self._next()

    def _next(self) -> None:
        if self._busy or not self._waiting:
            return
        self._busy = True
        function, done = self._waiting.popleft()

        def answered(answer: Any) -> None:
            self._busy = False
            try:
                if done is not None:
                    done(answer)
            finally:
                self._go_on()

        self._background.run(self, function, done=answered, failed=self._fail, key="write", urgent=True)

    def _fail(self, error: Exception) -> None:
        self._busy = False
        self.failed.emit(reason_words(error))
        self._go_on()

    def _go_on(self) -> None:
        self.written.emit()
        self._next()


class Undoable(QUndoCommand):
    """An undoable action made of two functions; Qt calls the first when the command is pushed."""

    def __init__(self, text: str, *, redo: Callable[[], None], undo: Callable[[], None]) -> None:
        super().__init__(text)
        self._redo, self._undo = redo, undo

    def redo(self) -> None:
        self._redo()

    def undo(self) -> None:
        self._undo()
