"""User requests to a running trainer: flags in the store, a file in the run's folder, and signals."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Final

from trainer.store import RunLog, stop_flag
from trainer.store.process_lock import identity

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY_S: Final = 0.1


class ControlFlags:
    """Reads requests once per step; in its context, SIGTERM and Ctrl-C are requests to stop.

    A second Ctrl-C ends at once, without a checkpoint.
    """

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._signaled = False
        self._before: dict[signal.Signals, signal.Handlers] = {}
        self._me = identity()
        self._looked_at = float("-inf")

    def now(self) -> str:
        """Return `stop`, `stop-epoch`, `pause`, `save`, `evaluate`, or empty; `save` and `evaluate` only once."""
        self._look_for_flag()
        return "stop" if self._signaled else self._log.asked()

    def __enter__(self) -> ControlFlags:
        # Python allows signal handlers in the main thread only; elsewhere the flags alone must do.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        stop_flag.remove(self._log.folder)

    def _look_for_flag(self) -> None:
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._signaled |= stop_flag.is_for(self._log.folder, self._me)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signaled and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._signaled = True
