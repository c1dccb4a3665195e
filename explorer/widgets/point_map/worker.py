"""A thread that draws for one layer. It holds data only: no object of Qt is ever let go of outside the GUI thread."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

_NUMBERS = itertools.count()


class _Courier(QObject):
    """Carries answers to the GUI thread, where it lives as long as the process."""

    arrived = Signal(int, object)
    told = Signal(int, float)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[int, Worker] = {}
        self.arrived.connect(self.deliver)
        self.told.connect(self.tell)

    @Slot(int, object)
    def deliver(self, number: int, answer: object) -> None:
        """Gives the answer to who waits for it; an ended worker waits for nothing."""
        worker = self.waiting.pop(number, None)
        if worker is not None:
            worker.take(number, answer)

    @Slot(int, float)
    def tell(self, number: int, share: float) -> None:
        """Tells who waits for an answer how far it is."""
        worker = self.waiting.get(number)
        if worker is not None:
            worker.hear(number, share)


@cache
def _courier() -> _Courier:
    return _Courier()


class Newest:
    """Holds the newest of what is asked, for a thread that takes it when it is ready: it never works on what is old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: object | None = None

    def put(self, asked: object) -> bool:
        """Replaces what is held. Whether it was empty, so that somebody has to be sent for it."""
        with self._lock:
            empty, self._newest = self._newest is None, asked
        return empty

    def take(self) -> object | None:
        """The newest of what was asked; the slot is empty then."""
        with self._lock:
            asked, self._newest = self._newest, None
        return asked

    @property
    def full(self) -> bool:
        """Whether something is asked that nobody took yet."""
        return self._newest is not None

    def work_with(self, function: Callable[..., object]) -> Callable[..., object]:
        """Work that takes what is newest when it begins; None if nothing is asked any more."""

        def work(*tell: Callable[[float], object]) -> object:
            asked = self.take()
            return None if asked is None else function(asked, *tell)

        return work


class Worker:
    """One thread that does one thing after the other. A daemon: closing the window never waits for a picture."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[int, Callable[..., object], bool] | None] = queue.SimpleQueue()
        self._done: dict[int, tuple[Callable[[Any], object], Callable[[float], object] | None]] = {}
        self._started = False

    def do(
        self,
        work: Callable[..., object],
        done: Callable[[Any], object],
        *,
        told: Callable[[float], object] | None = None,
    ) -> None:
        """Calls `work`, which must hold no object of Qt, after everything asked before; `done` gets its answer.

        With `told`, work is given a function that takes the share that is done and calls `told` with it on the GUI
        thread. An error is raised on the GUI thread.
        """
        number, courier = next(_NUMBERS), _courier()
        if not self._started:
            self._started = True
            threading.Thread(target=_work_off, args=(self._work, courier), name="point-map", daemon=True).start()
        self._done[number] = (done, told)
        courier.waiting[number] = self
        self._work.put((number, work, told is not None))

    def take(self, number: int, answer: object) -> None:
        """Hands an answer on; an error is raised on the GUI thread, where the hooks show it."""
        done, _told = self._done.pop(number)
        if isinstance(answer, BaseException):
            raise answer
        done(answer)

    def hear(self, number: int, share: float) -> None:
        """Hands on how far a piece of work is."""
        _done, told = self._done.get(number, (None, None))
        if told is not None:
            told(share)

    def end(self, *_: object) -> None:
        """The thread ends when it has done what was asked; nobody is told of it any more."""
        for number in self._done:
            _courier().waiting.pop(number, None)
        self._done.clear()
        self._work.put(None)


def _work_off(work: queue.SimpleQueue[tuple[int, Callable[..., object], bool] | None], courier: _Courier) -> None:
    while (call := work.get()) is not None:
        number, function, tells = call
        try:
            answer = function(partial(courier.told.emit, number)) if tells else function()
        except BaseException as error:
            answer = error
        courier.arrived.emit(number, answer)
        del call, function, answer
