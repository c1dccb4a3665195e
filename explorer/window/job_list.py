"""All long jobs in progress, whoever requested them: training, the queue, requests, exports, charts."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import shiboken6
from msgspec import Struct, field
from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from explorer.widgets.progress_row import TimeLeft
from trainer.messages import (
    CheckData,
    CheckRanks,
    Classify,
    CompareSwaps,
    EmbedImages,
    EmbedIndependent,
    Evaluate,
    Failure,
    MeasureRun,
    PlaceRows,
    Project,
    Question,
    ReadData,
    ReplayStep,
    Saliency,
    WriteCleanedList,
)

if TYPE_CHECKING:
    from explorer.export import Export, Exporter
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import View
    from explorer.widgets.progress_row import ProgressRow, Ticket
    from trainer.store import RunRow

State = Literal["waiting", "running", "finished", "failed", "cancelled"]

IMPORT: Final = "import"
"""In place of a view: the sheet that reads data."""
WATCH: Final = "Watch"
"""Kind of a job that shows a training of another program."""
LISTED_AFTER_MS: Final = 1_000
"""A question or a chart that is answered sooner is no job: it would only flicker."""
LOST_ON_CLOSING: Final = ("Export", "Bundle", "Data check", "Cleaned list", "Evaluation")
"""Kinds of jobs whose result somebody waits for, and which end with the window; runs and watches are not of these."""
KEPT: Final = 50
"""Ended jobs that are kept."""


class Job(Struct):
    """One long job."""

    number: int  # Of this window; later ones have larger ones.
    kind: str  # `Training`, `Export`, ...
    title: str
    view: str = ""  # Name of the view that shows its result; empty if none does.
    state: State = "running"
    share: float = 0.0  # Done, 0 to 1.
    note: str = ""  # What it does just now, or why it failed.
    left_s: float | None = None  # Seconds until its end, or its start while it waits, where the job itself can tell.
    run: int | None = None  # Number of the run that it trains; None of any other job.
    place: int = 0  # In the queue while it waits, from 1; 0 of any other job.
    took_s: float = 0.0  # Seconds from its beginning to its end.
    began: float = field(default_factory=time.monotonic)
    cancel: Callable[[], object] | None = None
    show: tuple[str, Callable[[], object]] | None = None
    ticket: Ticket | None = None
    is_kept: bool = False  # Whether it is listed however short it is.
    pace: TimeLeft = field(default_factory=TimeLeft)  # Estimates the time left from the progress.

    @property
    def active(self) -> bool:
        """Whether the job has not ended."""
        return self.state in ("waiting", "running")

    @property
    def expected_s(self) -> float | None:
        """The seconds until the end, estimated from the progress if not reported; None if unknown."""
        return self.left_s if self.left_s is not None or self.state != "running" else self.pace.estimate(self.share)

    def show_progress(self, share: float, note: str) -> None:
        """Take the progress that the work reports."""
        self.share, self.note = share, note
        self.pace.estimate(share)


class JobList(QObject):
    """Lists running jobs, and those that have ended while the window was open."""

    changed = Signal()  # A job began, ended, or is another; how far one is changes without it.
    ended = Signal(object)  # A `Job` that has finished, failed or was cancelled.

    def __init__(self, jobs: Jobs, client: ModelClient, exporter: Exporter, parent: QObject) -> None:
        super().__init__(parent)
        self._numbers = itertools.count(1)
        self._runs, self._client, self._exporter = jobs, client, exporter
        self._jobs: dict[object, Job] = {}
        self._ended: list[Job] = []
        self._watch = QTimer(self, interval=500, timeout=self._look_at_tickets)
        jobs.runs_changed.connect(self._take_runs)
        client.asked.connect(self._take_question)
        client.progressed.connect(self._take_progress)
        client.answered.connect(self._take_answer)
        exporter.started.connect(self._take_export)
        exporter.progressed.connect(self._take_export_progress)
        exporter.done.connect(lambda export: self._end(("export", id(export)), "finished"))
        exporter.failed.connect(lambda export, why: self._end(("export", id(export)), "failed", why))
        exporter.cancelled.connect(lambda export: self._end(("export", id(export)), "cancelled"))

    @property
    def active(self) -> list[Job]:
        """Running jobs, then waiting ones in the order of the queue."""
        listed = [job for job in self._jobs.values() if is_listed(job)]
        return sorted(listed, key=lambda job: (job.state == "waiting", job.place, job.number))

    @property
    def unfinished(self) -> list[str]:
        """What ends with the window, and is not kept."""
        return [f"{job.kind} of {job.title}" for job in self.active if job.kind in LOST_ON_CLOSING]

    @property
    def past(self) -> list[Job]:
        """Ended jobs, newest first."""
        return self._ended[::-1]

    def clear(self) -> None:
        """Clear the ended jobs."""
        self._ended.clear()
        self.changed.emit()

    def watch(self, name: str, view: View) -> None:
        """List this view's own computations."""
        view.job_slot.began.connect(partial(self._take_working, name, view.title))

    def keep_question(self, number: int) -> None:
        """List this question even if it is answered at once, because the user continues elsewhere meanwhile."""
        if (job := self._jobs.get(("question", number))) is not None:
            job.is_kept = True
            self.changed.emit()

    # -- beginning and ending ----------------------------------------------------------------------------------

    def _begin(self, key: object, kind: str, title: str, **more: Any) -> Job:
        job = self._jobs[key] = Job(next(self._numbers), kind, title, **more)
        self.changed.emit()
        return job

    def _end(self, key: object, state: State, why: str = "") -> None:
        job = self._jobs.pop(key, None)
        if job is None:
            return
        job.state, job.cancel, job.ticket = state, None, None
        job.note, job.left_s, job.took_s = why, None, time.monotonic() - job.began
        job.share = 1.0 if state == "finished" else job.share
        # A chart shows itself: those that views draw in passing would hide what a person has started.
        if job.kind != "Chart" or state != "finished" or job.is_kept:
            self._ended = [*self._ended, job][-KEPT:]
        self.changed.emit()
        self.ended.emit(job)

    # -- trainings and the queue -------------------------------------------------------------------------------

    def _take_runs(self, runs: Sequence[RunRow]) -> None:
        from trainer.scheduling import queue  # the panel is made before the first paint, without the store

        rows = {row.id: row for row in runs}
        expected = self._runs.expected() if any(row.status == "queued" for row in runs) else {}
        positions = {row.id: position for position, row in enumerate(queue.in_order(runs), 1)}
        for row in runs:
            key = ("run", row.id)
            if not row.active:
                continue
            stop = partial(self._runs.stop, [row.id])
            kind = WATCH if row.is_watched else "Training"
            job = self._jobs.get(key) or self._begin(key, kind, row.short_name, view="runs", cancel=stop, run=row.id)
            waits, was = row.status == "queued", job.state
            span = expected.get(row.id)
            job.state, job.title = ("waiting" if waits else "running"), row.short_name
            job.share = row.step / row.total_steps if row.total_steps else 0.0
            job.left_s = (span.start_s if span else None) if waits else row.eta_s
            job.place = positions.get(row.id, 0)
            job.note = doing(row, job.place)
            if was != job.state:
                job.began = time.monotonic()  # its time in the queue is no part of what it took
                self.changed.emit()
        for key in [key for key in self._jobs if isinstance(key, tuple) and key[0] == "run"]:
            ended_row = rows.get(key[1])
            if ended_row is None or not ended_row.active:
                self._end(key, *_how_ended(ended_row))

    # -- questions to processes --------------------------------------------------------------------------------

    def _take_question(self, number: int, question: Question) -> None:
        if (description := self._described(question)) is not None:
            self._begin_later(("question", number), *description, cancel=partial(self._client.cancel, number))

    def _take_progress(self, number: int, share: float, note: str) -> None:
        job = self._jobs.get(("question", number))
        if job is not None:
            job.show_progress(share, note)

    def _take_answer(self, number: int, failure: Failure | None) -> None:
        if failure is None:
            self._end_question(number, "finished")
        elif failure.kind == "cancelled":
            self._end_question(number, "cancelled")
        else:
            self._end_question(number, "failed", failure.sentences[0])

    def _end_question(self, number: int, state: State, why: str = "") -> None:
        key = ("question", number)
        if key in self._jobs and not is_listed(self._jobs[key]):
            del self._jobs[key]
        else:
            self._end(key, state, why)

    def _described(self, question: Question) -> tuple[str, str, str] | None:
        """Return kind, title and view of a request that may take long; None for others."""
        match question:
            case Evaluate():
                return "Evaluation", self._names(question.runs), "evaluate"
            case Saliency():
                return "Saliency map", f"“{question.caption}”", "inspect"
            case Project():
                steps = f", {len(question.series) + 1} steps" if question.series else ""
                title = f"{question.placement.method.upper()}, {self._name_of(question.snapshot)}{steps}"
                return "Projection", title, "timeline" if question.series else "map"
            case PlaceRows():
                return "Projection", f"Words, {question.placement.method.upper()}", "geometry"
            case ReadData():
                path = question.path or str(question.data.get("path") or question.data.get("root") or "")
                return "Import", Path(path).name or "data", IMPORT
            case MeasureRun():
                return "Measurement", "A new run", "runs"
            case CheckRanks():
                return "Same losses", f"A new run by {question.ranks} processes", "runs"
            case CheckData():
                return "Data check", self._names(question.runs), "quality"
            case ReplayStep():
                return "Replay", f"{self._names((question.run,))}, step {question.step:,}", "explaining"
            case WriteCleanedList():
                return "Cleaned list", self._names((question.run,)), "quality"
            case EmbedIndependent():
                return "Embedding", f"Independent Scenes, {self._names(question.runs)}", "explaining"
            case CompareSwaps():
                return "Comparison of swapped words", f"“{question.labels[0]}”", "inspect"
            case Classify() if question.images:  # without any, labels alone are embedded for the next ones
                return "Classification", _pictures(len(question.images)), "classify"
            case EmbedImages():
                return "Embedding", _pictures(len(question.images)), ""
        return None

    def _names(self, runs: Sequence[int]) -> str:
        return ", ".join(map(self._runs.name_of, runs))

    def _name_of(self, snapshot: str) -> str:
        folders = Path(snapshot).parents
        return next((row.short_name for row in self._runs.runs if row.folder in folders), "a snapshot")

    def _begin_later(self, key: object, kind: str, title: str, view: str, **more: Any) -> None:
        """Add a hidden job to track its progress and end, and show it if it takes long."""
        job = self._jobs[key] = Job(next(self._numbers), kind, title, view, **more)
        QTimer.singleShot(LISTED_AFTER_MS, self, partial(self._list, job))

    def _list(self, job: Job) -> None:
        left_ms = LISTED_AFTER_MS - 1000 * (time.monotonic() - job.began)
        if left_ms > 0:  # Qt's timers may be some percent early
            QTimer.singleShot(math.ceil(left_ms), self, partial(self._list, job))
        else:
            self.changed.emit()

    # -- what views compute, and exports -----------------------------------------------------------------------

    def _take_working(self, name: str, title: str, working: ProgressRow) -> None:
        ticket = working.ticket
        if ticket is None or working.asks:
            return
        cancel = partial(_cancel, working, ticket)
        self._begin_later(("ticket", id(ticket)), "Chart", title, name, cancel=cancel, ticket=ticket)
        self._watch.start()

    def _look_at_tickets(self) -> None:
        watched = {key: job for key, job in self._jobs.items() if job.ticket is not None}
        for key, job in watched.items():
            ticket = job.ticket
            assert ticket is not None
            job.show_progress(ticket.share, ticket.note)
            if not ticket.cancelled:
                continue
            if ticket.answered and is_listed(job):
                self._end(key, "finished")
            else:
                del self._jobs[key]
                self.changed.emit()
        if not watched:
            self._watch.stop()

    def _take_export(self, export: Export) -> None:
        folder = QUrl.fromLocalFile(str(export.file.parent))
        show = ("Open folder", partial(QDesktopServices.openUrl, folder))
        kind = "Bundle" if export.command[:1] == ("bundle",) else "Export"
        cancel = partial(self._exporter.cancel, export)
        self._begin(("export", id(export)), kind, export.file.name, cancel=cancel, show=show)

    def _take_export_progress(self, export: Export, share: float, note: str) -> None:
        if (job := self._jobs.get(("export", id(export)))) is not None:
            job.show_progress(share, note)


