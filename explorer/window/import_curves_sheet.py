"""A dialog that imports curves of trackers, of open_clip or of a training's log as runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from explorer.window.open_sheet import OpenSheet, answer_of

if TYPE_CHECKING:
    from collections.abc import Callable


_WORDS: Final = (
    "Every log becomes a run with its curves: event files, runs of Weights & Biases or MLflow, folders of open_clip, "
    "evidence bundles and printed texts. Nothing of the other program is changed."
)
_KINDS: Final = {
    "auto": "Recognize it",
    "tensorboard": "TensorBoard event files",
    "wandb": "Weights & Biases: export or its own folders",
    "mlflow": "MLflow: mlruns or mlflow.db",
    "open_clip": "open_clip results",
    "log": "Training log: table, JSON lines or printed text",
    "bundle": "Evidence bundle of this program",
}


class ImportCurvesSheet(OpenSheet):
    """A dialog for curves of another program. Enter imports them, Esc closes the dialog."""

    watch_asked = Signal(str)  # The training goes on, and its curves shall grow here; the path.
    reading: ClassVar[str] = "Reading the curves…"

    def __init__(
        self, workspace: Path, background: Background, path: Path | None = None, parent: QWidget | None = None
    ) -> None:
        """Build the dialog; `path` is what was dropped."""
        super().__init__("import-curves", "Import curves", workspace, background, parent)
        self.start.setText("Import")
        self.path = QLineEdit(self, objectName="import-curves-path", accessibleName="Curves")
        self.path.setPlaceholderText("an event file, an exported history, a bundle, or a folder")
        for what in ("folder", "file"):
            self.add_browse(self.path, what, f"Choose a {what}")
        self.path.textChanged.connect(self.check)
        self.kind = StillComboBox(self, objectName="import-curves-kind", accessibleName="Written by")
        for key, label in _KINDS.items():
            self.kind.addItem(label, key)
        self.name = QLineEdit(self, objectName="import-curves-name", accessibleName="Name")
        self.name.setPlaceholderText("as the folder, the file, or the runs in it")
        for row, editor in enumerate((self.path, self.kind, self.name)):
            self.add_field(row, editor.accessibleName(), editor)
        self.watch = QPushButton("Watch it instead…", self, objectName="import-curves-watch", autoDefault=False)
        self.watch.setToolTip("Its curves grow here while it trains")
        theme.set_role(self.watch, "quiet")
        self.watch.clicked.connect(self._watch)
        self.lay_out(self.watch)
        self.path.setText(str(path or ""))
        self.check()
        (self.name if path else self.path).setFocus()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        name = self.name.text().strip()
        arguments = ["runs", "import", self.path.text().strip(), *([name] if name else [])]
        return [*arguments, "--from", str(self.kind.currentData())]

    def act(self) -> Callable[[Path, list[str]], object]:
        """Return `start_import`."""
        return start_import

    def check(self) -> None:
        """Allow to import once a path is given, and say what is imported."""
        for button in (self.start, self.watch):
            set_refusal(button, "" if self.path.text().strip() else "Name a file or folder of curves first.")
        self.say(_WORDS)

    def _watch(self) -> None:
        self.reject()
        self.watch_asked.emit(self.path.text().strip())

    def _done(self, made: Any) -> None:
        """Tell of the new runs; what of the files was not read or was guessed stays until the dialog is closed."""
        runs, notes = [int(run["id"]) for run in made], dict.fromkeys(note for run in made for note in run["notes"])
        if not notes:
            super()._done(runs)
            return
        self.opened.emit(runs)
        for editor in (self.path, self.kind, self.name, self.start, self.watch):
            set_refusal(editor, "These curves are imported.")
        self.say(f"Imported {len(runs)} run{'s' if len(runs) > 1 else ''}. {' '.join(notes)}")
        self.close_button.setText("Close")
        self.close_button.setFocus()


def start_import(workspace: Path, arguments: list[str]) -> list[dict[str, Any]]:
    """Import curves in a process of the trainer, and return what it says of the new runs; runs off the GUI thread.

    Raises:
        UserError: They cannot be imported; the sentence is the trainer's.
    """
    return list(json.loads(answer_of(workspace, arguments)))
