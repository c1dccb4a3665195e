"""Widgets that are closed with the test."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

WidgetT = TypeVar("WidgetT", bound=QWidget)


def add_widget(qtbot: QtBot, widget: WidgetT, width: int = 0, height: int = 0) -> WidgetT:
    """Return a widget, in this size or in its own, which is closed with the test; it is not shown."""
    qtbot.addWidget(widget)
    if width:
        widget.resize(width, height)
    return widget


def show_widget(qtbot: QtBot, widget: WidgetT, width: int = 0, height: int = 0) -> WidgetT:
    """Return a widget that is shown, in this size or in its own, and is closed with the test."""
    add_widget(qtbot, widget, width, height).show()
    return widget
