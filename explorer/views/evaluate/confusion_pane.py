"""Confusion matrices of both runs, and the images of the selected cell."""

from __future__ import annotations

from itertools import islice
from typing import Final

import numpy as np
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.finder import Choice
from explorer.widgets.heat_map import HeatMapWidget
from explorer.widgets.image_strip import ImageStrip, StripItem, StripLine
from explorer.widgets.run_badge import RunBadge
from explorer.widgets.searchable_combo_box import SearchableComboBox
from explorer.widgets.state_area import StateArea
from trainer.charts.evaluation import CONFUSED, Confusion, EvaluationChart, confusion_of, images_of_cell
from trainer.charts.marks import HeatMap, run_tone
from trainer.images import file_of, location

MOST_IMAGES: Final = 60
MOST_SOUGHT: Final = 1_000
"""Files of a cell that are looked for, while the window waits."""
POINT: Final = "Hover over a cell for its count; click it to see its images."
NOTHING: Final = (
    "grid-2x2",
    "No confusion matrix yet",
    "Evaluate zero-shot, linear probe or neighbors on data with classes.",
)
MOST_CLASSES: Final = 200
TASKS: Final = {"zero_shot": "Zero-shot", "linear_probe": "Linear probe", "knn": "Neighbors"}


class ConfusionPane(QWidget):
    """One heat map per run; rows are true classes, shades are shares of a row."""

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chart: EvaluationChart | None = None
        self._waiting: tuple[str, str, str, QAction | None] | None = None
        self._found: list[Confusion | None] = [None, None]
        self.tasks = SearchableComboBox(name="evaluate-confused-task", label="Task of the confusion matrix", width=160)
        self.maps = [HeatMapWidget() for _ in range(2)]
        for letter, grid_map in zip("ab", self.maps, strict=True):
            grid_map.setObjectName(f"evaluate-confusion-{letter}")
            grid_map.setAccessibleName(f"Confusion matrix of run {letter.upper()}")
        self.heads = [ElidedLabel() for _ in range(2)]
        self.note = layouts.text(role="secondary")
        self.strip = ImageStrip(pictures.get)
        self.strip.setObjectName("evaluate-cell-images")
        self.strip.setAccessibleName("Images of the chosen cell")
        pictures.arrived.connect(self.strip.picture_arrived)
        self.tasks.picked.connect(lambda _task: self._show())
        for index, grid_map in enumerate(self.maps):
            grid_map.pointed.connect(lambda row, column, i=index: self._point(i, row, column))
            grid_map.cell_chosen.connect(lambda row, column, i=index: self.choose(i, row, column))
        self._lay_out()

    def show_chart(self, chart: EvaluationChart | None) -> None:
        """Show the confusion matrices of the selected task, or of the first one."""
        self._chart = chart
        tasks = [task for task in CONFUSED if chart and any(task in run.tasks for run in chart.runs)]
        key = self.tasks.key if self.tasks.key in tasks else (tasks[0] if tasks else None)
        self.tasks.show_choices([Choice(task, TASKS[task]) for task in tasks], key)
        self.tasks.setVisible(bool(tasks))
        self.strip.show_items(())
        self.strip.hide()
        self._show()

    def show_waiting(self, message: tuple[str, str, str, QAction | None] | None) -> None:
        """Say this where there is no result: one is being measured, or that failed."""
        self._waiting = message
        if not self.task:
            self.area.empty(*(message or NOTHING))

    @property
    def task(self) -> str:
        """The task shown, or an empty string."""
        return self.tasks.key or ""

    def choose(self, index: int, row: int, column: int) -> None:
        """Show the images of one cell of run `index`."""
        confusion, chart = self._found[index], self._chart
        if confusion is None or chart is None:
            return
        run = next(run for run in chart.runs if run.index == index)
        paths = images_of_cell(run.tasks[self.task], confusion.numbers[row], confusion.numbers[column])
        sought = paths[:MOST_SOUGHT]
        present = list(islice((path for path in sought if file_of(location(path)).is_file()), MOST_IMAGES))
        mark = "check" if row == column else "x"
        text = f"{confusion.classes[row]} → {confusion.classes[column]}"
        items = [StripItem(path, (StripLine(text, run_tone(index)),), mark, "", f"{path}\n{text}") for path in present]
        self.strip.show_items(items)
        self.strip.setVisible(bool(items))
        # The sample, for one, comes without some of the files.
        of = f" of the first {len(sought):,}" if len(sought) < len(paths) else ""
        missing = f", {len(sought) - len(items)}{of} without their image file" if len(items) < len(sought) else ""
        more = f", the first {MOST_IMAGES} shown" if len(items) == MOST_IMAGES < len(paths) else missing
        self._show_message(index, row, column, more)

    def _show(self) -> None:
        for index in range(2):
            run = next((r for r in self._chart.runs if r.index == index), None) if self._chart else None
            record = run.tasks.get(self.task) if run is not None and self.task else None
            confusion = confusion_of(record) if record is not None else None
            if confusion is not None and len(confusion.classes) > MOST_CLASSES:
                self.heads[index].setText(f"{run.label}: {len(confusion.classes):,} classes are too many to draw.")
                confusion = None
            elif confusion is not None:
                right = int(confusion.counts.trace())
                n = int(confusion.counts.sum())
                self.heads[index].setText(f"{run.label}: {100 * right / n:.1f} % right, n = {n:,}")
            else:
                self.heads[index].setText(f"{run.label}: not measured" if run else "")
            self._found[index] = confusion
            for widget in (self.maps[index], self.heads[index], self._badges[index]):
                widget.setVisible(run is not None)
            names, values = ((), np.zeros((0, 0))) if confusion is None else (confusion.classes, confusion.shares)
            ticks = tuple(enumerate(names))
            heat = HeatMap("confusion", "", values, "", "", ticks, ticks, 0.0, 1.0, "share of the class", named=True)
            self.maps[index].show_heat(heat)
        self.note.setText(POINT)
        if self.task:
            self.area.ready()
        else:
            self.area.empty(*(self._waiting or NOTHING))

    def _point(self, index: int, row: int, column: int) -> None:
        if row >= 0:
            self._show_message(index, row, column, "")

    def _show_message(self, index: int, row: int, column: int, more: str) -> None:
        confusion = self._found[index]
        if confusion is None:
            return
        count, share = int(confusion.counts[row, column]), 100 * float(confusion.shares[row, column])
        of = int(confusion.counts[row].sum())
        true, answer = confusion.classes[row], confusion.classes[column]
        text = f"Run {'AB'[index]}: {true} predicted as {answer}: {count:,} of {of:,}"
        self.note.setText(f"{text} ({share:.0f} %){more}" if of else text)

    def _lay_out(self) -> None:
        self._badges = [RunBadge("AB"[index], index) for index in range(2)]
        self.tasks.setMaximumWidth(220)
        grid = layouts.grid(theme.BETWEEN, theme.INSIDE)
        for index in range(2):
            head = layouts.row(self._badges[index], (self.heads[index], 1), gap=theme.SPACE)
            grid.addLayout(head, 0, index)
            grid.addWidget(self.maps[index], 1, index)
            grid.setColumnStretch(index, 1)
        grid.setRowStretch(1, 1)
        content = layouts.panel(
            layouts.column(
                layouts.row(self.tasks, (self.note, 1), gap=theme.SPACE), (grid, 1), self.strip, gap=theme.SPACE
            )
        )
        self.area = StateArea(content)
        layouts.column(self.area, gap=None, of=self)
