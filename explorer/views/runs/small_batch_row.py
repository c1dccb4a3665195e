"""A warning of the small batches of a run with a button that takes larger ones, in New run and in the import dialog."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from trainer import config
from trainer.config.small_batches import MEASURED, in_larger_batches, small_batch_of_cloob


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
