"""The foot of the import sheet: what can be done with what was read."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer import theme
from explorer.import_sheet import dropped_files
from explorer.import_sheet.options import row
from explorer.import_sheet.survey_result import DataSource


class Foot(QWidget):
    """Copy as command on the left; classify, cancel and train on the right.

    Signals:
        copy_asked, classify_asked, cancelled, train_asked: A button was pressed.
    """

    copy_asked = Signal()
    classify_asked = Signal()
    cancelled = Signal()
    train_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.copy = QPushButton("Copy as command", self, objectName="import-copy", autoDefault=False)
        self.classify = QPushButton(self, objectName="import-classify", autoDefault=False)
        cancel = QPushButton("Cancel", self, objectName="import-cancel", autoDefault=False)
        self.start = QPushButton("Train on these pairs", self, objectName="import-start", default=True)
        theme.set_role(self.start, "primary")
        for button, signal in (
            (self.copy, self.copy_asked),
            (self.classify, self.classify_asked),
            (cancel, self.cancelled),
            (self.start, self.train_asked),
        ):
            button.clicked.connect(signal)
        line = row(self.copy)
        line.setContentsMargins(theme.AROUND, theme.BETWEEN, theme.AROUND, theme.BETWEEN)
        line.addStretch(1)
        for button in (self.classify, cancel, self.start):
            line.addWidget(button)
        self.setLayout(line)

    def offer_classify(self, reading: DataSource | None) -> None:
        """Offers to classify the pictures beside the pairs; where there are no pairs, the page says so itself."""
        pictures = len(reading.pictures) if reading else 0
        self.classify.setVisible(bool(pictures and reading and reading.used))
        self.classify.setText(classify_words(pictures))


def classify_words(pictures: int) -> str:
    """What a button says that classifies so many."""
    which = "this picture" if pictures == 1 else f"these {pictures:,} pictures"
    return f"Classify {which if pictures < dropped_files.MOST else f'the first {pictures:,} pictures'}"
