"""The footer of the import dialog, with its buttons."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.import_sheet import dropped_files
from explorer.import_sheet.survey_result import DataSource
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow


class Footer(QWidget):
    """Buttons: copy as command on the left; classify, cancel and train on the right.

    Signals:
        copy_asked, classify_asked, later_asked, cancelled, train_asked: A button was pressed.
    """

    copy_asked = Signal()
    classify_asked = Signal()
    later_asked = Signal()
    cancelled = Signal()
    train_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.copy = QPushButton("Copy as command", self, objectName="import-copy", autoDefault=False)
        self.classify = QPushButton(self, objectName="import-classify", autoDefault=False)
        self.later = QPushButton("Read in background", self, objectName="import-later", autoDefault=False)
        self.later.setToolTip("Close this sheet and keep reading; the job list (Ctrl+J) reopens it")
        cancel = QPushButton("Cancel", self, objectName="import-cancel", autoDefault=False)
        self.start = QPushButton("Train on these pairs…", self, objectName="import-start", default=True)
        theme.set_role(self.start, "primary")
        for button, signal in (
            (self.copy, self.copy_asked),
            (self.classify, self.classify_asked),
            (self.later, self.later_asked),
            (cancel, self.cancelled),
            (self.start, self.train_asked),
        ):
            button.clicked.connect(signal)
        buttons = FlowRow()
        buttons.add(self.copy)
        for button in (self.classify, self.later, cancel, self.start):
            buttons.add(button, gap=theme.BETWEEN, right=True)
        margins = (theme.AROUND, theme.BETWEEN, theme.AROUND, theme.BETWEEN)
        layouts.row((buttons, 1), margins=margins, of=self)

    def offer_classify(self, reading: DataSource | None) -> None:
        """Offer to classify the images next to the pairs; without pairs, the page itself makes the offer."""
        pictures = len(reading.pictures) if reading else 0
        self.classify.setVisible(bool(pictures and reading and reading.used))
        self.classify.setText(classify_words(pictures))


def classify_words(pictures: int) -> str:
    """Return the label of the button that classifies this number of images."""
    # Files: whether each holds a picture is known when it is read.
    which = "this file" if pictures == 1 else f"these {pictures:,} files"
    return f"Classify {which if pictures < dropped_files.MOST else f'the first {pictures:,} files'}"
