"""The trainer's interface to the store: claims a run, logs its progress, and releases it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from trainer.store import crash_points, disk, owner_key, pending_rows, reserve
from trainer.store.disk import DiskTrouble
from trainer.store.files import sweep_drafts
from trainer.store.journal import Entry, Journal, number_to_json
from trainer.store.process_lock import ProcessLock, identity
from trainer.store.question import Question
from trainer.store.rows import ENDED, WATCH_ENDED, DatabaseBusy, DatabaseGone, RunRow, StoreError, ValueRefused
from trainer.store.snapshot_files import ArrayFile, Items, snapshot_name, write_snapshot
from trainer.store.workspace import Workspace
from trainer.untrusted import confined, shell
from trainer.untrusted.terminal import say

FLUSH_ROWS: Final = 250
FLUSH_S: Final = 0.25
HEARTBEAT_S: Final = 2.0
ASKED_S: Final = 0.1
FEWEST_STEPS: Final = 10
"""Steps that must be made before the time left is told, unless they take a minute."""
_STEP_WAIT_MS: Final = 50
"""How long a training step waits for a locked database: the journal has the curves, the rest is tried again."""
_BUSY_RETRY_S: Final = 0.5
"""How soon a locked database is tried again, without waiting for it."""
_RETRY_S: Final = 5.0
"""How soon one that does not answer is tried again."""
_PATIENCE_S: Final = 120.0
"""How long the start of a session waits for a locked database."""
_END_S: Final = 4.0
"""How long its end does; what is still unsaid then waits in the run's folder, and the trainer is gone."""
_FULL_S: Final = 2.0
"""How long it waits for a full disk: who can, pauses the run instead."""
_MOMENTARY: Final = ("save", "evaluate")
_SPARE: Final = 1 << 20
"""Bytes that a snapshot takes beside its embeddings, about."""


def seconds_left(made: int, took_s: float, left: int) -> float | None:
    """Return the seconds of the steps that are left, as long each as those made; None before that can be told."""
    settled = took_s >= 60 or (made >= FEWEST_STEPS and took_s >= 5)
    return took_s / made * left if made > 0 and settled else None


