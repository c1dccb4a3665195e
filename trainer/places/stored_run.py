"""A run whose storage is an object store: its folder lies on the node that trains it, and a copy of it in the store.

The copy is brought up to date every second or two, so that another node can continue it and another computer mirror
it. A folder there is whole once its manifest is there, and `state.json`, written last, tells of nothing that is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.errors import UserError
from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.places.shared_folder import REQUEST, STATE, SharedFolderSource, StatePublisher
from trainer.places.source import (
    JOURNAL,
    KINDS,
    LOG,
    MOST_DOCUMENT,
    MOST_FOLDERS,
    MOST_READ,
    Chunk,
    FolderSource,
    check_name,
)
from trainer.places.storage import Storage
from trainer.store import Workspace, manifests, ownership
from trainer.store.files import write_atomically, write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

RUN: Final = "run"
"""The copy of the run's folder, in the folder of the storage that belongs to the run."""
_HERE: Final = "0001-run"
_FILES: Final = ("config.toml", "tokenizer.json", "model.json", JOURNAL, "waiting.jsonl", "run.json", LOG)
_EVERY_S: Final = 1.0
_LAST_S: Final = 3_600.0
"""How long the end of a run waits for a store that does not answer: what is not there by then is lost."""
_TRY_S: Final = 5.0
_REST: Final = 5.0
"""So many times as long as sending took, the next sending waits."""
_MOST_REST_S: Final = 10.0
"""And no longer: a request is acknowledged by what is sent, within `_CONFIRMED_S` of `shared_folder.py`."""
Stamp = tuple[int, int]


@dataclass(frozen=True)
class Manifest:
    """What is known of the manifest of a snapshot or checkpoint in a store: size and time, and its SHA-256."""

    stamp: Stamp
    digest: str


class StoredPublisher(StatePublisher):
    """Publishes the row of a run as `StatePublisher`, and keeps the copy of its folder in a store up to date."""

    def __init__(self, workspace: Workspace, run: int, job: str, storage: Storage) -> None:
        self._copy = storage.inside(RUN)
        self._sent: dict[str, Stamp] = {}
        self._taken, self._published = "", b""
        self._next_at = 0.0
        self._folders = {name: manifest.digest for name, manifest in _manifests(self._copy).items()}
        super().__init__(workspace, run, job)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        until = time.monotonic() + _LAST_S
        while not self._is_up_to_date() and time.monotonic() < until:
            time.sleep(_TRY_S)

    def publish(self) -> None:
        """Take a request, publish the row, and send what is new of the folder."""
        with contextlib.suppress(UserError, OSError):
            request = self._copy.read(REQUEST, 1 << 12).decode()
            if request != self._taken:
                write_text(self._folder / REQUEST, request)
                self._taken = request
        super().publish()
        began = time.monotonic()
        if began >= self._next_at:
            self._is_up_to_date()
            now = time.monotonic()
            # A long journal is sent whole, so less often.
            self._next_at = now + min(_REST * (now - began), _MOST_REST_S)

    def _is_up_to_date(self) -> bool:
        """Send what is new; return whether all of it arrived."""
        try:
            # The row before the files: it tells of nothing that comes after it.
            state = confined.read(self._folder, STATE, MOST_DOCUMENT)
            self._send_files()
            self._send_folders()
            if state != self._published:
                self._copy.write(STATE, state)
                self._published = state
        except (UserError, OSError):  # of the store, or a file that was just removed
            return False
        return True

    def _send_files(self) -> None:
        for name in _FILES:
            try:
                info = (self._folder / name).stat()
            except FileNotFoundError:
                continue
            stamp = (info.st_size, info.st_mtime_ns)
            if self._sent.get(name) != stamp:
                self._copy.send(self._folder / name, name)
                self._sent[name] = stamp

    def _send_folders(self) -> None:
        digests = FolderSource(self._folder).folders()
        for name in [name for name, digest in self._folders.items() if digests.get(name) != digest]:
            self._copy.remove(f"{name}/{manifests.NAME}")
            for file in self._copy.names(name):
                self._copy.remove(f"{name}/{file}")
            del self._folders[name]
        for name in digests.keys() - self._folders.keys():
            files = [path.name for path in (self._folder / name).iterdir() if path.is_file()]
            for file in sorted(files, key=manifests.NAME.__eq__):  # the manifest last
                self._copy.send(self._folder / name / file, f"{name}/{file}")
            self._folders[name] = digests[name]


