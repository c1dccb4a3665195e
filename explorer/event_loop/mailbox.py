"""Carries what threads have made to the GUI thread, without an object of Python ever traveling inside an event of Qt.

Threads lay answers down in a queue of Python's and ring; the ring has no arguments and its only slot belongs to an
object that lives as long as the process. So nothing that waits in Qt's event queue can refer to what has gone.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from typing import Any, Final, Protocol

import shiboken6
from PySide6.QtCore import QObject, Signal, Slot

from explorer.event_loop.idle_scheduler import turns

_NUMBERS: Final = itertools.count()


class Addressee(Protocol):
    """Who waits for an answer; an ordinary object, or one of Qt whose Python half outlives the other."""

    def take(self, number: int, news: Any) -> None:
        """Takes what a thread laid down under this number; called on the GUI thread."""


class Courier(QObject):
    """Hands what arrives under a number to who waits for it, on the GUI thread."""

    _rung = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, Addressee] = {}
        self._bag: deque[tuple[int, Any]] = deque()
        self._rung.connect(self._deliver)

    def expect(self, addressee: Addressee) -> int:
        """A number under which `addressee` will be brought everything, until `forget`."""
        number = next(_NUMBERS)
        self._waiting[number] = addressee
        return number

    def forget(self, number: int) -> None:
        """Whatever still comes under this number is dropped."""
        self._waiting.pop(number, None)

    def bring(self, number: int, news: Any) -> None:
        """Lays down `news`, from any thread; it is taken in a later turn of the event loop, one that has room."""
        self._bag.append((number, news))
        if shiboken6.isValid(self):  # a thread may outlive Qt at the end of the program
            self._rung.emit()

    @Slot()
    def _deliver(self) -> None:
        if not self._bag:
            return
        if turns().is_full:
            turns().later(self, self._deliver)
            return
        number, news = self._bag.popleft()
        addressee = self._waiting.get(number)
        if addressee is not None:
            addressee.take(number, news)


@functools.cache
def courier() -> Courier:
    """The one of this process; made at the first call, which the GUI thread makes."""
    return Courier()
