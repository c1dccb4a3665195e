"""The row above the table of runs, common actions and the filter, and the label under it with their number."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QToolButton

from explorer import theme
from explorer.views.runs.actions import TOOLBAR, RunActions
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow

WORDED: Final = {"show-a": "A", "show-b": "B"}
"""Buttons whose icons are alike, and the shortest text that tells them apart."""


class RunsToolbar:
    """Buttons for the actions of `TOOLBAR` and `arrangement`, then a field; the label has its place elsewhere.

    Attributes:
        row: All of it.
        filter: What the table is searched for.
        count: How many runs are shown, and how long the queue takes.
    """

    def __init__(self, actions: RunActions, arrangement: QToolButton) -> None:
        new = QPushButton(actions["new"].text())
        new.setObjectName("new-run-button")
        new.setAccessibleName("New run")
        new.setToolTip(actions["new"].toolTip())
        theme.set_role(new, "primary")
        theme.keep_icon(new, "plus", role="accent_text")
        new.clicked.connect(actions["new"].trigger)
        self.filter = QLineEdit(objectName="runs-filter", accessibleName="Filter runs", placeholderText="Filter")
        self.filter.setToolTip(
            "Words, and terms such as objective:cloob beta>8 tag:paper -is:failed is:archived image_to_text_R@1>40%"
        )
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(360)
        self.count = layouts.text(role="small")
        self.row = _OneLine()
        self.row.add(new)
        gap = theme.SPACE
        for name in TOOLBAR:
            if name:
                button = _button(actions, name)
                self.row.add(button, gap=gap)
                self.row.shorten(button, name)
            gap = theme.SPACE if name else 2 * theme.SPACE + theme.INSIDE
        self.row.add(arrangement, gap=2 * theme.SPACE + theme.INSIDE, right=True)
        self.row.add(self.filter, gap=2 * theme.SPACE + theme.INSIDE, stretch=True, right=True)


class _OneLine(FlowRow):
    """Buttons that lose their words, not their line, where there is no room for all; the tool tips have them."""

    def __init__(self) -> None:
        super().__init__()
        self._short: list[QToolButton] = []
        self._worded: list[tuple[QAction, str]] = []
        self._chosen_for: tuple[int, ...] = ()

    def shorten(self, button: QToolButton, name: str) -> None:
        """Let this button lose its words; last, and all but a letter, if its icon alone does not tell what it does."""
        if name in WORDED:
            self._worded.append((button.defaultAction(), WORDED[name]))
        else:
            self._short.append(button)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._choose_style(event.size().width())
        super().resizeEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            # A button that came, such as that which ends a run, must not start a second line either.
            self._choose_style(self.width())
        return super().event(event)

    def _choose_style(self, width: int) -> None:
        chosen_for = (width, *(part.widget.isHidden() for part in self._parts))
        if chosen_for == self._chosen_for:
            return
        self._chosen_for = chosen_for
        self._set_style(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        for action, _letter in self._worded:
            action.setIconText(action.text())
        if self.sizeHint().width() > width:
            self._set_style(Qt.ToolButtonStyle.ToolButtonIconOnly)
        if self.sizeHint().width() > width:
            for action, letter in self._worded:
                action.setIconText(letter)

    def _set_style(self, style: Qt.ToolButtonStyle) -> None:
        for button in self._short:
            button.setToolButtonStyle(style)


def _button(actions: RunActions, name: str) -> QToolButton:
    action = actions[name]
    button = QToolButton()
    button.setDefaultAction(action)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setObjectName(f"{name}-button")
    button.setAccessibleName(action.text())
    # A button follows its action in all but this. Shown before it has a parent, it would be a window of its own.
    if not action.isVisible():
        button.hide()
    action.visibleChanged.connect(lambda: button.setVisible(action.isVisible()))
    return button
