"""A dialog that imports curves of TensorBoard, Weights & Biases or open_clip as runs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.window.open_sheet import LABEL_WIDTH, RUNS, WIDTH, answer_of
from trainer.errors import UserError
from trainer.untrusted import shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer.run_control.jobs import Jobs

_WORDS: Final = (
    "Each folder of event files, each run of an exported panel or of an evidence bundle, and each folder of open_clip "
    "becomes a run with its curves. Nothing of the other program is changed."
)
_KINDS: Final = {
    "auto": "Recognize it",
    "tensorboard": "TensorBoard event files",
    "wandb": "Weights & Biases export (CSV or JSON lines)",
    "open_clip": "open_clip results",
    "bundle": "Evidence bundle of this program",
}


class ImportCurvesSheet(QDialog):
    """A dialog for curves of another program. Enter imports them, Esc closes the dialog.

    Signals:
        imported: Numbers of the new runs, as a list.
    """

    imported = Signal(list)

    def __init__(
        self, workspace: Path, background: Background, path: Path | None = None, parent: QWidget | None = None
    ) -> None:
        """Build the dialog; `path` is what was dropped."""
        super().__init__(parent)
        self.setObjectName("import-curves")
        self.setWindowTitle("Import curves")
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self._workspace, self._background = workspace, background
        self._build()
        self.path.setText(str(path or ""))
        self._check()
        (self.name if path else self.path).setFocus()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        name = self.name.text().strip()
        words = ["runs", "import", self.path.text().strip(), *([name] if name else [])]
        return [*words, "--from", str(self.kind.currentData())]

    def accept(self) -> None:
        """Start importing; the dialog stays until the curves are here or refused."""
        self._check()
        if not self.start.isEnabled():
            return
        self.start.setEnabled(False)
        self._say("Reading the curves…")
        self._background.run(
            self, start_import, self._workspace, self.command(), done=self._done, failed=self._failed, key="import"
        )

    def _done(self, runs: list[int]) -> None:
        self.imported.emit(runs)
        super().accept()

    def _failed(self, error: Exception) -> None:
        self._say(str(error) if isinstance(error, UserError) else f"This is a bug: {error!r}", wrong=True)
        self.start.setEnabled(True)

    def _say(self, words: str, *, wrong: bool = False) -> None:
        self.note.setText(words)
        theme.set_role(self.note, "bad" if wrong else "secondary")
        self.adjustSize()

    def _check(self) -> None:
        self.start.setEnabled(bool(self.path.text().strip()))
        self._say(_WORDS)

    def _choose(self, what: str, _checked: bool = False) -> None:
        if what == "folder":
            chosen = QFileDialog.getExistingDirectory(self, "Curves", self.path.text())
        else:
            chosen = QFileDialog.getOpenFileName(self, "Curves", self.path.text())[0]
        if chosen:
            self.path.setText(chosen)

    def _build(self) -> None:
        self.path = QLineEdit(self, objectName="import-curves-path", accessibleName="Curves")
        self.path.setPlaceholderText("an event file, a CSV or JSON lines file, a bundle, or a folder")
        for what in ("folder", "file"):
            action = QAction(f"Choose a {what}", self.path, objectName=f"browse-{what}")
            theme.keep_icon(action, "folder-open" if what == "folder" else "activity", role="secondary")
            action.triggered.connect(partial(self._choose, what))
            self.path.addAction(action, QLineEdit.ActionPosition.TrailingPosition)
        self.path.textChanged.connect(lambda: self._check())
        self.kind = QComboBox(self, objectName="import-curves-kind", accessibleName="Written by")
        for key, words in _KINDS.items():
            self.kind.addItem(words, key)
        self.name = QLineEdit(self, objectName="import-curves-name", accessibleName="Name")
        self.name.setPlaceholderText("as the folder, the file, or the runs in it")
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.INSIDE)
        for place, (words, editor) in enumerate(
            (("Curves", self.path), ("Written by", self.kind), ("Name", self.name))
        ):
            label = QLabel(words, self)
            label.setFixedWidth(LABEL_WIDTH)
            label.setBuddy(editor)
            grid.addWidget(label, place, 0)
            grid.addWidget(editor, place, 1)
        self.note = QLabel(self, objectName="import-curves-note", wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        layout.setSpacing(theme.BETWEEN)
        layout.addLayout(grid)
        layout.addWidget(self.note)
        layout.addLayout(self._buttons())

    def _buttons(self) -> QHBoxLayout:
        copy = QPushButton("Copy as command", self, objectName="import-curves-copy", autoDefault=False)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()])))
        cancel = QPushButton("Cancel", self, objectName="import-curves-cancel", autoDefault=False)
        cancel.clicked.connect(self.reject)
        self.start = QPushButton("Import", self, objectName="import-curves-start", default=True)
        theme.set_role(self.start, "primary")
        self.start.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.setSpacing(theme.INSIDE)
        row.addStretch(1)
        for button in (copy, cancel, self.start):
            row.addWidget(button)
        return row


def start_import(workspace: Path, words: list[str]) -> list[int]:
    """Import curves in a process of the trainer, and return the numbers of the new runs; runs off the GUI thread.

    Raises:
        OpenError: They cannot be imported; the sentence is the trainer's.
    """
    return [int(one["id"]) for one in json.loads(answer_of(workspace, words))]


def ask(
    folder: Path,
    jobs: Jobs,
    background: Background,
    *,
    path: Path | None,
    go_to: Callable[[str], object],
    parent: QWidget,
) -> ImportCurvesSheet:
    """Open the dialog over the window `parent`; the new runs appear in the Runs view."""
    sheet = ImportCurvesSheet(folder, background, path, parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    sheet.imported.connect(lambda _runs: jobs.poll())
    sheet.imported.connect(lambda _runs: go_to(RUNS))
    sheet.open()
    return sheet
