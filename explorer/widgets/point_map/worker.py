"""A thread that draws for one layer. It holds data only: no object of Qt is ever let go of outside the GUI thread."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

_NUMBERS = itertools.count()


class _Courier(QObject):
    """Carries answers to the GUI thread, where it lives as long as the process."""

    arrived = Signal(int, object)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[int, Worker] = {}
        self.arrived.connect(self.deliver)

    @Slot(int, object)
    def deliver(self, number: int, answer: object) -> None:
        """Gives the answer to who waits for it; an ended worker waits for nothing."""
        worker = self.waiting.pop(number, None)
        if worker is not None:
            worker.take(number, answer)


@cache
def _courier() -> _Courier:
    return _Courier()


class Worker:
    """One thread that does one thing after the other. A daemon: closing the window never waits for a picture."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[int, Callable[[], object]] | None] = queue.SimpleQueue()
        self._done: dict[int, tuple[Callable[[Any], object], Callable[[], object]]] = {}
        self._started = False

    def do(
        self, work: Callable[[], object], done: Callable[[Any], object], failed: Callable[[], object] = lambda: None
    ) -> None:
        """Calls `work`, which must hold no object of Qt, after everything asked before.

        Then `done` gets its answer; after an error `failed` is called, and the error raised on the GUI thread.
        """
        number, courier = next(_NUMBERS), _courier()
        if not self._started:
            self._started = True
            threading.Thread(target=_work_off, args=(self._work, courier), name="point-map", daemon=True).start()
        self._done[number] = (done, failed)
        courier.waiting[number] = self
        self._work.put((number, work))

    def take(self, number: int, answer: object) -> None:
        """Hands an answer on; an error is raised on the GUI thread, where the hooks show it."""
        done, failed = self._done.pop(number)
        if isinstance(answer, BaseException):
            failed()
            raise answer
        done(answer)

    def end(self, *_: object) -> None:
        """The thread ends when it has done what was asked; nobody is told of it any more."""
        for number in self._done:
            _courier().waiting.pop(number, None)
        self._done.clear()
        self._work.put(None)


def _work_off(work: queue.SimpleQueue[tuple[int, Callable[[], object]] | None], courier: _Courier) -> None:
    while (call := work.get()) is not None:
        number, function = call
        try:
            answer = function()
        except BaseException as error:
            answer = error
        courier.arrived.emit(number, answer)
        del call, function, answer
