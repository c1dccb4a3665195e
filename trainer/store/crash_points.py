"""Named points where fault tests kill this process like `kill -9`; otherwise without effect.

`EXPLORER_CRASH_AT=checkpoints.renamed:3` ends it when that moment comes for the third time.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

VARIABLE: Final = "EXPLORER_CRASH_AT"
KILLED: Final = 137
"""The exit status of a process that ended here: that of one ended by SIGKILL, as a shell tells it."""
_seen: Counter[str] = Counter()


def point(name: str) -> None:
    """Do nothing, unless the environment selects this point to end the process."""
    selected = os.environ.get(VARIABLE)
    if not selected:
        return
    where, _, count = selected.partition(":")
    if where == name:
        _seen[name] += 1
        if _seen[name] == int(count or 1):
            # No handler, no buffer and no lock is seen to: what a killed process leaves is what is left.
            os._exit(KILLED)
