"""Spreads work of the GUI thread over turns of the event loop, so that between two portions the window answers.

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
from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

PORTION_MS: Final = 25.0
"""A turn that has lasted so long takes nothing more that can wait: half of what a person would feel, and room for what
a portion began with."""


class Turns(QObject):
    """Knows how long the present turn has lasted, and does what was put off, in order, a portion a turn.

    Attributes:
        began: When this turn began, by `time.perf_counter`.

    Signals:
        begun: A turn begins: since the one before, Qt has handed over what the person did.
    """

    begun = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.began = 0.0
        self._waiting: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._unseen: deque[tuple[QObject, Callable[[], object]]] = deque()
        # A timer, not a posted event: the loop comes to timers only after all that is posted, and to people before.
        self._tick = QTimer(self, interval=1, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._turn)

    @property
    def is_full(self) -> bool:
        """Whether this turn has lasted long enough; the first to ask in a turn begins it."""
        self.begin()
        return 1e3 * (time.perf_counter() - self.began) > PORTION_MS

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting and not self._unseen

    def later(self, owner: QObject, do: Callable[[], object], *, unseen: bool = False) -> None:
        """Calls `do` in a later turn, after what was put off before, unless Qt has deleted `owner` by then.

        What nobody sees comes after all that somebody does.
        """
        (self._unseen if unseen else self._waiting).append((owner, do))
        self.begin()

    def begin(self) -> None:
        """Counts this turn from here, unless it has begun already."""
        if not self._tick.isActive():
            self.began = time.perf_counter()
            self._tick.start()

    @Slot()
    def _turn(self) -> None:
        self.begun.emit()
        self.began = time.perf_counter()
        if not self.idle:
            self._tick.start()
        queue = self._waiting or self._unseen
        for _ in range(len(queue)):
            owner, do = queue.popleft()
            if shiboken6.isValid(owner):
                do()
            if 1e3 * (time.perf_counter() - self.began) > PORTION_MS / 2:
                return


@functools.cache
def turns() -> Turns:
    """The one of this process; made at the first call, which the GUI thread makes."""
    return Turns()
