"""The one way off the GUI thread: a pure function in, its newest answer out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import shiboken6
from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal, Slot

THREADS: Final = 2
"""Training needs the cores too; more threads would only wait for each other under the GIL."""


@dataclass(frozen=True)
class _Task:
    owner: QObject
    key: tuple[int, str]
    ticket: int
    function: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[Exception], None] | None


class Background(QObject):
    """Runs pure functions on a thread pool and hands their answers to the GUI thread.

    Of several runs with the same owner and key only the newest is answered; the others are skipped if they have not
    begun, and their answers dropped if they have. An owner that Qt has deleted is not called. The function must not
    touch a widget; give it frozen data.

    Signals:
        failed: An exception that no `failed` callback was there to take.
    """

    failed = Signal(object)
    _finished = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(THREADS)
        self._lock = threading.Lock()
        self._tickets: dict[tuple[int, str], int] = {}
        self._watched: set[int] = set()
        self._pending = 0
        self._next = 0
        self._closed = False
        self._finished.connect(self._deliver)

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._pending > 0

    def run(
        self,
        owner: QObject,
        function: Callable[..., Any],
        *args: Any,
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        key: str | None = None,
    ) -> None:
        """Calls `function(*args)` on a thread, then `done(answer)` or `failed(exception)` on the GUI thread.

        Args:
            owner: Lives in the GUI thread; when it is deleted the answer is dropped.
            function: Pure: reads its arguments only, touches no widget.
            args: What it is called with.
            done: Takes the answer.
            failed: Takes the exception; without it the signal `failed` announces it.
            key: Runs of the same owner and key replace each other; the function's name if not given.
        """
        if self._closed:
            return
        self._watch(owner)
        self._next += 1
        full_key = (id(owner), key or _name(function))
        task = _Task(owner, full_key, self._next, functools.partial(function, *args), done, failed)
        with self._lock:
            self._tickets[full_key] = task.ticket
        self._pending += 1
        self._pool.start(_Runnable(task, self._is_newest, self._announce))

    def forget(self, owner: QObject, key: str | None = None) -> None:
        """Drops what is still to come for this owner, or for one key of it."""
        with self._lock:
            for full_key in [k for k in self._tickets if k[0] == id(owner) and key in (None, k[1])]:
                del self._tickets[full_key]

    def close(self, *, wait_ms: int = 5_000) -> bool:
        """Takes nothing more, drops every answer and waits for running functions; False if one is still running."""
        self._closed = True
        with self._lock:
            self._tickets.clear()
        self._pool.clear()
        return self._pool.waitForDone(wait_ms)

    def _watch(self, owner: QObject) -> None:
        """Forgets an owner when Qt deletes it: its `id` may soon be another's."""
        name = id(owner)
        if name not in self._watched:
            self._watched.add(name)
            owner.destroyed.connect(functools.partial(self._owner_gone, name))

    def _owner_gone(self, name: int, _object: QObject | None = None) -> None:
        self._watched.discard(name)
        with self._lock:
            for key in [k for k in self._tickets if k[0] == name]:
                del self._tickets[key]

    def _is_newest(self, task: _Task) -> bool:
        with self._lock:
            return self._tickets.get(task.key) == task.ticket

    def _announce(self, task: _Task, answer: Any, error: Exception | None) -> None:
        """Called on the worker's thread: the queued signal carries the answer to the GUI thread."""
        if shiboken6.isValid(self):
            self._finished.emit(task, answer, error)

    @Slot(object, object, object)
    def _deliver(self, task: _Task, answer: Any, error: Exception | None) -> None:
        self._pending -= 1
        if self._closed or not self._is_newest(task) or not shiboken6.isValid(task.owner):
            return
        with self._lock:
            del self._tickets[task.key]
        if error is None:
            task.done(answer)
        elif task.failed is not None:
            task.failed(error)
        else:
            self.failed.emit(error)


class _Runnable(QRunnable):
    """One call on a thread of the pool."""

    def __init__(
        self,
        task: _Task,
        wanted: Callable[[_Task], bool],
        announce: Callable[[_Task, Any, Exception | None], None],
    ) -> None:
        super().__init__()
        self._task, self._wanted, self._announce = task, wanted, announce

    def run(self) -> None:
        if not self._wanted(self._task):
            self._announce(self._task, None, None)
            return
        try:
            answer = self._task.function()
        except Exception as error:  # every failure must reach the person, whatever it is
            self._announce(self._task, None, error)
        else:
            self._announce(self._task, answer, None)


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}"
