"""Disk space reserved in a run's folder: given back on a full disk, it is the room for the sentence that says so."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Final

from trainer.store.files import write_atomically
from trainer.untrusted import confined

NAME: Final = ".tmp-reserve"
_SIZES: Final = (2**20, 2**18)
"""Bytes, and those where there are not as many: room for some rows, when a claim has used the first."""


def take(root: Path, folder: Path) -> None:
    """Reserve space in a run's folder in the workspace `root`, unless some is or the disk or a link refuses it."""
    with contextlib.suppress(OSError):
        file = confined.inside(root, confined.relative(root, folder / NAME))
        for size in _SIZES:
            if not os.path.lexists(file):
                with contextlib.suppress(OSError):
                    write_atomically(file, partial(_write, size), private=True)


def give(root: Path, folder: Path) -> bool:
    """Release the space for the next message; return whether there was some."""
    existed = os.path.lexists(folder / NAME)
    with contextlib.suppress(OSError):
        confined.remove(root, confined.relative(root, folder / NAME))
    return existed


def _write(size: int, draft: Path) -> None:
    draft.write_bytes(os.urandom(size))
