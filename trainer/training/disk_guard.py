"""Pause a run while its disk cannot be written, with the model in memory, and resume automatically."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from trainer.errors import UserError
from trainer.store import RunLog
from trainer.store.disk import DiskTrouble
from trainer.training.control import ControlFlags
from trainer.training.text_log import TextLog

RETRY_S: Final = 10.0
"""How often it is tried again where only trying can tell whether the disk is well."""
LOOK_S: Final = 0.2
"""How often it looks for room, and for the request to stop."""
PHASE: Final = "waiting for the disk"
_Written = TypeVar("_Written")


class StoppedWaiting(UserError):
    """The user stopped a run that waited for its disk."""


class DiskGuard:
    """Writes essential files, and pauses the run while the disk refuses them.

    Attributes:
        waited: How often the run has been paused for its disk.
    """

    def __init__(self, log: RunLog, control: ControlFlags, text_log: TextLog) -> None:
        self._log, self._control, self._text_log = log, control, text_log
        self.waited = 0

    def until_written(self, write: Callable[[], _Written]) -> _Written:
        """Return the result of `write`, retrying after each `DiskTrouble` once it may be resolved.

        Raises:
            StoppedWaiting: The person asked the run to stop while it waited.
        """
        waits = False
        while True:
            try:
                written = write()
            except DiskTrouble as trouble:
                if not waits:
                    self._pause(trouble)
                waits = True
                self._wait(trouble)
                continue
            if waits:
                self._go_on()
            return written

    def _pause(self, trouble: DiskTrouble) -> None:
        self.waited += 1
        # The row must be written on a disk that is full.
        self._log.give_reserve()
        reason = f"{trouble} The run waits and continues automatically."
        self._text_log.say(f"paused: {reason}")
        self._log.alert("disk", reason, int(self._log.said("step", 0)))
        self._log.status("paused", reason)

    def _wait(self, trouble: DiskTrouble) -> None:
        until = time.monotonic() + RETRY_S
        while True:
            if self._control.now() in ("stop", "stop-epoch"):
                raise StoppedWaiting(f"Stopped while waiting for its disk. {trouble} Then resume.")
            self._log.report(phase=PHASE)
            time.sleep(LOOK_S)
            if time.monotonic() >= until or (trouble.full and trouble.mended()):
                return

    def _go_on(self) -> None:
        self._log.take_reserve()
        self._log.all_clear("disk")
        self._log.status("running")
        self._text_log.say("the disk is writable again: continuing")
