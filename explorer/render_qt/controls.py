"""Controls generated from a panel's settings: sliders with a spin box, segmented choices, texts, editable cells."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.number_box import NumberBox
from explorer.widgets.still import StillSlider
from trainer.charts.settings import problem
from trainer.config.fields import Field, fields_of

STEPS = 400
BOX_PX = 92
SLIDE_PX = 300
CELL_PX = 84
ROW_NAME_PX = 16
"""Columns of matrices below each other line up."""


class Control(QWidget):
    """The control of one setting."""

    changed = Signal()  # The person chose another value that the setting takes.

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"{panel}-{setting.name}-control")
        self.setting = setting
        self.value: Any = setting.default

    def show_value(self, value: Any) -> None:
        """Show a value without emitting `changed`."""
        raise NotImplementedError

    def _heading(self) -> QLabel:
        label = layouts.text(self.setting.label)
        label.setToolTip(self.setting.help)
        return label


class Slide(Control):
    """A number: a slider and a spin box; the box alone for a number without bounds."""

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(setting, panel, parent)
        self.slider = StillSlider(Qt.Orientation.Horizontal, objectName=f"{panel}-{setting.name}")
        self.slider.setAccessibleName(setting.label)
        self.slider.setToolTip(setting.help)
        self.bounded = math.isfinite(setting.low) and math.isfinite(setting.high)
        if self.bounded:
            self.slider.setRange(0, _steps(setting))
            self.slider.setPageStep(max(1, _steps(setting) // 20))
        else:
            self.slider.hide()
        self.box = NumberBox(integer=setting.kind == "integer", low=setting.low, high=setting.high)
        self.box.setObjectName(f"{panel}-{setting.name}-box")
        self.box.setAccessibleName(f"{setting.label}, number")
        self.box.setFixedWidth(BOX_PX)
        self.box.setKeyboardTracking(True)
        layouts.column(layouts.row((self._heading(), 1), self.box, gap=None), self.slider, gap=2, of=self)
        self.show_value(setting.default)
        self.slider.valueChanged.connect(self._slid)
        self.box.edited.connect(self._typed)

    def show_value(self, value: float) -> None:
        self.value = value
        with QSignalBlocker(self.box):
            self.box.set_value(value)
        self._move_slider()
        _mark(self.box, "")

    def _move_slider(self) -> None:
        if self.bounded:
            with QSignalBlocker(self.slider):
                self.slider.setValue(to_place(self.setting, self.value))

    def _slid(self, position: int) -> None:
        self.value = to_value(self.setting, position)
        with QSignalBlocker(self.box):
            self.box.set_value(self.value)
        _mark(self.box, "")
        self.changed.emit()

    def _typed(self) -> None:
        typed = self.box.value()
        wrong = problem(self.setting, typed)
        _mark(self.box, wrong)
        if wrong or typed == self.value:
            return
        self.value = typed
        self._move_slider()
        self.changed.emit()


class Choose(Control):
    """A choice between a few options, shown side by side, below their name or, with `beside_px`, next to it."""

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None, *, beside_px: int = 0) -> None:
        super().__init__(setting, panel, parent)
        said = {option: setting.named.get(option, option.capitalize()) for option in setting.options}
        self.buttons = {option: QPushButton(label) for option, label in said.items()}
        group = QButtonGroup(self)
        for option, button in self.buttons.items():
            button.setObjectName(f"{panel}-{setting.name}-{option}")
            button.setAccessibleName(f"{setting.label}: {said[option]}")
            button.setToolTip(setting.help)
            button.setCheckable(True)
            button.setAutoExclusive(True)  # which only says what it is: it is in a group
            group.addButton(button)
        row = layouts.row(*((button, 1) for button in self.buttons.values()), gap=theme.SPACE)
        heading = self._heading()
        if beside_px:
            heading.setFixedWidth(beside_px)
            theme.set_role(heading, "secondary")
            layouts.row(heading, (row, 1), gap=0, of=self)
        else:
            layouts.column(heading, row, gap=theme.SPACE, of=self)
        self.show_value(setting.default)
        group.buttonToggled.connect(lambda _button, on: self._toggled() if on else None)

    def show_value(self, value: str) -> None:
        self.value = value
        with QSignalBlocker(self):
            self.buttons[value].setChecked(True)

    def _toggled(self) -> None:
        self.value = next(option for option, button in self.buttons.items() if button.isChecked())
        self.changed.emit()


class Check(Control):
    """A check box."""

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(setting, panel, parent)
        self.box = QCheckBox(setting.label, objectName=f"{panel}-{setting.name}", toolTip=setting.help)
        layouts.row(self.box, of=self)
        self.show_value(setting.default)
        self.box.toggled.connect(self._toggled)

    def show_value(self, value: bool) -> None:
        self.value = value
        with QSignalBlocker(self.box):
            self.box.setChecked(value)

    def _toggled(self, on: bool) -> None:
        self.value = on
        self.changed.emit()


class Cells(Control):
    """A small editable matrix; an invalid cell is marked and keeps its last valid value."""

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(setting, panel, parent)
        columns = tuple(str(index + 1) for index in range(setting.columns))
        rows = setting.rows or tuple(str(n + 1) for n in range(len(setting.default) // setting.columns))
        heading = self._heading()
        theme.set_role(heading, "strong")
        grid = layouts.grid(theme.SPACE, 0)
        grid.setColumnMinimumWidth(0, ROW_NAME_PX)
        for index, name in enumerate(columns):
            grid.addWidget(_small(name, Qt.AlignmentFlag.AlignHCenter), 0, index + 1)
        for index, name in enumerate(rows):
            grid.addWidget(_small(name, Qt.AlignmentFlag.AlignLeft), index + 1, 0)
        self.boxes: list[NumberBox] = []
        for index in range(len(setting.default)):
            row, column = divmod(index, setting.columns)
            box = NumberBox(integer=False, low=setting.low, high=setting.high)
            box.setObjectName(f"{panel}-{setting.name}-{row}-{column}")
            box.setAccessibleName(f"{setting.label}, {rows[row]}, {columns[column]}")
            box.setMinimumWidth(52)
            box.setMaximumWidth(CELL_PX)
            grid.addWidget(box, row + 1, column + 1)
            self.boxes.append(box)
        grid.setColumnStretch(setting.columns + 1, 1)
        layouts.column(heading, grid, gap=theme.SPACE, of=self)
        self.show_value(setting.default)
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
            fits = isinstance(typed, int | float) and self.setting.low <= typed <= self.setting.high
            _mark(
                box,
                "" if fits else f"A number from {self.setting.low:g} to {self.setting.high:g}; {last:g} is kept.",
            )
            numbers.append(float(typed) if fits else last)
        if tuple(numbers) != self.value:
            self.value = tuple(numbers)
            self.changed.emit()


class Line(Control):
    """A text, taken when Enter is pressed or the field is left."""

    def __init__(self, setting: Field, panel: str, parent: QWidget | None = None) -> None:
        super().__init__(setting, panel, parent)
        self.line = QLineEdit(objectName=f"{panel}-{setting.name}", accessibleName=setting.label, toolTip=setting.help)
        self.line.setPlaceholderText("Chosen by itself" if not setting.default else "")
        self.line.setClearButtonEnabled(True)
        layouts.column(self._heading(), self.line, layouts.STRETCH, gap=theme.SPACE, of=self)
        self.show_value(setting.default)
        self.line.editingFinished.connect(self._typed)

    def show_value(self, value: str) -> None:
        self.value = value
        with QSignalBlocker(self.line):
            self.line.setText(value)

    def _typed(self) -> None:
        if (typed := self.line.text().strip()) != self.value:
            self.value = typed
            self.changed.emit()


class Controls(QWidget):
    """The controls of a chart's settings, in a wrapping row or stacked.

    Settings without a control keep their value.
    """

    changed = Signal()  # The person chose another value.

    def __init__(self, kind: type, name: str, *, below: bool = False, beside_px: int = 0) -> None:
        """Create them stacked with `below`, else in a row; with `beside_px` choices lie next to their names."""
        super().__init__(objectName=f"{name}-controls")
        self._kind = kind
        self._settings = kind()
        self.controls = {
            setting.name: control for setting in fields_of(kind) if (control := control_of(setting, name, beside_px))
        }
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        row = FlowRow()
        for control in self.controls.values():
            control.changed.connect(self.changed)
            if below:
                column.addWidget(control)
            else:
                row.add(control, gap=theme.AROUND)
        column.addWidget(row)
        row.setVisible(not below)

    @property
    def is_empty(self) -> bool:
        """Whether no setting has a control."""
        return not self.controls

    @property
    def settings(self) -> Any:
        values = {name: control.value for name, control in self.controls.items()}
        return dataclasses.replace(self._settings, **values)

    def show_settings(self, settings: Any) -> None:
        """Set the controls to these values without a signal for each."""
        self._settings = settings
        for name, control in self.controls.items():
            control.show_value(getattr(settings, name))


def control_of(setting: Field, name: str, beside_px: int = 0) -> Control | None:
    """Return the control of a setting in a row; None for settings without a control."""
    if not setting.control or setting.kind in ("rows", "texts", "numbers"):
        return None
    if setting.kind == "choice":
        return Choose(setting, name, beside_px=beside_px)
    kinds: dict[str, type[Control]] = {"flag": Check, "cells": Cells, "text": Line}
    control = kinds.get(setting.kind, Slide)(setting, name)
    if setting.kind not in kinds or setting.kind == "text":
        control.setFixedWidth(SLIDE_PX)
    return control


def to_value(setting: Field, position: int) -> float | int:
    """Return the number at a slider position, rounded to the precision of one step."""
    share = position / _steps(setting)
    if position in (0, _steps(setting)):
        # Three digits would fall short of 65,536.
        return setting.high if position else setting.low
    if setting.log:
        value = float(f"{setting.low * (setting.high / setting.low) ** share:.3g}")
    else:
        value = round(setting.low + (setting.high - setting.low) * share, _digits(setting))
    value = min(max(value, setting.low), setting.high)
    return round(value) if setting.kind == "integer" else value


def to_place(setting: Field, value: float) -> int:
    """Return the slider position nearest to a number."""
    if setting.log:
        share = math.log(value / setting.low) / math.log(setting.high / setting.low)
    else:
        share = (value - setting.low) / (setting.high - setting.low)
    return round(share * _steps(setting))


def _steps(setting: Field) -> int:
    if setting.kind == "integer" and not setting.log:
        return min(STEPS * 3, int(setting.high - setting.low))
    return STEPS if setting.log else round((setting.high - setting.low) * 10 ** _digits(setting))


def _digits(setting: Field) -> int:
    """Return the decimals of a step; a slider has about 100 to 400 steps."""
    return 0 if setting.kind == "integer" else max(0, 2 - math.floor(math.log10((setting.high - setting.low) / 0.99)))


def _mark(box: NumberBox, wrong: str) -> None:
    theme.set_invalid(box, bool(wrong))
    box.setToolTip(wrong)


def _small(text: str, side: Qt.AlignmentFlag) -> QLabel:
    label = layouts.text(text, "small", align=side | Qt.AlignmentFlag.AlignVCenter)
    return label
