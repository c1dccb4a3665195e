"""The dialog that makes an experiment of a run: one of its fields in several values, over seeds."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from explorer.widgets.number_box import NumberBox
from explorer.widgets.sheet import Sheet
from explorer.widgets.still import StillComboBox
from trainer import config
from trainer.errors import UserError
from trainer.experiments.experiment import Experiment, default_outcome, repeated, to_toml
from trainer.store import RunRow


class ExperimentSheet(Sheet):
    """A dialog that repeats a run as an experiment; its control is the run as it is."""

    chosen = Signal(str, str)  # Name and definition.

    def __init__(self, row: RunRow, run: config.Run, parent: QWidget | None = None) -> None:
        super().__init__(f"Repeat {row.short_name} with other settings", "Start the experiment", parent)
        self.setObjectName("experiment-sheet")
        self._run = run
        self.field = StillComboBox(objectName="experiment-field", accessibleName="Field", editable=False)
        self.field.addItems([name for name in config.flatten(run) if name not in ("name", "seed")])
        usual = self.field.findText("objective")
        self.field.setCurrentIndex(max(usual, 0))
        self.values = QLineEdit(objectName="experiment-values", accessibleName="Values")
        self.values.setPlaceholderText("cloob, infoloob   or   64, 256")
        self.margin = QLineEdit("0.02", objectName="experiment-margin", accessibleName="Margin")
        self.margin.setToolTip("Differences below this margin count as equivalent; 0: no equivalence")
        self.seeds = NumberBox(integer=True, low=2, high=100)
        self.seeds.set_value(5)
        self.seeds.setObjectName("experiment-seeds")
        self.form.addRow("Field", self.field)
        self.form.addRow("Values", self.values)
        self.form.addRow("Equivalence margin", self.margin)
        self.form.addRow("Max seeds", self.seeds)
        self.field.currentIndexChanged.connect(self._check)
        self.values.textChanged.connect(self._check)
        self.margin.textChanged.connect(self._check)
        self.seeds.edited.connect(self._check)
        self.accepted.connect(self._choose)
        self._check()

    def experiment(self) -> Experiment:
        """Return what the dialog says.

        Raises:
            ConfigError: It does not make an experiment.
        """
        texts = [text.strip() for text in self.values.text().split(",") if text.strip()]
        try:
            margin, most = float(self.margin.text()), int(self.seeds.value())
        except ValueError:
            raise config.ConfigError("Write a number of seeds, and 0.02 for equal within 2 points.") from None
        field, seeds = self.field.currentText(), {"least_seeds": min(3, most), "most_seeds": most}
        return repeated(self._run, field, texts, default_outcome(self._run), margin=margin, **seeds)

    def _check(self) -> None:
        try:
            made = self.experiment()
        except UserError as problem:
            text = str(problem) if self.values.text().strip() else "Write the other values of the field."
            self.show_message(text, wrong=True)
            return
        arms = ", ".join(arm.name for arm in made.arms)
        seeds = f"{made.least_seeds} to {made.most_seeds}"
        self.show_message(f"{arms}: {seeds} seeds each, until decided on {made.outcome.label}.")

    def _choose(self) -> None:
        made = self.experiment()
        self.chosen.emit(made.name, to_toml(made))
