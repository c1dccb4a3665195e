"""A dialog that opens vectors of other programs: images, texts, what their rows are, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
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
from explorer.window.open_model_sheet import LABEL_WIDTH, RUNS, WIDTH, start_opening
from trainer.errors import UserError
from trainer.untrusted import shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer.run_control.jobs import Jobs

_WORDS: Final = (
    "Row i of images, texts and items is one pair; one of images and texts is enough. Of more than 10,000 rows as many "
    "are drawn at random."
)
_FIELDS: Final = {
    "image": ("Images", "image vectors: .npy, .npz, .safetensors, Parquet, Arrow, or a folder"),
    "text": ("Texts", "text vectors of the same rows"),
    "items": ("Items", "CSV, JSONL or Parquet: id, path, caption, label"),
    "pictures": ("Pictures", "the folder where the paths of the items start"),
    "name": ("Name", "as the file"),
}
_TEXTS: Final = ("text", "txt", "caption", "sentence")


class OpenVectorsSheet(QDialog):
    """A dialog for files of vectors. Enter opens them, Esc closes the dialog.

    Signals:
        opened: Number of the new run.
    """

    opened = Signal(int)

    def __init__(
        self, workspace: Path, background: Background, files: Sequence[Path] = (), parent: QWidget | None = None
    ) -> None:
        """Build the dialog; of several `files`, the one named after texts has the texts."""
        super().__init__(parent)
        self.setObjectName("open-vectors")
        self.setWindowTitle("Open vectors")
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self._workspace, self._background = workspace, background
        self.editors = {key: self._editor(key) for key in _FIELDS}
        self._build()
        for side, file in sides_of(files).items():
            self.editors[side].setText(str(file))
        self._check()
        self.editors["name" if files else "image"].setFocus()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        given = {key: editor.text().strip() for key, editor in self.editors.items()}
        return ["open", "vectors", *(word for key, text in given.items() if text for word in (f"--{key}", text))]

    def accept(self) -> None:
        """Start opening; the dialog stays until the vectors are open or refused."""
        self._check()
        if not self.start.isEnabled():
            return
        self.start.setEnabled(False)
        self._say("Reading the vectors…")
        self._background.run(
            self, start_opening, self._workspace, self.command(), done=self._done, failed=self._failed, key="open"
        )

    def _done(self, run: int) -> None:
        self.opened.emit(run)
        super().accept()

    def _failed(self, error: Exception) -> None:
        self._say(str(error) if isinstance(error, UserError) else f"This is a bug: {error!r}", wrong=True)
        self.start.setEnabled(True)

    def _say(self, words: str, *, wrong: bool = False) -> None:
        self.note.setText(words)
        theme.set_role(self.note, "bad" if wrong else "secondary")
        self.adjustSize()

    def _check(self) -> None:
        self.start.setEnabled(any(self.editors[side].text().strip() for side in ("image", "text")))
        self._say(_WORDS)

    def _editor(self, key: str) -> QLineEdit:
        words, hint = _FIELDS[key]
        line = QLineEdit(self, objectName=f"open-vectors-{key}", accessibleName=words, placeholderText=hint)
        if key != "name":
            for what in ("folder",) if key == "pictures" else ("folder", "file") if key != "items" else ("file",):
                action = QAction(f"Choose a {what}", line, objectName=f"browse-{what}")
                theme.keep_icon(action, "folder-open" if what == "folder" else "box", role="secondary")
                action.triggered.connect(partial(self._choose, line, what))
                line.addAction(action, QLineEdit.ActionPosition.TrailingPosition)
        line.textChanged.connect(lambda: self._check())
        return line

    def _choose(self, line: QLineEdit, what: str, _checked: bool = False) -> None:
        if what == "folder":
            chosen = QFileDialog.getExistingDirectory(self, line.accessibleName(), line.text())
        else:
            chosen = QFileDialog.getOpenFileName(self, line.accessibleName(), line.text())[0]
        if chosen:
            line.setText(chosen)

    def _build(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.INSIDE)
        for place, (key, editor) in enumerate(self.editors.items()):
            label = QLabel(_FIELDS[key][0], self)
            label.setFixedWidth(LABEL_WIDTH)
            label.setBuddy(editor)
            grid.addWidget(label, place, 0)
            grid.addWidget(editor, place, 1)
        self.note = QLabel(self, objectName="open-vectors-note", wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        layout.setSpacing(theme.BETWEEN)
        layout.addLayout(grid)
        layout.addWidget(self.note)
        layout.addLayout(self._buttons())

    def _buttons(self) -> QHBoxLayout:
        copy = QPushButton("Copy as command", self, objectName="open-vectors-copy", autoDefault=False)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()])))
        cancel = QPushButton("Cancel", self, objectName="open-vectors-cancel", autoDefault=False)
        cancel.clicked.connect(self.reject)
        self.start = QPushButton("Open", self, objectName="open-vectors-start", default=True)
        theme.set_role(self.start, "primary")
        self.start.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.setSpacing(theme.INSIDE)
        row.addStretch(1)
        for button in (copy, cancel, self.start):
            row.addWidget(button)
        return row


def sides_of(files: Sequence[Path]) -> dict[str, Path]:
    """Return which file has the images and which the texts, by their names; the first alone has the images."""
    texts = [file for file in files if any(word in file.stem.lower() for word in _TEXTS)]
    images = [file for file in files if file not in texts]
    found = {"image": images[0]} if images else {}
    if texts or len(images) > 1:
        found["text"] = texts[0] if texts else images[1]
    return found


def ask(
    folder: Path,
    jobs: Jobs,
    background: Background,
    *,
    files: Sequence[Path],
    go_to: Callable[[str], object],
    parent: QWidget,
) -> OpenVectorsSheet:
    """Open the dialog over the window `parent`; the new run appears in the Runs view."""
    sheet = OpenVectorsSheet(folder, background, files, parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    sheet.opened.connect(lambda _run: jobs.poll())
    sheet.opened.connect(lambda _run: go_to(RUNS))
    sheet.open()
    return sheet
