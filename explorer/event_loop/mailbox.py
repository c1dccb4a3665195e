"""Pass objects from threads to the GUI thread without putting a Python object into a Qt event.

Threads append results to a Python queue and emit a signal; the signal has no arguments and its only slot belongs to an
object that lives as long as the process. So nothing in Qt's event queue can refer to a deleted object.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from typing import Any, Final, Protocol

import shiboken6
from PySide6.QtCore import QObject, Signal, Slot

from explorer.event_loop.idle_scheduler import idle_scheduler

_NUMBERS: Final = itertools.count()


class Addressee(Protocol):
    """A receiver of results: a plain object, or a Qt object whose Python part outlives the C++ part."""

    def take(self, number: int, news: Any) -> None:
        """Receive the result that a thread posted under this number; called on the GUI thread."""


class Mailbox(QObject):
    """Delivers each posted result to the object registered under its number, on the GUI thread."""

    _posted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, Addressee] = {}
        self._queue: deque[tuple[int, Any]] = deque()
        self._posted.connect(self._deliver)

    def expect(self, addressee: Addressee) -> int:
        """Return a number under which `addressee` receives results until `forget`."""
        number = next(_NUMBERS)
        self._waiting[number] = addressee
        return number

    def forget(self, number: int) -> None:
        """Drop everything that still arrives under this number."""
        self._waiting.pop(number, None)

    def post(self, number: int, news: Any) -> None:
        """Queue `news` from any thread; it is delivered in a later event-loop iteration that has time for it."""
        self._queue.append((number, news))
        if shiboken6.isValid(self):  # a thread may outlive Qt at the end of the program
            self._posted.emit()

    @Slot()
    def _deliver(self) -> None:
        if not self._queue:
            return
        if idle_scheduler().is_full:
            idle_scheduler().later(self, self._deliver)
            return
        number, news = self._queue.popleft()
        addressee = self._waiting.get(number)
        if addressee is not None:
            addressee.take(number, news)


@functools.cache
def mailbox() -> Mailbox:
    """Return this process's mailbox; the GUI thread creates it with the first call."""
    return Mailbox()
