"""Class vectors of both runs: which step, then the models, then the charts; newest wishes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from explorer.views.view import Context
from trainer.charts.calibration import CalibrationChart, CalibrationRun, calibration
from trainer.charts.class_task import read_class_texts
from trainer.charts.prompts import PromptChart, PromptRun, prompts
from trainer.charts.snapshots import choose_snapshot
from trainer.messages import EmbedClasses, Failure
from trainer.problem import Problem
from trainer.store import Workspace


@dataclass(frozen=True)
class Wish:
    """What the view is to show: runs, and the step of each (None: its last)."""

    runs: tuple[int, ...]
    steps: tuple[int | None, ...]
    data: str | None
    labels: tuple[str, ...]
    templates: tuple[str, ...]

    @property
    def split(self) -> dict[str, str | None]:
        """Dataset and split, as charts take them."""
        dataset, split = self.data.rpartition("-")[::2] if self.data else (None, None)
        return {"dataset": dataset, "split": split}


@dataclass(frozen=True)
class Reading:
    """Both charts of the runs that have them, and why others have none."""

    wish: Wish
    calibration: CalibrationChart | None = None
    prompts: PromptChart | None = None
    problems: dict[int, str] = field(default_factory=dict)

    def calibrated(self, run: int | None) -> CalibrationRun | None:
        """The calibration of one run."""
        return next((r for r in self.calibration.runs if r.run == run), None) if self.calibration else None

    def prompted(self, run: int | None) -> PromptRun | None:
        """The templates of one run."""
        return next((r for r in self.prompts.runs if r.run == run), None) if self.prompts else None


class Asking(QObject):
    """Fetches what is wanted; what is wanted no longer is dropped.

    Signals:
        read: A `Reading` of the newest wish.
        progressed: Share done and a note, while the models embed sentences.
    """

    read = Signal(object)
    progressed = Signal(float, str)

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._wish: Wish | None = None
        self._files: dict[int, str] = {}
        self._problems: dict[int, str] = {}
        self._open: dict[int, int] = {}

    @property
    def wish(self) -> Wish | None:
        """The newest."""
        return self._wish

    @property
    def waiting(self) -> bool:
        """Whether an answer of a model is still to come."""
        return bool(self._open)

    def want(self, wish: Wish, *, again: bool = False) -> bool:
        """Fetches this, unless it was asked for last; returns whether it is new."""
        if wish == self._wish and not again:
            return False
        self.cancel()
        self._wish, self._files, self._problems = wish, {}, {}
        self._context.background.run(self, steps_of, self._context.workspace, wish, done=self._ask, key="steps")
        return True

    def cancel(self) -> None:
        """Wants nothing any more."""
        self._wish = None
        open_questions, self._open = self._open, {}
        for number in open_questions.values():
            self._context.asker.cancel(number)
        self._context.background.forget(self)

    def _ask(self, found: tuple[Wish, dict[int, int], dict[int, str]]) -> None:
        wish, steps, problems = found
        if wish != self._wish:
            return
        self._problems = dict(problems)
        for run, step in steps.items():
            question = EmbedClasses(run=run, labels=wish.labels, templates=wish.templates, step=step)
            self._open[run] = self._context.asker.ask(
                question,
                done=lambda answer, run=run: self._answered(wish, run, answer),
                failed=lambda failure, run=run: self._failed(wish, run, failure),
                progress=lambda share, note: self.progressed.emit(share, note),
                owner=self,
            )
        self._go_on()

    def _answered(self, wish: Wish, run: int, answer: dict[str, Any]) -> None:
        if wish == self._wish:
            self._open.pop(run, None)
            self._files[run] = answer["file"]
            self._go_on()

    def _failed(self, wish: Wish, run: int, failure: Failure) -> None:
        if wish == self._wish and failure.kind != "cancelled":
            self._open.pop(run, None)
            self._problems[run] = f"{failure.message} {failure.next}".strip()
            self._go_on()

    def _go_on(self) -> None:
        if self._open or self._wish is None:
            return
        files = {run: self._files[run] for run in self._wish.runs if run in self._files}
        args = (self._context.workspace, self._wish, files, dict(self._problems))
        self._context.background.run(self, read, *args, done=self.read.emit, key="charts")


def steps_of(workspace: Workspace, wish: Wish) -> tuple[Wish, dict[int, int], dict[int, str]]:
    """The step of each run's snapshot, and why a run has none. Pure, for a thread."""
    steps, problems = {}, {}
    for run, step in zip(wish.runs, wish.steps):
        try:
            steps[run] = choose_snapshot(workspace, workspace.run(run), step=step, **wish.split).step
        except Problem as problem:
            problems[run] = str(problem)
    return wish, steps, problems


def read(workspace: Workspace, wish: Wish, files: dict[int, str], problems: dict[int, str]) -> Reading:
    """Both charts of the runs with class vectors; a run without labelled images is named and left out. Pure."""
    texts = {}
    for run, file in files.items():
        try:
            texts[run] = read_class_texts(Path(file))
            calibration(workspace, [texts[run]], **wish.split)
        except Problem as problem:
            texts.pop(run, None)
            problems = problems | {run: str(problem)}
    if not texts:
        return Reading(wish, problems=problems)
    able = list(texts.values())
    return Reading(
        wish,
        calibration(workspace, able, **wish.split),
        prompts(workspace, able, **wish.split),
        problems,
    )
