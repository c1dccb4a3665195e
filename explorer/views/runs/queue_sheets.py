"""Dialogs of the queue: repeat a run over seeds and a grid, set its order, and set how many train at once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLineEdit, QListWidget, QListWidgetItem, QPushButton, QWidget

from explorer import theme
from explorer.models.run_choices import run_choices
from explorer.widgets.finder import Choice
from explorer.widgets.number_box import NumberBox
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.sheet import Sheet
from explorer.widgets.still import StillComboBox
from trainer import config
from trainer.config import grid
from trainer.errors import UserError
from trainer.scheduling.queue import QueueSlots
from trainer.store import RunRow
from trainer.untrusted import shell

if TYPE_CHECKING:
    from trainer.experiments.experiment import Experiment

SHOWN: Final = 6
"""Names of the runs to come that are written out; the rest is a number."""
_FIELDS: Final = {"beta": "β", "tau": "τ", "batch": "Batch size"}


class Repeat(Sheet):
    """A dialog that repeats a run over seeds and settings, if wanted after one of `runs`; a grid is an experiment."""

    chosen = Signal(object, int, object)  # The runs, the priority, and the run to wait for (None: none).
    compared = Signal(object)  # The experiment.

    def __init__(
        self,
        row: RunRow,
        run: config.Run,
        runs: Sequence[RunRow],
        taken: Sequence[str] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(f"Repeat {row.short_name}", "Queue", parent)
        self.setObjectName("repeat-sheet")
        self._row, self._run, self._taken = row, run, tuple(taken)
        self.seeds = QLineEdit(str(run.seed), objectName="repeat-seeds", accessibleName="Seeds")
        self.seeds.setPlaceholderText("0, 1, 2 or 0-4")
        self.form.addRow("Seeds", self.seeds)
        self.kinds = QListWidget(objectName="repeat-objectives", accessibleName="Objectives")
        self.kinds.setFixedHeight(6 * 26)
        theme.set_role(self.kinds, "raised")
        for kind in config.SECTIONS["objective"]:
            # Runs of the same towers only: another objective could not train on the same pairs in the same way.
            if kind.towers == run.objective.towers:
                item = QListWidgetItem(kind.label, self.kinds)
                item.setData(Qt.ItemDataRole.UserRole, kind.kind)
                item.setCheckState(
                    Qt.CheckState.Checked if kind.kind == run.objective.kind else Qt.CheckState.Unchecked
                )
        self.form.addRow("Objectives", self.kinds)
        self.fields = {
            name: QLineEdit(objectName=f"repeat-{name}", accessibleName=label) for name, label in _FIELDS.items()
        }
        for name, label in _FIELDS.items():
            self.fields[name].setPlaceholderText("unchanged; several: 4, 8, 16")
            self.form.addRow(label, self.fields[name])
        self.priority, self.after = priority_box(0), after_box(runs, None)
        self.form.addRow("Priority", self.priority)
        self.form.addRow("Start after", self.after)
        copy = QPushButton("Copy as command", objectName="repeat-copy", autoDefault=False)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()])))
        self.buttons.insertWidget(0, copy)
        for field in (self.seeds, *self.fields.values()):
            field.textChanged.connect(self._check)
        self.kinds.itemChanged.connect(self._check)
        self.priority.edited.connect(self._check)
        self.after.currentIndexChanged.connect(self._check)
        self._check()
        self.seeds.selectAll()

    def runs(self) -> list[config.Run]:
        """Return the runs described.

        Raises:
            ConfigError: They cannot be trained; the message says which field.
        """
        return grid.repeated(self._run, seeds=parse_seeds(self.seeds.text()), grid=self._grid())

    def experiment(self) -> Experiment | None:
        """Return the experiment that the grid is; None where its runs are queued one by one.

        Raises:
            ConfigError: As `runs`.
        """
        if typed(self.priority) or self.after.key is not None:
            return None
        from trainer.experiments.experiment import of_grid

        return of_grid(self._run, self._grid(), parse_seeds(self.seeds.text()), self._taken)

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        arguments = ["queue", "add", "--run", str(self._row.id)]
        with contextlib.suppress(config.ConfigError):
            arguments += ["--seeds", *map(str, parse_seeds(self.seeds.text()))] if self.seeds.text().strip() else []
        for name, values in self._grid().items():
            arguments += ["--grid", f"{name}={','.join(values)}"]
        if typed(self.priority):
            arguments += ["--priority", str(typed(self.priority))]
        after = self.after.key
        return [*arguments, "--after", str(after)] if after is not None else arguments

    def accept(self) -> None:
        """Queue the runs if they are valid."""
        try:
            runs, experiment = self.runs(), self.experiment()
        except UserError as problem:
            self.show_message(str(problem), wrong=True)
            return
        if experiment is None:
            self.chosen.emit(runs, typed(self.priority), self.after.key)
        else:
            self.compared.emit(experiment)
        super().accept()

    def _grid(self) -> dict[str, tuple[str, ...]]:
        items = [self.kinds.item(row) for row in range(self.kinds.count())]
        chosen = [i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() is Qt.CheckState.Checked]
        axes: dict[str, tuple[str, ...]] = {}
        if chosen and chosen != [self._run.objective.kind]:
            axes["objective"] = tuple(chosen)
        for name, field in self.fields.items():
            values = tuple(dict.fromkeys(part.strip() for part in field.text().split(",") if part.strip()))
            if values:
                axes[name] = values
        return axes

    def _check(self) -> None:
        try:
            runs, experiment = self.runs(), self.experiment()
        except UserError as problem:
            self.show_message(str(problem), wrong=True)
            return
        count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
        names = "\n".join(run.name for run in runs[:SHOWN])
        more = f"\nand {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
        where = f"will wait in the queue:\n{names}{more}"
        if experiment is not None:
            seeds = f"{experiment.most_seeds} seed{'s' * (experiment.most_seeds != 1)}"
            where = f"of the experiment {experiment.name}, {len(experiment.arms)} arms over {seeds}, {where}"
        self.show_message(f"{count} {where}")


class QueueSheet(Sheet):
    """A dialog for the priority of queued runs and the run to wait for."""

    chosen = Signal(int, object)  # The priority, and the run to wait for (None: none).

    def __init__(self, queued: Sequence[RunRow], runs: Sequence[RunRow], parent: QWidget | None = None) -> None:
        super().__init__("Set priority" if len(queued) == 1 else "Set priorities", "Apply", parent)
        self.setObjectName("turn-sheet")
        queued_ids = {run.id for run in queued}
        self.priority = priority_box(queued[0].priority)
        self.after = after_box([run for run in runs if run.id not in queued_ids], queued[0].after)
        self.form.addRow("Priority", self.priority)
        self.form.addRow("Start after", self.after)
        self.show_message(
            "Higher priorities start first. A run waits until the other one has ended, whatever its result."
        )

    def accept(self) -> None:
        """Apply both."""
        self.chosen.emit(typed(self.priority), self.after.key)
        super().accept()


class Branch(Sheet):
    """A dialog for branching from a checkpoint under a new name."""

    chosen = Signal(int, str)  # The step and the name.

    def __init__(self, row: RunRow, steps: Sequence[int], parent: QWidget | None = None) -> None:
        super().__init__(f"Fork {row.short_name}", "Queue", parent)
        self.setObjectName("branch-sheet")
        self._row = row
        self.step = StillComboBox(objectName="branch-step", accessibleName="Checkpoint")
        for step in sorted(steps, reverse=True):
            self.step.addItem(f"Step {step:,}", step)
        self.name = QLineEdit(objectName="branch-name", accessibleName="Name")
        self.form.addRow("Checkpoint", self.step)
        self.form.addRow("Name", self.name)
        self.step.currentIndexChanged.connect(self._propose)
        self._propose()
        self.show_message(
            "A new run with the same configuration, curves and snapshots up to that step; it continues from there "
            f"when a slot is free. {row.short_name} is not changed."
        )
        if not steps:
            self.show_message(f"{row.short_name} has no checkpoint yet.", wrong=True)

    def accept(self) -> None:
        """Create the branch."""
        if self.name.text().strip():
            self.chosen.emit(self.step.currentData(), self.name.text().strip())
            super().accept()

    def _propose(self) -> None:
        self.name.setText(f"{self._row.name} from step {self.step.currentData()}")


class SlotsSheet(Sheet):
    """A dialog for how many runs train at once."""

    chosen = Signal(object)  # The values for `trainer.scheduling.queue.choose_slots`, a dict.

    def __init__(self, slots: QueueSlots, gpus: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__("Parallel runs", "Apply", parent)
        self.setObjectName("slots-sheet")
        self.cpu = number_box("slots-cpu", "On the processor", slots.cpu, low=0, high=64)
        self.form.addRow("On the processor", self.cpu)
        self.per_gpu = number_box("slots-gpu", "On each GPU", slots.per_gpu, low=0, high=64)
        self.gpus = [QCheckBox(f"{number}: {name}") for number, name in enumerate(gpus)]
        if gpus:
            self.form.addRow("On each GPU", self.per_gpu)
        for number, box in enumerate(self.gpus):
            box.setChecked(number in slots.gpus)
            self.form.addRow("GPUs to use" if number == 0 else "", box)
        self.held = QCheckBox("Hold the queue: nothing starts until this is switched off", objectName="slots-held")
        self.held.setChecked(slots.held)
        self.form.addRow("", self.held)
        self.show_message(
            "Runs already training are not affected. Two runs on one device each take about twice as long."
        )

    def accept(self) -> None:
        """Apply the numbers to the workspace, for every window and command."""
        values: dict[str, object] = {"cpu": typed(self.cpu), "held": self.held.isChecked()}
        if self.gpus:
            values |= {"per_gpu": typed(self.per_gpu)}
            values |= {"gpus": [number for number, box in enumerate(self.gpus) if box.isChecked()]}
        self.chosen.emit(values)
        super().accept()


def priority_box(value: int) -> NumberBox:
    """Return an editor of a priority."""
    return number_box("queue-priority", "Priority", value, low=-99, high=99)


def number_box(name: str, label: str, value: int, *, low: int, high: int) -> NumberBox:
    """Return an editor of an integer."""
    box = NumberBox(integer=True, low=low, high=high)
    box.setObjectName(name)
    box.setAccessibleName(label)
    box.set_value(value)
    return box


def typed(box: NumberBox) -> int:
    """Return the number in the box; 0 if invalid."""
    value = box.value()
    return value if isinstance(value, int) else 0


def after_box(runs: Sequence[RunRow], chosen: int | None) -> SearchableComboBox:
    """Return a list of the runs that have not ended, and "none"."""
    box = SearchableComboBox(name="queue-after", label="Start after", width=0)
    box.show_choices((Choice(None, "No run"), *run_choices([run for run in runs if run.active])), chosen)
    return box


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse `0, 1, 2` or `0-4`; empty for an empty text.

    Raises:
        ConfigError: It is not written so.
    """
    seeds: dict[int, None] = {}
    for part in text.replace(";", ",").split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if not first and not dash:
            continue
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise config.ConfigError(f"Seeds are whole numbers: 0, 1, 2 or 0-4; {part.strip()!r} is none.")
        end = int(last) if dash else int(first)
        if end - int(first) > grid.MOST:
            raise config.ConfigError(f"That would be more than {grid.MOST} runs. Choose fewer seeds.")
        seeds |= dict.fromkeys(range(int(first), end + 1))
    return tuple(seeds)
