"""A stop request without database or signal: a file in the run's folder, addressed to its trainer.

Windows has no signal that asks: there SIGTERM ends a process without a checkpoint. Imports no torch.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from trainer.store.process_lock import Identity
from trainer.untrusted import confined
from trainer.untrusted.documents import parse

NAME: Final = "stop.flag"
_MOST: Final = 1_000
"""Bytes of a flag; what is longer is none of ours."""


def put(folder: Path, trainer: Identity) -> None:
    """Ask the process that trains the run in `folder` to stop.

    Raises:
        OSError: The file cannot be written.
    """
    content = json.dumps(asdict(trainer))
    confined.write(folder, NAME, content.encode())


def is_for(folder: Path, trainer: Identity | None) -> bool:
    """Return whether the run's folder has a stop request for this process, not for an earlier trainer."""
    if trainer is None:
        return False
    try:
        return trainer.is_same(parse(confined.read(folder, NAME, _MOST), Identity))
    except (OSError, ValueError):  # none, half written, or a stranger's
        return False


def remove(folder: Path) -> None:
    """Remove the stop request of any trainer."""
    with contextlib.suppress(OSError):
        confined.remove(folder, NAME)
