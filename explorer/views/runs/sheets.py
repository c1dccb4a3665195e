"""Open the dialogs that queue, branch and arrange the selected runs, and apply their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from explorer.run_control import actions
from explorer.views.runs.queue_sheets import Branch, QueueSheet, Repeat, SlotsSheet
from explorer.views.runs.tag_sheets import NoteSheet, TagSheet
from explorer.views.view import Context
from trainer import config
from trainer.scheduling import gpu_usage, queue
from trainer.scheduling.queue import in_order
from trainer.store import CheckpointRow, RunRow

if TYPE_CHECKING:
    from trainer.store.experiments import ExperimentRow


class Sheets(QObject):
    """The dialogs of a view for its `chosen` runs; `made` receives each new run."""

    def __init__(
        self,
        view: QWidget,
        context: Context,
        chosen: Callable[[], Sequence[RunRow]],
        made: Callable[[int], None],
    ) -> None:
        super().__init__(view)
        self._view, self._context, self._jobs = view, context, context.jobs
        self._chosen, self._made = chosen, made

    def repeat(self) -> None:
        """Open the dialog that repeats the selected run over seeds and a grid."""
        for run in self._chosen()[:1]:
            self._context.background.run(
                self,
                lambda workspace, number: (workspace.runs.config_of(number), workspace.experiments.all()),
                self._context.workspace,
                run.id,
                done=partial(self._show_repeat, run),
                key="repeat",
            )

    def _show_repeat(self, row: RunRow, answer: tuple[config.Run, list[ExperimentRow]]) -> None:
        from trainer.experiments.experiment import to_toml

        run, experiments = answer
        sheet = Repeat(row, run, self._jobs.runs, [experiment.name for experiment in experiments], self._view)
        sheet.chosen.connect(
            lambda runs, priority, after: self._jobs.do(
                actions.enqueue, runs, row.preset, parent=row.id, priority=priority, after=after, done=self._made
            )
        )
        sheet.compared.connect(lambda made: self._jobs.do(actions.add_experiment, made.name, to_toml(made)))
        sheet.open()

    def experiment(self) -> None:
        """Open the dialog that makes an experiment of the selected run."""
        for run in self._chosen()[:1]:
            self._jobs.do(actions.config_of, run.id, done=partial(self._show_experiment, run))

    def _show_experiment(self, row: RunRow, run: config.Run) -> None:
        from explorer.views.runs.experiment_sheet import ExperimentSheet

        sheet = ExperimentSheet(row, run, self._view)
        sheet.chosen.connect(partial(self._jobs.do, actions.add_experiment))
        sheet.open()

    def tags(self) -> None:
        """Open the dialog for the tags of the selected runs."""
        chosen = list(self._chosen())
        if not chosen:
            return
        sheet = TagSheet(chosen, self._jobs.runs, self._view)
        sheet.chosen.connect(lambda add, remove: self._jobs.tag([run.id for run in chosen], add, remove))
        sheet.open()

    def note(self) -> None:
        """Open the note of the selected run."""
        for run in self._chosen()[:1]:
            sheet = NoteSheet(run, self._view)
            sheet.chosen.connect(partial(self._jobs.do, actions.write_note, run.id))
            sheet.open()

    def branch(self) -> None:
        """Open the dialog that branches from a checkpoint of the selected run."""
        for run in self._chosen()[:1]:
            self._context.background.run(
                self,
                lambda workspace, number: workspace.results.checkpoints(number),
                self._context.workspace,
                run.id,
                done=partial(self._show_branch, run),
                key="checkpoints",
            )

    def _show_branch(self, row: RunRow, checkpoints: list[CheckpointRow]) -> None:
        sheet = Branch(row, [each.step for each in checkpoints], self._view)
        sheet.chosen.connect(lambda step, name: self._jobs.do(actions.branch, row.id, step, name, done=self._made))
        sheet.open()

    def turn(self) -> None:
        """Open the dialog for priority and predecessor of the selected queued runs."""
        queued, jobs = queued_of(self._chosen()), self._jobs
        if not queued:
            return
        ids = [run.id for run in queued]
        sheet = QueueSheet(queued, jobs.runs, self._view)

        def give_turn(priority: int, after: int | None) -> None:
            for run_id in ids:
                jobs.do(queue.prefer, run_id, priority)
                jobs.do(queue.wait_for, run_id, after)

        sheet.chosen.connect(give_turn)
        sheet.open()

    def slots(self) -> None:
        """Open the dialog for how many runs train at once."""
        self._context.background.run(self, gpu_usage.cards, done=self._show_slots, key="graphics")

    def _show_slots(self, answer: tuple[tuple[gpu_usage.Gpu, ...], str]) -> None:
        sheet = SlotsSheet(self._jobs.slots, [gpu.name for gpu in answer[0]], self._view)
        sheet.chosen.connect(lambda values: self._jobs.do(queue.choose_slots, **values))
        sheet.open()


def queued_of(runs: Sequence[RunRow]) -> list[RunRow]:
    """Return the queued runs, in queue order."""
    return [run for run in in_order(runs) if run.status == "queued"]
