"""How long this process has been running, for what the start of the window takes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_START: Final = 19
"""Of the fields of /proc/self/stat after the name: clock ticks from the start of the system to that of the process."""


def process_age_s() -> float:
    """Return the seconds since this process was started.

    `psutil.Process.create_time` adds the ticks to the time of the system's start, which Linux tells in whole seconds
    (btime in /proc/stat): up to a second too much, the same for every process until the next start of the system.
    """
    stat = Path("/proc/self/stat")
    if not stat.exists():
        import psutil

        return time.time() - psutil.Process().create_time()
    ticks = int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[_START])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
