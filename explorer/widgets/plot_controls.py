"""Replacements for the options menu of every pyqtgraph plot: thirty-five widgets that are never shown.

The window has some thirty plots. Their menus were two thirds of its widgets: each was made while somebody waited for
a view, and dressed anew at every change of the theme. A plot asks its menu for its own state, so the stand-ins keep
that; they show nothing.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QGroupBox, QWidget

_CHECKS: Final = {
    "autoAlphaCheck": False, "autoDownsampleCheck": True, "autoPointsCheck": True, "clipToViewCheck": False,
    "derivativeCheck": False, "downsampleCheck": False, "fftCheck": False, "forgetTracesCheck": False,
    "logXCheck": False, "logYCheck": False, "maxTracesCheck": False, "phasemapCheck": False,
    "subtractMeanCheck": False, "xGridCheck": False, "yGridCheck": False,
}  # fmt: skip
_RADIOS: Final = {"meanRadio": False, "peakRadio": True, "subsampleRadio": False}
_NUMBERS: Final = {
    "alphaSlider": (1000, 1000), "downsampleSpin": (1, 100_000), "gridAlphaSlider": (128, 255),
    "maxTracesSpin": (0, 99),
}  # fmt: skip
"""Value and maximum, as in pyqtgraph's own form."""
_GROUPS: Final = {"alphaGroup": True, "averageGroup": False, "pointsGroup": True}
_FRAMES: Final = ("decimateGroup", "gridGroup", "transformGroup")


class _Check(QObject):
    """A check box; of a mutually exclusive group one is checked."""

    toggled = Signal(bool)

    def __init__(self, checked: bool, others: list[_Check] | None = None) -> None:
        super().__init__()
        self._checked, self._others = checked, others

    def isChecked(self) -> bool:
        return self._checked

    def setChecked(self, checked: bool) -> None:
        if bool(checked) == self._checked or (self._others is not None and not checked):
            return
        for other in self._others or ():
            if other is not self and other._checked:
                other._checked = False
                other.toggled.emit(False)
        self._checked = bool(checked)
        self.toggled.emit(self._checked)


class _Number(QObject):
    """A number between 0 and a maximum."""

    valueChanged = Signal(int)

    def __init__(self, value: int, most: int) -> None:
        super().__init__()
        self._value, self._most = value, most

    def value(self) -> int:
        return self._value

    def maximum(self) -> int:
        return self._most

    def setValue(self, value: int) -> None:
        value = min(max(int(value), 0), self._most)
        if value != self._value:
            self._value = value
            self.valueChanged.emit(value)


class _List(QObject):
    """The list of parameters to average curves over; always empty."""

    itemClicked = Signal(object)

    def count(self) -> int:
        return 0

    def clear(self) -> None:
        """Do nothing, because the list is empty."""

    def findItems(self, _text: str, _how: object) -> list[Any]:
        return []

    def addItem(self, _item: object) -> None:
        """Do nothing, because averaging is not offered."""


class PlotControls:
    """A replacement for `plotConfigTemplate_generic.Ui_Form`."""

    def setupUi(self, form: QWidget) -> None:
        """Create all controls that a plot accesses."""
        radios: list[_Check] = []
        made: dict[str, QObject] = {name: _Check(on) for name, on in _CHECKS.items()}
        made |= {name: _Check(on, radios) for name, on in _RADIOS.items()}
        radios += [made[name] for name in _RADIOS]  # type: ignore[misc]
        made |= {name: _Number(*numbers) for name, numbers in _NUMBERS.items()}
        made |= {name: QWidget(form, objectName=name) for name in _FRAMES}
        made |= {name: QGroupBox(form, objectName=name, checkable=True, checked=on) for name, on in _GROUPS.items()}
        made["avgParamList"] = _List()
        self.__dict__.update(made)


def do_without_menus() -> None:
    """Let pyqtgraph create plots without menus; an incompatible version keeps them."""
    module = importlib.import_module("pyqtgraph.graphicsItems.PlotItem.PlotItem")
    if hasattr(module, "ui_template"):
        module.ui_template = SimpleNamespace(Ui_Form=PlotControls)  # type: ignore[attr-defined]
