"""Read members of a zip archive of a stranger: by their names, each up to a length. Nothing is unpacked to a path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainer.untrusted.files import open_ordinary

MOST_MEMBERS: Final = 50_000
FAULTS: Final = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, NotImplementedError)
"""What a damaged archive, or one that is encrypted, raises while it is read."""


def has_member(path: Path, name: str) -> bool:
    """Return whether a file is an archive with a member of this name."""
    try:
        with open_ordinary(path) as file, zipfile.ZipFile(file) as archive:
            return name in archive.NameToInfo
    except FAULTS:
        return False


def members(path: Path, pattern: re.Pattern[str], longest: int) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield the members whose whole name fits the pattern, one byte more than `longest` of those that are longer.

    Raises:
        OSError, ValueError, EOFError, RuntimeError, BadZipFile: As in `FAULTS`; there are too many members.
    """
    with open_ordinary(path) as file, zipfile.ZipFile(file) as archive:
        listed = archive.infolist()
        if len(listed) > MOST_MEMBERS:
            raise ValueError(f"it lists {len(listed):,} files")
        for member in listed:
            if found := pattern.fullmatch(member.filename):
                with archive.open(member) as stream:
                    yield found, stream.read(longest + 1)
