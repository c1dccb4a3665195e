"""A folder of another program on another computer, brought here as it grows: no package is needed there.

What is there is never taken as complete because it arrived: whoever reads the files here looks at their content.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from trainer.places import ssh
from trainer.places.channel import Channel
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost
from trainer.places.source import MOST_READ
from trainer.store import cells, disk
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

PROGRAM: Final = r"""
import json, os, sys
top = os.path.realpath(os.path.expanduser(sys.argv[1]))
def listed():
    rows, pending = [], [(0, top)]
    while pending and len(rows) < 20000:
        level, folder = pending.pop()
        try: entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError: continue
        for entry in entries:
            if entry.is_symlink(): continue
            if entry.is_dir():
                if level < 3: pending.append((level + 1, entry.path))
            elif entry.is_file():
                try: stat = entry.stat()
                except OSError: continue
                rows.append([os.path.relpath(entry.path, top), stat.st_size, stat.st_mtime_ns, stat.st_ino])
    return rows
def read(name, offset, most):
    path = os.path.realpath(os.path.join(top, name))
    if not path.startswith(top + os.sep): raise OSError("it lies outside of the folder")
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(most)
for line in sys.stdin.buffer:
    question, content = json.loads(line.decode()), b""
    head = {"id": question["id"]}
    try:
        if question["what"] == "list":
            if not os.path.isdir(top): raise OSError("there is no folder %s" % top)
            content = json.dumps(listed()).encode()
        else: content = read(question["name"], int(question["offset"]), int(question["most"]))
    except (OSError, ValueError) as error: head["error"] = str(error)
    head["bytes"] = len(content)
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + content)
    sys.stdout.buffer.flush()
