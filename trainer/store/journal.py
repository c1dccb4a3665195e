"""`metrics.jsonl`: the run's append-only log of its curves, written before the database.

One JSON object a line: `{"step": 5, "time": 1700000000.0, "elapsed": 1.5, "values": {"train/loss": 4.1}}`. Numbers
that JSON lacks are the strings "nan", "inf" and "-inf". A torn last line, left by a kill, is ignored and cut off.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import msgspec

from trainer.store import disk
from trainer.store.files import write_atomically
from trainer.store.rows import LATEST, MOST, MOST_STEP
from trainer.untrusted import confined
from trainer.untrusted.files import is_text, open_ordinary

_LONGEST_LINE: Final = 2**20
"""Bytes of a line: hundreds of times what a step logs."""
_MOST_PARTS: Final = 256
"""Of an overlong line: what a hole of zeros in a file may take."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The numbers logged at one step; `elapsed_s` is seconds of training without pauses."""

    step: int
    time: float
    elapsed_s: float
    values: dict[str, float]


class Journal:
    """A journal open for appending, for the process that trains."""

    def __init__(self, path: Path) -> None:
        self._path = path
        _cut_torn_line(path)
        self._file: IO[bytes] = confined.open_file(path.parent, path.name, "ab")

    def append(self, *entries: Entry) -> None:
        """Append entries in one write; they then survive the process.

        Raises:
            DiskTrouble: The disk is full or gone; then nothing of them is there.
        """
        lines = "".join(_to_line(entry) + "\n" for entry in entries).encode("utf-8")
        with disk.writing("The curves", self._path, len(lines)):
            if self._file.closed:
                self._file = confined.open_file(self._path.parent, self._path.name, "ab")
            # A journal that was moved or removed takes lines that nobody will find.
            if os.fstat(self._file.fileno()).st_ino != self._path.stat().st_ino:
                self._file.close()
                raise FileNotFoundError(errno.ENOENT, "moved away")
            end = self._file.seek(0, os.SEEK_END)
            try:
                if self._file.write(lines) != len(lines):
                    raise OSError(errno.ENOSPC, "full")
            except OSError:
                with contextlib.suppress(OSError):
                    confined.cut(self._file, end)
                    self._file.close()
                raise

    def sync(self) -> None:
        """Make every entry survive a power cut."""
        if not self._file.closed:
            with disk.writing("The curves", self._path):
                os.fsync(self._file.fileno())

    def rewind(self, step: int) -> None:
        """Drop every entry after `step`.

        Raises:
            DiskTrouble: The disk is full or gone; then every entry is still there.
        """
        self._file.close()
        lines = "".join(_to_line(entry) + "\n" for entry in read_journal(self._path) if entry.step <= step)
        with disk.writing("The curves", self._path, 2 * len(lines)):
            write_atomically(self._path, lambda draft: draft.write_bytes(lines.encode("utf-8")) and None, private=True)
        self._file = confined.open_file(self._path.parent, self._path.name, "ab")

    def close(self) -> None:
        """Close the journal; nothing can be appended afterwards."""
        self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """Yield the entries in the order written, without damaged lines."""
    try:
        file = open_ordinary(path)
    except OSError:  # it is not there, or has no end
        return
    with file:
        for line in _lines(file):
            entry = entry_of(line)
            if entry is not None:
                yield entry


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines of plausible length; longer ones are skipped, and an endless one ends reading."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
            yield line
            continue
        for _ in range(_MOST_PARTS):
            line = file.readline(_LONGEST_LINE)
            if not line or line.endswith(b"\n"):
                break
        else:
            return


def number_to_json(value: float) -> float | str:
    """Return the value, or its name if JSON has no number for it."""
    return value if math.isfinite(value) else str(value)


def number_from_json(value: Any) -> float:
    """Return the number written by `number_to_json`."""
    return float(value)


def _to_line(entry: Entry) -> str:
    values = {name: number_to_json(value) for name, value in entry.values.items()}
    document = {"step": entry.step, "time": entry.time, "elapsed": entry.elapsed_s, "values": values}
    return json.dumps(document, allow_nan=False)


def entry_of(line: bytes) -> Entry | None:
    """Return the entry of a line; None if it is damaged."""
    try:
        decoded = _DECODER.decode(line)
        values = {name: number_from_json(value) for name, value in decoded.values.items()}
        entry = Entry(decoded.step, decoded.time, decoded.elapsed, values)
    except (ValueError, RecursionError):
        return None
    # SQLite has no place for other numbers, UTF-8 none for half a letter.
    sound = 0 <= entry.step <= MOST_STEP and 0 <= entry.time <= LATEST and abs(entry.elapsed_s) <= MOST
    return entry if sound and all("\0" not in name and is_text(name) for name in values) else None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it is written."""

    step: int
    time: float
    elapsed: float
    values: dict[str, float | str]


_DECODER: Final = msgspec.json.Decoder(_Line)


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with confined.open_file(path.parent, path.name, "rb+") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            confined.cut(file, end)
