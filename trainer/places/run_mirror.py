"""Mirror a run that trains elsewhere: bring its folder here and replay it, so that the rows are the same.

Every step can be cut off anywhere and repeated: what is here already is compared by its SHA-256, never by a clock or by
what was remembered. Everything that comes is a stranger's: whole lines, checked rows, files of manifests.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from trainer.places.remote_host import OutOfReach, PlaceError
from trainer.places.source import JOURNAL, KINDS, LOG, MOST_READ, RunSource
from trainer.store import cells, disk, manifests
from trainer.store.elsewhere import Elsewhere, elsewhere, write_elsewhere
from trainer.store.journal import Entry, entry_of
from trainer.store.mirrored import LIVE
from trainer.store.rows import ENDED
from trainer.store.workspace import Workspace
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

_MOST_JOURNAL: Final = 1 << 32
_MOST_LOG: Final = 1 << 26
_MOST_FILES: Final = 1_000
_STEP_S: Final = 60.0
"""How long a step goes on to bring what is new: requests of this computer are sent, and its state is read, between."""
_DRAFT: Final = ".tmp-mirror-"
_OF_THIS_MOMENT: Final = frozenset({*LIVE, "asked", "heartbeat_at", "step"})


class _NotYetWhole(Exception):
    """A step has lasted long enough; the next one goes on where it was."""


class RunMirror:
    """The mirror of one run.

    Attributes:
        asked: The request that the trainer there has and did not fulfill yet.
        status: Of the run there, as last told; empty before it was.
        changes: What was left out of the last state, as sentences.
    """

    def __init__(self, workspace: Workspace, run: int, source: RunSource, *, kinds: Collection[str] = KINDS) -> None:
        """Measure what is here of a run, in folders of these kinds; `source` is the run there."""
        self._kinds = kinds
        self._workspace, self._run, self.source = workspace, run, source
        self._folder = workspace.runs.get(run).folder
        self._known: dict[str, Any] = {}
        self._folders: dict[str, str] = {}
        self.asked = self.status = ""
        self.changes: list[str] = []
        self._length, self._digest, self._half = 0, hashlib.sha256(), b""
        self._until = math.inf
        workspace.catch_up(run)
        self._take_stock()

    def step(self, progress: Callable[[str], None] = lambda words: None) -> bool:
        """Bring what is new; return whether the run has ended there and all of it is here.

        Args:
            progress: Gets words on a large file that is on its way.

        Raises:
            OutOfReach: The source does not answer; what came so far stays.
            PlaceError: It answers what cannot be.
            StoreError: The database or the disk of this computer refuses.
        """
        self._until = time.monotonic() + _STEP_S
        # First the state: what it says to be there is there when it is asked for.
        state = self.source.state()
        complete = self._read_journal()
        self._read_log()
        complete = self._read_folders(state, progress) and complete
        self._take_over(state)
        self.asked = str(state.get("asked") or "")[:20]
        self.status = str(state.get("status") or "")[:20]
        ended = complete and self.status in ENDED
        if ended:
            self._sweep()
        return ended

    def fetch_checkpoint(self, step: int, progress: Callable[[str], None] = lambda words: None) -> None:
        """Bring the checkpoint of a step.

        Raises:
            PlaceError: There is none.
        """
        self._until = math.inf
        rows = [row for row in _rows(self.source.state(), "checkpoints") if row.get("step") == step]
        folders = self.source.folders()
        for row in rows:
            if (name := str(row.get("folder"))) in folders:
                self._fetch(name, folders[name], progress)
                return
        raise PlaceError(f"There is no checkpoint of step {step} there any more.")

    # -- curves --------------------------------------------------------------------------------------------

    def _take_stock(self) -> None:
        """Measure the journal that is here; a line that was cut off by the end of a process goes."""
        self._length, self._digest = 0, hashlib.sha256()
        try:
            file = confined.open_file(self._folder, JOURNAL, "rb+")
        except FileNotFoundError:
            return
        with file:
            size = 0
            while block := file.read(MOST_READ):
                size += len(block)
            end = _last_line_end(file, size)
            if end < size:
                confined.cut(file, end)
            file.seek(0)
            while block := file.read(MOST_READ):
                self._digest.update(block)
            self._length = end

    def _read_journal(self) -> bool:
        """Bring new lines; return whether that was the end of the journal."""
        while True:
            chunk = self.source.journal(self._length, self._digest.hexdigest())
            if chunk.offset == 0 and self._length:
                self._read_anew(chunk.content)
                return False
            if chunk.offset != self._length:
                raise OutOfReach("The other computer answered another question.")
            lines = _whole_lines(chunk.content)
            if not lines:
                # Half a line is the end where it stays one: its writer was killed.
                half, self._half = self._half, chunk.content
                return not chunk.content or half == chunk.content
            if self._length + len(lines) > _MOST_JOURNAL:
                raise PlaceError(f"The curves of the run have more than {_MOST_JOURNAL:,} bytes there.")
            self._add(lines)
            if time.monotonic() > self._until:
                return False

    def _add(self, lines: bytes) -> None:
        # The database first: what is there twice is there once, and what is in the file is in the database.
        self._workspace.results.add_entries(self._run, _entries(lines.splitlines()))
        path = self._folder / JOURNAL
        with disk.writing("The curves", path, len(lines)), confined.open_file(self._folder, JOURNAL, "ab") as file:
            try:
                _write(file, lines)
            except OSError:
                with contextlib.suppress(OSError):
                    confined.cut(file, self._length)
                raise
        self._length += len(lines)
        self._digest.update(lines)

    def _read_anew(self, first: bytes) -> None:
        """Take over a journal that was rewound, or is another one: all of it, or nothing.

        Its parts go to the disk and from there to the database: memory does not grow with it.
        """
        draft, length, digest, part = f"{_DRAFT}{JOURNAL}", 0, hashlib.sha256(), first
        with confined.open_file(self._folder, draft, "wb") as file:
            while lines := _whole_lines(part):
                length += len(lines)
                if length > _MOST_JOURNAL:
                    raise PlaceError(f"The curves of the run have more than {_MOST_JOURNAL:,} bytes there.")
                with disk.writing("The curves", self._folder / draft, len(lines)):
                    _write(file, lines)
                digest.update(lines)
                if len(part) < MOST_READ:
                    break
                chunk = self.source.journal(length, digest.hexdigest())
                if chunk.offset != length:
                    raise OutOfReach("The curves are being rewritten there.")
                part = chunk.content
        with confined.open_file(self._folder, draft) as file, io.BufferedReader(file) as journal:  # type: ignore[type-var]
            self._workspace.replace_entries(self._run, _entries(journal))
        confined.replace(self._folder, draft, JOURNAL)
        self._length, self._digest = length, digest

    def _read_log(self) -> None:
        identity = elsewhere(self._folder)
        if identity is None or identity.log >= _MOST_LOG:
            return
        try:
            content = self.source.read(LOG, identity.log).content
        except PlaceError as error:
            if isinstance(error, OutOfReach):
                raise
            return  # it has none yet
        lines = _whole_lines(content)
        if not lines:
            return
        with confined.open_file(self._folder, LOG, "ab") as file:
            _write(file, lines)
        write_elsewhere(
            self._folder, Elsewhere(identity.place, identity.token, True, identity.seen_at, identity.log + len(lines))
        )

    # -- rows ----------------------------------------------------------------------------------------------

    def _take_over(self, state: dict[str, Any]) -> None:
        lasting = {name: value for name, value in state.items() if name not in _OF_THIS_MOMENT}
        folders = {"folders here": sorted(self._folders)}
        if self._known == lasting | folders:
            self._workspace.take_over(self._run, {n: state[n] for n in _OF_THIS_MOMENT if n in state}, quick=True)
            return
        self.changes = self._workspace.take_over(self._run, state)
        self._known = lasting | folders

    # -- folders -------------------------------------------------------------------------------------------

    def _read_folders(self, state: Mapping[str, Any], progress: Callable[[str], None]) -> bool:
        """Bring the snapshots and checkpoints that are wanted; return whether all of them are here."""
        names = [str(row.get("folder")) for row in _rows(state, "snapshots")]
        checkpoints = _rows(state, "checkpoints")
        names += [str(row.get("folder")) for row in checkpoints if row.get("best")]
        if state.get("status") in ENDED and checkpoints:
            newest = max(checkpoints, key=lambda row: row["step"] if isinstance(row.get("step"), int) else -1)
            names.append(str(newest.get("folder")))
        names = [name for name in names if name.partition("/")[0] in self._kinds]
        if not names:
            return True
        remote, complete = self.source.folders(), True
        for name in dict.fromkeys(names):
            if name not in remote:  # it was removed there since, or is being written
                complete = complete and not name.startswith("snapshots/")
            elif self._folders.get(name) != remote[name]:
                try:
                    self._fetch(name, remote[name], progress)
                except _NotYetWhole:
                    return False
        return complete

    def _fetch(self, name: str, digest: str, progress: Callable[[str], None]) -> None:
        """Bring a folder: into a draft that goes on where it was cut off, and is compared before it counts."""
        parts = PurePosixPath(name).parts
        if len(parts) != 2 or parts[0] not in ("snapshots", "checkpoints") or not cells.is_one_level(parts[1]):
            raise PlaceError(f"{untrusted_files.spelled(name[:100])} is not a folder of a run.")
        if self._is_here(name, digest):
            self._folders[name] = digest
            return
        draft = f"{parts[0]}/{_DRAFT}{parts[1]}"
        confined.make_in_run(self._folder, parts[0])
        self._begin(name, draft, digest)
        for file, size in _files(self._folder, draft).items():
            self._fetch_file(name, draft, file, size, progress)
        try:
            manifests.verified(self._folder / draft)
        except (OSError, ValueError, KeyError) as error:
            confined.remove_tree(self._folder, draft)
            raise OutOfReach(f"{name} did not arrive whole ({error}); it is asked for again.") from error
        confined.remove_tree(self._folder, name)
        confined.replace(self._folder, draft, name)
        self._folders[name] = digest

    def _sweep(self) -> None:
        """Remove drafts of folders that were replaced or removed there before they were here."""
        for kind in KINDS:
            if confined.is_inside(self._folder, kind):
                for draft in (self._folder / kind).glob(f"{_DRAFT}*"):
                    confined.remove_tree(self._folder, f"{kind}/{draft.name}")

    def _is_here(self, name: str, digest: str) -> bool:
        try:
            content = confined.read(self._folder, f"{name}/{manifests.NAME}", untrusted_files.MOST_SETTINGS)
        except OSError:
            return False
        return hashlib.sha256(content).hexdigest() == digest

    def _begin(self, name: str, draft: str, digest: str) -> None:
        """Make the draft with the folder's manifest, unless there is one of the same."""
        if self._is_here(draft, digest):
            return
        confined.remove_tree(self._folder, draft)
        content = bytearray()
        while part := self.source.read(f"{name}/{manifests.NAME}", len(content)).content:
            content += part
            if len(content) > untrusted_files.MOST_SETTINGS:
                raise PlaceError(f"The manifest of {name} is too long.")
            if len(part) < MOST_READ:
                break
        if hashlib.sha256(content).hexdigest() != digest:
            raise OutOfReach(f"{name} is being rewritten there.")
        confined.make_folder(self._folder, draft)
        confined.write(self._folder, f"{draft}/{manifests.NAME}", bytes(content))

    def _fetch_file(self, name: str, draft: str, file: str, size: int, progress: Callable[[str], None]) -> None:
        target_name = f"{draft}/{file}"
        with (
            disk.writing("The mirrored run", self._folder / target_name, size),
            confined.open_file(self._folder, target_name, "ab") as target,
        ):
            begun = target.seek(0, os.SEEK_END)
            if begun > size:
                confined.cut(target, 0)
                begun = 0
            while begun < size:
                if time.monotonic() > self._until:
                    raise _NotYetWhole
                part = self.source.read(f"{name}/{file}", begun)
                if part.offset != begun or not part.content:
                    raise OutOfReach(f"{name}/{file} ends early there.")
                content = part.content[: size - begun]
                _write(target, content)
                begun += len(content)
                if size > 8 * MOST_READ:
                    progress(f"{name}: {100 * begun / size:.0f} %")


