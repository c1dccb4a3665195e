"""The rail on the left: one button a view, and the looks and keys at its foot."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.views import Place

WIDTH = 160


class Rail(QWidget):
    """Icon and word of each view; the open one is marked.

    Signals:
        opened: Name of the view whose button was clicked.
    """

    opened = Signal(str)

    def __init__(self, places: Sequence[Place], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rail")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QToolButton] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(theme.INSIDE, theme.INSIDE, theme.INSIDE, theme.INSIDE)
        self._column.setSpacing(2)
        for number, place in enumerate(places, start=1):
            button = _button(f"rail-{place.name}", place.icon, place.title)
            button.setCheckable(True)
            button.setToolTip(f"{place.title} (Ctrl+{number})" if number < 10 else place.title)
            button.clicked.connect(lambda _=False, name=place.name: self.opened.emit(name))
            self._group.addButton(button)
            self._column.addWidget(button)
            self.buttons[place.name] = button
        self._column.addStretch()

    def mark(self, name: str) -> None:
        """Marks the open view."""
        if name in self.buttons:
            self.buttons[name].setChecked(True)

    def add_at_foot(self, name: str, icon: str, words: str) -> QToolButton:
        """A button under the views, e.g. for the theme."""
        button = _button(name, icon, words)
        self._column.addWidget(button)
        return button


def _button(name: str, icon: str, words: str) -> QToolButton:
    # Qt puts icon and word 4 px apart and no stylesheet can change it.
    button = QToolButton(objectName=name, accessibleName=words, text=f"  {words}")
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    button.setIconSize(QSize(20, 20))
    theme.keep_icon(button, icon, 20, "secondary", checked="text")
    return button
