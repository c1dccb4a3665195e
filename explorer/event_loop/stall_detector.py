"""Measure how long the event loop is blocked, during which the window does not respond."""

from __future__ import annotations

import faulthandler
import linecache
import logging
import os
import re
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from typing import IO, Final

from msgspec import Struct
from PySide6.QtCore import QObject, Qt, QTimer, Slot

from explorer.event_loop.idle_scheduler import idle_scheduler
from trainer.untrusted import confined

LONGEST_MS: Final = 100.0
"""A click that is answered later feels slow."""
EVERY_MS: Final = 30
LOOKS_EVERY_S: Final = 0.04
KEPT: Final = 64
STACK: Final = 12
"""Calls that are told of a stretch."""

_THREAD: Final = re.compile(r"hread 0x([0-9a-fA-F]+)")
_CALL: Final = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in ')

_log = logging.getLogger("explorer.event_loop.stall_detector")


class Gap(Struct, frozen=True):
    """A period in which the event loop was blocked and the window did not respond."""

    at: float  # Seconds since the epoch, when it ended.
    wall_ms: float  # How long, by the clock on the wall.
    cpu_ms: float  # How long the GUI thread computed.
    # How long the GUI thread could have computed and was given no processor; 0 where the system does not tell.
    # What is left of `wall_ms` was spent waiting: for a file, a lock, another thread of Python.
    waited_ms: float
    stack: str = ""  # Where the GUI thread was after `LONGEST_MS`; empty if nobody looked in time.

    @property
    def own_ms(self) -> float:
        """The duration on an idle computer: the part the program itself caused."""
        return self.wall_ms - self.waited_ms

    def __str__(self) -> str:
        return (
            f"The window did not respond for {self.wall_ms:.0f} ms"
            f" ({self.cpu_ms:.0f} ms computing, {self.waited_ms:.0f} ms without a processor)"
        )


class StallDetector(QObject):
    """Measures blocked periods of this thread's event loop from timer ticks that arrive late.

    It beats once in each round of the loop, for in each the person is heard once. A timer keeps the loop going round;
    what it slept in between, less than `EVERY_MS`, counts as time by the wall.

    Attributes:
        gaps: The newest gaps over `LONGEST_MS` by the wall, oldest first.
        longest: The gap with the most computing since the start, or since `forget`; None before the first beat.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        """Start measuring; to be created on the GUI thread."""
        super().__init__(parent)
        self.gaps: deque[Gap] = deque(maxlen=KEPT)
        self.longest: Gap | None = None
        self._clock = Clock()
        self._busy = _Busy()
        # The thread holds what it reads and nothing of Qt.
        looker = threading.Thread(target=_look, args=(self._busy, threading.get_ident()), name="watchdog", daemon=True)
        weakref.finalize(self, self._busy.over.set).atexit = False
        looker.start()
        self._timer = QTimer(self, interval=EVERY_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.start()
        idle_scheduler().ended.connect(self._beat)

    def forget(self) -> None:
        """Reset all measurements, so that a test can measure a single action."""
        self.gaps.clear()
        self.longest = None
        if self._busy.since is not None:
            self._clock.start()
            self._busy.since = self._clock.wall

    def close(self) -> None:
        """Stop measuring."""
        self._timer.stop()
        idle_scheduler().ended.disconnect(self._beat)
        self._busy.over.set()

    @Slot()
    def _beat(self) -> None:
        wall, cpu, waited = self._clock.passed()
        stack, self._busy.stack = self._busy.stack, ""
        self._clock.start()
        first, self._busy.since = self._busy.since is None, self._clock.wall
        # Before the first beat there was no event loop that anybody waited for.
        if first:
            return
        if self.longest is None or cpu > self.longest.cpu_ms or wall > LONGEST_MS:
            self._take(Gap(time.time(), wall, cpu, min(wall, waited), stack))

    def _take(self, gap: Gap) -> None:
        if self.longest is None or gap.cpu_ms > self.longest.cpu_ms:
            self.longest = gap
        if gap.wall_ms > LONGEST_MS:
            self.gaps.append(gap)
            if gap.own_ms > LONGEST_MS:
                _log.warning("%s\n%s", gap, gap.stack.rstrip())


class Clock:
    """Time since the last tick, measured by three clocks."""

    def __init__(self) -> None:
        self._waited = _Waited()
        self.start()

    def start(self) -> None:
        self.wall, self._cpu, self._queued = time.perf_counter(), time.thread_time(), self._waited.now()

    def passed(self) -> tuple[float, float, float]:
        """Return the milliseconds of wall time, of CPU time, and of waiting for a processor."""
        wall, cpu = time.perf_counter() - self.wall, time.thread_time() - self._cpu
        return 1e3 * wall, 1e3 * cpu, (self._waited.now() - self._queued) / 1e6


class _Busy:
    """State shared between the GUI thread and the thread that monitors it."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.stack = ""
        self.over = threading.Event()


class _Waited:
    """Nanoseconds that this thread was runnable but not running, as Linux counts them; 0 on other systems."""

    def __init__(self) -> None:
        self._file: int | None = None
        if sys.platform.startswith("linux"):
            try:
                self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
            except OSError:
                return
            weakref.finalize(self, os.close, self._file).atexit = False

    def now(self) -> int:
        if self._file is None:
            return 0
        try:
            return int(os.pread(self._file, 80, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return 0


def _look(busy: _Busy, thread: int) -> None:
    """Capture the GUI thread's stack once in each period that it is blocked for too long."""
    with tempfile.TemporaryFile(buffering=0) as file:
        while not busy.over.wait(LOOKS_EVERY_S):
            since = busy.since
            if since is not None and not busy.stack and time.perf_counter() - since > LONGEST_MS / 1e3:
                stack = _stack_of(thread, file)
                if busy.since == since:
                    busy.stack = stack


def _stack_of(thread: int, file: IO[bytes]) -> str:
    """Return the newest calls of a thread, oldest first, using `file` as a buffer.

    Not from `sys._current_frames`: who holds a frame holds its variables. A painter then outlives its paintEvent and
    the picture that it paints on, and ends on a foreign thread, which crashes the window.
    """
    file.seek(0)
    confined.cut(file, 0)
    faulthandler.dump_traceback(file)  # type: ignore[arg-type]
    file.seek(0)
    for part in file.read().decode(errors="replace").split("\n\n"):
        head, *calls = part.splitlines()
        match = _THREAD.search(head)
        if match and int(match[1], 16) == thread:
            return "".join(_formatted(call) for call in reversed(calls[:STACK]))
    return ""


def _formatted(call: str) -> str:
    """Format a call as in a traceback, with its source line."""
    if (match := _CALL.match(call)) is None:
        return f"{call}\n"
    source = linecache.getline(match["file"], int(match["line"])).strip()
    return f"{call}\n    {source}\n" if source else f"{call}\n"
