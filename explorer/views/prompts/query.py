"""Fetch class vectors of both runs: first the step, then the models, then the charts; newest request only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, field
from PySide6.QtCore import QObject, Signal

from explorer.state.selection import Side
from explorer.views.view import Context, reason_of
from trainer.charts.class_task import NoClassesError, read_class_texts
from trainer.charts.measures.calibration import CalibrationRun, calibration
from trainer.charts.measures.prompts import PromptRun, prompts
from trainer.charts.snapshots import choose_snapshot
from trainer.errors import UserError, reason_words
from trainer.messages import EmbedClasses, EmbedClassesAnswer, Failure
from trainer.store import SplitKey, Workspace, of_split


class PromptRequest(Struct, frozen=True):
    """A request of the view: A and B, each at its own step."""

    sides: tuple[Side, ...]
    data: SplitKey | None
    labels: tuple[str, ...]
    templates: tuple[str, ...]

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The step of each side; None is its last."""
        return tuple(side.step for side in self.sides)

    @property
    def split(self) -> dict[str, str | None]:
        """Dataset and split as chart arguments."""
        return of_split(self.data)


class PromptResult(Struct, frozen=True):
    """Both charts' data of the available sides (`places`: 0 is A), and why others are missing."""

    request: PromptRequest
    calibration: tuple[CalibrationRun, ...] = ()
    prompts: tuple[PromptRun, ...] = ()
    problems: dict[int, str] = field(default_factory=dict)
    places: tuple[int, ...] = ()
    lacks_classes: bool = False  # Whether a side is missing because its data have no two classes.

    def calibrated(self, index: int) -> CalibrationRun | None:
        """Return the calibration of A (0) or B (1)."""
        return self.calibration[self.places.index(index)] if index in self.places else None

    def prompted(self, index: int) -> PromptRun | None:
        """Return the templates of A (0) or B (1)."""
        return self.prompts[self.places.index(index)] if index in self.places else None


class PromptQuery(QObject):
    """Fetches the requested data and drops requests that are no longer needed."""

    read = Signal(object)  # A `PromptResult` of the newest request.
    progressed = Signal(float, str)  # Share done and a note, while the models embed sentences.
    failed = Signal(object)  # The exception that ended the newest request.

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self.request: PromptRequest | None = None
        self._files: dict[int, str] = {}
        self._problems: dict[int, str] = {}
        self._open: dict[int, int] = {}

    @property
    def waiting(self) -> bool:
        """Whether a model's response is pending."""
        return bool(self._open)

    def want(self, request: PromptRequest, *, again: bool = False) -> bool:
        """Fetch this, unless it was the last request; return whether it is new."""
        if request == self.request and not again:
            return False
        self.cancel()
        self.request, self._files, self._problems = request, {}, {}
        self._context.background.run(
            self, steps_of, self._context.workspace, request, done=self._ask, failed=self._broke, key="steps"
        )
        return True

    def cancel(self) -> None:
        """Cancel the current request."""
        self.request = None
        open_questions, self._open = self._open, {}
        for number in open_questions.values():
            self._context.client.cancel(number)
        self._context.background.forget(self)

    def _ask(self, snapshots: tuple[PromptRequest, dict[int, int], dict[int, str]]) -> None:
        request, steps, problems = snapshots
        if request != self.request:
            return
        self._problems = dict(problems)
        for side in request.sides:
            index = side.place
            if index not in steps:
                continue
            question = EmbedClasses(run=side.run, labels=request.labels, templates=request.templates, step=steps[index])
            self._open[index] = self._context.client.ask(
                question,
                done=lambda answer, index=index: self._answered(request, index, answer),
                failed=lambda failure, index=index: self._failed(request, index, failure),
                progress=lambda share, note: self.progressed.emit(share, note),
                owner=self,
            )
        self._go_on()

    def _answered(self, request: PromptRequest, index: int, answer: EmbedClassesAnswer) -> None:
        if request == self.request:
            self._open.pop(index, None)
            self._files[index] = answer.file
            self._go_on()

    def _failed(self, request: PromptRequest, index: int, failure: Failure) -> None:
        if request == self.request and failure.kind != "cancelled":
            self._open.pop(index, None)
            self._problems[index] = reason_words(reason_of(failure))
            self._go_on()

    def _go_on(self) -> None:
        if self._open or self.request is None:
            return
        files = {side.place: self._files[side.place] for side in self.request.sides if side.place in self._files}
        args = (self._context.workspace, self.request, files, dict(self._problems))
        self._context.background.run(self, read, *args, done=self.read.emit, failed=self._broke, key="charts")

    def _broke(self, error: Exception) -> None:
        self.cancel()
        self.failed.emit(error)


def steps_of(workspace: Workspace, request: PromptRequest) -> tuple[PromptRequest, dict[int, int], dict[int, str]]:
    """Return the snapshot step at each place, and why one is missing. Pure, for a thread."""
    steps, problems = {}, {}
    for side in request.sides:
        try:
            steps[side.place] = choose_snapshot(
                workspace, workspace.runs.get(side.run), step=side.step, **request.split
            ).step
        except UserError as problem:
            problems[side.place] = str(problem)
    return request, steps, problems


def read(workspace: Workspace, request: PromptRequest, files: dict[int, str], problems: dict[int, str]) -> PromptResult:
    """Read both charts' data of places with class vectors, without runs that lack labeled images. Pure."""
    calibrated, prompted, lacks_classes = {}, {}, False
    for index, file in files.items():
        try:
            texts = read_class_texts(Path(file))
            split: dict[str, Any] = request.split
            calibrated[index] = calibration(workspace, texts, index=index, **split)
            prompted[index] = prompts(workspace, texts, index=index, **split)
        except UserError as problem:
            calibrated.pop(index, None)
            problems = problems | {index: str(problem)}
            lacks_classes |= isinstance(problem, NoClassesError)
    runs = tuple(calibrated.values()), tuple(prompted.values())
    return PromptResult(request, *runs, problems, tuple(calibrated), lacks_classes)