class RunLog:
    """The log of the process that trains a run, from `claim` to `close`; use it as a context manager.

    Leaving the context by an exception marks the run failed with that exception's sentence.

    Attributes:
        run: The row as it was claimed.
        folder: The run's folder.
        memory: What a sign of life says of the memory in use: `rss_mib` and `gpu_mib`, in MiB.
        beside: Gets step and numbers of every `scalars` once they are logged here; must neither wait nor raise.
    """

    def __init__(self, workspace: Workspace, run: RunRow, lock: ProcessLock) -> None:
        # One of its own that hardly waits: training does not slow down for a locked database.
        self._workspace = Workspace(workspace.folder, wait_ms=_STEP_WAIT_MS)
        self._place = run.folder.stat().st_ino
        self._waiting: deque[Callable[[], None]] = deque()
        self._retry_at = float("-inf")
        self._lock = lock
        self._journal = Journal(run.folder / "metrics.jsonl")
        self._clock_start = time.monotonic()
        self._buffer: list[Entry] = []
        self._rows = 0
        self._flushed_at = self._beat_at = self._asked_at = float("-inf")
        self._progress: dict[str, Any] = {}
        self._trouble: StoreError | None = None
        self._spooled = False
        self._asked = ""
        self._ended = False
        self._end_by: float | None = None
        self.memory: Callable[[], dict[str, float]] = dict
        self.beside: Callable[[int, Mapping[str, float]], None] = lambda step, values: None
        self.run = run
        self.folder = run.folder

    @classmethod
    def claim(cls, workspace: Workspace, run: int) -> RunLog:
        """Claim a run that no other live process holds, mark it running and return its log.

        Raises:
            StoreError: Another process trains the run, it was deleted, or its workspace is look only.
        """
        workspace.check_mine()
        row = workspace.runs.get(run)
        if row.deleted_at is not None:
            raise StoreError(f"The run {row.name!r} was deleted. Restore it first: trainer runs restore {row.id}.")
        _refuse_links(workspace, row)
        lock = ProcessLock.take(row.folder / "alive.lock")
        if lock is None:
            raise StoreError(f"The run {row.name!r} is already being trained by another process (pid {row.pid}).")
        try:
            try:
                return cls._claimed(workspace, row, lock)
            except DiskTrouble:
                # What its launcher reserved is the room for its row: whoever writes more can pause it with a sentence.
                if not reserve.give(workspace.folder, row.folder):
                    raise
                return cls._claimed(workspace, row, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _claimed(cls, workspace: Workspace, row: RunRow, lock: ProcessLock) -> RunLog:
        me = identity()
        now = time.time()
        # What an earlier session left unsaid comes first: its alerts are not this one's, but for a collapse, which a
        # resumed run still has.
        workspace.catch_up(row.id)
        # Nor is its end, should this one be killed now.
        pending_rows.forget(row.folder)
        workspace.runs.change(
            row.id,
            status="running",
            # A request from before the start still holds; one from an earlier session does not.
            asked=row.asked if row.active else "",
            pid=os.getpid(),
            start_ticks=me.start_ticks if me else None,
            boot_id=me.boot_id if me else "",
            started_at=row.started_at or now,
            session_at=now,
            heartbeat_at=now,
            rss_mib=None,
            gpu_mib=None,
            alerts=json.dumps({kind: alert for kind, alert in row.alerts.items() if kind == "collapse"}),
            ended_at=None,
            reason="",
        )
        for name in ("", "checkpoints", "snapshots"):
            sweep_drafts(row.folder / name, keep=reserve.NAME)
        log = cls(workspace, workspace.runs.get(row.id), lock)
        log.take_reserve()
        return log

    @property
    def is_moved(self) -> bool:
        """Whether the run's folder has moved since it was claimed, alone or with the workspace."""
        try:
            return self.folder.stat().st_ino != self._place
        except FileNotFoundError:
            return True
        except OSError:
            return False

    @property
    def elapsed_s(self) -> float:
        """Seconds of training over all sessions, by a monotonic clock."""
        return self.run.trained_s + time.monotonic() - self._clock_start

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Log numbers of one step: written to the journal now, to the database within 0.25 s of calls.

        Raises:
            DiskTrouble: The disk is full or gone; then nothing is logged.
        """
        plain = {name: float(value) for name, value in values.items()}
        if not plain:
            return
        entry = Entry(step, time.time(), round(self.elapsed_s, 4), plain)
        self._journal.append(entry)
        crash_points.point("journal.appended")
        self._buffer.append(entry)
        self._rows += len(plain)
        self._flush_when_due()
        self.beside(step, plain)

    def entries(self, entries: Sequence[Entry]) -> None:
        """Log numbers that another program logged at its own times, all at once.

        Raises:
            DiskTrouble: The disk is full or gone; then none of them is logged.
        """
        self._journal.append(*entries)
        self._buffer += entries
        self._rows += sum(len(entry.values) for entry in entries)
        self._flush_when_due()

    def progress(self, *, step: int, total_steps: int, phase: str = "", eta_s: float | None = None) -> None:
        """Report the run's progress; a heartbeat is written every 2 s at most, and at a new phase and the last step."""
        news = {"step": step, "total_steps": total_steps, "phase": phase, "eta_s": eta_s}
        recorded = self._progress
        turned = phase != recorded.get("phase") or (step >= total_steps and step != recorded.get("step"))
        self._progress = news
        if turned or time.monotonic() - self._beat_at >= HEARTBEAT_S:
            self._beat()
        self._flush_when_due()

    def asked(self) -> str:
        """Return the user's request: `stop`, `stop-epoch`, `pause`, `save`, `evaluate` or an empty string.

        `stop`, `stop-epoch` and `pause` stay until they are taken back or the run ends; `save` and `evaluate` are
        told once, and what stays does so beside them.
        """
        self._flush_when_due()
        now = time.monotonic()
        if now - self._asked_at < ASKED_S:
            return self._asked
        self._asked_at = now
        try:
            request = self._workspace.runs.asked(self.run.id)
            if request in _MOMENTARY:
                # The row has room for one request: this one stood in the place of that which stays.
                self._workspace.runs.answered(self.run.id, request, then=self._asked)
                return request
        except StoreError:
            return self._asked
        self._asked = request
        return request

    def report(self, phase: str) -> None:
        """Report another phase at the same step."""
        progress = {"step": self.run.step, "total_steps": self.run.total_steps, **self._progress}
        self.progress(**{**progress, "phase": phase})

    def said(self, name: str, otherwise: float) -> float:
        """Return the value last passed to `progress`."""
        return self._progress.get(name, otherwise)

    def take_reserve(self) -> None:
        """Reserve some disk space, so that a run can still report a full disk."""
        reserve.take(self._workspace.folder, self.folder)

    def give_reserve(self) -> None:
        """Release the reserved space for the next message."""
        reserve.give(self._workspace.folder, self.folder)

    def status(self, status: str, reason: str = "") -> None:
        """Set the run's status; a final one ends this log, and waits briefly for a locked database."""
        values: dict[str, Any] = {"status": status, "reason": reason, **self._progress}
        if status in ENDED:
            self._ended = True
            values |= {"ended_at": time.time(), "trained_s": self.elapsed_s, "pid": None, "asked": "", "eta_s": None}
            values["phase"] = ""  # it does nothing any more
        self._write(lambda: self._workspace.runs.change(self.run.id, **values))
        if self._ended:
            if not self._settle() and isinstance(self._trouble, DiskTrouble):
                self.give_reserve()  # how it ended must be told on a disk that is full
            self._keep_waiting(pending_rows.END, values)
            self.flush(patience_s=self._patience_left())

    def alert(self, kind: str, text: str, step: int) -> None:
        """Save an alert with the run."""
        self._write(lambda: self._workspace.runs.raise_alert(self.run.id, kind, {"words": text, "step": step}))
        self._keep_waiting("alert", {"kind": kind, "words": text, "step": step})

    def all_clear(self, kind: str) -> None:
        """Clear an alert whose cause is gone."""
        self._write(lambda: self._workspace.runs.raise_alert(self.run.id, kind, None))
        self._keep_waiting("no alert", {"kind": kind})

    def headline(self, last: float, best: float, *, metric: str = "") -> None:
        """Store the run's main metric (`metric` if not its objective's) in its row, so that a table needs no curves."""
        name = {"metric": metric} if metric else {}
        self._write(lambda: self._workspace.runs.change(self.run.id, durable=False, last=last, best=best, **name))
        self._keep_waiting("headline", {"last": number_to_json(last), "best": number_to_json(best)} | name)

    def facts(self, **facts: Any) -> None:
        """Add facts about the run (device, parameters, fingerprints); plain JSON values."""
        self._write(lambda: self._workspace.runs.add_facts(self.run.id, facts))
        self._keep_waiting("facts", {"facts": facts})

    def sync(self) -> None:
        """Make the curves survive a power cut; called before a checkpoint, because resuming does not repeat them.

        Raises:
            DiskTrouble: The disk is gone.
        """
        self._journal.sync()

    def checkpoint(self, step: int, folder: Path, *, best: bool = False) -> None:
        """Register a checkpoint that is complete on disk."""
        self._write(lambda: self._workspace.results.add_checkpoint(self.run.id, step, folder, best=best))
        self._keep_waiting("checkpoint", {"step": step, "folder": self._inside(folder), "best": best})

    def drop_checkpoint(self, step: int) -> None:
        """Remove a checkpoint's row; the caller removes its folder."""
        self._write(lambda: self._workspace.results.drop_checkpoint(self.run.id, step))
        self._keep_waiting("no checkpoint", {"step": step})

    def kept_checkpoints(self, folders: Mapping[int, Path], *, best: int | None) -> None:
        """Update the rows to match the existing folders, since a kill may separate a folder from its row."""
        try:
            rows = {row.step: row.best for row in self._workspace.results.checkpoints(self.run.id)}
        except StoreError as error:
            return self._later(error)
        for step in rows.keys() - folders.keys():
            self.drop_checkpoint(step)
        for step, folder in sorted(folders.items()):
            if rows.get(step) != (step == best):
                self.checkpoint(step, folder, best=step == best)

    def write_snapshot(
        self,
        step: int,
        dataset: str,
        split: str,
        *,
        image: Float[np.ndarray, "n d"] | ArrayFile | None,
        text: Float[np.ndarray, "n d"] | ArrayFile | None,
        items: Items,
        written: Callable[[Path], None] = lambda _: None,
        **details: Any,
    ) -> Path:
        """Write a snapshot and register it; return its folder.

        Args:
            image: Embeddings, or a file of them that is moved; None for no such side.
            text: The same.
            written: Called before views learn of it: what they would compute of it can be stored here.
            **details: Further arguments of `trainer.store.write_snapshot`.

        Raises:
            StoreError: The arrays do not fit the items.
            DiskTrouble: The disk is full or gone.
        """
        folder = self.folder / "snapshots" / snapshot_name(dataset=dataset, split=split, step=step)
        sides = [rows for rows in (image, text) if rows is not None]
        with disk.writing(f"The snapshot of step {step}", folder, _SPARE + sum(rows.nbytes for rows in sides)):
            write_snapshot(
                folder,
                image=image,
                text=text,
                items=items,
                step=step,
                dataset=dataset,
                split=split,
                model=self.run.name,
                **details,
            )
        written(folder)
        self.snapshot(step, dataset, split, folder, len(items), sides[0].shape[1])
        return folder

    def snapshot(self, step: int, dataset: str, split: str, folder: Path, n: int, d: int) -> None:
        """Register a snapshot that is complete on disk."""
        row = {"step": step, "dataset": dataset, "split": split, "folder": self._inside(folder), "n": n, "d": d}
        self._write(lambda: self._workspace.results.add_snapshot(self.run.id, step, dataset, split, folder, n=n, d=d))
        self._keep_waiting("snapshot", row)

    def drop_snapshot(self, step: int, dataset: str, split: str, folder: Path) -> None:
        """Remove a snapshot: its row, then its folder."""
        self._write(lambda: self._workspace.results.drop_snapshot(self.run.id, step, dataset, split))
        self._keep_waiting("no snapshot", {"step": step, "dataset": dataset, "split": split})
        confined.remove_tree(self._workspace.folder, confined.relative(self._workspace.folder, folder))

    def evaluation(
        self,
        step: int,
        dataset: str,
        split: str,
        metrics: dict[str, float],
        questions: Mapping[str, Question] | None = None,
    ) -> None:
        """Store the numbers of a whole split; `questions` are by task."""
        plain = {name: number_to_json(float(value)) for name, value in metrics.items()}
        self._write(
            lambda: self._workspace.results.add_evaluation(self.run.id, step, dataset, split, metrics, questions)
        )
        row = {"step": step, "dataset": dataset, "split": split, "metrics": plain}
        keys = {task: question.key for task, question in (questions or {}).items()}
        self._keep_waiting("evaluation", row | {"questions": keys})

    def rewind(self, step: int) -> None:
        """Remove everything after `step`, so that resumed training duplicates nothing."""
        self.flush(patience_s=_PATIENCE_S)
        self._journal.rewind(step)
        crash_points.point("journal.rewound")
        workspace = Workspace(self._workspace.folder)
        for folder in workspace.results.rewind(self.run.id, step):
            if folder.parent == self.folder / "snapshots":
                confined.remove_tree(workspace.folder, confined.relative(workspace.folder, folder))
        workspace.catch_up(self.run.id)
        workspace.close()

    def flush(self, *, patience_s: float = 0.0) -> bool:
        """Write everything logged so far to the database; False if it stayed locked (rows are kept for later).

        Args:
            patience_s: How long to go on trying.
        """
        deadline = time.monotonic() + patience_s
        while not self._settle():
            if time.monotonic() >= deadline:
                return False
            if isinstance(self._trouble, DiskTrouble) and time.monotonic() >= deadline - patience_s + _FULL_S:
                return False
            time.sleep(0.05)
        return True

    def settle(self) -> None:
        """Write everything logged so far to the database at the end, unless it stays locked.

        Raises:
            DiskTrouble: Its disk is full or gone.
        """
        if not self.flush(patience_s=self._patience_left()) and isinstance(self._trouble, DiskTrouble):
            self._end_by = None  # the run waits for its disk, and ends another time
            raise self._trouble

    def close(self) -> None:
        """Mark a run without a final status as interrupted, store the rest, and release the lock.

        In a forked child nothing is done: the run is that of its parent.
        """
        if not self._lock.is_mine:
            return
        try:
            if not self._ended:
                self.status("interrupted", "The trainer ended without a result.")
            elif self._buffer or self._waiting:
                self.flush(patience_s=1.0)
        finally:
            self.give_reserve()
            self._workspace.close()
            self._journal.close()
            self._lock.release()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and not self._ended and self._lock.is_mine:
                interrupted = isinstance(error, KeyboardInterrupt | SystemExit) or self.is_moved
                by_signal = WATCH_ENDED if self.run.is_watched else "Ended by a signal."
                sentence = by_signal if interrupted else (str(error) or type(error).__name__)
                self.status("interrupted" if interrupted else "failed", sentence)
        finally:
            self.close()

    def _patience_left(self) -> float:
        """Return the seconds left to wait for a locked database at the end, over all writes."""
        now = time.monotonic()
        self._end_by = now + _END_S if self._end_by is None else self._end_by
        return max(0.0, self._end_by - now)

    def _inside(self, folder: Path) -> str:
        return folder.relative_to(self.folder).as_posix() if folder.is_relative_to(self.folder) else str(folder)

    def _flush_when_due(self) -> None:
        now = time.monotonic()
        due = self._rows >= FLUSH_ROWS or now - self._flushed_at >= FLUSH_S
        if due and now >= self._retry_at and (self._buffer or self._waiting):
            self._settle()

    def _write(self, action: Callable[[], None]) -> None:
        self._waiting.append(action)
        if time.monotonic() >= self._retry_at:
            self._settle()

    def _keep_waiting(self, kind: str, values: dict[str, Any]) -> None:
        """Save rows rejected by the database in a file, because training does not produce them again."""
        if self._waiting:
            self._spooled = True
            pending_rows.keep(self.folder, kind, values)

    def _settle(self) -> bool:
        """Write the buffered curves, then other pending rows, in order; False if the database was locked."""
        self._flushed_at = time.monotonic()
        # One wait for those who write at this moment; who holds it longer is not waited for again and again.
        self._workspace.wait_at_most(0 if self._retry_at > float("-inf") else _STEP_WAIT_MS)
        try:
            if self._buffer:
                self._store_entries()
                self._buffer, self._rows = [], 0
                crash_points.point("scalars.stored")
            while self._waiting:
                try:
                    self._waiting[0]()
                except ValueRefused as error:  # it would be again, and all that waits behind it with it
                    self._report_refused(error)
                self._waiting.popleft()
        except StoreError as error:
            # Training goes on without its database: the journal holds the curves, and the next try is a while away.
            self._later(error)
            return False
        self._retry_at = float("-inf")
        if self._spooled:
            pending_rows.forget(self.folder)
            self._spooled = False
        return True

    def _store_entries(self) -> None:
        try:
            self._workspace.results.add_entries(self.run.id, self._buffer)
        except ValueRefused as error:
            for entry in self._buffer:  # all but those that do not fit, which the journal has
                with contextlib.suppress(ValueRefused):
                    self._workspace.results.add_entries(self.run.id, [entry])
            self._report_refused(error)

    def _report_refused(self, error: ValueRefused) -> None:
        alert = {"words": str(error), "step": int(self.said("step", 0))}
        self._workspace.runs.raise_alert(self.run.id, "refused", alert)

    def _beat(self) -> None:
        now = time.monotonic()
        if now < self._retry_at:
            return
        self._beat_at = now
        try:
            self._workspace.runs.beat(self.run.id, self._progress | self.memory())
        except StoreError as error:
            self._later(error)

    def _later(self, error: StoreError) -> None:
        if isinstance(error, DatabaseGone) and not isinstance(self._trouble, DatabaseGone):
            say(f"{error} The run continues: its curves and checkpoints are in {self.folder}.", error=True)
        self._trouble = error
        self._retry_at = time.monotonic() + (_BUSY_RETRY_S if isinstance(error, DatabaseBusy) else _RETRY_S)


def _refuse_links(workspace: Workspace, row: RunRow) -> None:
    """Create the run's folder if it is missing, and refuse links in it, and one of another user.

    Raises:
        StoreError: It, or something directly in it, is a link, pipe or device; or its owner may change all in it.
    """
    try:
        name = confined.relative(workspace.folder, row.folder)
        for entry in confined.make_folder(workspace.folder, name).iterdir():
            confined.inside(row.folder, entry.name)
    except confined.NotConfined as error:
        raise StoreError(
            f"The run {row.name!r} cannot be trained: of {error.filename}, {error.strerror}. Nothing was changed."
        ) from error
    if owner_key.is_of_another(row.folder.lstat()):
        raise StoreError(
            f"The run {row.name!r} cannot be trained: its folder {row.folder} belongs to another user, who may change "
            f"all in it. Bring it in as one of yours: trainer runs import {shell.quote(str(row.folder))}"
        )
