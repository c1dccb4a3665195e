"""What the dialogs that open a model, vectors or curves share: fields, the command, its start, and errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel, QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets import layouts
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.refusal import set_refusal
from explorer.widgets.wrapped_label import WrappedLabel
from trainer.errors import UserError, reason_words
from trainer.untrusted import safe_subprocess, shell

LABEL_WIDTH: Final = 96
WIDTH: Final = 560
NOTE_LINES: Final = 3
PATIENCE_S: Final = 300
"""How long reading a file may take before it counts as stuck."""


class OpenSheet(QDialog):
    """A dialog whose command makes runs of a file. Enter starts it, Esc closes the dialog."""

    # Number of the new run, whose process has been started; a list of numbers if there may be several.
    opened = Signal(object)
    reading: ClassVar[str] = "Reading the files…"

    def __init__(
        self, name: str, title: str, workspace: Path, background: Background, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, objectName=name, windowTitle=title, modal=True)
        self._name, self._workspace, self._background = name, workspace, background
        self.setFixedWidth(WIDTH)
        self.grid = layouts.grid(theme.BETWEEN, theme.INSIDE)
        self.note = WrappedLabel(parent=self, objectName=f"{name}-note", alignment=Qt.AlignmentFlag.AlignTop)
        # The buttons keep their place while the note changes.
        self.note.setMinimumHeight(NOTE_LINES * self.fontMetrics().lineSpacing())
        self.start = QPushButton("Open", self, objectName=f"{name}-start", default=True, clicked=self.accept)
        theme.set_role(self.start, "primary")
        self._copy = QPushButton("Copy as command", self, objectName=f"{name}-copy", autoDefault=False)
        self._copy.clicked.connect(self._copy_command)

    def refuse(self, reason: str) -> None:
        """Refuse to open, and to copy the command, for this reason; empty allows both."""
        for button in (self.start, self._copy):
            set_refusal(button, reason)

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        raise NotImplementedError

    def check(self) -> None:
        """Allow to open once the fields suffice, and show the advice."""

    def act(self) -> Callable[[Path, list[str]], object]:
        """Return what gives the command to the trainer, off the GUI thread; `opened` tells its result."""
        return start_opening

    def accept(self) -> None:
        """Start the command; the dialog stays until the files have been read or rejected."""
        self.check()
        if not self.start.isEnabled():
            return
        self.refuse(self.reading)
        self.say(self.reading)
        self._background.run(
            self, self.act(), self._workspace, self.command(), done=self._done, failed=self._failed, key="open"
        )

    def say(self, message: str, *, wrong: bool = False) -> None:
        """Show a sentence under the fields; a shorter one leaves the buttons where they are."""
        self.note.setMinimumHeight(self.note.height() if self.isVisible() else 0)
        self.note.setText(message)
        theme.set_role(self.note, "bad" if wrong else "secondary")
        layouts.resize_within_screen(self, WIDTH, self.sizeHint().height())

    def add_field(self, row: int, text: str, editor: QWidget) -> QLabel:
        """Add a labeled field and return its label."""
        label = QLabel(text, self)
        label.setFixedWidth(LABEL_WIDTH)
        label.setBuddy(editor)
        self.grid.addWidget(label, row, 0)
        self.grid.addWidget(editor, row, 1)
        return label

    def add_browse(self, line: QLineEdit, what: str, title: str, kinds: str = "") -> None:
        """Add a button to the field that chooses a `folder` or a `file`."""
        action = QAction(title, line, objectName=f"browse-{what}")
        theme.keep_icon(action, "folder-open" if what == "folder" else "box", role="secondary")
        action.triggered.connect(partial(self._choose, line, what, title, kinds))
        line.addAction(action, QLineEdit.ActionPosition.TrailingPosition)

    def lay_out(self, *left: QPushButton) -> None:
        """Stack fields, note and buttons; `left` are further buttons."""
        self.close_button = QPushButton("Cancel", self, objectName=f"{self._name}-cancel", autoDefault=False)
        self.close_button.clicked.connect(self.reject)
        row = layouts.row(*left, (layouts.STRETCH, 1), self._copy, self.close_button, self.start)
        fields = layouts.panel(layouts.column(self.grid, self.note, gap=theme.BETWEEN))
        layouts.column((MinSizeScroll(fields), 1), row, gap=theme.BETWEEN, margins=theme.AROUND, of=self)

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()]))

    def _done(self, made: object) -> None:
        self.opened.emit(made)
        super().accept()

    def _failed(self, error: Exception) -> None:
        self.say(reason_words(error), wrong=True)
        self.refuse("")

    def _choose(self, line: QLineEdit, what: str, title: str, kinds: str, _checked: bool = False) -> None:
        if what == "folder":
            chosen = QFileDialog.getExistingDirectory(self, title, line.text())
        else:
            chosen = QFileDialog.getOpenFileName(self, title, line.text(), kinds)[0]
        if chosen:
            line.setText(chosen)


def start_opening(workspace: Path, arguments: list[str]) -> int:
    """Start a process that opens a model, and return the run's id; runs off the GUI thread.

    The trainer reads the file first, so whatever is wrong with it is said here, before there is a run.

    Raises:
        UserError: It cannot be opened; the sentence is the trainer's.
    """
    return int(json.loads(answer_of(workspace, [*arguments, "--detach"]).strip().splitlines()[-1])["id"])


def answer_of(workspace: Path, arguments: list[str]) -> str:
    """Return the JSON that a command of the trainer prints; runs off the GUI thread.

    Raises:
        UserError: It ends with an error; the sentence is the trainer's.
    """
    arguments = [safe_subprocess.typed_path(word) for word in arguments]
    command = safe_subprocess.python("-m", "trainer", *arguments, "--json", "--workspace", str(workspace))
    try:
        ended = safe_subprocess.run(command, more={"PYTHONUTF8": "1"}, timeout=PATIENCE_S)
    except safe_subprocess.OutputTooLong as error:
        raise UserError(f"The trainer's answer is too long: {error}.") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"The files were not read within {PATIENCE_S} s. Check its disk.") from error
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        last = said[-1] if said else "The trainer ended without a message."
        raise UserError(last.removeprefix(f"trainer {arguments[0]}: "))
    return ended.stdout.decode("utf-8", "replace")
