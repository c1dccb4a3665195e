"""Read members of a zip archive of a stranger: by their names, each up to a length. Nothing is unpacked to a path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainer.untrusted.files import open_ordinary

MOST_MEMBERS: Final = 50_000
MOST_NAME: Final = 1_024
_HEADER: Final = 30
"""Bytes before the name of a member (APPNOTE.TXT of PKWARE, 4.3.7)."""
FAULTS: Final = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, NotImplementedError)
"""What a damaged archive, or one that is encrypted, raises while it is read."""


def first_member(path: Path) -> str:
    """Return the name of an archive's first member; empty if it is no archive.

    Only its header is read: the list of all members, at the end, may have millions.
    """
    try:
        with open_ordinary(path) as file:
            header = file.read(_HEADER + MOST_NAME)
    except OSError:
        return ""
    length = int.from_bytes(header[26:28], "little")
    if not header.startswith(b"PK\x03\x04") or length > MOST_NAME:
        return ""
    return header[_HEADER : _HEADER + length].decode("utf-8", "replace")


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
            if match := pattern.fullmatch(member.filename):
                with archive.open(member) as stream:
                    yield match, stream.read(longest + 1)
