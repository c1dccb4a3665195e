"""Request projections of the snapshots from the projection process: progress, cancel, one result per map."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from explorer.views.map.load import MapSide, read_side
from trainer.analysis.procrustes import procrustes
from trainer.charts.pair_colors import MOST_RANKED
from trainer.charts.point_placement import PointPlacement
from trainer.errors import UserError, reason_words
from trainer.messages import Failure, Project, ProjectAnswer
from trainer.store import SnapshotRow, SplitKey, Workspace
from trainer.store.layout_files import kept_layout
from trainer.store.snapshot_files import read_snapshot
from trainer.untrusted.bounded.arrays import load_npy

if TYPE_CHECKING:
    from explorer.views.view import Context


class _Waiting(Struct):
    index: int
    side: MapSide
    projection: PointPlacement
    sketch: Path
    onto: SnapshotRow | None = None
    number: int | None = None
    """Of the question to the process; None while a kept layout is looked for."""
    seen: int = 0
    """When the points on the way that are shown were written."""
    share: float = 0.0
    note: str = "waiting for the projection process"


class Projecting(QObject):
    """Requests projections and delivers the point positions."""

    # Which map (0 is A), its side, the projection, the points (m x 2), and how they were placed in words.
    placed = Signal(int, object, object, object, str)
    # As `placed` without the words: the points on the way, from the first epochs on.
    sketched = Signal(int, object, object, object)
    # Which map is worked on, the share done, a note, and which maps wait for points.
    progressed = Signal(int, float, str, object)
    finished = Signal()  # Nothing is under way any more.
    failed = Signal(object)  # The `Failure`, when it is no cancelling.

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._background = context.client, context.background
        self._workspace = context.workspace.folder
        self._tickets = itertools.count()
        self._open: dict[int, _Waiting] = {}
        self._sketches = tempfile.TemporaryDirectory(prefix="maps-", ignore_cleanup_errors=True)

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return bool(self._open)

    def ask(self, index: int, side: MapSide, projection: PointPlacement, onto: MapSide | None = None) -> None:
        """Request the projection of one map, to face `onto` if given, canceling a pending one of the same map."""
        for ticket, waiting in list(self._open.items()):
            if waiting.index == index:
                if (waiting.side.row, waiting.projection, waiting.onto) == (side.row, projection, onto and onto.row):
                    waiting.side = side  # it may have been read again, to face another
                    return
                del self._open[ticket]
                self._cancel(waiting)
        ticket = next(self._tickets)
        sketch = Path(self._sketches.name) / f"{ticket}.npy"
        question = Project(
            snapshot=str(side.row.folder),
            placement=projection,
            sketch=str(sketch),
            onto=str(onto.row.folder) if onto is not None else "",
        )
        self._open[ticket] = _Waiting(index, side, projection, sketch, None if onto is None else onto.row)
        # To find what is kept, all vectors are read.
        if not side.has_umap or projection.method != "umap" or side.n > MOST_RANKED:
            self._ask(ticket, question)
            return
        self._background.run(
            self,
            read_kept,
            self._workspace,
            question,
            done=partial(self._take_kept, ticket, question),
            failed=lambda _error: self._ask(ticket, question),
            key=f"kept {ticket}",
        )

    def _take_kept(self, ticket: int, question: Project, layout: tuple[np.ndarray, str] | None) -> None:
        if layout is not None:
            self._place(ticket, layout[1], layout[0])
        else:
            self._ask(ticket, question)

    def _ask(self, ticket: int, question: Project) -> None:
        if (waiting := self._open.get(ticket)) is None:
            return
        waiting.number = self._client.ask(
            question,
            done=partial(self._on_answer, ticket),
            failed=partial(self._on_failure, ticket),
            progress=partial(self._on_progress, ticket),
            owner=self,
        )
        self._report_progress()

    def cancel(self) -> None:
        """Cancel all pending requests."""
        waiting = list(self._open.values())
        self._open.clear()
        for request in waiting:
            self._cancel(request)
        if waiting:
            self.finished.emit()

    def _cancel(self, waiting: _Waiting) -> None:
        if waiting.number is not None:
            self._client.cancel(waiting.number)

    def _on_answer(self, ticket: int, answer: ProjectAnswer) -> None:
        if ticket in self._open:
            self._background.run(
                self,
                load_npy,
                answer.layout,
                done=partial(self._place, ticket, answer.note),
                failed=lambda error: self._on_failure(ticket, Failure("unreadable", reason_words(error))),
                key=f"layout {ticket}",
            )

    def _place(self, ticket: int, note: str, points: np.ndarray) -> None:
        waiting = self._open.pop(ticket, None)
        if waiting is not None:
            text = note or waiting.projection.words
            self.placed.emit(waiting.index, waiting.side, waiting.projection, points, text)
            self._report_progress()

    def _on_failure(self, ticket: int, failure: Failure) -> None:
        if self._open.pop(ticket, None) is not None:
            if failure.kind != "cancelled":
                self.failed.emit(failure)
            self._report_progress()

    def _on_progress(self, ticket: int, share: float, note: str) -> None:
        if ticket in self._open:
            waiting = self._open[ticket]
            waiting.share, waiting.note = share, note
            self._report_progress()
            self._background.run(
                self,
                newer_points,
                waiting.sketch,
                waiting.seen,
                done=partial(self._show_sketch, ticket),
                failed=lambda _error: None,
                key=f"sketch {ticket}",
            )

    def _show_sketch(self, ticket: int, newer: tuple[int, np.ndarray] | None) -> None:
        waiting = self._open.get(ticket)
        if waiting is not None and newer is not None:
            waiting.seen, points = newer
            self.sketched.emit(waiting.index, waiting.side, waiting.projection, points)

    def _report_progress(self) -> None:
        if not self._open:
            self.finished.emit()
            return
        questions = [waiting for waiting in self._open.values() if waiting.number is not None]
        if questions:
            # The process answers one question after the other: the furthest one is being worked on.
            working = max(questions, key=lambda waiting: waiting.share)
            self.progressed.emit(working.index, working.share, working.note, {waiting.index for waiting in questions})


def read_kept(workspace_folder: Path, question: Project) -> tuple[np.ndarray, str] | None:
    """Return the points that the workspace has already as the answer to the question, and how they were placed."""
    onto = [Path(question.onto)] if question.onto else []
    layout = kept_layout(workspace_folder, read_snapshot(Path(question.snapshot)), question.placement.parameters, onto)
    return None if layout is None else (load_npy(layout[0]), layout[1]["note"])


def newer_points(file: Path, seen: int) -> tuple[int, np.ndarray] | None:
    """Return when the points on the way were written and where they are; None if there are no others than `seen`."""
    if not file.exists() or (written := file.stat().st_mtime_ns) == seen:
        return None
    return written, load_npy(file)


def read_facing(
    workspace: Workspace, run: int, step: int | None, data: SplitKey | None, other: int | None, other_step: int | None
) -> MapSide:
    """Read a side like `read_side`, with its PCA aligned to that of run `other` if they show the same pairs.

    Raises:
        ChartError: The run has no such snapshot.
    """
    side = read_side(workspace, run, step, data)
    if other is None or (other, other_step) == (run, step):
        return side
    try:
        return facing(side, read_side(workspace, other, other_step, data))
    except UserError:
        return side


def facing(side: MapSide, first: MapSide) -> MapSide:
    """Return the side with points aligned pair by pair to `first` by rotation, reflection and translation."""
    if (side.images, side.texts, side.identity) != (first.images, first.texts, first.identity):
        return side
    return replace(side, xy=procrustes(side.xy, first.xy).apply(side.xy).astype(np.float32), turned=True)
