"""Editors of values that the mouse wheel neither changes nor focuses: it scrolls the page that they stand on."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSlider, QSpinBox


class Still:
    """Goes before a widget of Qt in the bases of a class: the wheel passes through."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Not WheelFocus, Qt's default of these widgets: the keys would go to whatever the page was scrolled over.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # type: ignore[attr-defined]

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class StillSlider(Still, QSlider):
    """A slider."""


class StillSpinBox(Still, QSpinBox):
    """A box of a whole number."""


class StillDoubleSpinBox(Still, QDoubleSpinBox):
    """A box of a fraction."""


class StillComboBox(Still, QComboBox):
    """A list of choices."""
