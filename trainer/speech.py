"""Lines for people: on the terminal and in the run's `log.txt`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


class Speech:
    """Says each line once to whoever looks: to standard output, and to the log file where that is not the same."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def say(self, line: str) -> None:
        """One line, with the time of day."""
        stamped = f"{time.strftime('%H:%M:%S')}  {line}"
        print(stamped, flush=True)
        self.write(stamped)

    def write(self, text: str) -> None:
        """For the log file only; nothing where standard output is that file already."""
        if not self._output_is_the_file():
            with self._file.open("a", encoding="utf-8") as file:
                file.write(text.rstrip("\n") + "\n")

    def _output_is_the_file(self) -> bool:
        try:
            return os.path.samestat(os.fstat(sys.stdout.fileno()), self._file.stat())
        except (OSError, ValueError, AttributeError):
            return False
