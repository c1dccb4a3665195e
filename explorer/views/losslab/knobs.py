"""The controls of a panel, made from its settings: sliders with a box, choices side by side, editable cells."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.widgets.number_box import NumberBox
from trainer.charts.lab.settings import Knob, problem

STEPS = 400
BOX_PX = 92
CELL_PX = 84


class Control(QWidget):
    """One setting on the screen.

    Signals:
        changed: The person chose another value that the setting takes.
    """

    changed = Signal()

    def __init__(self, knob: Knob, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"lab-{panel}-{knob.name}-control")
        self.knob = knob
        self.value: Any = knob.default

    def show_value(self, value: Any) -> None:
        """Shows a value without telling that it changed."""
        raise NotImplementedError

    def _heading(self) -> QLabel:
        label = QLabel(self.knob.label, toolTip=self.knob.help)
        label.setTextFormat(Qt.TextFormat.PlainText)
        return label


class Slide(Control):
    """A number: a slider to play with, and a box to type it exactly."""

    def __init__(self, knob: Knob, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(knob, panel, parent)
        self.slider = _Slider(Qt.Orientation.Horizontal, objectName=f"lab-{panel}-{knob.name}")
        self.slider.setAccessibleName(knob.label)
        self.slider.setToolTip(knob.help)
        self.slider.setRange(0, _steps(knob))
        self.slider.setPageStep(max(1, _steps(knob) // 20))
        self.box = NumberBox(whole=knob.kind == "whole", low=knob.low, high=knob.high)
        self.box.setObjectName(f"lab-{panel}-{knob.name}-box")
        self.box.setAccessibleName(f"{knob.label}, number")
        self.box.setFixedWidth(BOX_PX)
        self.box.setKeyboardTracking(True)
        head = QHBoxLayout()
        head.addWidget(self._heading(), 1)
        head.addWidget(self.box)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(head)
        column.addWidget(self.slider)
        self.show_value(knob.default)
        self.slider.valueChanged.connect(self._slid)
        self.box.edited.connect(self._typed)

    def show_value(self, value: float) -> None:
        self.value = value
        with QSignalBlocker(self.slider), QSignalBlocker(self.box):
            self.slider.setValue(to_place(self.knob, value))
            self.box.set_value(value)
        _mark(self.box, "")

    def _slid(self, place: int) -> None:
        self.value = to_value(self.knob, place)
        with QSignalBlocker(self.box):
            self.box.set_value(self.value)
        _mark(self.box, "")
        self.changed.emit()

    def _typed(self) -> None:
        typed = self.box.value()
        wrong = problem(self.knob, typed)
        _mark(self.box, wrong)
        if wrong or typed == self.value:
            return
        self.value = typed
        with QSignalBlocker(self.slider):
            self.slider.setValue(to_place(self.knob, typed))
        self.changed.emit()


class Choose(Control):
    """A choice between a few words, side by side."""

    def __init__(self, knob: Knob, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(knob, panel, parent)
        self.buttons = {option: QPushButton(option.capitalize()) for option in knob.options}
        group = QButtonGroup(self)
        row = QHBoxLayout()
        row.setSpacing(theme.SPACE)
        for option, button in self.buttons.items():
            button.setObjectName(f"lab-{panel}-{knob.name}-{option}")
            button.setAccessibleName(f"{knob.label}: {option}")
            button.setToolTip(knob.help)
            button.setCheckable(True)
            group.addButton(button)
            row.addWidget(button, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addWidget(self._heading())
        column.addLayout(row)
        self.show_value(knob.default)
        group.buttonToggled.connect(lambda _button, on: self._toggled() if on else None)

    def show_value(self, value: str) -> None:
        self.value = value
        with QSignalBlocker(self):
            self.buttons[value].setChecked(True)

    def _toggled(self) -> None:
        self.value = next(option for option, button in self.buttons.items() if button.isChecked())
        self.changed.emit()


class Cells(Control):
    """A small matrix to type in; a cell that is no number is marked, and the last good one counts."""

    def __init__(self, knob: Knob, panel: str, *, rows: tuple[str, ...], columns: tuple[str, ...]) -> None:
        super().__init__(knob, panel)
        heading = self._heading()
        theme.set_role(heading, "strong")
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.SPACE)
        grid.setVerticalSpacing(0)
        for place, name in enumerate(columns):
            grid.addWidget(_small(name, Qt.AlignmentFlag.AlignHCenter), 0, place + 1)
        for place, name in enumerate(rows):
            grid.addWidget(_small(name, Qt.AlignmentFlag.AlignLeft), place + 1, 0)
        self.boxes: list[NumberBox] = []
        for place in range(len(knob.default)):
            row, column = divmod(place, knob.columns)
            box = NumberBox(whole=False, low=knob.low, high=knob.high)
            box.setObjectName(f"lab-{panel}-{knob.name}-{row}-{column}")
            box.setAccessibleName(f"{knob.label}, {rows[row]}, {columns[column]}")
            box.setMinimumWidth(52)
            box.setMaximumWidth(CELL_PX)
            grid.addWidget(box, row + 1, column + 1)
            self.boxes.append(box)
        grid.setColumnStretch(knob.columns + 1, 1)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(0, 0, 0, 0)
        column_layout.setSpacing(theme.SPACE)
        column_layout.addWidget(heading)
        column_layout.addLayout(grid)
        column_layout.addStretch()
        self.show_value(knob.default)
        for box in self.boxes:
            box.edited.connect(self._typed)

    def show_value(self, value: tuple[float, ...]) -> None:
        self.value = value
        for box, number in zip(self.boxes, value, strict=True):
            with QSignalBlocker(box):
                box.set_value(number)
            _mark(box, "")

    def _typed(self) -> None:
        numbers = []
        for box, last in zip(self.boxes, self.value, strict=True):
            typed = box.value()
            fits = isinstance(typed, int | float) and self.knob.low <= typed <= self.knob.high
            _mark(box, "" if fits else f"A number from {self.knob.low:g} to {self.knob.high:g}; {last:g} still counts.")
            numbers.append(float(typed) if fits else last)
        if tuple(numbers) != self.value:
            self.value = tuple(numbers)
            self.changed.emit()


class _Slider(QSlider):
    """A slider that scrolling past does not move."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def to_value(knob: Knob, place: int) -> float | int:
    """The number at a place of the slider, with as many digits as one step needs."""
    share = place / _steps(knob)
    if place in (0, _steps(knob)):
        # Three digits would fall short of 65,536.
        return knob.high if place else knob.low
    if knob.log:
        value = float(f"{knob.low * (knob.high / knob.low) ** share:.3g}")
    else:
        value = round(knob.low + (knob.high - knob.low) * share, _digits(knob))
    value = min(max(value, knob.low), knob.high)
    return round(value) if knob.kind == "whole" else value


def to_place(knob: Knob, value: float) -> int:
    """The place of the slider nearest to a number."""
    if knob.log:
        share = math.log(value / knob.low) / math.log(knob.high / knob.low)
    else:
        share = (value - knob.low) / (knob.high - knob.low)
    return round(share * _steps(knob))


def _steps(knob: Knob) -> int:
    if knob.kind == "whole" and not knob.log:
        return min(STEPS * 3, int(knob.high - knob.low))
    return STEPS if knob.log else round((knob.high - knob.low) * 10 ** _digits(knob))


def _digits(knob: Knob) -> int:
    """Decimals of a step: about 100 to 400 steps from end to end."""
    return 0 if knob.kind == "whole" else max(0, 2 - math.floor(math.log10((knob.high - knob.low) / 0.99)))


def _mark(box: NumberBox, wrong: str) -> None:
    if (box.property("invalid") or False) != bool(wrong):
        box.setProperty("invalid", bool(wrong))
        box.style().unpolish(box)
        box.style().polish(box)
    box.setToolTip(wrong)


def _small(words: str, side: Qt.AlignmentFlag) -> QLabel:
    label = QLabel(words)
    label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    theme.set_role(label, "small")
    return label
