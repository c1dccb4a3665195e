"""Log lines for users: on the terminal and in the run's `log.txt`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Final

from trainer.untrusted import confined
from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say

_KEPT: Final = 1_000
"""Lines that wait for room on the disk, at most."""


class TextLog:
    """Writes each line once per destination: to stdout, and to the log file if that is different."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._unwritten: list[str] = []

    def say(self, line: str) -> None:
        """Write a line with the time of day, and what follows it below its text."""
        indented = line.replace("\n", f"\n{' ' * len('00:00:00  ')}")
        stamped = spelled(f"{time.strftime('%H:%M:%S')}  {indented}", keep="\n\t")
        # A full disk, or a terminal that is gone, is no reason to end a training. What is printed to a file stays in
        # its buffer, and is written with the next line that can be.
        with contextlib.suppress(OSError):
            say(stamped, flush=True)
        self.write(stamped)

    def write(self, text: str) -> None:
        """Write to the log file only, unless stdout is that file; buffered while the disk is full."""
        if self._output_is_the_file():
            return
        self._unwritten = [*self._unwritten[-_KEPT:], text.rstrip("\n") + "\n"]
        with contextlib.suppress(OSError), confined.open_file(self._file.parent, self._file.name, "ab") as file:
            while self._unwritten:
                line = self._unwritten[0].encode()
                if file.write(line) != len(line):
                    return
                self._unwritten.pop(0)

    def _output_is_the_file(self) -> bool:
        try:
            return os.path.samestat(os.fstat(sys.stdout.fileno()), self._file.stat())
        except (OSError, ValueError, AttributeError):
            return False
