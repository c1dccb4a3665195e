"""A run and the computer that started it exchange files in one shared folder: `state.json` there, `request.json` back.

No database is opened over a network: the training process publishes its row and stores incoming requests in it.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any, Final

from trainer.places.remote_host import OutOfReach
from trainer.places.source import MOST_DOCUMENT, FolderSource, record
from trainer.store import ENDED, REQUESTS, StoreError, Workspace
from trainer.store.files import write_text
from trainer.store.journal import entry_of
from trainer.untrusted import confined

STATE: Final = "state.json"
REQUEST: Final = "request.json"
_EVERY_S: Final = 1.0
_CONFIRMED_S: Final = 60.0
_LAST_LINE: Final = 1 << 16


class StatePublisher:
    """Publishes the row of a run every second and takes requests, on a thread of the training process."""

    def __init__(self, workspace: Workspace, run: int, job: str) -> None:
        self._workspace, self._run, self._job = Workspace(workspace.folder), run, job
        row = workspace.runs.get(run)
        self._folder, self._session_before = row.folder, row.session_at
        self._ended = threading.Event()
        self._acknowledged = _number(read_request(self._folder))
        self._thread = threading.Thread(target=self._work, name="state publisher", daemon=True)

    def __enter__(self) -> StatePublisher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.publish()
        self._workspace.close()

    def publish(self) -> None:
        """Take a request, if there is a new one, and publish the row."""
        with contextlib.suppress(StoreError, OSError):
            row, request = self._workspace.runs.get(self._run), read_request(self._folder)
            # Before the trainer has claimed the run, its row is that of the job before.
            job = self._job if row.session_at != self._session_before else ""
            if _number(request) > self._acknowledged and request.get("request") in REQUESTS:
                if row.status not in ENDED:
                    self._workspace.runs.ask(self._run, str(request["request"]))
                self._acknowledged = _number(request)
            document = self._workspace.document(self._run) | {"acknowledged": self._acknowledged, "job": job}
            write_text(self._folder / STATE, json.dumps(document))

    def _work(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.publish()


class SharedFolderSource(FolderSource):
    """The run's folder as seen by the computer that started the run."""

    def __init__(self, folder: Path, *, confirmed_s: float = _CONFIRMED_S) -> None:
        super().__init__(folder)
        self.folder, self._confirmed_s = folder, confirmed_s

    def state(self) -> dict[str, Any]:
        """Return the newer of the state that the trainer last published and its `run.json`.

        Raises:
            OutOfReach: The folder is not there.
            PlaceError: What is there is not the state of a run.
        """
        written = super().state()
        with contextlib.suppress(OSError):
            published = record(confined.read(self.folder, STATE, MOST_DOCUMENT))
            if written.get("status") not in ENDED:
                return published
        return written | {"phase": "", "eta_s": None}  # it does nothing any more

    def job(self) -> str:
        """Return the job that last published the row; empty if there is none."""
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
        """Send the trainer a request, and wait until it has acknowledged it.

        Raises:
            OutOfReach: It does not acknowledge the request.
        """
        number = max(self._last_request(), self._acknowledged()) + 1
        self._request(number, what)
        until = time.monotonic() + self._confirmed_s
        while self._acknowledged() < number:
            if time.monotonic() > until:
                raise OutOfReach("The trainer there does not answer.")
            time.sleep(0.1)

    def _request(self, number: int, what: str) -> None:
        write_text(self.folder / REQUEST, json.dumps({"number": number, "request": what}))

    def _last_request(self) -> int:
        return _number(read_request(self.folder))

    def _acknowledged(self) -> int:
        with contextlib.suppress(OSError):
            number = record(confined.read(self.folder, STATE, MOST_DOCUMENT)).get("acknowledged")
            return number if type(number) is int else 0
        return 0


def read_request(folder: Path) -> dict[str, Any]:
    """Return the request in a run's folder; empty if there is none."""
    with contextlib.suppress(Exception):  # none, half written, or a stranger's
        return record(confined.read(folder, REQUEST, 1 << 12))
    return {}


def _number(request: dict[str, Any]) -> int:
    number = request.get("number")
    return number if type(number) is int else 0
