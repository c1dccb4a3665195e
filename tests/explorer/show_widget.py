"""Show a widget until the test ends."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

WidgetT = TypeVar("WidgetT", bound=QWidget)


def size_widget(qtbot: QtBot, widget: WidgetT, width: int, height: int) -> WidgetT:
    """Return a widget of this size, which is closed with the test; it is not shown."""
    qtbot.addWidget(widget)
    widget.resize(width, height)
    return widget


def show_widget(qtbot: QtBot, widget: WidgetT, width: int = 0, height: int = 0) -> WidgetT:
    """Return a widget that is shown, in this size or in its own, and is closed with the test."""
    qtbot.addWidget(widget)
    if width:
        widget.resize(width, height)
    widget.show()
    return widget
