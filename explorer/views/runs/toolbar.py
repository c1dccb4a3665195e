"""The rows above and below the list of runs: its filter and the first button, then its number and what can be done."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit, QMenu, QPushButton, QToolButton

from explorer import theme
from explorer.views.runs.actions import CONTEXT_MENU, TOOLBAR, RunActions
from explorer.widgets import layouts


class RunsToolbar:
    """A field and a button above the list; a label, buttons and the menu of all that can be done under it.

    Attributes:
        head: The row above, with the button `new`.
        foot: The row below.
        count: How many runs are shown or selected, and how long the queue takes.
    """

    def __init__(self, actions: RunActions, arrangement: QToolButton) -> None:
        self.new = new = QPushButton(actions["new"].text())
        new.setObjectName("new-run-button")
        new.setAccessibleName("New run")
        new.setToolTip(actions["new"].toolTip())
        theme.set_role(new, "primary")
        theme.keep_icon(new, "plus", role="accent_text")
        new.clicked.connect(actions["new"].trigger)
        self.filter = QLineEdit(objectName="runs-filter", accessibleName="Filter runs", placeholderText="Filter runs")
        self.filter.setToolTip(
            "Words, and terms such as objective:cloob beta>8 tag:paper -is:failed is:archived image_to_text_R@1>40%"
        )
        self.filter.setClearButtonEnabled(True)
        self.count = layouts.elided(role="small")
        self.head = layouts.row((self.filter, 1), new)
        buttons = [_button(actions, name) for name in TOOLBAR]
        self.foot = layouts.row((self.count, 1), *buttons, arrangement, _menu_button(actions), gap=0)


def _menu_button(actions: RunActions) -> QToolButton:
    menu = QMenu("Runs")
    button = QToolButton(objectName="runs-more", accessibleName="All actions on runs", toolTip="All actions on runs")
    menu.setParent(button, menu.windowFlags())
    actions.add_to(menu, ("import", "queue-slots", "", *CONTEXT_MENU))
    button.setMenu(menu)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    theme.keep_icon(button, "ellipsis")
    return button


def _button(actions: RunActions, name: str) -> QToolButton:
    action: QAction = actions[name]
    button = QToolButton(toolButtonStyle=Qt.ToolButtonStyle.ToolButtonIconOnly, objectName=f"{name}-button")
    button.setDefaultAction(action)
    button.setAccessibleName(action.text())
    # A button follows its action in all but this. Shown before it has a parent, it would be a window of its own.
    if not action.isVisible():
        button.hide()
    action.visibleChanged.connect(lambda: button.setVisible(action.isVisible()))
    return button
