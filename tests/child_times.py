"""Processor time of child processes, for the test or fixture that started them, whenever and by whomever they end."""

import functools
import json
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests import fork_server
from tests.fork_server import TIMES_FILE, TIMES_OWNER

SERVERS: Final = "(servers of forks)"
"""The owner of the processes that import what commands need."""


class ChildTimes:
    """Knows who started which process, and what the ended ones have used.

    Attributes:
        owner: The test or fixture that runs now.
        foreign: Seconds of processes that other owners started, but this process waited for.
        by_owner: Seconds by owner that `resource.getrusage` told too late, or not at all.
    """

    def __init__(self) -> None:
        self.owner = "(outside of tests)"
        self.foreign = 0.0
        self.by_owner: Counter[str] = Counter()
        self._owners: dict[int, str] = {}
        self._patch = pytest.MonkeyPatch()
        self._forks = Path()
        self._offset = 0

    def begin(self) -> None:
        """Observe from now on which processes start and end."""
        start, wait = subprocess.Popen.__init__, self._wait

        @functools.wraps(start)
        def started(popen: Any, *args: Any, **options: Any) -> None:
            start(popen, *args, **options)
            # Any of its tests may be the first that needs a server.
            self._owners[popen.pid] = SERVERS if fork_server.__file__ in popen.args else self.owner

        self._patch.setattr(subprocess.Popen, "__init__", started)
        self._patch.setattr(os, "waitpid", wait)
        if hasattr(subprocess, "_del_safe"):  # Python 3.12 and later
            self._patch.setattr("subprocess._del_safe.waitpid", wait)
        else:
            poll = functools.partialmethod(vars(subprocess.Popen)["_internal_poll"], _waitpid=wait)
            self._patch.setattr("subprocess.Popen._internal_poll", poll)
        file, name = tempfile.mkstemp(prefix="child-times-")
        os.close(file)
        self._forks = Path(name)
        self._patch.setenv(TIMES_FILE, name)
        self._patch.setenv(TIMES_OWNER, self.owner)

    def end(self) -> None:
        """Observe no longer."""
        self._read_forks()
        self._forks.unlink()
        self._patch.undo()

    def pay(self, owner: str) -> None:
        """Make what is started from now on the owner's."""
        self.owner = os.environ[TIMES_OWNER] = owner

    def pop(self, owner: str) -> float:
        """Return the seconds of the owner that no reading of `resource.getrusage` holds, and forget them."""
        self._read_forks()
        return self.by_owner.pop(owner, 0.0)

    def _wait(self, pid: int, options: int) -> tuple[int, int]:
        ended, status, usage = os.wait4(pid, options)
        owner = self._owners.pop(ended, self.owner) if ended else self.owner
        if owner != self.owner:
            seconds = usage.ru_utime + usage.ru_stime
            self.foreign += seconds
            self.by_owner[owner] += seconds
        return ended, status

    def _read_forks(self) -> None:
        with self._forks.open(encoding="utf-8") as lines:
            lines.seek(self._offset)
            for owner, seconds in map(json.loads, lines.read().splitlines()):
                self.by_owner[owner] += seconds
            self._offset = lines.tell()