"""
"""Answers `list` and `read` about one folder, and nothing outside of it; runs by any Python from 3.6 on."""
_MOST_FILES: Final = 20_000
_BROUGHT: Final = ".brought.json"
_GROWING: Final = ("out.log", "results.jsonl")
_TAIL: Final = 22
"""Bytes of the end record of a zip archive without a comment."""


class RemoteFile(NamedTuple):
    """A file of the folder there: its name with `/`, size in bytes, time in ns, and number in its file system."""

    name: str
    size: int
    written_ns: int
    inode: int


class RemoteFolder:
    """Brings what a training writes there into a folder here; what came stays while the other computer is away.

    Attributes:
        folder: The copy here.
    """

    def __init__(self, host: RemoteHost, path: str, folder: Path, *, selects: Callable[[str], bool]) -> None:
        """Ask nothing yet; files whose name `selects` takes are brought from `path` there into `folder` here."""
        self.folder = folder
        self._host, self._path, self._selects = host, path, selects
        self._channel: Channel | None = None
        confined.make_folder(folder.parent, folder.name)
        self._brought = {file.name: file for file in _stored(folder)}

    def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def bring_small(self) -> list[str]:
        """Bring the files without weights, and return the names of all.

        Raises:
            OutOfReach: The other computer does not answer.
            PlaceError: There is no such folder, or no room here.
        """
        files = [file for file in self._listed() if self._selects(file.name)]
        heavy = {_folder(file.name) for file in files if _is_weights(file.name)}
        for file in files:
            if not _is_weights(file.name) and _folder(file.name) not in heavy and self._brought.get(file.name) != file:
                self._fetch(file, lambda phase: None)
        return [file.name for file in files]

    def bring(self, *, order: Callable[[str], Any], say: Callable[[str], None]) -> bool:
        """Bring the small files that changed, and then one large one; return whether anything came.

        Args:
            order: Sorts names of large files: the first one that is missing is brought.
            say: Gets words on a large file that is on its way.

        Raises:
            OutOfReach: The other computer does not answer.
            PlaceError: There is no such folder, or no room here.
        """
        changed = [file for file in self._listed() if self._brought.get(file.name) != file and self._selects(file.name)]
        heavy = sorted((file for file in changed if _is_weights(file.name)), key=lambda file: order(file.name))
        # A folder of transformers counts once its state is here: its weights come first.
        waiting = {_folder(file.name) for file in heavy}
        came = [self._fetch(file, say) for file in changed if _folder(file.name) not in waiting]
        first = next((file for file in heavy if self._fetch(file, say)), None)
        return first is not None or any(came)

    def drop(self, path: Path) -> None:
        """Free the room of a file or folder here that is needed no more; it is brought again only where it changes."""
        if path.is_relative_to(self.folder) and path != self.folder:
            remove = confined.remove_tree if path.is_dir() else confined.remove
            remove(self.folder, path.relative_to(self.folder))

    def _listed(self) -> list[RemoteFile]:
        try:
            rows = untrusted_files.parse_json(self.ask("list")[1].decode("utf-8"))
        except ValueError as error:
            raise PlaceError(f"{self._host.name} did not list its folder: {error}.") from error
        return list(_checked(rows))

    def ask(self, what: str, **values: Any) -> tuple[dict[str, Any], bytes]:
        """Return the other computer's answer, and the bytes that follow it; the connection is opened if none is.

        Raises:
            OutOfReach: The connection is lost; the next question opens another.
            PlaceError: It refuses, for instance a path that leads outside of the folder.
        """
        if self._channel is None:
            self._channel = ssh.open_program(self._host, PROGRAM, self._path)
        try:
            return self._channel.ask(what, **values)
        except OutOfReach:
            self.close()
            raise

    def _read(self, file: RemoteFile, offset: int, most: int = MOST_READ) -> bytes:
        return self.ask("read", name=file.name, offset=offset, most=most)[1]

    def _fetch(self, file: RemoteFile, say: Callable[[str], None]) -> bool:
        """Bring a file, into a draft that then takes its place; return False where it is still being written."""
        if file.name.endswith((".pt", ".ckpt")) and self._read(file, max(0, file.size - _TAIL), _TAIL)[:4] != b"PK\5\6":
            return False
        before, target = self._brought.get(file.name), self.folder / file.name
        above = PurePosixPath(file.name).parent
        parent = confined.make_folder(self.folder, above) if above.parts else self.folder
        draft = f".tmp-{PurePosixPath(file.name).name}"
        start = 0
        if file.name.endswith(_GROWING) and before and before.inode == file.inode and before.size <= file.size:
            start = before.size if target.is_file() and target.stat().st_size == before.size else 0
        with (
            disk.writing("The copy of a training", target, file.size),
            confined.open_file(parent, draft, "wb") as opened,
        ):
            content = io.BufferedWriter(opened)  # type: ignore[type-var]
            if start:
                content.write(untrusted_files.read_bytes(target, start))
            while start < file.size and (part := self._read(file, start)):
                content.write(part[: file.size - start])
                start += len(part)
                if file.size > 8 * MOST_READ:
                    say(f"bringing {file.name}: {100 * start / file.size:.0f} %")
            content.flush()
        if start < file.size:  # it was cut there meanwhile
            confined.remove(parent, draft)
            return False
        os.utime(parent / draft, ns=(file.written_ns, file.written_ns))
        confined.replace(parent, draft, target.name)
        self._brought[file.name] = file
        confined.write(self.folder, _BROUGHT, json.dumps([*self._brought.values()]).encode())
        return True


def _stored(folder: Path) -> Iterator[RemoteFile]:
    """Yield what an earlier session has brought."""
    with contextlib.suppress(OSError, ValueError):
        yield from _checked(untrusted_files.read_json(folder / _BROUGHT))


def _checked(rows: Any) -> Iterator[RemoteFile]:
    """Yield the rows of a list that can be files of a folder."""
    for row in rows[:_MOST_FILES] if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 4 and isinstance(row[0], str):
            parts: Sequence[str] = PurePosixPath(row[0]).parts
            is_plain = "/".join(parts) == row[0] and all(cells.is_one_level(part) for part in parts)
            if is_plain and all(type(number) is int and 0 <= number < 1 << 63 for number in row[1:]):
                yield RemoteFile(*row)


def _is_weights(name: str) -> bool:
    return name.endswith((".pt", ".ckpt", ".bin", ".safetensors"))


def _folder(name: str) -> str:
    """Return the folder of a checkpoint of transformers that a file is of; of other files their own name."""
    folder = PurePosixPath(name).parent.name
    return folder if folder.startswith("checkpoint-") else name
