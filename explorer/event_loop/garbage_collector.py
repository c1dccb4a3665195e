"""Collect Python's cyclic garbage on the GUI thread only.

Python collects on whichever thread allocates next. If a widget or a timer is in a cycle, a worker thread would then
run its destructor while the GUI thread uses Qt: at best Qt warns of timers stopped from another thread, at worst each
thread waits for a lock the other one holds, and the window hangs for good.
"""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

EVERY_MS: Final = 500
LATEST_MS: Final = 20_000
"""A start that takes longer is collected in, too."""
OLDEST_EVERY: Final = 60
"""Turns after which the oldest generation is looked at, too: half a minute."""


class GarbageCollector(QObject):
    """Replaces Python's automatic garbage collection until `close`."""

    def __init__(self, parent: QObject | None = None, *, begin: bool = True) -> None:
        """Begin to collect, or, without `begin`, after `keep_what_is_there`: a start makes little garbage."""
        super().__init__(parent)
        self._turns = 0
        gc.disable()
        self._timer = QTimer(self, interval=EVERY_MS, timeout=self._collect)
        if begin:
            self._timer.start()
        else:
            QTimer.singleShot(LATEST_MS, self, self._timer.start)

    def keep_what_is_there(self) -> None:
        """Exclude all current objects from later collections, so that a collection takes only a few ms."""
        gc.freeze()
        self._timer.start()

    def close(self) -> None:
        """Re-enable Python's automatic garbage collection."""
        self._timer.stop()
        gc.enable()

    def _collect(self) -> None:
        self._turns += 1
        youngest, middle, oldest = gc.get_count()
        first, second, third = gc.get_threshold()
        if oldest > third and self._turns >= OLDEST_EVERY:
            self._turns = 0
            gc.collect(2)
        elif middle > second:
            gc.collect(1)
        elif youngest > first:
            gc.collect(0)
