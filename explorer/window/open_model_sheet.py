"""A dialog that opens a published model: which one, with which data, and errors."""

from __future__ import annotations

import json
import subprocess
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
from explorer.import_sheet.dropped_files import WEIGHTS, is_data
from trainer.errors import UserError
from trainer.untrusted import safe_subprocess, shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer.run_control.jobs import Jobs
    from trainer.store import RunRow

RUNS: Final = "runs"
"""The view that shows how far the opening is."""

PATIENCE_S: Final = 300
"""How long reading a file of weights may take before it counts as stuck."""

LABEL_WIDTH: Final = 96
WIDTH: Final = 560

_SCENES: Final = "scenes"
_OTHER: Final = "other"
_WORDS: Final = (
    "No training. The model becomes a run whose held-out embeddings every view can show; duplicate it with epochs to "
    "fine-tune it."
)


class OpenError(UserError):
    """A model that could not be opened; the message is the trainer's own."""


class OpenModelSheet(QDialog):
    """A dialog for a model and the data to inspect it with. Enter opens it, Esc closes the dialog.

    Signals:
        opened: Number of the new run, whose trainer has been started.
        data_asked: It is data that the person wants; what was typed, if it looks like data, else empty.
    """

    opened = Signal(int)
    data_asked = Signal(str)

    def __init__(
        self,
        workspace: Path,
        background: Background,
        *,
        model: str = "",
        like: RunRow | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """Build the dialog; `like` is a run whose data the model can be used with, too."""
        super().__init__(parent)
        self.setObjectName("open-model")
        self.setWindowTitle("Open a pretrained model")
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self._workspace, self._background = workspace, background
        self._build(like)
        self.model.setText(model)
        self._choose_data()
        (self.name if model else self.model).setFocus()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        words = ["open", self.model.text().strip()]
        chosen = self.data.currentData()
        if chosen == _OTHER:
            words += ["--data", self.path.text().strip()]
        elif chosen != _SCENES:
            words += ["--like", chosen]
        name = self.name.text().strip()
        return words + (["--name", name] if name else [])

    def accept(self) -> None:
        """Start opening; the dialog stays until the model has been read or rejected."""
        self._check()
        if not self.start.isEnabled():
            return
        self.start.setEnabled(False)
        self._say("Reading the model…")
        self._background.run(
            self, start_opening, self._workspace, self.command(), done=self._done, failed=self._failed, key="open"
        )

    # -- what comes back ---------------------------------------------------------------------------------------

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
        missing = not self.model.text().strip() or (self.data.currentData() == _OTHER and not self.path.text().strip())
        self.start.setEnabled(not missing)
        self._say(_WORDS)

    def _choose_data(self) -> None:
        for part in self._path_row:
            part.setVisible(self.data.currentData() == _OTHER)
        self._check()

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self, like: RunRow | None) -> None:
        self.model = QLineEdit(self)
        self.model.setObjectName("open-model-model")
        self.model.setPlaceholderText("open_clip:ViT-B-32/laion2b_s34b_b79k")
        self.data = QComboBox(self)
        self.data.setObjectName("open-model-data")
        if like is not None:
            self.data.addItem(f"The data of {like.name}", str(like.id))
        self.data.addItem("256 Scenes, drawn for it", _SCENES)
        self.data.addItem("A folder, table or tar", _OTHER)
        self.path = QLineEdit(self)
        self.path.setObjectName("open-model-path")
        self.path.setPlaceholderText("A folder of images, a table or a tar")
        self.name = QLineEdit(self)
        self.name.setObjectName("open-model-name")
        self.name.setPlaceholderText("As the model")
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.INSIDE)
        hint = QLabel("open_clip:NAME/TAG, hf-hub:OWNER/NAME, a folder or a file.", self)
        theme.set_role(hint, "small")
        hint.setWordWrap(True)
        grid.addWidget(hint, 1, 1)
        rows = {0: ("Model", self.model), 2: ("Data", self.data), 3: ("Images", self.path), 4: ("Name", self.name)}
        for place, (words, editor) in rows.items():
            label = QLabel(words, self)
            label.setFixedWidth(LABEL_WIDTH)
            label.setBuddy(editor)
            editor.setAccessibleName(words)
            grid.addWidget(label, place, 0)
            grid.addWidget(editor, place, 1)
            if editor is self.path:
                self._path_row = (label, editor)
        self._browse(self.model, "folder", "Choose the folder of a model")
        self._browse(self.model, "file", "Choose a file of weights")
        self._browse(self.path, "folder", "Choose a folder of images")
        self._browse(self.path, "file", "Choose a table or tar")
        self.note = QLabel(self)
        self.note.setObjectName("open-model-note")
        self.note.setWordWrap(True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        layout.setSpacing(theme.BETWEEN)
        layout.addLayout(grid)
        layout.addWidget(self.note)
        layout.addLayout(self._buttons())
        for line in (self.model, self.path):
            line.textChanged.connect(self._check)
        self.data.currentIndexChanged.connect(self._choose_data)

    def _browse(self, line: QLineEdit, what: str, words: str) -> None:
        action = QAction(words, line)
        theme.keep_icon(action, "folder-open" if what == "folder" else "box", role="secondary")
        action.setObjectName(f"browse-{what}")
        action.triggered.connect(partial(self._choose, line, what, words))
        line.addAction(action, QLineEdit.ActionPosition.TrailingPosition)

    def _choose(self, line: QLineEdit, what: str, words: str, _checked: bool = False) -> None:
        if what == "folder":
            chosen = QFileDialog.getExistingDirectory(self, words, line.text())
        else:
            kinds = f"Weights ({' '.join(f'*{suffix}' for suffix in WEIGHTS)})" if line is self.model else ""
            chosen = QFileDialog.getOpenFileName(self, words, line.text(), kinds)[0]
        if chosen:
            line.setText(chosen)

    def _buttons(self) -> QHBoxLayout:
        copy = QPushButton("Copy as command", self)
        copy.setObjectName("open-model-copy")
        copy.clicked.connect(self._copy)
        cancel = QPushButton("Cancel", self)
        cancel.setObjectName("open-model-cancel")
        cancel.clicked.connect(self.reject)
        self.start = QPushButton("Open", self)
        self.start.setObjectName("open-model-start")
        theme.set_role(self.start, "primary")
        self.start.clicked.connect(self.accept)
        for button in (copy, cancel):
            button.setAutoDefault(False)
        self.start.setDefault(True)
        data = QPushButton("Import data instead…", self)
        data.setObjectName("open-model-import")
        data.clicked.connect(self._import)
        theme.set_role(data, "quiet")
        data.setAutoDefault(False)
        row = QHBoxLayout()
        row.setSpacing(theme.INSIDE)
        row.addWidget(data)
        row.addStretch(1)
        for button in (copy, cancel, self.start):
            row.addWidget(button)
        return row

    def _import(self) -> None:
        typed = self.model.text().strip()
        self.reject()
        self.data_asked.emit(typed if typed and is_data(Path(typed).expanduser()) else "")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()]))


