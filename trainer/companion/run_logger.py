"""Log a training of anybody's loop as a run: its curves, its embeddings at each step, and where its model is saved."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, SupportsIndex

from trainer import config as configuration
from trainer.companion.captured_values import captured_number, captured_step
from trainer.companion.embedding_set import captured_set
from trainer.companion.kept_steps import KEEP_BYTES
from trainer.companion.process_rank import process_rank
from trainer.companion.rank_parts import RankParts
from trainer.companion.writer_thread import LoggingWarning, PartWriterThread, RunStart, WriterThread
from trainer.companion.writing_queue import LoggedNumbers, LoggedSettings, RunEnd, SavedCheckpoint
from trainer.store.rows import VAL_BATCH
from trainer.store.run_texts import SETTINGS, plain_settings
from trainer.trackers.metric_names import Program, shared_names

__all__ = ["LoggingWarning", "RunLogger", "log_run"]

End = Literal["finished", "stopped", "failed", "interrupted"]
DATA: Final = "my data"
OPEN_S: Final = 10.0
"""How long the begin of a training waits for its row; a slower store gets it later."""
END_S: Final = 30.0
"""How long the end of a training waits until all is written."""
_EXIT_S: Final = 10.0
_LIVE: Final[dict[tuple[Path, str], WriterThread]] = {}
"""Folder and name as they were given -> what writes a run of this process that has not ended."""
Arguments = ParamSpec("Arguments")


def _harmless(
    what: str,
) -> Callable[[Callable[Concatenate[RunLogger, Arguments], None]], Callable[Concatenate[RunLogger, Arguments], None]]:
    """Return a decorator of methods that do nothing in a forked child or a silent rank, and never raise."""

    def decorate(
        method: Callable[Concatenate[RunLogger, Arguments], None],
    ) -> Callable[Concatenate[RunLogger, Arguments], None]:
        @functools.wraps(method)
        def harmless(self: RunLogger, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            writer = self._writer
            if writer is None or self._pid != os.getpid():
                return
            try:
                if writer.queue.end is not None:
                    raise RuntimeError("the run has ended")
                method(self, *args, **kwargs)
            except Exception as error:
                writer.lose(what, error)

        return harmless

    return decorate


class RunLogger:
    """Logs one run; made by `log_run`. Its methods never raise; `flush` and `finish` alone wait for the disk.

    As a context manager it ends the run: finished, or failed with the exception's sentence. In a forked child, in ranks
    other than the first, and where it was pickled, it does nothing.
    """

    def __init__(
        self, writer: WriterThread | None, names: Program | Literal[""] = "", *, distinct_captions: bool = False
    ) -> None:
        self._writer = writer
        self._pid = os.getpid()
        self._names: Program | Literal[""] = names
        self._distinct_captions = distinct_captions
        self._size = process_rank().size
        if writer is not None:
            weakref.finalize(self, _drop, writer, self._pid).atexit = False

    @property
    def run_id(self) -> int | None:
        """Number of the run; None while it is not there."""
        return None if self._writer is None else self._writer.run_id

    @property
    def name(self) -> str:
        """Name of the run: the one that was asked for, with a number where it was in use."""
        return "" if self._writer is None else self._writer.name

    @property
    def folder(self) -> Path | None:
        """Folder of the run; None while it is not there."""
        return None if self._writer is None or self._writer.run_id is None else self._writer.folder

    @property
    def stopping(self) -> bool:
        """Whether somebody asked for a stop in the window or by `trainer stop`; the loop should then end."""
        return self._writer is not None and self._writer.stopping

    @property
    def lost(self) -> dict[str, int]:
        """What was not logged -> how often; empty if all is well."""
        return {} if self._writer is None else dict(self._writer.queue.lost)

    @property
    def is_open(self) -> bool:
        """Whether this process logs the run and has not ended it."""
        return self._writer is not None and self._pid == os.getpid() and self._writer.queue.end is None

    @_harmless("numbers")
    def metrics(self, step: SupportsIndex, values: Mapping[str, Any]) -> None:
        """Log numbers of a step.

        Args:
            step: Updates that the model has seen.
            values: Name -> number, or tensor or array of one; of two at one step the later counts.
        """
        writer = self._active
        at = captured_step(step)
        numbers = []
        for name, value in shared_names(values, self._names, distinct_captions=self._distinct_captions).items():
            try:
                numbers.append((str(name), captured_number(value)))
            except Exception as error:
                writer.lose("numbers", f"{name}: {error}")
        now = time.monotonic()
        elapsed_s = round(writer.trained_s + now - writer.started_at, 4)
        if numbers and (lost_kind := writer.queue.put(LoggedNumbers(at, time.time(), elapsed_s, tuple(numbers)))):
            writer.lose(lost_kind, "the disk is too slow, and the queue is full", 0)

    @_harmless("sets of embeddings")
    def embeddings(
        self,
        step: int,
        *,
        image: Any = None,
        text: Any = None,
        items: Any = None,
        split: str = "val",
        sampled: bool | None = None,
    ) -> None:
        """Log the embeddings of a split at a step: row i of images, texts and items is one pair.

        They are copied now, and brought to unit length and written later, as float16. Rows without a direction are left
        out and counted.

        Args:
            step: Updates that the model has seen.
            image: Matrix (n, d) of numpy or torch, of any device and any kind of fraction.
            text: The same of texts; one side is enough.
            items: What the rows are: a table of pandas or Arrow, columns by name, dictionaries, or ids alone. Columns
                `id`, `path`, `caption` and `label` are known; ids tie steps and runs together. Ids alone: in any
                order, of the table of a step before. None: those of the step before, else rows are known by number.
            split: Its name.
            sampled: Whether these are a part of the split; None: they are where there are several processes, whose
                parts are not merged.
        """
        writer = self._active
        is_merged = writer.merges_parts
        is_part = self._size > 1 and not is_merged if sampled is None else sampled
        captured = captured_set(captured_step(step), image, text, items, split, sampled=is_part)
        if lost_kind := writer.queue.put(captured):
            reason = f"{captured.size / 2**20:,.0f} MiB come faster than the disk takes them, or exceed the queue"
            writer.lose(lost_kind, reason, 0)

    @_harmless("checkpoints and settings")
    def checkpoint(self, step: int, path: str | os.PathLike[str]) -> None:
        """Note where the model of a step is saved, so that `trainer open` finds it.

        Args:
            step: Updates that the model has seen.
            path: File or folder of the other program, or an address.
        """
        name = os.fspath(path)
        self._active.queue.put(SavedCheckpoint(captured_step(step), name if "://" in name else os.path.abspath(name)))

    @_harmless("checkpoints and settings")
    def settings(self, values: Any) -> None:
        """Add settings: a dictionary (its inner ones by dotted names), a dataclass, or what has attributes."""
        self._active.queue.put(LoggedSettings(_texts(values)))

    @_harmless("numbers")
    def expect(self, total_steps: int) -> None:
        """Say how many updates the training has, where that was not known at its begin."""
        self._active.total_steps = captured_step(total_steps)

    def flush(self, wait_s: float = END_S) -> bool:
        """Wait until what was logged is written, for another program to read; return whether it is within the time."""
        writer = self._writer
        return writer is not None and self.is_open and writer.flush(wait_s)

    def finish(self, status: End = "finished", reason: str = "") -> None:
        """End the run, and wait up to 30 s until all is written; later calls do nothing.

        Args:
            status: How it ended; a finished one that was asked to stop is stopped.
            reason: Why it failed, a sentence.
        """
        writer = self._writer
        if writer is None or self._pid != os.getpid() or writer.queue.end is not None:
            return
        writer.queue.close(RunEnd(status, reason))
        if not writer.join(END_S):
            writer.warn("end", f"the end of the run is still being written after {END_S:.0f} s.")
        if lost := self.lost:
            summary = ", ".join(f"{count:,} {what}" for what, count in lost.items())
            writer.warn("sum", f"not logged in all: {summary}.")

    def __enter__(self) -> RunLogger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.finish(*how_it_ended(error))

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process, or as a copy, it would write to the same run.
        return RunLogger, (None,)

    @property
    def _active(self) -> WriterThread:
        assert self._writer is not None
        return self._writer


def how_it_ended(error: BaseException) -> tuple[End, str]:
    """Return status and reason of a run whose training ended by an exception."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted", "Ended by a signal, or by the program itself."
    return "failed", str(error) or type(error).__name__