class StoredRunSource(SharedFolderSource):
    """The run's folder in a store, as seen by the computer that started the run."""

    def __init__(self, storage: Storage) -> None:
        self._draft = tempfile.TemporaryDirectory(prefix="stored-run-", ignore_cleanup_errors=True)
        super().__init__(Path(self._draft.name))
        self._copy = storage.inside(RUN)
        self._here: dict[str, Stamp] = {}
        self._folders: dict[str, Manifest] = {}
        self._stream: Any = None
        self._reading, self._at = "", 0

    def exists(self) -> bool:
        """Return whether the run has begun."""
        return self._copy.size("run.json") is not None and self._copy.size(STATE) is not None

    def state(self) -> dict[str, object]:
        """Return the run's row.

        Raises:
            OutOfReach: The store does not answer.
        """
        for name in (STATE, "run.json"):
            self._fetch(name)
        return super().state()

    def job(self) -> str:
        """Return the job that last published the row."""
        self._fetch(STATE)
        return super().job()

    def last_step(self) -> int:
        """Return the last step of the journal."""
        self._fetch(JOURNAL)
        return super().last_step()

    def journal(self, offset: int, digest: str) -> Chunk:
        """Return the journal from `offset` on, or from its beginning if that is another one."""
        self._fetch(JOURNAL)
        return super().journal(offset, digest)

    def folders(self) -> dict[str, str]:
        """Return the names of snapshots and checkpoints that are whole, with the SHA-256 of their manifests."""
        self._folders = _manifests(self._copy, self._folders)
        return {name: manifest.digest for name, manifest in self._folders.items()}

    def read(self, name: str, offset: int) -> Chunk:
        """Return a part of a file of the run's folder.

        Raises:
            PlaceError: It is no file of a run, or not there any more.
        """
        check_name(name)
        if name in (JOURNAL, LOG):
            self._fetch(name)
            return super().read(name, offset) if (self.folder / name).exists() else Chunk(offset, b"")
        try:
            content = self._next(name, offset).read(MOST_READ)
        except FileNotFoundError as error:
            raise PlaceError(f"{name} cannot be read there: it is not there any more.") from error
        except OSError as error:
            raise OutOfReach(f"{self._copy.address} does not answer: {str(error)[:300]}.") from error
        self._at += len(content)
        return Chunk(offset, content)

    def _next(self, name: str, offset: int) -> Any:
        """Return a stream of a file at `offset`: a mirror reads one part after the other."""
        if (self._reading, self._at) != (name, offset):
            if self._stream is not None:
                self._stream.close()
            self._stream, self._reading, self._at = self._copy.open(name), name, 0
            while self._at < offset and (skipped := self._stream.read(min(offset - self._at, MOST_READ))):
                self._at += len(skipped)
        return self._stream

    def _request(self, number: int, what: str) -> None:
        self._copy.write(REQUEST, json.dumps({"number": number, "request": what}).encode())

    def _last_request(self) -> int:
        self._fetch(REQUEST)
        return super()._last_request()

    def _acknowledged(self) -> int:
        self._fetch(STATE)
        return super()._acknowledged()

    def _fetch(self, name: str) -> None:
        """Bring a file here, unless it is here as it is there."""
        stamp = self._copy.stamp(name)
        # A document may change within a second without changing its size, which is all that a store tells.
        if stamp is None or (name in (JOURNAL, LOG) and self._here.get(name) == stamp):
            return
        with contextlib.suppress(FileNotFoundError):
            write_atomically(self.folder / name, lambda draft: self._copy.fetch(name, draft))
            self._here[name] = stamp


def restore(storage: Storage, workspace: Workspace) -> None:
    """Bring the run of a store into an empty workspace, so that it continues here; nothing where it has not begun.

    Raises:
        OutOfReach: The store does not answer.
    """
    copy = storage.inside(RUN)
    if copy.size("run.json") is None:
        return
    workspace.runs_folder.mkdir(parents=True, exist_ok=True)
    ownership.sign(workspace.folder)  # else folders without a database are those of somebody else
    folder = confined.make_folder(workspace.runs_folder, _HERE)
    for name in _files_of(copy):
        _bring(copy, name, folder)
    workspace.rebuild()


def bring_checkpoint(storage: Storage, folder: Path, step: int, check: Callable[[], None]) -> None:
    """Bring what a rank reads that does not lead, once rank 0 has sent it; `check` may raise while it is waited for."""
    copy, name = storage.inside(RUN), f"checkpoints/step_{step:06d}"
    while copy.size(f"{name}/{manifests.NAME}") is None or copy.size("run.json") is None:
        check()
        time.sleep(_EVERY_S)
    for file in (*(f"{name}/{file_name}" for file_name in copy.names(name)), *_files_of(copy, kinds=())):
        _bring(copy, file, folder)


def _files_of(copy: Storage, kinds: tuple[str, ...] = KINDS) -> Iterator[str]:
    """Yield the files of a run's folder, those of folders that are whole among them."""
    yield from (name for name in copy.names() if name in (*_FILES, REQUEST))
    for name in _manifests(copy, kinds=kinds):
        yield from (f"{name}/{file}" for file in copy.names(name))


def _manifests(
    copy: Storage, earlier: Mapping[str, Manifest] | None = None, *, kinds: tuple[str, ...] = KINDS
) -> dict[str, Manifest]:
    """Return the manifests of the folders that are whole; those that are known are not read again."""
    manifests_by_name: dict[str, Manifest] = {}
    for name in (f"{kind}/{entry}" for kind in kinds for entry in copy.folders(kind)[:MOST_FOLDERS]):
        file = f"{name}/{manifests.NAME}"
        stamp = copy.stamp(file)
        if stamp is None:
            continue
        if earlier and name in earlier and earlier[name].stamp == stamp:
            manifests_by_name[name] = earlier[name]
            continue
        with contextlib.suppress(FileNotFoundError):
            content = copy.read(file, untrusted_files.MOST_SETTINGS)
            manifests_by_name[name] = Manifest(stamp, hashlib.sha256(content).hexdigest())
    return manifests_by_name


def _bring(copy: Storage, name: str, folder: Path) -> None:
    target = confined.inside(folder, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, lambda draft: copy.fetch(name, draft))
