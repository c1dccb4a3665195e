"""Controls of an evaluation: data, split, classes, tasks, number of images."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QFileDialog, QMenu, QPushButton, QWidget

from explorer import theme
from explorer.state.selection import Side
from explorer.state.settings import Settings
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.still import StillComboBox, StillSpinBox
from trainer.charts.evaluation import TASK_WORDS
from trainer.charts.settings import options
from trainer.experiments.run_data import RunData
from trainer.messages import Evaluate
from trainer.prompt_suites import prompt_suites
from trainer.untrusted import safe_subprocess, shell

OWN_DATA: Final = "Each run's own data"
NAMED: Final = ("cifar10", "cifar100", "mnist", "fashionmnist", "gtsrb", "flowers102", "country211")
"""Data sets that torchvision knows and that are classified by name."""
OWN_SPLIT: Final = "Held-out split"
SPLITS: Final = ("test", "val", "train", "renderings", "combinations")
"""Names that splits usually have; any other may be written."""
MOST: Final = 2_000
QUICK: Final = ("zero_shot", "retrieval")
"""Tasks that are measured unless a person chooses others: seconds where the others take minutes."""
SLOW: Final = {
    "few_shot": "many probes",
    "fine_tune": "trains again, minutes",
    "robustness": "every corruption, minutes",
}
"""What a task costs, where that is more than one look at the images."""
KEPT: Final = 12
_SAMPLE: Final = re.compile(r"(.+)-(\d+)-of-\d+")
"""Name of a split of which a sample was measured."""


class EvaluateControls(QWidget):
    """What is measured: data, split, class names, tasks and how many images, a line each."""

    wanted = Signal()  # The runs are to be measured now.
    data_picked = Signal()  # Data were chosen from the list.

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._shift = ""
        self._trained: dict[str, RunData] = {}
        self.data = StillComboBox(objectName="evaluate-data", accessibleName="Data to evaluate on")
        self.browse = QPushButton("Folder…", objectName="evaluate-browse")
        self.tasks = QPushButton(objectName="evaluate-tasks", accessibleName="Tasks to measure")
        self.split = StillComboBox(objectName="evaluate-split", accessibleName="Split to evaluate")
        self.suite = SearchableComboBox(name="evaluate-suite", label="Class names and templates", width=170)
        self.most = StillSpinBox(objectName="evaluate-most", accessibleName="Max samples")
        self.go = QPushButton("Evaluate", objectName="evaluate-go")
        self.task_menu = self._menu()
        self._dress()
        self._lay_out()
        self._restore()
        self._connect()

    def question(self, sides: Sequence[Side]) -> Evaluate:
        """Return the evaluation of these runs, each at its own step, that the controls describe."""
        chosen = self.chosen_tasks()
        text, split = self.data.currentText().strip(), self.split.currentText().strip()
        named: dict[str, Any] = {}
        if (trained := self._trained.get(text)) is not None:
            named = _named(trained)
        elif text != OWN_DATA:
            named = {"data": text if text in NAMED else safe_subprocess.typed_path(text)}
        return Evaluate(
            runs=tuple(side.run for side in sides),
            **named,
            tasks=chosen,
            split="" if split == OWN_SPLIT else split,
            suite=self.suite.key or "",
            features=self.features_action.isChecked(),
            most=self.most.value(),
            shift=self._shift if "robustness" in chosen else "",
            steps=tuple(side.step for side in sides),
        )

    def chosen_tasks(self) -> tuple[str, ...]:
        """Return the names of the checked tasks."""
        return tuple(action.data() for action in self._task_actions() if action.isChecked())

    def question_about(self, dataset: str, split: str, sides: Sequence[Side]) -> Evaluate | None:
        """Return the evaluation of these runs on data that others were measured on; None if it is not known where."""
        sample = _SAMPLE.fullmatch(split)
        split, most = (sample[1], int(sample[2])) if sample else (split, 0)
        trained = next((data for data in self._trained.values() if data.key.dataset == dataset), None)
        files = (path for path in (*self._remembered(), *NAMED) if Path(path).stem.lower() == dataset.lower())
        named: dict[str, Any] = {"data": next(files, "")} if trained is None else _named(trained)
        if not any(named.values()):
            return None
        split = "" if split == "sample" or (trained is not None and split == trained.key.split) else split
        fields: dict[str, Any] = {"data": "", "data_of": ""} | named
        return replace(self.question(sides), **fields, split=split, most=most)

    def choose_data(self, data: RunData) -> None:
        """Evaluate on these data next, as they are."""
        self.data.setCurrentText(data.label)
        self.split.setCurrentText(OWN_SPLIT)

    def choose_folder(self) -> bool:
        """Ask for a folder to evaluate on; return whether one was chosen."""
        folder = QFileDialog.getExistingDirectory(self, "Data to evaluate on", self.data.currentText())
        if folder:
            self.data.setCurrentText(folder)
        return bool(folder)

    def fill_data(self, trained: Sequence[RunData] | None = None) -> None:
        """Offer the runs' own data, those of other runs, recently evaluated data, and data sets by name."""
        if trained is not None:
            self._trained = {data.label: data for data in trained}
        typed = self.data.currentText()
        entries = list(dict.fromkeys([OWN_DATA, *self._trained, *self._remembered(), *NAMED]))
        if [self.data.itemText(i) for i in range(self.data.count())] != entries:
            self.data.blockSignals(True)
            self.data.clear()
            self.data.addItems(entries)
            self.data.setCurrentText(typed or OWN_DATA)
            if (line := self.data.lineEdit()) is not None:
                line.setCursorPosition(0)
            self.data.blockSignals(False)

    def keep_data(self, data: str) -> None:
        """Add these data to the choices of the next session."""
        if data and data not in NAMED:
            self._settings.set("evaluate/data", list(dict.fromkeys([data, *self._remembered()]))[:KEPT])
        self.fill_data()

    def dataset_named(self) -> str:
        """Return the name of the data, as far as the text identifies it."""
        return Path(self.data.currentText().strip()).name

    def _remembered(self) -> list[str]:
        return [path for path in self._settings.value("evaluate/data", []) if isinstance(path, str)]

    def _task_actions(self) -> list[QAction]:
        return [action for action in self.task_menu.actions() if action.data() in TASK_WORDS]

    def _choose_shift(self) -> None:
        """Choose a second data set for measuring robustness to a shift; cancel to choose none."""
        title = "Second data set, to measure the drop in accuracy; Cancel for none"
        self._shift = QFileDialog.getExistingDirectory(self, title, self._shift or self.data.currentText())
        if self._shift:  # only this task reads it
            next(action for action in self._task_actions() if action.data() == "robustness").setChecked(True)
            self._tasks_changed()
        self._show_shift()

    def _show_shift(self) -> None:
        named = f": {Path(self._shift).name}" if self._shift else "…"
        self.shift_action.setText(f"Shifted data for robustness{named}")

    def _tasks_changed(self) -> None:
        self._settings.set("evaluate/chosen_tasks", list(self.chosen_tasks()))
        self._settings.set("evaluate/features", self.features_action.isChecked())
        self._name_tasks()

    def _name_tasks(self) -> None:
        chosen = self.chosen_tasks()
        every = len(chosen) == len(TASK_WORDS)
        names = " + ".join(TASK_WORDS[name] for name in chosen)
        text = "All tasks" if every else names if 0 < len(chosen) < 3 else f"{len(chosen)} tasks"
        self.tasks.setText(f"{text}   ")  # before the arrow of its menu

    def _menu(self) -> QMenu:
        menu = QMenu(self.tasks)
        for name, label in TASK_WORDS.items():
            action = menu.addAction(f"{label} ({SLOW[name]})" if name in SLOW else label)
            action.setObjectName(f"evaluate-task-{name}")
            action.setCheckable(True)
            action.setData(name)
        menu.addSeparator()
        self.features_action = menu.addAction("Probe features before the projection")
        self.features_action.setObjectName("evaluate-features")
        self.features_action.setCheckable(True)
        self.shift_action = menu.addAction("")
        self.shift_action.setObjectName("evaluate-shift")
        return menu

    def _restore(self) -> None:
        chosen = self._settings.value("evaluate/chosen_tasks", list(QUICK))
        for action in self._task_actions():
            action.setChecked(not isinstance(chosen, list) or action.data() in chosen)
        self.features_action.setChecked(self._settings.value("evaluate/features", False) is True)
        self._name_tasks()
        most = self._settings.value("evaluate/most", MOST)
        self.most.setValue(most if isinstance(most, int) else MOST)
        self._show_shift()

    def _connect(self) -> None:
        self.browse.clicked.connect(self.choose_folder)
        self.data.activated.connect(lambda _place: self.data_picked.emit())
        self.data.lineEdit().returnPressed.connect(self.wanted)
        self.split.lineEdit().returnPressed.connect(self.wanted)
        self.most.valueChanged.connect(lambda value: self._settings.set("evaluate/most", value))
        self.task_menu.triggered.connect(lambda _action: self._tasks_changed())
        self.shift_action.triggered.connect(self._choose_shift)
        self.go.clicked.connect(self.wanted)

    def _dress(self) -> None:
        for box in (self.data, self.split):
            box.setEditable(True)
            box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.data.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.data.setMinimumContentsLength(len(OWN_DATA))
        self.data.lineEdit().setPlaceholderText("A folder, table, tars or the name of a data set")
        self.split.addItems([OWN_SPLIT, *SPLITS])
        self.split.setToolTip("Split to evaluate; any split name of the data can be typed")
        suites = [Choice("", "Data set classes"), *(Choice(name, f"Suite {name}") for name in prompt_suites())]
        self.suite.show_choices(suites, "")
        self.most.setRange(0, 1_000_000)
        self.most.setSingleStep(500)
        self.most.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.most.setSpecialValueText("all")
        self.tasks.setMenu(self.task_menu)

    def _lay_out(self) -> None:
        lines = layouts.grid(theme.INSIDE, theme.SPACE, stretch=1, of=self)
        # What the foot of the view shows may have been measured on other data.
        for index, (label, control) in enumerate(
            (
                ("Evaluate on", self.data),
                ("Split", self.split),
                ("Classes", self.suite),
                ("Tasks", self.tasks),
                ("Images at most", self.most),
            )
        ):
            lines.addWidget(layouts.text(label, "secondary", buddy=control), index, 0)
            lines.addWidget(control, index, 1, 1, 1 if control is self.data else 2)
        lines.addWidget(self.browse, 0, 2)


def _named(data: RunData) -> dict[str, str]:
    """Return the fields of a question about data that runs were trained on, or that come with the application."""
    return {"data_of": str(data.runs[0])} if data.runs else {"data": data.key.dataset}


def command_of(question: Evaluate, workspace: Path) -> str:
    """Return a shell command for the evaluation; runs at different steps need one command each."""
    return shell.one_after_another(
        _command_at(question, [run for run, at in zip(question.runs, question.steps, strict=True) if at == step], step)
        + f" --workspace {shell.quote(str(workspace))}"
        for step in dict.fromkeys(question.steps)
    )


def _command_at(question: Evaluate, runs: Sequence[int], step: int | None) -> str:
    arguments = ["trainer", "evaluate", *map(str, runs), "--task", *question.tasks]
    arguments += options(question)
    arguments += ["--step", str(step)] if step is not None else []
    return shell.join(arguments)
