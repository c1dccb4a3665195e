"""A dialog that shows a training of another program as a run, while it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets.refusal import set_refusal
from explorer.window.open_sheet import OpenSheet
from trainer.companion.watching_curves import read_training
from trainer.companion.watching_files import is_remote, watched_folder
from trainer.distribution.model_folders import is_model
from trainer.errors import reason_words
from trainer.places import bindings

_WORDS: Final = (
    "The folder that open_clip, Lightning or transformers writes, or the log of any other program. The training is not "
    "changed: it becomes one run. Jobs and Runs end the watch; the training continues."
)
_WITH: Final = "All pairs are embedded with each checkpoint at low priority, the newest first."
_FAR: Final = (
    "Pairs on this computer are embedded here, by copies of the checkpoints. A path that does not exist here is one of "
    "the other computer, which then embeds its pairs."
)
_WITHOUT: Final = "Without pairs only its curves are shown."
_CURVES: Final = "Its curves are shown; it has no model that can be opened."
_FIELDS: Final = {
    "folder": ("Training", "output folder, or ssh://host/path"),
    "data": ("Pairs", "folder, table or tar; empty: curves only"),
    "every": ("Every", "n steps; empty: every checkpoint"),
    "model": ("Model", "folder with its settings, if not in the above"),
    "name": ("Name", "default: as the folder or file"),
}
_CHECKING: Final = "Checking…"
_TYPED_MS: Final = 300


class Recognized(NamedTuple):
    """What was recognized in a folder.

    Attributes:
        folder: As it was typed.
        sentence: What it is.
        is_model: Whether it can be opened as a model, too.
        takes_pairs: Whether pairs can be embedded with its checkpoints.
    """

    folder: str
    sentence: str
    is_model: bool
    takes_pairs: bool


class WatchTrainingSheet(OpenSheet):
    """A dialog for the folder of a training and the pairs to embed. Enter starts to watch, Esc closes the dialog."""

    model_asked = Signal(str)  # The folder's newest model alone is asked for; the folder.
    reading: ClassVar[str] = "Starting to watch…"

    def __init__(
        self, workspace: Path, background: Background, folder: Path | str | None = None, parent: QWidget | None = None
    ) -> None:
        """Build the dialog; `folder` is what was dropped."""
        super().__init__("watch-training", "Watch a training", workspace, background, parent)
        self.start.setText("Watch")
        self._recognized: Recognized | None = None
        self._checks = False  # A folder was typed, and is not read yet.
        self._typed = QTimer(self, singleShot=True, interval=_TYPED_MS, timeout=self._look)
        self.editors = {key: self._editor(key) for key in _FIELDS}
        for row, (key, editor) in enumerate(self.editors.items()):
            self.add_field(row, _FIELDS[key][0], editor)
        self.open_model = QPushButton("Open its model instead…", self, objectName="watch-training-model-only")
        self.open_model.setAutoDefault(False)
        theme.set_role(self.open_model, "quiet")
        self.open_model.clicked.connect(self._open_model)
        self.lay_out(self.open_model)
        self.editors["folder"].setText(str(folder or ""))
        self._look()
        self.editors["data" if folder else "folder"].setFocus()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that do the same."""
        texts = {key: editor.text().strip() for key, editor in self.editors.items()}
        is_there = is_remote(texts["folder"]) and texts["data"] and not Path(texts["data"]).expanduser().exists()
        flags = {"data": "--data-there"} if is_there else {}
        usable = {key: text for key, text in texts.items() if text and self.editors[key].isEnabled()}
        named = {flags.get(key, f"--{key}"): text for key, text in usable.items() if key != "folder"}
        options = [word for name, text in named.items() for word in (name, text)]
        return ["watch", texts["folder"], *options]

    def check(self) -> None:
        """Allow to watch once a training is recognized, and say which."""
        every, training = self.editors["every"], self._recognized
        bad_every = (
            "" if not every.text() or every.hasAcceptableInput() else "The interval is a whole number of updates."
        )
        refusal = _CHECKING if self._checks else "Name the output folder of a training first."
        self.refuse(bad_every if training is not None else refusal)
        self.open_model.setVisible(training is not None and training.is_model)
        takes_pairs = training is None or training.takes_pairs
        for key in ("data", "every", "model"):
            set_refusal(self.editors[key], "" if takes_pairs else _CURVES)
        hint = _CURVES if not takes_pairs else _WITH if self.editors["data"].text().strip() else _WITHOUT
        far = f" {_FAR}" if training is not None and is_remote(training.folder) else ""
        begin = f"{_CHECKING} {_WORDS}" if self._checks else _WORDS
        self.say(begin if training is None else f"{training.sentence} {hint}{far}")

    def _editor(self, key: str) -> QLineEdit:
        label, hint = _FIELDS[key]
        line = QLineEdit(self, objectName=f"watch-training-{key}", accessibleName=label, placeholderText=hint)
        for what in {"folder": ("folder",), "data": ("folder", "file"), "model": ("folder",)}.get(key, ()):
            self.add_browse(line, what, f"Choose a {what}")
        if key == "every":
            line.setValidator(QIntValidator(1, 10**9, line))
        if key == "folder":
            line.textChanged.connect(self._wait)
        elif key != "name":
            line.textChanged.connect(self.check)
        return line

    def _wait(self) -> None:
        """Look at a folder once its name has been typed: it may lie on a slow disk."""
        self._recognized, self._checks = None, bool(self.editors["folder"].text().strip())
        self.check()
        self._typed.start()

    def _look(self) -> None:
        self._typed.stop()
        folder = self.editors["folder"].text().strip()
        self._recognized, self._checks = None, bool(folder)
        self.check()
        if folder:
            self._background.run(
                self, recognized, folder, done=self._show_recognized, failed=self._show_unknown, key="recognize"
            )

    def _show_recognized(self, training: Recognized) -> None:
        if training.folder == self.editors["folder"].text().strip():
            self._recognized, self._checks = training, False
            self.check()

    def _show_unknown(self, error: Exception) -> None:
        self._checks = False
        self.check()
        self.say(reason_words(error), wrong=True)

    def _open_model(self) -> None:
        self.reject()
        self.model_asked.emit(self.editors["folder"].text().strip())


def recognized(folder: str) -> Recognized:
    """Return what a folder holds; runs off the GUI thread.

    Raises:
        WatchError: There is no such folder, nothing in it is known, or there are curves of several trainings.
        PlaceError: It is no address of a folder.
    """
    if is_remote(folder):
        host, path = bindings.located(folder)
        return Recognized(folder, f"{path} on {host.name}, which is asked once the watch begins.", False, True)
    training = watched_folder(Path(folder))
    if not training.has_known_checkpoints:
        read_training(training, ())  # refuses the curves of several trainings
        return Recognized(folder, f"{training.top.name} holds {training.description}.", False, False)
    checkpoints = training.checkpoints()
    complete = [checkpoint for checkpoint in checkpoints if checkpoint.is_complete]
    counted = f"{len(complete):,} checkpoint{'' if len(complete) == 1 else 's'}"
    if complete:
        unit = "epoch" if training.program == "open_clip" else "update"
        counted += f", the newest of {unit} {complete[0].number:,}"
    written = ", one is being written" if len(checkpoints) > len(complete) else ""
    sentence = f"{training.top.name} is {training.description}: {counted}{written}."
    return Recognized(folder, sentence, bool(complete) and is_model(training.top), True)
