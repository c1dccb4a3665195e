"""Request UMAP layouts of all snapshots from the projection process, one run after the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from trainer.charts.point_placement import PointPlacement
from trainer.charts.timeline import TimelineChart
from trainer.messages import Failure, Project, ProjectAnswer

if TYPE_CHECKING:
    from explorer.model_client.client import ModelClient


class TimelineQuery(QObject):
    """Requests one series of layouts per run and reports when all are complete."""

    placed = Signal(object, object)  # The placement, and the files of each run by its place.
    progressed = Signal(float, str)  # Share done, and a note.
    ended = Signal()  # Nothing is under way any more.
    failed = Signal(object)  # The `Failure`, when it is no cancelling.

    def __init__(self, client: ModelClient, parent: QObject) -> None:
        super().__init__(parent)
        self._client = client
        self._open: dict[int, int] = {}
        self._files: dict[int, list[str]] = {}
        self._round = 0

    @property
    def busy(self) -> bool:
        """Whether a result is pending."""
        return bool(self._open)

    def ask(self, chart: TimelineChart, placement: PointPlacement) -> None:
        """Request the layouts of every run of `chart`, canceling a pending request."""
        self.cancel()
        self._files = {}
        anchor = str(chart.runs[0].folders[-1])
        for number, run in enumerate(chart.runs):
            *earlier, last = map(str, run.folders)
            question = Project(
                snapshot=last,
                series=tuple(earlier),
                onto="" if number == 0 else anchor,
                placement=placement,
            )
            self._open[run.index] = self._client.ask(
                question,
                done=partial(self._done, self._round, run.index, placement),
                failed=partial(self._fail, self._round),
                progress=partial(self._report_progress, self._round, number, len(chart.runs), "AB"[run.index]),
                owner=self,
            )
        self.progressed.emit(0.0, "waiting for the projection process")

    def cancel(self) -> None:
        """Cancel pending requests."""
        self._round += 1
        numbers, self._open = list(self._open.values()), {}
        # The last first: ending the process for the first would begin the second.
        for number in reversed(numbers):
            self._client.cancel(number)
        if numbers:
            self.ended.emit()

    def _done(self, round_: int, index: int, placement: PointPlacement, answer: ProjectAnswer) -> None:
        if round_ != self._round:
            return
        self._open.pop(index, None)
        self._files[index] = [*answer.layouts, answer.layout]
        if not self._open:
            self.ended.emit()
            self.placed.emit(placement, self._files)

    def _fail(self, round_: int, failure: Failure) -> None:
        if round_ != self._round:
            return
        self.cancel()
        if failure.kind != "cancelled":
            self.failed.emit(failure)

    def _report_progress(self, round_: int, number: int, count: int, letter: str, share: float, note: str) -> None:
        if round_ == self._round:
            self.progressed.emit((number + share) / count, f"{letter}, step {note}")
