"""What New run and the import dialog share of training CLIP and CLOOB: the number of seeds, and larger batches."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.number_box import NumberBox
from trainer import config
from trainer.config.small_batches import MEASURED, in_larger_batches, small_batch_of_cloob
from trainer.experiments.experiment import MOST_SEEDS
from trainer.scheduling.paces import SEEDS_RULE, Pace, proposed_seeds


class SeedsBox(NumberBox):
    """Seeds of each; until somebody sets another number, as many as are proposed."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(integer=True, low=1, high=MOST_SEEDS, parent=parent)
        self.setObjectName(name)
        self.setAccessibleName("Seeds of each")
        self.setToolTip(SEEDS_RULE)
        self._proposed = 1
        self.set_value(self._proposed)

    @property
    def count(self) -> int:
        """The number of seeds; 1 while what is typed is none."""
        value = self.value()
        return value if isinstance(value, int) and 1 <= value <= MOST_SEEDS else 1

    def propose(self, run: config.Run, pairs: int | None, paces: Sequence[Pace]) -> None:
        """Show how many seeds are proposed for a training on `pairs` pairs, at the paces of earlier runs."""
        before, self._proposed = self._proposed, proposed_seeds(run, pairs, paces)
        if self.value() == before != self._proposed:
            self.set_value(self._proposed)


class SmallBatchRow(QWidget):
    """What CLOOB does in the batches of a run, with a button that takes larger ones; hidden where nothing is to say."""

    enlarged = Signal(object)  # The run in larger batches.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = layouts.text(role="warn", name=f"{name}-small-batches")
        self.button = QPushButton(self, objectName=f"{name}-enlarge", autoDefault=False)
        self.button.clicked.connect(lambda: self.enlarged.emit(self._larger))
        self.setToolTip(MEASURED)
        layouts.row(self.text, self.button, layouts.STRETCH, gap=theme.BETWEEN, of=self)
        self.hide()

    def show_run(self, run: config.Run | None, pairs: int | None) -> None:
        """Show what is to be said of the batches of a run on `pairs` pairs; None hides the row."""
        self._larger = run and in_larger_batches(run, pairs)
        self.text.setText(small_batch_of_cloob(run) if run else "")
        self.setVisible(bool(self.text.text()))
        if self._larger is not None:
            self.button.setText(f"Use batches of {self._larger.optimizer.batch_size}")
        self.button.setVisible(self._larger != run)