def ask(
    folder: Path,
    jobs: Jobs,
    background: Background,
    *,
    model: Path | None,
    chosen: int | None,
    go_to: Callable[[str], object],
    import_data: Callable[[str], object],
    parent: QWidget,
) -> OpenModelSheet:
    """Open the dialog over the window `parent`; the new run appears in the Runs view."""
    like = None if chosen is None else jobs.run(chosen)
    sheet = OpenModelSheet(folder, background, model=str(model or ""), like=like, parent=parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    sheet.opened.connect(lambda _run: jobs.poll())
    sheet.opened.connect(lambda _run: go_to(RUNS))
    sheet.data_asked.connect(import_data)
    sheet.open()
    return sheet


def start_opening(workspace: Path, words: list[str]) -> int:
    """Start a process that opens a model, and return the run's id; runs off the GUI thread.

    The trainer reads the file first, so whatever is wrong with it is said here, before there is a run.

    Raises:
        OpenError: It cannot be opened; the sentence is the trainer's.
    """
    words = [safe_subprocess.typed_path(word) for word in words]
    command = safe_subprocess.python("-m", "trainer", *words, "--detach", "--json", "--workspace", str(workspace))
    try:
        ended = safe_subprocess.run(
            command,
            more={"PYTHONUTF8": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OpenError(f"The model was not read within {PATIENCE_S} s. Check its disk.") from error
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        raise OpenError((said[-1] if said else "The trainer ended without a message.").removeprefix("trainer open: "))
    return int(json.loads(ended.stdout.strip().splitlines()[-1])["id"])
