"""Run pure functions off the GUI thread and deliver only the newest result."""

from __future__ import annotations

import functools
import heapq
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

import shiboken6
from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from explorer.event_loop.mailbox import Mailbox, mailbox

THREADS: Final = 2
"""Training needs the cores too; more threads would only wait for each other under the GIL."""

URGENT_THREADS: Final = 2
"""For what takes milliseconds and is waited for: news of the runs, thumbnails. An analysis must not hold these up."""


Key = tuple[int, str]
"""`id` of the owner, and the name of what it asks; a task keeps its owner, so no two have one `id`."""


class _Task(Struct, frozen=True):
    """The requester of a result; kept on the GUI thread, where Qt objects can be released safely."""

    owner: QObject
    key: Key
    done: Callable[[Any], None]
    failed: Callable[[Exception], None] | None


class _Newest:
    """The newest request number of each key; written by the GUI thread, read by the worker threads."""

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
        """Drop the keys of `owner` (None: of all) with this name (None: with any)."""
        with self._lock:
            remaining = {
                k: n for k, n in self._numbers.items() if owner not in (None, k[0]) or name not in (None, k[1])
            }
            self._numbers = remaining


class _Pool:
    """A pool of Python threads that runs the most urgent calls first, holds only data and stops with `shut`.

    Not Qt's pool: that one destroys its runnables on its own threads, and its end waits for them for ever.
    """

    def __init__(self, most: int) -> None:
        self._most, self._idle, self._shut = most, 0, False
        self._turn = threading.Condition()
        self._orders = itertools.count()
        self._calls: list[tuple[int, int, Callable[[], None]]] = []
        self._threads: list[threading.Thread] = []

    def start(self, call: Callable[[], None], priority: int) -> None:
        """Queue `call`: higher priority first, then in order of arrival."""
        with self._turn:
            heapq.heappush(self._calls, (-priority, next(self._orders), call))
            if self._idle < len(self._calls) and len(self._threads) < self._most:
                # A daemon: no analysis may hold up the end of the program.
                thread = threading.Thread(target=self._work, name="background", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._turn.notify()

    def shut(self) -> None:
        """Start no more calls; the threads exit after their current call."""
        with self._turn:
            self._shut = True
            self._calls.clear()
            self._turn.notify_all()

    def wait(self, deadline: float) -> bool:
        """Return whether all threads have exited by `deadline` (monotonic clock)."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call()
            del call  # what it holds must not live on while the thread is idle

    def _next(self) -> Callable[[], None] | None:
        with self._turn:
            self._idle += 1
            while not self._calls and not self._shut:
                self._turn.wait()
            self._idle -= 1
            return None if self._shut else heapq.heappop(self._calls)[2]


class Background(QObject):
    """A thread pool that runs pure functions and delivers their results on the GUI thread.

    Of several runs with the same owner and key only the newest is answered; the others are skipped if they have not
    begun, and their answers dropped if they have. An owner that Qt has deleted is not called. The function must not
    touch a widget; give it frozen data.
    """

    failed = Signal(object)  # An exception that no `failed` callback was there to take.

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pools = {False: _Pool(THREADS), True: _Pool(URGENT_THREADS)}
        for pool in self._pools.values():
            weakref.finalize(self, pool.shut).atexit = False
        self._newest = _Newest()
        self._tasks: dict[int, _Task] = {}
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether a result is still pending."""
        return bool(self._tasks)

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
        """Call `function(*args)` on a thread, then `done(result)` or `failed(exception)` on the GUI thread.

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
        self._forget_the_gone()
        number, task = mailbox().expect(self), _Task(owner, (id(owner), key or _name(function)), done, failed)
        self._newest.set(task.key, number)
        self._tasks[number] = task
        call = functools.partial(_answer, number, task.key, functools.partial(function, *args), self._newest, mailbox())
        # What was asked last is what the person looks at: it overtakes what other views still wait for.
        self._pools[urgent].start(call, 0 if urgent else number)

    def forget(self, owner: QObject, key: str | None = None) -> None:
        """Drop the pending results of this owner, or of one of its keys."""
        self._newest.forget(id(owner), key)

    def close(self, *, wait_ms: int = 5_000) -> bool:
        """Accept no more calls, drop every result and wait for running functions; False if one is still running."""
        self._closed = True
        self._newest.forget()
        for number in self._tasks:
            mailbox().forget(number)
        self._tasks.clear()
        deadline = time.monotonic() + wait_ms / 1000
        for pool in self._pools.values():
            pool.shut()
        return all(pool.wait(deadline) for pool in self._pools.values())

    def _forget_the_gone(self) -> None:
        """Drop the pending requests of owners that Qt has deleted.

        They are looked at: listening to `destroyed` with a function of Python is what PySide 6.11 may crash on.
        """
        for task in self._tasks.values():
            if not shiboken6.isValid(task.owner):
                self._newest.forget(*task.key)

    def take(self, number: int, news: tuple[Any, Any]) -> None:
        """Deliver a result to its requester if that is still the newest request; called by the mailbox."""
        mailbox().forget(number)
        answer, error = news
        task = self._tasks.pop(number, None)
        if task is None or not self._newest.is_newest(task.key, number) or not shiboken6.isValid(task.owner):
            return
        self._newest.forget(*task.key)
        if error is None:
            task.done(answer)
        elif task.failed is not None:
            task.failed(error)
        elif shiboken6.isValid(self):
            self.failed.emit(error)


def _answer(number: int, key: Key, function: Callable[[], Any], newest: _Newest, mailbox: Mailbox) -> None:
    """Run one call on a thread, unless its result is no longer needed."""
    answer: Any = None
    failure: BaseException | None = None
    if newest.is_newest(key, number):
        try:
            answer = function()
        except BaseException as error:  # every failure must reach the person, whatever it is
            failure = error
    mailbox.post(number, (answer, failure))


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}"