def is_listed(job: Job) -> bool:
    """Return whether a job takes long enough to be shown, or is of a kind that always is."""
    if not job.active or job.is_kept or job.kind in ("Training", WATCH, "Export", "Bundle"):
        return True
    return time.monotonic() - job.began >= LISTED_AFTER_MS / 1000


def _cancel(working: ProgressRow, ticket: Ticket) -> None:
    if shiboken6.isValid(working) and working.ticket is ticket:
        working.cancel()


def doing(row: RunRow, position: int) -> str:
    """Return what the trainer of a run does, or its place in the queue."""
    if row.status == "queued":
        return f"Number {position} in the queue"
    if row.phase and (row.step == 0 or row.is_watched):
        return row.phase
    steps = f"step {row.step:,} of {row.total_steps:,}" if row.total_steps else row.phase
    working = " · ".join(filter(None, (steps, row.beside)))
    return working if row.status == "running" else f"{row.status}, {steps}"


def _how_ended(row: RunRow | None) -> tuple[State, str]:
    if row is None:
        return "cancelled", "Deleted"
    if row.status == "finished":
        return "finished", ""
    if row.status == "stopped":
        return "cancelled", f"Stopped at step {row.step:,}"
    if row.status == "interrupted" and row.is_watched:
        return "cancelled", row.reason
    return "failed", row.reason or f"Ended at step {row.step:,}"


def _pictures(count: int) -> str:
    return "1 picture" if count == 1 else f"{count:,} pictures"