def _files(root: Any, draft: str) -> dict[str, int]:
    """Return name -> size of the files of a draft's manifest, which anybody may have written."""
    manifest = untrusted_files.read_json(root / draft / manifests.NAME)
    listed = manifest.get("files") if isinstance(manifest, dict) else None
    sizes = {}
    for name, listed_size in listed.items() if isinstance(listed, dict) and len(listed) <= _MOST_FILES else ():
        size = listed_size.get("bytes") if isinstance(listed_size, dict) else None
        if not cells.is_one_level(name) or name == manifests.NAME or type(size) is not int or size < 0:
            break
        sizes[name] = size
    else:
        room = shutil.disk_usage(root).free - disk.SPARE
        if sum(sizes.values()) > room:
            raise PlaceError(
                f"{draft.replace(_DRAFT, '')} has {sum(sizes.values()) / 2**20:,.0f} MiB, and the disk of this "
                f"computer {max(room, 0) / 2**20:,.0f} MiB free. Make room; it is tried again."
            )
        return sizes
    confined.remove_tree(root, draft)
    raise PlaceError(f"The manifest of {draft.replace(_DRAFT, '')} cannot be one.")


def _entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    return (entry for line in lines if (entry := entry_of(line)) is not None)


def _rows(state: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    listed = state.get(table)
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _whole_lines(content: bytes) -> bytes:
    """Return the content up to its last line end; the rest of the line comes when it is written.

    Raises:
        PlaceError: It holds none where a line would be longer than any.
    """
    end = content.rfind(b"\n") + 1
    if not end and len(content) >= MOST_READ:
        raise PlaceError("A line of the run's files is longer than any that is written.")
    return content[:end]


def _last_line_end(file: Any, size: int) -> int:
    """Return where the last whole line of an open file ends."""
    at = size
    while at > 0:
        start = max(0, at - MOST_READ)
        file.seek(start)
        newline = file.read(at - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0


def _write(file: Any, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
