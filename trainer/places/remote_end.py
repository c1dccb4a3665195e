"""Answers requests on the other computer: creates runs in its workspace, starts them, and reads from their folders."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.places import slurm
from trainer.places.remote_host import PlaceError
from trainer.places.source import Chunk, FolderSource
from trainer.scheduling import launch
from trainer.store import ACTIVE, ENDED, REQUESTS, Workspace

_RUN_OF: Final = "sent "
_JOB_OF: Final = "job of "
_SQUEUE_S: Final = 10.0


class RemoteEnd:
    """Answers questions on one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._jobs: dict[str, tuple[slurm.QueuedJob | None, float]] = {}

    def answer(self, question: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return values and bytes.

        Raises:
            UserError: It cannot be done.
        """
        what = question.get("what")
        if what == "there":
            return self._there(str(question.get("path", ""))), b""
        if what == "create":
            return {"run": self._create(str(question["config"]), str(question["token"]))}, b""
        if what == "runs":
            return {}, json.dumps(self._runs()).encode()
        run = int(question["run"])
        if what == "start":
            return {"job": self._start(run, dict(question.get("queue") or {}))}, b""
        if what == "state":
            return {}, self._state(run)
        if what == "ask":
            self._ask(run, str(question["request"]))
            return {}, b""
        source = FolderSource(self._workspace.runs.get(run).folder)
        if what == "journal":
            return _reply(source.journal(int(question["offset"]), str(question["digest"])))
        if what == "read":
            return _reply(source.read(str(question["name"]), int(question["offset"])))
        if what == "folders":
            return {}, json.dumps(source.folders()).encode()
        raise PlaceError("The program there does not know this question: it is of another version.")

    def _there(self, path: str) -> dict[str, Any]:
        expanded = Path(path).expanduser()
        return {"there": expanded.exists(), "path": str(expanded)}

    def _runs(self) -> list[dict[str, Any]]:
        """Return the runs that are not deleted: number, folder, and a digest of what is known of each."""
        self._workspace.reconcile()
        return [
            {"run": row.id, "folder": row.folder.name, "digest": hashlib.sha256(self._state(row.id)).hexdigest()}
            for row in self._workspace.runs.all()
        ]

    def _create(self, written: str, token: str) -> int:
        """Make the run that was sent, once: a question that is repeated gets the same answer."""
        with contextlib.suppress(ValueError):
            stored = self._workspace.setting(_RUN_OF + token)
            if type(stored) is int:
                return stored
        number = self._workspace.runs.create(config.from_toml(written))
        self._workspace.set_setting(_RUN_OF + token, number)
        return number

    def _start(self, run: int, queue: dict[str, str]) -> str:
        if queue:
            job = self._workspace.setting(f"{_JOB_OF}{run}", "")
            ended = self._workspace.runs.get(run).status in ("stopped", "finished", "failed")
            if job and not ended and slurm.look(str(job)):
                return str(job)
            job = slurm.submit(self._workspace, run, queue)
            self._workspace.set_setting(f"{_JOB_OF}{run}", job)
            return job
        self._workspace.reconcile()
        if not self._workspace.is_alive(run) and launch.trainer_of(self._workspace, run) is None:
            launch.start_detached(self._workspace, run)
        return ""

    def _state(self, run: int) -> bytes:
        job = self._workspace.setting(f"{_JOB_OF}{run}", "")
        row = self._workspace.runs.get(run)
        if not job:
            self._workspace.reconcile()
        elif row.status in ACTIVE and self._look(str(job)) is None:
            slurm.give_up(self._workspace, run, str(job))
        document = self._workspace.document(run)
        if job and document.get("status") in ("starting", "interrupted") and (queued := self._look(str(job))):
            # While it waits no process of it lives, which others who look there take for its end.
            phase = f"waits in SLURM (job {job}){': ' if queued.words else ''}{queued.words}"
            document |= {"status": "starting", "phase": phase, "ended_at": None, "reason": ""}
        return json.dumps(document).encode()

    def _look(self, job: str) -> slurm.QueuedJob | None:
        """Return the job in SLURM's queue, asking at most every 10 s."""
        listed, at = self._jobs.get(job, (None, -_SQUEUE_S))
        if time.monotonic() - at >= _SQUEUE_S:
            listed = slurm.look(job)
            self._jobs[job] = listed, time.monotonic()
        return listed

    def _ask(self, run: int, request: str) -> None:
        if request not in REQUESTS:
            raise PlaceError(f"{request[:20]!r} is not a request that a trainer takes.")
        row = self._workspace.runs.get(run)
        if row.status in ENDED:
            return
        job = self._workspace.setting(f"{_JOB_OF}{run}", "")
        if request == "stop" and not job:
            launch.stop(self._workspace, run)
        elif request == "stop" and row.status in ("queued", "starting"):
            slurm.cancel(str(job))
            slurm.give_up(self._workspace, run, str(job), stopped=True)
        else:
            self._workspace.runs.ask(run, request)


def _reply(chunk: Chunk) -> tuple[dict[str, Any], bytes]:
    return {"offset": chunk.offset}, chunk.content
