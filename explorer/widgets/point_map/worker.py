"""A render thread of one layer; it holds data only, because Qt objects must be released on the GUI thread."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import shiboken6
from msgspec import Struct
from PySide6.QtCore import QObject

from explorer.event_loop.mailbox import Mailbox, mailbox


class _Share(Struct, frozen=True):
    """The completed share of some work, 0 to 1."""

    done: float


class Newest:
    """A slot with only the newest request, so that a thread never works on outdated ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: object | None = None

    def put(self, request: object) -> bool:
        """Replace the request; return whether the slot was empty, so that the worker must be notified."""
        with self._lock:
            empty, self._newest = self._newest is None, request
        return empty

    def take(self) -> object | None:
        """Return the newest request and clear the slot."""
        with self._lock:
            request, self._newest = self._newest, None
        return request

    @property
    def full(self) -> bool:
        """Whether a request is waiting."""
        return self._newest is not None

    def work_with(self, function: Callable[..., object]) -> Callable[..., object]:
        """Wrap `function` to run on the newest request when it starts; None if there is none."""

        def work(*show_message: Callable[[float], object]) -> object:
            request = self.take()
            return None if request is None else function(request, *show_message)

        return work


class Worker:
    """A daemon thread that runs tasks in order; closing the window never waits for it.

    It ends with its owner, which is told nothing once Qt has deleted it.
    """

    def __init__(self, owner: QObject) -> None:
        self._owner = weakref.ref(owner)
        weakref.finalize(owner, self.end).atexit = False
        self._work: queue.SimpleQueue[tuple[int, Callable[..., object], bool] | None] = queue.SimpleQueue()
        self._done: dict[int, tuple[Callable[[Any], object], Callable[[float], object] | None]] = {}
        self._started = False

    def do(
        self,
        work: Callable[..., object],
        done: Callable[[Any], object],
        *,
        report: Callable[[float], object] | None = None,
    ) -> None:
        """Call `work`, which must hold no Qt objects, after all earlier tasks; `done` receives its result.

        With `report`, work is given a function that takes the share that is done and calls `report` with it on the GUI
        thread. An error is raised on the GUI thread.
        """
        number = mailbox().expect(self)
        if not self._started:
            self._started = True
            threading.Thread(target=_work_off, args=(self._work, mailbox()), name="point-map", daemon=True).start()
        self._done[number] = (done, report)
        self._work.put((number, work, report is not None))

    def take(self, number: int, news: object) -> None:
        """Deliver a result or progress; an error is raised on the GUI thread, where the hooks report it."""
        owner = self._owner()
        if owner is None or not shiboken6.isValid(owner):
            self.end()
            return
        if isinstance(news, _Share):
            _done, report = self._done.get(number, (None, None))
            if report is not None:
                report(news.done)
            return
        mailbox().forget(number)
        done, _told = self._done.pop(number, (None, None))
        if isinstance(news, BaseException):
            raise news
        if done is not None:
            done(news)

    def end(self) -> None:
        """Stop the thread after its current tasks and drop their results."""
        for number in self._done:
            mailbox().forget(number)
        self._done.clear()
        self._work.put(None)


def _work_off(work: queue.SimpleQueue[tuple[int, Callable[..., object], bool] | None], mailbox: Mailbox) -> None:
    while (call := work.get()) is not None:
        number, function, tells = call
        try:
            answer = function(partial(_report_progress, mailbox, number)) if tells else function()
        except BaseException as error:
            answer = error
        mailbox.post(number, answer)
        del call, function, answer


def _report_progress(mailbox: Mailbox, number: int, share: float) -> None:
    mailbox.post(number, _Share(share))
