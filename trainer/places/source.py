"""What can be read of a run that trains elsewhere, and the source that is a folder which this computer sees."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.store import cells, manifests
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

MOST_READ: Final = 1 << 20
"""Bytes of a file that are read at once."""
MOST_DOCUMENT: Final = 1 << 26
MOST_FOLDERS: Final = 100_000
JOURNAL: Final = "metrics.jsonl"
LOG: Final = "log.txt"
KINDS: Final = ("snapshots", "checkpoints")


@dataclass(frozen=True)
class Chunk:
    """A part of a file."""

    offset: int  # Where it begins: as asked, or 0 where the beginning is another one by now.
    content: bytes  # Its bytes; empty at the end of the file.


class RunSource(Protocol):
    """Where a mirror reads from; every method may raise `OutOfReach`."""

    def state(self) -> dict[str, Any]:
        """Return the run's `run.json`, perhaps with the columns of this moment."""

    def journal(self, offset: int, digest: str) -> Chunk:
        """Return the journal from `offset` on, or from its beginning if its first bytes have another SHA-256."""

    def folders(self) -> dict[str, str]:
        """Return the names of snapshots and checkpoints that are whole, with the SHA-256 of their manifests."""

    def read(self, name: str, offset: int) -> Chunk:
        """Return a part of a file of the run's folder."""

    def ask(self, what: str) -> None:
        """Send the trainer a request, as `RunTable.ask`; once this returns, it is in the row there."""


class FolderSource:
    """A run folder on a disk that this computer sees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def state(self) -> dict[str, Any]:
        """Return the run's `run.json`.

        Raises:
            OutOfReach: It is not there: the disk may be gone.
            PlaceError: It is none.
        """
        with _reading(self._folder):
            content = confined.read(self._folder, "run.json", MOST_DOCUMENT)
        return record(content)

    def journal(self, offset: int, digest: str) -> Chunk:
        """Return the journal from `offset` on, or from its beginning if that is another one."""
        with _reading(self._folder):
            try:
                file = confined.open_file(self._folder, JOURNAL)
            except FileNotFoundError:
                return Chunk(0, b"")
            with file:
                hasher, left = hashlib.sha256(), offset
                while left and (block := file.read(min(left, MOST_READ))):
                    hasher.update(block)
                    left -= len(block)
                start = offset if not left and hasher.hexdigest() == digest else 0
                file.seek(start)
                return Chunk(start, _read_all(file, MOST_READ))

    def folders(self) -> dict[str, str]:
        """Return the names of snapshots and checkpoints that are whole, with the SHA-256 of their manifests."""
        digests: dict[str, str] = {}
        with _reading(self._folder):
            for kind in KINDS:
                if not confined.is_inside(self._folder, kind) or not (self._folder / kind).is_dir():
                    continue
                for entry in sorted(os.listdir(self._folder / kind)):
                    name = f"{kind}/{entry}"
                    if entry.startswith(".") or len(digests) >= MOST_FOLDERS:
                        continue
                    try:
                        content = confined.read(self._folder, f"{name}/{manifests.NAME}", untrusted_files.MOST_SETTINGS)
                    except OSError:  # half written, or just removed
                        continue
                    digests[name] = hashlib.sha256(content).hexdigest()
        return digests

    def read(self, name: str, offset: int) -> Chunk:
        """Return a part of a file of the run's folder.

        Raises:
            PlaceError: It is no file of a run, or not there any more.
        """
        check_name(name)
        try:
            with confined.open_file(self._folder, name) as file:
                file.seek(offset)
                return Chunk(offset, _read_all(file, MOST_READ))
        except OSError as error:
            raise PlaceError(f"{name} cannot be read there: {error.strerror or error}.") from error

    def ask(self, what: str) -> None:
        """Refuse: a folder takes no requests.

        Raises:
            PlaceError: Always.
        """
        raise PlaceError("The run's folder can only be read, so nothing can be asked of its trainer.")


def check_name(name: str) -> None:
    """Check that a name is that of the log, the journal or a file of a snapshot or checkpoint.

    Raises:
        PlaceError: It is not.
    """
    parts = PurePosixPath(name).parts
    plain = name in (LOG, JOURNAL) or (len(parts) == 3 and parts[0] in KINDS)
    if not plain or "/".join(parts) != name or not all(cells.is_one_level(part) for part in parts):
        raise PlaceError(f"{untrusted_files.spelled(name[:100])} is not a file of a run.")


def record(content: bytes) -> dict[str, Any]:
    """Return the JSON object in bytes that another computer sent.

    Raises:
        PlaceError: It is none, or too long.
    """
    try:
        if len(content) > MOST_DOCUMENT:
            raise ValueError("it is too long")
        document = untrusted_files.parse_json(content.decode("utf-8"))
        if not isinstance(document, dict):
            raise ValueError("it is not an object")
    except ValueError as error:
        raise PlaceError(f"Could not read what the other computer sent about the run: {error}.") from error
    return document


def _read_all(file: Any, most: int) -> bytes:
    content = bytearray()
    while len(content) < most and (block := file.read(most - len(content))):
        content += block
    return bytes(content)


class _reading:  # noqa: N801
    """Raise `OutOfReach` for a folder that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise OutOfReach(f"{self._folder} cannot be read: {error.strerror or error}.") from error
