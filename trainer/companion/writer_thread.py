"""The one thread that writes what a training of another program logs; it owns the run, and never stops the training."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.companion.embedding_set import EmbeddingSet, PreparedSet, named_ids, prepared, with_columns_of
from trainer.companion.kept_steps import KEEP_BYTES, most_crowded
from trainer.companion.rank_parts import WAIT_S, RankParts, merged
from trainer.companion.stop_request import is_asked_to_stop
from trainer.companion.writing_queue import (
    Flush,
    LoggedNumbers,
    LoggedSettings,
    Record,
    RunEnd,
    SavedCheckpoint,
    WritingQueue,
    lost_with,
)
from trainer.metrics import best_value, judge_of
from trainer.store import RunLog, StoreError, Workspace, stop_flag
from trainer.store.disk import DiskTrouble
from trainer.store.journal import Entry
from trainer.store.process_lock import identity
from trainer.store.rows import CHECKPOINTS, COMPANION, WATCHED
from trainer.store.run_log import seconds_left
from trainer.store.run_texts import SETTINGS, plain_settings
from trainer.store.snapshot_files import snapshot_bytes

BATCH_S: Final = 2.0
"""Numbers are gathered for so long, and written as one block of lines and one transaction: every second costs twice."""
_HEADLINE_S: Final = 10.0
"""How often the table of runs gets the main metric, which writes the run's file."""
_RETRY_S: Final = 5.0
"""How soon a disk that was full is tried again."""
_MOST_PENDING: Final = 100_000
"""Calls of `metrics` that wait for a disk; of more the earliest are lost."""
_LOOK_S: Final = 0.1
_MOST_CHECKPOINTS: Final = 1_000


class LoggingWarning(UserWarning):
    """Something of a training was not logged; the training is not touched."""


@dataclass(frozen=True)
class RunStart:
    """Which run a thread writes, and how."""

    workspace: Path  # Folder of the workspace.
    run: config.Run
    data: str  # Name of the data that embeddings are of.
    total_steps: int = 0  # How long the training is; 0 where that is not known.
    facts: Mapping[str, Any] | None = None
    keep_bytes: int = KEEP_BYTES  # What the snapshots may take.
    resume: int | str | None = None  # Number or name of the run that goes on in place of a new one.
    parts: RankParts | None = None  # Of the sets that several processes log together; None where one process has all.


@dataclass(frozen=True)
class _AwaitedSet:
    """A set of which this process has a part, and until when the others may bring theirs."""

    record: EmbeddingSet
    part: PreparedSet
    until: float


@dataclass
class _Judged:
    """The main metric so far."""

    name: str = ""
    last: float = 0.0
    best: float = 0.0

    def see(self, name: str, value: float) -> None:
        """Note a value, if its metric judges better than the one before."""
        if judge_of((name, self.name)) == name:
            self.best = best_value(name, (self.best, value) if name == self.name else (value,))
            self.name, self.last = name, value