def log_run(
    folder: str | Path = "runs",
    *,
    name: str = "",
    config: Any = None,
    total_steps: int = 0,
    data: str = DATA,
    resume: int | str | None = None,
    names: Program | Literal[""] = "",
    distinct_captions: bool = False,
    val_batch: int | None = None,
    keep_bytes: int = KEEP_BYTES,
    every_rank: bool = False,
    merge_ranks: int = 0,
) -> RunLogger:
    """Return the logger of a new run, for a training of one's own; it needs no torch, and never harms the training.

    Whatever cannot be logged is one `LoggingWarning`, and counted; the numbers of the training stay the same bit for
    bit. Of several processes the first one writes.

    Args:
        folder: The workspace, as `explorer --workspace` opens it; it is made where there is none.
        name: Of the run; empty: that of the script. A second run of a name in one process ends the first.
        config: Settings to show: a dictionary, a dataclass, or what `argparse` returns.
        total_steps: How many updates the training has; 0 where that is not known.
        data: Name of the data that embeddings are of; runs of one name are compared by the ids of their items.
        resume: Number or name of a run logged before that goes on.
        names: Whose names the metrics have: those that mean the same share axes with runs of this application.
        distinct_captions: The captions of the validation data differ, so that retrieval of open_clip means the same.
        val_batch: Pairs of a batch that the validation loss is taken in; InfoNCE depends on it.
        keep_bytes: What the embeddings may take; of more the first, the last, and steps spread between them are kept.
        every_rank: Log in each of several processes, each to a run of its own.
        merge_ranks: How many processes call `embeddings`, each with its part of a split and ids in `items`: the first
            one merges them by id, and waits up to 20 s for the others without holding up the training. They must see
            the same folder and give the same name.

    >>> from trainer import api as ce
    >>> with ce.log_run("runs", name="two steps", total_steps=2) as log:
    ...     log.metrics(1, {"train/loss": 2.0})
    ...     log.metrics(2, {"train/loss": 1.0})
    >>> ce.workspace("runs").run("two steps").row.status
    'finished'
    """
    rank = process_rank()
    if not (rank.is_first or every_rank or merge_ranks > 1):
        return RunLogger(None)
    workspace = Path(folder).expanduser().absolute()
    label = configuration.repaired_name(name or _name_of_script())
    parts = RankParts(workspace, label, rank.name, int(merge_ranks)) if merge_ranks > 1 else None
    if not (rank.is_first or every_rank):
        return _part_logger(RunStart(workspace, _run_of(label, data), data, parts=parts), label)
    _end_earlier(workspace, label)
    facts: dict[str, Any] = {SETTINGS: plain_settings(_texts(config))} if config is not None else {}
    facts |= {VAL_BATCH: int(val_batch)} if val_batch is not None else {}
    steps = max(int(total_steps), 0)
    start = RunStart(workspace, _run_of(label, data), data, steps, facts, keep_bytes, resume, parts)
    writer = _LIVE[workspace, label] = WriterThread(start)
    if not writer.wait_until_open(OPEN_S):
        writer.warn("slow", f"{workspace} has not answered for {OPEN_S:.0f} s; the run appears when it does.")
    return RunLogger(writer, names, distinct_captions=distinct_captions)


