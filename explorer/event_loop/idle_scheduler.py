"""Spread GUI-thread work over several event-loop iterations, so that the window stays responsive.

Qt hands over everything that is posted in one go: timers, and what the person does, wait until all of it is done. Ten
things of 20 ms each, posted together, are 200 ms in which nobody is answered. Whoever could wait asks `is_full` first,
and comes back `later`.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import shiboken6
from PySide6.QtCore import QAbstractEventDispatcher, QObject, Qt, QTimer, Signal, Slot

PORTION_MS: Final = 25.0
"""A turn that has lasted so long takes nothing more that can wait: half of what a person would feel, and room for what
a portion began with."""

MOST_RESTS: Final = 8
"""Turns that were filled by others, after which what nobody sees is done in the next one all the same."""


class IdleScheduler(QObject):
    """Measures the current event-loop iteration and runs deferred work in order, one portion per iteration.

    A turn is one round of the event loop: what is posted, the timers that are due, and what the person did. It counts
    all that the GUI thread computed in it, and by the clock on the wall from the first who asks or puts something off,
    for before that the loop may have slept.
    """

    ended = Signal()  # A turn is over: what the person does is handed over once in each.

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self._began: float | None = None
        self._spent = 0.0
        self._computed = 0.0
        self._read = time.perf_counter()
        self._rests = 0
        self._waiting: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._unseen: deque[tuple[QObject, Callable[[], object]]] = deque()
        # A timer, not a posted event: the loop comes to timers only after all that is posted, and to people before.
        self._tick = QTimer(self, interval=1, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._do_portion)
        # Emitted once a round of the loop.
        QAbstractEventDispatcher.instance().awake.connect(self._end)

    @property
    def is_full(self) -> bool:
        """Whether this iteration has used up its time; the first call in an iteration starts the clock."""
        self.begin()
        return self._lasts_ms > PORTION_MS

    @property
    def idle(self) -> bool:
        """Whether no work is waiting."""
        return not self._waiting and not self._unseen

    def later(self, owner: QObject, do: Callable[[], object], *, unseen: bool = False) -> None:
        """Call `do` in a later iteration, after all work deferred before it, unless Qt has deleted `owner` by then.

        What nobody sees comes after all that somebody does.
        """
        (self._unseen if unseen else self._waiting).append((owner, do))
        if not self._tick.isActive():
            self._tick.start()

    def begin(self) -> None:
        """Start the wall clock of this iteration, unless it is already running."""
        if self._began is None:
            self._began = time.perf_counter()

    @property
    def _lasts_ms(self) -> float:
        now = time.perf_counter()
        by_wall = 0.0 if self._began is None else now - self._began
        computed = self._computed + now - self._read  # at most: reading it is a call of the system
        if 1e3 * computed > PORTION_MS / 2:
            computed = self._computed = time.thread_time() - self._spent
            self._read = now
        return 1e3 * max(by_wall, computed)

    @Slot()
    def _end(self) -> None:
        self.number += 1
        self._began, self._spent = None, time.thread_time()
        self._computed, self._read = 0.0, time.perf_counter()
        self.ended.emit()

    @Slot()
    def _do_portion(self) -> None:
        if self.idle:
            return
        self._tick.start()
        self.begin()
        # What was posted may have filled the turn; but whoever waits does not wait for ever.
        most = 1 if self._waiting else MOST_RESTS
        self._rests = self._rests + 1 if self._rests < most and self._lasts_ms > PORTION_MS / 2 else 0
        if self._rests:
            return
        queue = self._waiting or self._unseen
        for _ in range(len(queue)):
            owner, do = queue.popleft()
            if shiboken6.isValid(owner):
                do()
            if self._lasts_ms > PORTION_MS / 2:
                return


@functools.cache
def idle_scheduler() -> IdleScheduler:
    """Return this process's scheduler; the GUI thread creates it with the first call."""
    return IdleScheduler()
