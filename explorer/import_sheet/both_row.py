"""The row of the import dialog that says what CLIP and CLOOB are trained with, and lets epochs and seeds be chosen."""

from __future__ import annotations

import dataclasses

from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.import_sheet.survey_result import DataSource
from explorer.views.runs.compared_runs import PRESET, compared_on, compared_words
from explorer.views.runs.new_run import both_command
from explorer.views.runs.seeds_box import SeedsBox
from explorer.views.runs.small_batch_row import SmallBatchRow
from explorer.widgets import layouts
from explorer.widgets.number_box import NumberBox
from trainer import config
from trainer.config import presets
from trainer.scheduling.paces import Pace

BOX_PX = 72


class BothRow(QWidget):
    """Epochs, seeds, and in a sentence the steps and the time that they take; below it what small batches may do.

    Attributes:
        run: What both are trained with; None while nothing can be trained.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="import-both")
        self.run: config.Run | None = None
        self._reading: DataSource | None = None
        self._image_size, self._suited, self._paces = 0, 0, tuple[Pace, ...]()
        self._batch = 0  # That somebody chose; 0: what suits the pairs.
        self.epochs_box = NumberBox(integer=True, low=1, high=10_000, parent=self)
        self.epochs_box.setObjectName("import-epochs")
        self.epochs_box.setAccessibleName("Epochs")
        self.seeds_box = SeedsBox("import-seeds", self)
        self.trains = layouts.text(role="secondary", name="import-trains", wrap=True)
        parts: list[QWidget | tuple[QWidget, int]] = []
        for box in (self.epochs_box, self.seeds_box):
            box.setFixedWidth(BOX_PX)
            box.edited.connect(self._show)
            parts += [layouts.text(box.accessibleName(), "secondary", buddy=box), box]
        self.small = SmallBatchRow("import", self)
        self.small.enlarged.connect(self._enlarge)
        above = layouts.row(*parts, (self.trains, 1), gap=theme.BETWEEN)
        layouts.column(above, self.small, gap=theme.SPACE, of=self)

    @property
    def seeds(self) -> int:
        """The number of seeds of each."""
        return self.seeds_box.count

    def set_paces(self, paces: tuple[Pace, ...]) -> None:
        """Take how fast earlier runs trained, the newest first."""
        self._paces = paces
        self._show()

    def show_data(self, reading: DataSource | None, image_size: int) -> None:
        """Show what is trained on these data; None hides the row. Epochs that nobody typed are those that suit it."""
        if reading is None or self._reading is None or reading.data != self._reading.data:
            self._batch = 0
        self._reading, self._image_size = reading, image_size
        self._suit()

    def _enlarge(self, run: config.Run) -> None:
        self._batch = run.optimizer.batch_size
        self._suit()

    def _suit(self) -> None:
        """Show what is trained, with as many epochs as suit it unless somebody typed some."""
        reading = self._reading
        if reading is not None and self.epochs_box.value() in ("", self._suited):
            self._suited = self._run_with(None).optimizer.epochs
            self.epochs_box.set_value(self._suited)
        self._show()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that start the same experiment."""
        assert self.run is not None
        return both_command(self.run, self.seeds, PRESET, presets.presets())

    def _run_with(self, epochs: int | None) -> config.Run:
        reading = self._reading
        assert reading is not None
        pairs, repeat = reading.to_train_on(), reading.captions_repeat
        return compared_on(
            reading.data, self._image_size, pairs, captions_repeat=repeat, epochs=epochs, batch=self._batch
        )

    def _show(self) -> None:
        self.setVisible(self._reading is not None)
        self.run = None
        if self._reading is None:
            return
        epochs = self.epochs_box.value()
        self.run = self._run_with(epochs if isinstance(epochs, int) and 1 <= epochs <= 10_000 else None)
        pairs, guessed = self._reading.to_train_on(), "train" not in self._reading.pairs
        self.seeds_box.propose(self.run, pairs, self._paces)
        self.trains.setText(compared_words(self.run, pairs, self.seeds, self._paces, guessed=guessed))
        self.small.show_run(dataclasses.replace(self.run, objective=config.Cloob()), pairs)
