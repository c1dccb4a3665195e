"""Tell by its content whether a file of weights is complete, and which epoch or step it is of; imports no torch."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.headers import check_safetensors
from trainer.untrusted.files import open_ordinary

_BEGIN: Final = b"PK\x03\x04"
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONG_END: Final = b"PK\x06\x06"
_LONG_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_DIRECTORY: Final = b"PK\x01\x02"
_MOST_DIRECTORY: Final = 64 << 20
_MOST_PICKLE: Final = 64 << 20
_MOST_OPCODES: Final = 200
"""Programs write the number before the weights: what comes later in a file is not looked at."""
_MOST_TENSORS: Final = 1 << 20


def begins_as_archive(path: Path) -> bool:
    """Return whether a file begins as one of `torch.save`, complete or not.

    Raises:
        OSError: It is missing, or no ordinary file.
    """
    with open_ordinary(path) as file:
        return file.read(len(_BEGIN)) == _BEGIN


def is_complete_archive(path: Path) -> bool:
    """Return whether a file of `torch.save` has its begin, its end, and the directory that the end names.

    A size that does not change says nothing: a file that is written in parts rests between them.
    """
    try:
        with open_ordinary(path) as file:
            return _has_directory(file, file.seek(0, io.SEEK_END))
    except OSError:
        return False


def _has_directory(file: BinaryIO, size: int) -> bool:
    if size < len(_BEGIN) + _END_BYTES or _read(file, 0, len(_BEGIN)) != _BEGIN:
        return False
    end = _read(file, size - _END_BYTES, _END_BYTES)
    if end[:4] != _END:
        return False
    length, first = int.from_bytes(end[12:16], "little"), int.from_bytes(end[16:20], "little")
    limit = size - _END_BYTES
    if 0xFFFFFFFF in (length, first):
        locator = _read(file, limit - _LOCATOR_BYTES, _LOCATOR_BYTES)
        limit = int.from_bytes(locator[8:16], "little")
        record = _read(file, limit, 56) if locator[:4] == _LONG_LOCATOR and limit < size else b""
        if record[:4] != _LONG_END:
            return False
        length, first = int.from_bytes(record[40:48], "little"), int.from_bytes(record[48:56], "little")
    return 0 < length <= min(_MOST_DIRECTORY, limit - first) and _read(file, first, 4) == _DIRECTORY


def _read(file: BinaryIO, first: int, length: int) -> bytes:
    if first < 0:
        return b""
    file.seek(first)
    return file.read(length)


def is_complete_safetensors(path: Path) -> bool:
    """Return whether a `.safetensors` file has exactly the bytes that its header names."""
    try:
        return bool(check_safetensors(path, most=_MOST_TENSORS, sparse=True))
    except (OSError, Unreadable):
        return False


def numbers_inside(path: Path, *names: str) -> dict[str, int]:
    """Return the whole numbers of these names at the begin of the dictionary that a complete archive holds.

    The pickle is only taken apart, never run: it tells names and numbers without building an object.
    """
    if not is_complete_archive(path):
        return {}
    try:
        with open_ordinary(path) as file, zipfile.ZipFile(file) as archive:
            member = next(entry for entry in archive.infolist() if entry.filename.endswith("/data.pkl"))
            if member.file_size > _MOST_PICKLE or member.compress_type != zipfile.ZIP_STORED:
                return {}
            with archive.open(member) as content:
                return dict(_pairs(content.read(_MOST_PICKLE), names))
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile, NotImplementedError, EOFError):
        return {}


def _pairs(pickle: bytes, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield a name and the whole number after it."""
    name = ""
    for (code, value, _), _ in zip(pickletools.genops(pickle), range(_MOST_OPCODES)):
        if "PUT" in code.name or code.name == "MEMOIZE":
            continue
        if name and isinstance(value, int) and "INT" in code.name and value >= 0:
            yield name, value
        name = value if isinstance(value, str) and value in names else ""
