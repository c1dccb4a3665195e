"""The sheet that makes a run: a preset, then any field of the configuration, checked while it is typed."""

from __future__ import annotations

import csv
import dataclasses
import os
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.views.view import hairline
from explorer.widgets.collapsible import Fold
from explorer.widgets.form import EDITOR_WIDTH, LABEL_WIDTH, Browse, Form
from trainer import config
from trainer.format_detection import form_of
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import shell

TITLES: Final[dict[str, str]] = {
    "data": "Data",
    "model": "Model",
    "objective": "Objective",
    "optimizer": "Optimizer",
    "watching": "Watching",
}
assert list(TITLES) == list(config.SECTIONS), "a section of the configuration without a title"

FOLDED: Final = frozenset({"model", "watching"})
"""Sections that start folded: the preset's choices rarely need a change."""

BROWSE: Final[dict[type, dict[str, Browse]]] = {
    config.Folder: {"path": "folder", "heldout_path": "folder"},
    config.ClassFolder: {"path": "folder", "heldout_path": "folder"},
    config.Table: {"path": "file", "heldout_path": "file"},
    config.Shards: {"path": "folder", "heldout_path": "folder"},
    config.Named: {"root": "folder"},
    config.OpenClip: {"name": "file", "pretrained": "file"},
}

MOST_COUNTED: Final = 200_000
MOST_READ: Final = 1 << 30
"""Bytes of a table whose rows are counted."""
_LONGEST_LINE: Final = 4 << 20
CHECK_MS: Final = 120


