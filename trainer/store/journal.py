"""`metrics.jsonl`: the run's own append-only record of its curves, written before the database.

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
from typing import IO, Any

from trainer.store import disk
from trainer.store.files import write_atomically


@dataclass(frozen=True, slots=True)
class Entry:
    """The numbers logged together at one step; `elapsed_s` is seconds of training without the pauses."""

    step: int
    time: float
    elapsed_s: float
    values: dict[str, float]


class Journal:
    """The open end of a journal, for the one process that trains."""

    def __init__(self, path: Path) -> None:
        self._path = path
        _cut_torn_line(path)
        self._file: IO[bytes] = path.open("ab", buffering=0)

    def append(self, entry: Entry) -> None:
        """The entry is with the operating system when this returns: it outlives the process.

        Raises:
            DiskTrouble: The disk is full or gone; then nothing of the entry is there.
        """
        line = (_to_line(entry) + "\n").encode("utf-8")
        with disk.writing("The curves", self._path, len(line)):
            if self._file.closed:
                self._file = self._path.open("ab", buffering=0)
            # A journal that was moved or removed takes lines that nobody will find.
            if os.fstat(self._file.fileno()).st_ino != self._path.stat().st_ino:
                self._file.close()
                raise FileNotFoundError(errno.ENOENT, "moved away")
            end = self._file.seek(0, os.SEEK_END)
            try:
                if self._file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, "full")
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(end)
                    self._file.close()
                raise

    def sync(self) -> None:
        """Every entry survives a power cut once this returns."""
        if not self._file.closed:
            with disk.writing("The curves", self._path):
                os.fsync(self._file.fileno())

    def rewind(self, step: int) -> None:
        """Drops every entry past `step`.

        Raises:
            DiskTrouble: The disk is full or gone; then every entry is still there.
        """
        self._file.close()
        kept = "".join(_to_line(entry) + "\n" for entry in read_journal(self._path) if entry.step <= step)
        with disk.writing("The curves", self._path, 2 * len(kept)):
            write_atomically(self._path, lambda draft: draft.write_bytes(kept.encode("utf-8")) and None)
        self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        """Nothing can be appended afterwards."""
        self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """The entries in the order they were written; a line that is damaged is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            entry = _from_line(line)
            if entry is not None:
                yield entry


def number_to_json(value: float) -> float | str:
    """The value, or its name where JSON has no number for it."""
    return value if math.isfinite(value) else str(value)


def number_from_json(value: Any) -> float:
    """What `number_to_json` wrote."""
    return float(value)


def _to_line(entry: Entry) -> str:
    values = {name: number_to_json(value) for name, value in entry.values.items()}
    document = {"step": entry.step, "time": entry.time, "elapsed": entry.elapsed_s, "values": values}
    return json.dumps(document, allow_nan=False)


def _from_line(line: bytes) -> Entry | None:
    try:
        document = json.loads(line)
        values = {str(name): number_from_json(value) for name, value in document["values"].items()}
        return Entry(int(document["step"]), float(document["time"]), float(document["elapsed"]), values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            file.truncate(end)