class WriterThread:
    """Writes a queue to a run until the queue ends.

    Attributes:
        queue: Takes records from the training.
        run_id, name, folder: Of the run; None and empty until it is claimed, and where it could not be.
        total_steps: May be set later.
        stopping: Whether a stop was asked for.
    """

    def __init__(self, start: RunStart) -> None:
        self._start = start
        self.queue = WritingQueue()
        self.run_id: int | None = None
        self.name, self.folder = "", start.workspace
        self.total_steps, self.stopping, self.step = start.total_steps, False, 0
        self._opened = threading.Event()
        self._warned: set[str] = set()
        self._pending: list[Entry] = []
        self._retry_at = self._headline_at = float("-inf")
        self._identity = identity()
        self._first: tuple[int, float] | None = None
        self._judged, self._judged_written = _Judged(), _Judged()
        self._columns: dict[str, Mapping[str, Sequence[Any]]] = {}
        self._widths: dict[str, set[int]] = defaultdict(set)
        self._stored: dict[str, dict[int, tuple[Path, int]]] = defaultdict(dict)
        self._is_resumed = start.resume is not None
        self._settings: dict[str, str] = {}
        self._checkpoints: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._awaited: list[_AwaitedSet] = []
        self.started_at = time.monotonic()
        self.trained_s = 0.0
        self._thread = threading.Thread(target=self._run, name="contrastive-explorer-log", daemon=True)
        self._thread.start()

    @property
    def merges_parts(self) -> bool:
        """Whether sets of embeddings are parts, which the first process merges."""
        return self._start.parts is not None

    @property
    def is_alive(self) -> bool:
        """Whether it still writes."""
        return self._thread.is_alive()

    def wait_until_open(self, wait_s: float) -> bool:
        """Return whether the run is claimed, or will not be, within the time."""
        return self._opened.wait(wait_s)

    def flush(self, wait_s: float) -> bool:
        """Return whether all that was logged until now is written within the time."""
        flush = Flush(threading.Event())
        self.queue.put(flush)
        return self.is_alive and flush.written.wait(wait_s)

    def join(self, wait_s: float) -> bool:
        """Return whether all is written within the time."""
        if threading.current_thread() is not self._thread:
            self._thread.join(wait_s)
        return not self._thread.is_alive()

    def warn(self, kind: str, sentence: str) -> None:
        """Warn once of a kind of trouble; never raises, even where warnings are errors."""
        if kind in self._warned:
            return
        self._warned.add(kind)
        try:
            warnings.warn(f"Contrastive Explorer: {sentence}", LoggingWarning, stacklevel=4)
        except Exception:
            # Where warnings are errors, or the interpreter ends.
            if sys.stderr is not None:
                _say_quietly(sentence)

    def lose(self, lost_kind: str, error: BaseException | str, count: int = 1) -> None:
        """Count what is not logged, and warn once why."""
        self.queue.lost[lost_kind] += count
        self.warn(
            lost_kind, f"some {lost_kind} are not logged: {str(error).rstrip('.')}. The training is not affected."
        )

    # -- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            # Its import holds the interpreter for a tenth of a second: now, and not in the middle of the training.
            import pyarrow.parquet  # noqa: F401

            self._write_until_end()
        except Exception as error:
            self.warn("run", f"the run is not logged any more: {_sentence(error)} The training is not affected.")
        finally:
            self._opened.set()

    def _write_until_end(self) -> None:
        workspace = Workspace(self._start.workspace)
        with RunLog.claim(workspace, self._number(workspace)) as log:
            self._open(workspace, log)
            while True:
                is_last = self.queue.end is not None
                records = self.queue.take(BATCH_S)
                self._turn(workspace, log, records)
                if is_last and not records:
                    if not self._awaited:
                        break
                    time.sleep(_LOOK_S)
            self._close(log)
        if self._start.parts is not None:
            self._start.parts.clear()
        workspace.close()

    def _number(self, workspace: Workspace) -> int:
        """Return the run to write: a new one, or one that another process logged before and that has ended.

        Raises:
            StoreError: The run to continue is another kind of run, or not there.
        """
        if self._start.resume is None:
            return workspace.runs.create(self._start.run)
        row = workspace.runs.get(self._start.resume)
        if not row.is_companion or WATCHED in row.facts:
            raise StoreError(f"The run {row.name!r} was not logged by log_run: it cannot be continued by it.")
        return row.id

    def _open(self, workspace: Workspace, log: RunLog) -> None:
        row = log.run
        self.run_id, self.name, self.folder, self.step = row.id, row.name, row.folder, row.step
        self.total_steps = self.total_steps or row.total_steps
        self.started_at, self.trained_s = time.monotonic(), row.trained_s
        for snapshot in workspace.results.snapshots(row.id):
            size = sum(snapshot_bytes(snapshot.folder).values())
            self._stored[snapshot.split][snapshot.step] = snapshot.folder, size
            self._widths[snapshot.split].add(snapshot.d)
        self._settings = dict(row.facts.get(SETTINGS) or {})
        self._checkpoints = dict(row.facts.get(CHECKPOINTS) or {})
        python = ".".join(map(str, sys.version_info[:3]))
        log.facts(**{COMPANION: f"Python {python}, process {os.getpid()}", **(self._start.facts or {})})
        log.progress(step=self.step, total_steps=self.total_steps, phase="waiting for the first number")
        self._opened.set()

    def _turn(self, workspace: Workspace, log: RunLog, records: Sequence[Record]) -> None:
        """Write some records; what goes wrong with one of them is counted, and the others follow."""
        for record in records:
            try:
                self._write(log, record)
            except Exception as error:
                lost_kind, count = lost_with(record)
                self.lose(lost_kind, _sentence(error), count)
        try:
            self._write_merged(log)
            self._write_numbers(log)
            _answer(() if self._pending else records)
            self._report(log)
            self.stopping = is_asked_to_stop(workspace, log, self._identity, self.step)
        except Exception as error:
            self.warn("turn", f"the run cannot be written at present: {_sentence(error)} The training is not affected.")

    def _write(self, log: RunLog, record: Record) -> None:
        if self._is_resumed and isinstance(record, LoggedNumbers | EmbeddingSet):
            self._rewind(log, record.step)
        if isinstance(record, LoggedNumbers):
            self._take_numbers(record)
        elif isinstance(record, EmbeddingSet):
            self._write_set(log, record)
        elif isinstance(record, SavedCheckpoint):
            self._checkpoints[str(record.step)] = record.path
            self._note_checkpoints(log)
        elif isinstance(record, LoggedSettings):
            self._settings |= plain_settings(record.texts)
            log.facts(**{SETTINGS: self._settings})

    def _rewind(self, log: RunLog, step: int) -> None:
        """Drop what the session before logged at the first step of this one and later."""
        self._is_resumed = False
        if step <= self.step:
            log.rewind(max(step - 1, 0))
            self.step = min(self.step, max(step - 1, 0))
            for steps in self._stored.values():
                for later in [at for at in steps if at > self.step]:
                    del steps[later]

    def _take_numbers(self, record: LoggedNumbers) -> None:
        values: dict[str, float] = {}
        for name, number in record.values:
            try:
                values[name] = number if isinstance(number, float) else float(number())
            except Exception as error:
                self.lose("numbers", _sentence(error))
            else:
                self._judged.see(name, values[name])
        self._pending.append(Entry(record.step, record.time, record.elapsed_s, values))
        self.step = max(self.step, record.step)
        self._first = self._first or (record.step, time.monotonic())

    def _write_numbers(self, log: RunLog) -> None:
        if not self._pending or (time.monotonic() < self._retry_at and self.queue.end is None):
            return
        try:
            log.entries(self._pending)
        except DiskTrouble as trouble:
            self._wait_for_disk(log, trouble)
            return
        self._pending = []
        if self._retry_at > float("-inf"):
            self._retry_at = float("-inf")
            log.all_clear("disk")
            log.take_reserve()
        self._write_headline(log)

    def _write_headline(self, log: RunLog) -> None:
        is_due = time.monotonic() >= self._headline_at + _HEADLINE_S or self.queue.end is not None
        if is_due and self._judged != self._judged_written:
            self._headline_at = time.monotonic()
            judged = self._judged_written = _Judged(**vars(self._judged))
            log.headline(judged.last, judged.best, metric=judged.name)

    def _wait_for_disk(self, log: RunLog, trouble: DiskTrouble) -> None:
        """Keep the numbers that do not fit, up to a bound, and try again later."""
        if self._retry_at == float("-inf"):
            # The row must be written on a disk that is full.
            log.give_reserve()
            log.alert("disk", str(trouble), self.step)
        self._retry_at = time.monotonic() + _RETRY_S
        self.warn("disk", f"{trouble} Numbers wait in memory, and the training is not affected.")
        excess = self._pending[: -_MOST_PENDING or None][: max(len(self._pending) - _MOST_PENDING, 0)]
        if excess:
            self.lose("numbers", trouble, sum(len(entry.values) for entry in excess))
            self._pending = self._pending[len(excess) :]

    def _write_set(self, log: RunLog, record: EmbeddingSet) -> None:
        part = self._prepared(record)
        if self._start.parts is None:
            self._store(log, record, part, sampled=record.sampled)
        else:
            self._awaited.append(_AwaitedSet(record, part, time.monotonic() + WAIT_S))

    def _prepared(self, record: EmbeddingSet) -> PreparedSet:
        columns, before = record.columns, self._columns.get(record.split, {})
        if columns is None and len(next(iter(before.values()), ())) == record.n:
            columns = before
        elif columns is not None and [*columns] == ["id"]:
            columns = with_columns_of(before, columns["id"])
        if self._start.parts is not None and "id" not in (columns or {}):
            raise ValueError("parts of several processes are merged by id, and the items have none")
        part = prepared(record, columns)
        self._columns[record.split] = columns or {}
        return part

    def _write_merged(self, log: RunLog) -> None:
        """Store the sets whose parts are all there, and those whose time is over."""
        parts = self._start.parts
        for awaited in list(self._awaited) if parts is not None else ():
            assert parts is not None
            record = awaited.record
            others = parts.read(record.step, record.split)
            is_complete = len(others) >= parts.count - 1
            if not is_complete and time.monotonic() < awaited.until:
                continue
            self._awaited.remove(awaited)
            try:
                self._store(log, record, merged([awaited.part, *others]), sampled=record.sampled or not is_complete)
            except Exception as error:
                self.lose("sets of embeddings", _sentence(error))
            if not is_complete:
                share = f"the parts of {1 + len(others)} of {parts.count} processes"
                self._note(log, f"parts_{record.split}", f"Of {record.split} at step {record.step} there are {share}.")
                self.warn("parts", f"of {record.split} there are {share}: the others did not bring theirs in time.")
            parts.remove(record.step, record.split)

    def _store(self, log: RunLog, record: EmbeddingSet, stored: PreparedSet, *, sampled: bool) -> None:
        split = self._split_of(record.split, stored.width)
        folder = log.write_snapshot(
            record.step,
            self._start.data,
            split,
            image=stored.arrays.get("image"),
            text=stored.arrays.get("text"),
            items=stored.items,
            sampled=sampled,
        )
        self.step = max(self.step, record.step)
        if stored.dropped:
            ids = f"{len(stored.dropped):,} of {record.n:,} rows of {split} (ids {named_ids(stored.dropped)})"
            self._note(log, f"dropped_{split}", f"{ids} have no direction at step {record.step}.")
            self.warn("rows", f"{ids} are zero or not finite, and are left out.")
        self._stored[split][record.step] = folder, sum(snapshot_bytes(folder).values())
        self._thin(log)

    def _split_of(self, split: str, width: int) -> str:
        """Return the name under which a split is stored: embeddings of another width are another split."""
        widths = self._widths[split]
        if not widths or width in widths:
            widths.add(width)
            return split
        self.warn("width", f"the embeddings of {split} have {width} numbers now: they are stored as {split}-{width}d.")
        self._widths[f"{split}-{width}d"].add(width)
        return f"{split}-{width}d"

    def _thin(self, log: RunLog) -> None:
        """Drop snapshots between the first and the last until they take no more than they may."""
        while sum(size for steps in self._stored.values() for _, size in steps.values()) > self._start.keep_bytes:
            inner = {split: most_crowded([*steps]) for split, steps in self._stored.items()}
            crowded = {split: step for split, step in inner.items() if step is not None}
            if not crowded:
                break
            split = max(crowded, key=lambda name: sum(size for _, size in self._stored[name].values()))
            folder, _ = self._stored[split].pop(crowded[split])
            log.drop_snapshot(crowded[split], self._start.data, split, folder)
            budget = f"{self._start.keep_bytes / 2**20:,.0f} MiB"
            self._note(log, f"thinned_{split}", f"Of the logged steps of {split} as many are kept as {budget} hold.")

    def _note_checkpoints(self, log: RunLog) -> None:
        """Note the newest checkpoints that are there: the other program removes old ones."""
        present = {step: path for step, path in self._checkpoints.items() if "://" in path or os.path.lexists(path)}
        self._checkpoints = dict(list(present.items())[-_MOST_CHECKPOINTS:])
        log.facts(**{CHECKPOINTS: self._checkpoints})

    def _note(self, log: RunLog, name: str, sentence: str) -> None:
        if self._notes.get(name) != sentence:
            self._notes[name] = sentence
            log.facts(**{name: sentence})

    def _report(self, log: RunLog) -> None:
        if self._first is None and self.step == log.run.step:
            return log.report("waiting for the first number")
        phase = "asked to stop" if self.stopping else ""
        log.progress(step=self.step, total_steps=max(self.total_steps, self.step), phase=phase, eta_s=self._eta_s())

    def _eta_s(self) -> float | None:
        if self._first is None or self.total_steps <= self.step:
            return None
        return seconds_left(self.step - self._first[0], time.monotonic() - self._first[1], self.total_steps - self.step)

    def _close(self, log: RunLog) -> None:
        end = self.queue.end or RunEnd("interrupted", "")
        if self.stopping and end.status == "finished":
            end = RunEnd("stopped", f"Stopped at step {self.step}, as asked.")
        if waiting := sum(len(entry.values) for entry in self._pending):
            self.lose("numbers", "the disk is full", waiting)
        self._write_headline(log)
        if self._checkpoints:
            self._note_checkpoints(log)
        if self.queue.lost:
            log.facts(not_logged=dict(self.queue.lost))
        log.status(end.status, end.reason)
        stop_flag.remove(log.folder)


class PartWriterThread(WriterThread):
    """Writes the parts of a process that is not the first one; all else is logged by the first one."""

    def _write_until_end(self) -> None:
        self._opened.set()
        while True:
            is_last = self.queue.end is not None
            records = self.queue.take(BATCH_S)
            for record in records:
                if isinstance(record, EmbeddingSet):
                    self._write_part(record)
            _answer(records)
            if is_last and not records:
                break

    def _write_part(self, record: EmbeddingSet) -> None:
        assert self._start.parts is not None
        try:
            self._start.parts.write(record.step, record.split, self._prepared(record))
        except Exception as error:
            self.lose("sets of embeddings", _sentence(error))


def _answer(records: Iterable[Record]) -> None:
    for record in records:
        if isinstance(record, Flush):
            record.written.set()


def _sentence(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, StoreError) else f"{type(error).__name__}: {text}".rstrip(".") + "."


def _say_quietly(sentence: str) -> None:
    from trainer.untrusted.terminal import say

    try:
        say(f"Contrastive Explorer: {sentence}", error=True)
    except Exception:
        return
