"""The one way off the GUI thread: a pure function in, its newest answer out."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import shiboken6
from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal, Slot

THREADS: Final = 2
"""Training needs the cores too; more threads would only wait for each other under the GIL."""

URGENT_THREADS: Final = 2
"""For what takes milliseconds and is waited for: news of the runs, thumbnails. An analysis must not hold these up."""


Key = tuple[int, str]
"""`id` of the owner, and the name of what it asks."""

_NUMBERS: Final = itertools.count()


@dataclass(frozen=True)
class _Wish:
    """Who wants an answer; stays in the GUI thread, where objects of Qt may be let go of."""

    owner: QObject
    key: Key
    done: Callable[[Any], None]
    failed: Callable[[Exception], None] | None


class _Newest:
    """Which number of each key is the newest; read by the threads, written by the GUI thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[Key, int] = {}

    def is_newest(self, key: Key, number: int) -> bool:
        with self._lock:
            return self._numbers.get(key) == number

    def set(self, key: Key, number: int) -> None:
        with self._lock:
            self._numbers[key] = number

    def forget(self, owner: int | None = None, name: str | None = None) -> None:
        """Drops the keys of `owner` (None: of all) with this name (None: with any)."""
        with self._lock:
            kept = {k: n for k, n in self._numbers.items() if owner not in (None, k[0]) or name not in (None, k[1])}
            self._numbers = kept


class _Courier(QObject):
    """Carries answers to the GUI thread, where it lives as long as the process."""

    arrived = Signal(int, object, object)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[int, Background] = {}
        self.arrived.connect(self.deliver)

    @Slot(int, object, object)
    def deliver(self, number: int, answer: object, error: object) -> None:
        """Gives the answer to the Background that waits for it."""
        background = self.waiting.pop(number, None)
        if background is not None:
            background.take(number, answer, error)


@functools.cache
def _courier() -> _Courier:
    return _Courier()


class Background(QObject):
    """Runs pure functions on a thread pool and hands their answers to the GUI thread.

    Of several runs with the same owner and key only the newest is answered; the others are skipped if they have not
    begun, and their answers dropped if they have. An owner that Qt has deleted is not called. The function must not
    touch a widget; give it frozen data.

    Signals:
        failed: An exception that no `failed` callback was there to take.
    """

    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pools = {False: QThreadPool(self), True: QThreadPool(self)}
        for urgent, pool in self._pools.items():
            pool.setMaxThreadCount(URGENT_THREADS if urgent else THREADS)
        self._newest = _Newest()
        self._wishes: dict[int, _Wish] = {}
        self._watched: set[int] = set()
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._wishes)

    def run(
        self,
        owner: QObject,
        function: Callable[..., Any],
        *args: Any,
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        key: str | None = None,
        urgent: bool = False,
    ) -> None:
        """Calls `function(*args)` on a thread, then `done(answer)` or `failed(exception)` on the GUI thread.

        Args:
            owner: Lives in the GUI thread; when it is deleted the answer is dropped.
            function: Pure: reads its arguments only, touches no widget.
            args: What it is called with.
            done: Takes the answer.
            failed: Takes the exception; without it the signal `failed` announces it.
            key: Runs of the same owner and key replace each other; the function's name if not given.
            urgent: Takes milliseconds and cannot wait for an analysis; such calls begin in the order they came.
        """
        if self._closed:
            return
        self._watch(owner)
        number, wish = next(_NUMBERS), _Wish(owner, (id(owner), key or _name(function)), done, failed)
        self._newest.set(wish.key, number)
        self._wishes[number] = wish
        _courier().waiting[number] = self
        call = _Runnable(number, wish.key, functools.partial(function, *args), self._newest, _courier())
        # What was asked last is what the person looks at: it overtakes what other views still wait for.
        self._pools[urgent].start(call, 0 if urgent else number % 2**31)

    def forget(self, owner: QObject, key: str | None = None) -> None:
        """Drops what is still to come for this owner, or for one key of it."""
        self._newest.forget(id(owner), key)

    def close(self, *, wait_ms: int = 5_000) -> bool:
        """Takes nothing more, drops every answer and waits for running functions; False if one is still running."""
        self._closed = True
        self._newest.forget()
        for number in self._wishes:
            _courier().waiting.pop(number, None)
        self._wishes.clear()
        for pool in self._pools.values():
            pool.clear()
        finished = [pool.waitForDone(wait_ms) for pool in self._pools.values()]
        return all(finished)

    def _watch(self, owner: QObject) -> None:
        """Forgets an owner when Qt deletes it: its `id` may soon be another's."""
        name = id(owner)
        if name not in self._watched:
            self._watched.add(name)
            owner.destroyed.connect(functools.partial(self._owner_gone, name))

    def _owner_gone(self, name: int, _object: QObject | None = None) -> None:
        self._watched.discard(name)
        self._newest.forget(name)

    def take(self, number: int, answer: Any, error: Any) -> None:
        """Hands an answer to who wanted it, if that is still the newest wish; called by the courier."""
        wish = self._wishes.pop(number, None)
        if wish is None or not self._newest.is_newest(wish.key, number) or not shiboken6.isValid(wish.owner):
            return
        self._newest.forget(*wish.key)
        if error is None:
            wish.done(answer)
        elif wish.failed is not None:
            wish.failed(error)
        else:
            self.failed.emit(error)


class _Runnable(QRunnable):
    """One call on a thread of the pool. It holds data only: no widget is ever let go of outside the GUI thread."""

    def __init__(self, number: int, key: Key, function: Callable[[], Any], newest: _Newest, courier: _Courier) -> None:
        super().__init__()
        self._number, self._key, self._function = number, key, function
        self._newest, self._courier = newest, courier

    def run(self) -> None:
        answer: Any = None
        failure: Exception | None = None
        if self._newest.is_newest(self._key, self._number):
            try:
                answer = self._function()
            except Exception as error:  # every failure must reach the person, whatever it is
                failure = error
        self._courier.arrived.emit(self._number, answer, failure)


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}"