class NewRun(QDialog):
    """Asks for a run. Enter starts it once it is valid, Esc closes the sheet.

    Signals:
        chosen: The valid configuration and the name of the preset it came from.
        import_asked: Instead, pairs are to be imported: where they lie (or nothing), and the preset for them.
    """

    chosen = Signal(object, str)
    import_asked = Signal(str, str)

    def __init__(
        self,
        presets: dict[str, config.Run],
        background: Background,
        *,
        start_from: config.Run | None = None,
        preset: str = "",
        data: config.Data | None = None,
        pairs: int | None = None,
        image_size: int | None = None,
        captions_repeat: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        """Builds the sheet.

        Args:
            presets: By name.
            background: Counts pairs.
            start_from: A copy of a run made from `preset`; takes the place of the preset's values.
            preset: Chosen first.
            data: Trained on whichever preset is chosen.
            pairs: Of `data` to train on, if they were counted.
            image_size: Of tiny towers, whichever preset is chosen, in pixels.
            captions_repeat: Whether two pairs of `data` to train on have one caption.
            parent: Qt's parent.
        """
        super().__init__(parent)
        self.setObjectName("new-run")
        self.setWindowTitle("New run" if start_from is None else "Duplicate run")
        self.setModal(True)
        self.resize(760, 720)
        self._presets, self._background = presets, background
        self._data, self._image_size, self._captions_repeat = data, image_size, captions_repeat
        self._pairs = self._imported_pairs = pairs
        self._counted = data if pairs is not None else None
        self._sections: dict[str, SectionForm] = {}
        self._build(preset)
        self._later = QTimer(self, singleShot=True, interval=CHECK_MS, timeout=self._check)
        if start_from is not None:
            self.show_run(start_from)
        elif presets:
            self._take_preset()
        else:
            self.show_run(config.Run())
        self.name_field.setFocus()
        self.name_field.selectAll()

    @property
    def preset_name(self) -> str:
        """The preset chosen; empty if there is none."""
        return self.preset.currentData() or ""

    @property
    def name_field(self) -> QLineEdit:
        """Where the name of the run is typed."""
        editor = self.top.editor("name")
        assert isinstance(editor, QLineEdit)
        return editor

    def section(self, name: str) -> SectionForm:
        """The form of a section of the configuration."""
        return self._sections[name]

    def run(self) -> config.Run:
        """What the editors hold; may be invalid."""
        sections = {name: form.value() for name, form in self._sections.items()}
        return dataclasses.replace(self.top.value(), **sections)

    def show_run(self, run: config.Run) -> None:
        """Fills every editor from `run`."""
        self.top.set_value(run)
        for name, form in self._sections.items():
            form.set_value(getattr(run, name))
        self._check()

    def command(self) -> list[str]:
        """What to write after `trainer` to start the same run without the window."""
        return fit_command(self.run(), self.preset_name, self._presets)

    def accept(self) -> None:
        """Starts the run if it is valid; otherwise goes to what is wrong."""
        self._check()
        if self.start.isEnabled():
            self.chosen.emit(self.run(), self.preset_name)
            super().accept()

    # -- checking ----------------------------------------------------------------------------------------------

    def _check_later(self) -> None:
        # What was valid may not be any more: Enter must not start it in between.
        self.start.setEnabled(False)
        self._later.start()

    def _check(self) -> None:
        self._later.stop()
        run = self.run()
        found = {key: _in_labels(key, text, run) for key, text in config.problems(run).items()}
        self.top.set_problems({name: text for name, text in found.items() if "." not in name})
        for name, form in self._sections.items():
            own = {key.partition(".")[2]: text for key, text in found.items() if key.startswith(f"{name}.")}
            form.set_problems(own)
        self.start.setEnabled(not found)
        self._count(run)
        self._estimate(run, bool(found))

    def _count(self, run: config.Run) -> None:
        """Counts the pairs of the data chosen, off the GUI thread, when they are others than last time."""
        if run.data == self._counted:
            return
        self._counted, self._pairs = run.data, None
        self._background.run(self, count_pairs, run.data, done=self._take_count, failed=lambda _: None, key="count")

    def _take_count(self, pairs: int | None) -> None:
        self._pairs = pairs
        run = self.run()
        self._estimate(run, bool(config.problems(run)))

    def _estimate(self, run: config.Run, invalid: bool) -> None:
        steps = None if invalid or self._pairs is None else estimated_steps(run, self._pairs)
        if steps is None:
            self.estimate.setText("")
        elif not run.optimizer.epochs:
            self.estimate.setText("Opened and measured, not trained: 0 epochs")
        elif steps == 0:
            self.estimate.setText(f"{self._pairs:,} pairs are fewer than a batch: choose a smaller batch size.")
        else:
            epoch = steps // run.optimizer.epochs
            self.estimate.setText(f"About {steps:,} steps, {epoch:,} an epoch, from {self._pairs:,} pairs")

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self, preset: str) -> None:
        self.preset = QComboBox(self)
        self.preset.setObjectName("new-run-preset")
        self.preset.setAccessibleName("Preset")
        for name, run in self._presets.items():
            self.preset.addItem(f"{name}  ({run.objective.label} on {run.data.label})", name)
        self.preset.setCurrentIndex(max(0, self.preset.findData(preset or _first_ready(self._presets))))
        self.preset.activated.connect(self._take_preset)
        self.top = Form(config.Run, skip=frozenset(config.SECTIONS), parent=self)
        self.top.changed.connect(self._check_later)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(theme.AROUND, theme.AROUND, theme.AROUND, theme.AROUND)
        column.setSpacing(theme.BETWEEN)
        column.addLayout(self._preset_row())
        column.addWidget(self.top)
        for name in config.SECTIONS:
            section = SectionForm(name, folded=name in FOLDED, parent=inside)
            section.changed.connect(self._check_later)
            self._sections[name] = section
            if name == "data":
                section.add_button(self._import_button())
            column.addWidget(hairline())
            column.addWidget(section)
        column.addStretch(1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(area, 1)
        layout.addWidget(hairline())
        layout.addWidget(self._foot())

    def _preset_row(self) -> QHBoxLayout:
        label = QLabel("Preset")
        label.setFixedWidth(LABEL_WIDTH)
        label.setBuddy(self.preset)
        row = QHBoxLayout()
        row.setSpacing(theme.BETWEEN)
        row.addWidget(label)
        row.addWidget(self.preset, 1)
        return row

    def _foot(self) -> QWidget:
        foot = QFrame(self)
        self.estimate = QLabel(foot)
        self.estimate.setObjectName("new-run-estimate")
        self.estimate.setWordWrap(True)
        theme.set_role(self.estimate, "secondary")
        copy = QPushButton("Copy as command", foot)
        copy.setObjectName("new-run-copy")
        copy.clicked.connect(self._copy)
        cancel = QPushButton("Cancel", foot)
        cancel.setObjectName("new-run-cancel")
        cancel.clicked.connect(self.reject)
        self.start = QPushButton("Start", foot)
        self.start.setObjectName("new-run-start")
        theme.set_role(self.start, "primary")
        self.start.clicked.connect(self.accept)
        for button in (copy, cancel):
            button.setAutoDefault(False)
        self.start.setDefault(True)
        row = QHBoxLayout(foot)
        row.setContentsMargins(theme.AROUND, theme.BETWEEN, theme.AROUND, theme.BETWEEN)
        row.setSpacing(theme.INSIDE)
        row.addWidget(self.estimate, 1)
        for button in (copy, cancel, self.start):
            row.addWidget(button)
        return foot

    def _import_button(self) -> QPushButton:
        button = QPushButton("Import\u2026", self, objectName="new-run-import", autoDefault=False)
        button.setToolTip("See what a folder, table or tar of pairs holds, and what is wrong with it, before training")
        button.clicked.connect(self._import)
        return button

    def _import(self) -> None:
        path = getattr(self.section("data").value(), "path", "")
        self.reject()
        self.import_asked.emit(str(path).strip(), self.preset_name)

    def _take_preset(self) -> None:
        """Shows the preset's values; a name that the person typed stays."""
        chosen = on_data(
            self._presets[self.preset_name],
            self._data,
            self._image_size,
            self._imported_pairs,
            captions_repeat=self._captions_repeat,
        )
        typed = self.name_field.text() if self.name_field.isModified() else chosen.name
        self.show_run(dataclasses.replace(chosen, name=typed))
        self.name_field.setModified(typed != chosen.name)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()]))


