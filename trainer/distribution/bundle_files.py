"""What an evidence bundle (`trainer bundle`) is called, and how one is recognized."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trainer.untrusted.archives import first_member

PACKED: Final = ".zip"
"""Ending of a packed bundle."""
FACTS: Final = "bundle.json"
"""What a bundle holds; the first member of an archive, so that one is recognized without reading on."""


def is_bundle(path: Path) -> bool:
    """Return whether a path is a folder or an archive that `trainer bundle` wrote, which list their contents first."""
    try:
        if path.is_dir():
            return (path / FACTS).is_file() and (path / "runs").is_dir()
        return path.suffix.lower() == PACKED and path.is_file() and first_member(path) == FACTS
    except OSError:
        return False
