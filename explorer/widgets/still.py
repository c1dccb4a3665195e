"""Editors of values that the mouse wheel neither changes nor focuses: it scrolls the page that they stand on."""

from __future__ import annotations

from typing import Any, cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QPalette, QShowEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QDoubleSpinBox, QFrame, QSlider, QSpinBox

from explorer import theme


class Still:
    """Goes before a widget of Qt in the bases of a class: the wheel passes through."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Not WheelFocus, Qt's default of these widgets: the keys would go to whatever the page was scrolled over.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # type: ignore[attr-defined]

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)  # type: ignore[misc]
        # A screen reader that follows the caret is in the editor, which is a widget of its own.
        if isinstance(self, QComboBox | QAbstractSpinBox) and (editor := self.lineEdit()) is not None:
            interface = QAccessible.queryAccessibleInterface(self)
            editor.setAccessibleName(self.accessibleName() or interface.text(QAccessible.Text.Name))

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def indent_text(box: QAbstractSpinBox) -> None:
    """Begin the number where the text of other fields does: no padding of a stylesheet reaches the editor in a box."""
    box.lineEdit().setTextMargins(theme.INSIDE - 2, 0, 0, 0)


class StillSlider(Still, QSlider):
    """A slider."""


class StillSpinBox(Still, QSpinBox):
    """A box of a whole number."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        indent_text(self)


class StillDoubleSpinBox(Still, QDoubleSpinBox):
    """A box of a fraction."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        indent_text(self)


class StillComboBox(Still, QComboBox):
    """A list of choices; it opens as wide as its longest entry, for one that is cut could be read as another."""

    def showPopup(self) -> None:
        bar = self.view().verticalScrollBar().sizeHint().width() if self.count() > self.maxVisibleItems() else 0
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + bar + 2 * theme.INSIDE)
        # The frame around the list paints itself without the stylesheet.
        frame = cast(QFrame, self.view().parentWidget())
        frame.setFrameStyle(QFrame.Shape.Box | QFrame.Shadow.Plain)
        inks = frame.palette()
        inks.setColor(QPalette.ColorRole.WindowText, theme.color("outline"))
        frame.setPalette(inks)
        super().showPopup()
