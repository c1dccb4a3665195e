"""A run and the computer that asked for it, where both see one folder: `state.json` one way, `wish.json` the other.

No database is opened over a network: the process that trains tells its row, and takes wishes to it.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from trainer.places.address import OutOfReach
from trainer.places.source import MOST_DOCUMENT, FolderSource, record
from trainer.store import ENDED, StoreError, Workspace
from trainer.store.files import write_text
from trainer.store.journal import entry_of
from trainer.untrusted import confined

STATE: Final = "state.json"
WISH: Final = "wish.json"
WISHES: Final = ("", "stop", "stop-epoch", "pause", "save", "evaluate")
_EVERY_S: Final = 1.0
_CONFIRMED_S: Final = 60.0
_LAST_LINE: Final = 1 << 16


class Post:
    """Tells the row of a run every second and takes wishes, on a thread of the process that trains it."""

    def __init__(self, workspace: Workspace, run: int, job: str) -> None:
        self._workspace, self._run, self._job = Workspace(workspace.folder), run, job
        row = workspace.runs.get(run)
        self._folder, self._session_before = row.folder, row.session_at
        self._ended = threading.Event()
        self._heard = _number(read_wish(self._folder))
        self._thread = threading.Thread(target=self._work, name="post", daemon=True)

    def __enter__(self) -> Post:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.tell()
        self._workspace.close()

    def tell(self) -> None:
        """Take a wish, if there is a new one, and tell the row."""
        with contextlib.suppress(StoreError, OSError):
            row, wish = self._workspace.runs.get(self._run), read_wish(self._folder)
            # Before the trainer has claimed the run, its row is that of the job before.
            job = self._job if row.session_at != self._session_before else ""
            if _number(wish) > self._heard and wish.get("wish") in WISHES:
                if row.status not in ENDED:
                    self._workspace.runs.ask(self._run, str(wish["wish"]))
                self._heard = _number(wish)
            document = self._workspace.document(self._run) | {"heard": self._heard, "job": job}
            write_text(self._folder / STATE, json.dumps(document))

    def _work(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.tell()


class PostSource(FolderSource):
    """The run's folder as the computer sees it that asked for the run."""

    def __init__(self, folder: Path, *, confirmed_s: float = _CONFIRMED_S) -> None:
        super().__init__(folder)
        self.folder, self._confirmed_s = folder, confirmed_s

    def state(self) -> dict[str, Any]:
        """Return the newer of what the trainer last told and its `run.json`.

        Raises:
            OutOfReach: The folder is not there.
            PlaceError: What is there is none.
        """
        written = super().state()
        with contextlib.suppress(OSError):
            told = record(confined.read(self.folder, STATE, MOST_DOCUMENT))
            if written.get("status") not in ENDED:
                return told
        return written

    def job(self) -> str:
        """Return the job that told the row last; empty if there is none."""
        with contextlib.suppress(OSError):
            return str(record(confined.read(self.folder, STATE, MOST_DOCUMENT)).get("job", ""))
        return ""

    def last_step(self) -> int:
        """Return the last step of the journal; 0 if there is none."""
        with contextlib.suppress(OSError), confined.open_file(self.folder, "metrics.jsonl") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LAST_LINE))
            entries = [entry_of(line) for line in file.read(_LAST_LINE).splitlines()]
            return max((entry.step for entry in entries if entry is not None), default=0)
        return 0

    def ask(self, what: str) -> None:
        """Tell the trainer a wish, and wait until it has heard it.

        Raises:
            OutOfReach: It does not hear.
        """
        number = max(_number(read_wish(self.folder)), self._heard()) + 1
        write_text(self.folder / WISH, json.dumps({"number": number, "wish": what}))
        until = time.monotonic() + self._confirmed_s
        while self._heard() < number:
            if time.monotonic() > until:
                raise OutOfReach("The trainer there does not answer.")
            time.sleep(0.1)

    def _heard(self) -> int:
        with contextlib.suppress(OSError):
            heard = record(confined.read(self.folder, STATE, MOST_DOCUMENT)).get("heard")
            return heard if type(heard) is int else 0
        return 0


def read_wish(folder: Path) -> dict[str, Any]:
    """Return the wish in a run's folder; empty if there is none."""
    with contextlib.suppress(Exception):  # none, half written, or a stranger's
        return record(confined.read(folder, WISH, 1 << 12))
    return {}


def _number(wish: dict[str, Any]) -> int:
    number = wish.get("number")
    return number if type(number) is int else 0