def _part_logger(start: RunStart, label: str) -> RunLogger:
    """Return the logger of a process that is not the first one, and brings its parts of embeddings alone."""
    writer = _LIVE[start.workspace, label] = PartWriterThread(start)
    return RunLogger(writer)


def log_on(logger: RunLogger | None, folder: str | Path, **options: Any) -> RunLogger:
    """Return the logger itself while it is open; else one of a new run, or of its run, which then continues.

    Args:
        logger: The one so far; None before the first.
        folder: The workspace.
        **options: Further arguments of `log_run`.
    """
    if logger is None:
        return log_run(folder, **options)
    if not logger.is_open and logger.run_id is not None:
        return log_run(folder, **(options | {"resume": logger.run_id}))
    return logger


def _end_earlier(workspace: Path, label: str) -> None:
    """End a run of this name that this process began before: a cell of a notebook is run again."""
    if (earlier := _LIVE.pop((workspace, label), None)) is not None and earlier.is_alive:
        earlier.queue.close(RunEnd("interrupted", "Another run of this name was begun in the same process."))
        earlier.join(OPEN_S)


def _run_of(label: str, data: str) -> configuration.Run:
    source = os.path.abspath(sys.argv[0]) if sys.argv else ""
    return configuration.run_elsewhere(label, configuration.NoData(called=data, source=source))


def _name_of_script() -> str:
    stem = Path(sys.argv[0]).stem if sys.argv else ""
    return "notebook" if "ipykernel" in stem else stem or "training"


def _texts(values: Any, prefix: str = "") -> dict[str, str]:
    """Return settings as texts by dotted names; what cannot be read is left out."""
    if dataclasses.is_dataclass(values) and not isinstance(values, type):
        values = {field.name: getattr(values, field.name) for field in dataclasses.fields(values)}
    elif not isinstance(values, Mapping):
        values = getattr(values, "__dict__", {})
    texts: dict[str, str] = {}
    for name, value in list(values.items()):
        try:
            inner = _texts(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": str(value)}
        except Exception:  # a setting may be any object, whose text is its own code
            continue
        texts |= inner
    return texts


def _drop(writer: WriterThread, pid: int) -> None:
    """End the run of a logger that nobody holds any more; in a forked child its queue may be locked for ever."""
    if pid == os.getpid():
        writer.queue.close(RunEnd("interrupted", "Its logger was dropped without finish()."))


def _end_with_process(pid: int) -> None:
    """End the runs that the process leaves open, each as far as can be said."""
    if pid != os.getpid():
        return
    for writer in _LIVE.values():
        writer.queue.close(_end_at_exit(writer))
    for writer in _LIVE.values():
        writer.join(_EXIT_S)


def _end_at_exit(writer: WriterThread) -> RunEnd:
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException) and "ipykernel" not in sys.modules:
        return RunEnd(*how_it_ended(error))
    if 0 < writer.total_steps <= writer.step:
        return RunEnd("finished", "")
    return RunEnd("interrupted", "The process ended without finish().")


atexit.register(_end_with_process, os.getpid())