class SectionForm(QWidget):
    """One section of the configuration: which of its kinds, and the fields of that kind; foldable.

    What is folded is made when somebody looks: half of the fields, and of the time until the sheet is there.

    Signals:
        changed: `value()` may be another now.
    """

    changed = Signal()

    def __init__(self, name: str, *, folded: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self._forms: dict[type, Form] = {}
        self._values: dict[type, Any] = {}
        self._kinds = config.SECTIONS[name]
        self.kind = QComboBox(self)
        self.kind.setObjectName(f"{name}-kind")
        self.kind.setAccessibleName(f"Kind of {TITLES[name].lower()}")
        self.kind.setMinimumWidth(EDITOR_WIDTH)
        self.kind.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for kind in self._kinds:
            self.kind.addItem(getattr(kind, "label", kind.__name__), kind)
        self.kind.setVisible(len(self._kinds) > 1)
        self.kind.currentIndexChanged.connect(self._show_kind)
        self._inside = QWidget(self)
        column = QVBoxLayout(self._inside)
        column.setContentsMargins(0, 0, 0, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.INSIDE)
        layout.addLayout(self._head())
        layout.addWidget(self._inside)
        self._inside.setVisible(not folded)
        with QSignalBlocker(self.fold):
            self.fold.setChecked(not folded)
        self._show_kind()

    @property
    def form(self) -> Form:
        """The form of the kind shown; made when first asked for."""
        kind = self.kind.currentData()
        if kind not in self._forms:
            made = self._forms[kind] = Form(kind, browse=BROWSE.get(kind), parent=self._inside)
            if kind in self._values:
                made.set_value(self._values[kind])
            made.changed.connect(self.changed)
            self._inside.layout().addWidget(made)
        return self._forms[kind]

    def value(self) -> Any:
        """The section as its editors hold it."""
        kind = self.kind.currentData()
        return self._forms[kind].value() if kind in self._forms else self._values.get(kind, kind())

    def set_value(self, section: Any) -> None:
        """Shows `section`, choosing its kind."""
        kind = type(section)
        self._values[kind] = section
        self.kind.setCurrentIndex(self._kinds.index(kind))
        if kind in self._forms:
            self._forms[kind].set_value(section)
        else:
            self.changed.emit()

    def set_problems(self, problems: dict[str, str]) -> None:
        """Shows what is wrong under the fields, unfolded."""
        if problems:
            self.fold.setChecked(True)
        if self.kind.currentData() in self._forms:
            self.form.set_problems(problems)

    def add_button(self, button: QPushButton) -> None:
        """Puts a button at the right end of the section's head."""
        self._head_row.addWidget(button)

    def _head(self) -> QHBoxLayout:
        self.fold = Fold(TITLES[self.name], strong=True, parent=self)
        self.fold.setObjectName(f"{self.name}-fold")
        self.fold.setAccessibleName(f"Fields of {TITLES[self.name]}")
        self.fold.setFixedWidth(LABEL_WIDTH)
        self.fold.toggled.connect(self._unfold)
        self._head_row = row = QHBoxLayout()
        row.setSpacing(theme.BETWEEN)
        row.addWidget(self.fold)
        row.addWidget(self.kind)
        row.addStretch(1)
        return row

    def _show_kind(self) -> None:
        shown = self.form if self.fold.isChecked() else self._forms.get(self.kind.currentData())
        for form in self._forms.values():
            form.setVisible(form is shown)
        self.changed.emit()

    def _unfold(self, unfolded: bool) -> None:
        if unfolded:
            shown = self.form
            for form in self._forms.values():
                form.setVisible(form is shown)
        self._inside.setVisible(unfolded)


def _in_labels(key: str, sentence: str, run: config.Run) -> str:
    """The sentence with the label of the field instead of its dotted name, as the form shows it."""
    section, _, name = key.rpartition(".")
    owner = getattr(run, section) if section in config.SECTIONS else run
    fields = {field.name: field for field in dataclasses.fields(owner)}
    label = fields[name].metadata.get("label", name) if name in fields else key
    return sentence.replace(key, label, 1)


def fit_command(run: config.Run, preset: str, presets: dict[str, config.Run]) -> list[str]:
    """The words after `trainer` that fit `run`: its preset, and `--set` for every field that differs from it."""
    now = presets.get(preset, config.Run())
    words = ["fit", *(["--preset", preset] if preset in presets else [])]
    for name in config.SECTIONS:
        wanted = getattr(run, name)
        if type(wanted) is not type(getattr(now, name)):
            now = dataclasses.replace(now, **{name: type(wanted)()})
            words += ["--set", f"{name}={wanted.kind}"]
    for key, _, value in config.difference(now, run):
        words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    return words


def on_data(
    run: config.Run,
    data: config.Data | None,
    image_size: int | None,
    pairs: int | None = None,
    *,
    captions_repeat: bool = False,
) -> config.Run:
    """The run of a preset, trained on `data` at `image_size` where these are given, and named after both.

    A batch has no more than the `pairs` that there are to train on; equal captions are no wrong answers of each other,
    as for `trainer fit --data`.
    """
    if data is None:
        return run
    model, optimizer = run.model, run.optimizer
    if image_size and isinstance(model, config.TinyTowers):
        model = dataclasses.replace(model, image_size=image_size)
    if pairs and 2 <= pairs < optimizer.batch_size:
        optimizer = dataclasses.replace(optimizer, batch_size=1 << (pairs.bit_length() - 1))
    if captions_repeat and hasattr(run.objective, "mask_duplicates"):
        run = config.replace(run, "objective.mask_duplicates", "true")
    name = re.sub(r"[/\\:\s]+", "-", f"{run.objective.kind}-{config.data_name(data)}")
    return dataclasses.replace(run, data=data, model=model, optimizer=optimizer, name=name)


def estimated_steps(run: config.Run, pairs: int) -> int:
    """Steps of training on `pairs` pairs: whole batches only, every epoch."""
    return pairs // run.optimizer.batch_size * run.optimizer.epochs


def _first_ready(presets: dict[str, config.Run]) -> str:
    """The first preset that could start as it is: others wait for a path, or would download their data first."""
    in_order = sorted(presets, key=lambda name: not isinstance(presets[name].data, config.Scenes))
    return next((name for name in in_order if not config.problems(presets[name])), "")


def count_pairs(data: config.Data) -> int | None:
    """How many pairs there are to train on, about: captions or lines are counted, no image is opened. None: unknown."""
    if isinstance(data, config.Scenes):
        return data.train_pairs
    if not isinstance(data, config.Folder | config.Table):
        return None
    path = Path(data.path).expanduser()
    share = 1.0 if getattr(data, "heldout_path", "") else 1.0 - data.heldout_share
    if not data.path.strip() or not path.exists():
        return None
    counted = _captions_below(path) if isinstance(data, config.Folder) else _lines_of(path)
    return None if counted is None else int(counted * share)


def _captions_below(folder: Path) -> int:
    found = 0
    for _, _, files in os.walk(folder):
        found += sum(name.endswith(".txt") for name in files)
        if found >= MOST_COUNTED:
            break
    return found


def _lines_of(table: Path) -> int | None:
    """Rows of a table of text; None where that takes long to know, or it is no text."""
    try:
        if form_of(table) in ("json", "parquet") or table.stat().st_size > MOST_READ:
            return None
        with untrusted_files.open_ordinary(table) as file:
            # No line need have an end.
            parts = iter(partial(file.readline, _LONGEST_LINE), b"")
            rows = sum(1 for _ in csv.reader(part.decode("utf-8", "replace") for part in parts))
            return max(0, rows - (form_of(table) == "cells"))
    except (OSError, csv.Error):
        return None
