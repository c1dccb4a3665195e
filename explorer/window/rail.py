"""The navigation rail on the left: one button per place, grouped by purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QWidget

from explorer import theme
from explorer.views import Place
from explorer.widgets import layouts
from explorer.widgets.accessible import present

WIDTH, FOLDED = 144, 52
GAP_PX = 2
LEAST_PX = 22
"""Height of a button in a low window, below which the rail scrolls."""


class Rail(QWidget):
    """Icon and name of each place, with the open one marked; scrolls if the window is too low."""

    opened = Signal(str)  # Name of the place whose button was clicked.

    def __init__(self, rail_places: Sequence[Place], parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="rail")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QToolButton] = {}
        self._content = self._lay_out(rail_places)
        self._views = layouts.scroll(self._content)
        self._column = layouts.column((self._views, 1), gap=GAP_PX, margins=theme.INSIDE, of=self)
        # Not at once: in the midst of Qt's own layout the buttons would keep the width they had before.
        self._later = QTimer(self, singleShot=True, interval=0, timeout=self._make_room)
        self._views.verticalScrollBar().rangeChanged.connect(lambda _least, _most: self._later.start())
        self._is_folded = False

    def mark(self, name: str) -> None:
        """Mark the open place and scroll to its button."""
        if name in self.buttons:
            self.buttons[name].setChecked(True)
            self._views.ensureWidgetVisible(self.buttons[name], 0, theme.SPACE)

    def show_keys(self, keys: Mapping[str, str]) -> None:
        """Name the shortcut of each place (name -> keys, may be empty) in its tool tip."""
        for name, button in self.buttons.items():
            title = str(button.accessibleName())
            button.setToolTip(f"{title} ({keys[name]})" if keys.get(name) else title)

    def add(self, name: str, icon: str, label: str, *, at_top: bool = False) -> QToolButton:
        """Add a button below the views, such as for the settings, or above them."""
        button = _button(name, icon, label)
        self._column.insertWidget(0 if at_top else -1, button)
        return button

    def fold(self, on: bool) -> None:
        """Hide the labels of the buttons, or show them."""
        if on != self._is_folded:
            self._is_folded = on
            style = Qt.ToolButtonStyle.ToolButtonIconOnly if on else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            for button in self.findChildren(QToolButton):
                button.setToolButtonStyle(style)
            self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._later.start()

    def _make_room(self) -> None:
        """Make the buttons as low as the window asks for, and widen the rail by the scroll bar that it still needs."""
        buttons = [button for button in self.findChildren(QToolButton) if not button.isHidden()]
        rest = self._content.sizeHint().height() - sum(button.height() for button in self.buttons.values())
        rest += 2 * theme.INSIDE + GAP_PX * (self._column.count() - 1)
        height = min(theme.ROW_PX, max(LEAST_PX, (self.height() - rest) // len(buttons)))
        for button in buttons:
            button.setFixedHeight(height)
        bar = self._views.verticalScrollBar()
        self.setFixedWidth((FOLDED if self._is_folded else WIDTH) + (bar.sizeHint().width() if bar.maximum() else 0))

    def _lay_out(self, rail_places: Sequence[Place]) -> QWidget:
        content = QWidget(objectName="rail-views")
        column = layouts.column(gap=GAP_PX, of=content)
        group = ""
        for rail_place in rail_places:
            if rail_place.group != group:
                group = rail_place.group
                column.addSpacing(theme.BETWEEN if column.count() else 0)
            button = _button(f"rail-{rail_place.name}", rail_place.icon, rail_place.title)
            button.setCheckable(True)
            present(button, "RadioButton")
            button.setToolTip(f"{rail_place.title} ({rail_place.keys})" if rail_place.keys else rail_place.title)
            button.clicked.connect(lambda _=False, name=rail_place.name: self.opened.emit(name))
            self._group.addButton(button)
            column.addWidget(button)
            self.buttons[rail_place.name] = button
        column.addStretch()
        return content


def _button(name: str, icon: str, label: str) -> QToolButton:
    # Qt puts icon and word 4 px apart and no stylesheet can change it.
    button = QToolButton(objectName=name, accessibleName=label, text=f"  {label}")
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    button.setFixedHeight(theme.ROW_PX)
    button.setIconSize(QSize(18, 18))
    theme.keep_icon(button, icon, 18, "secondary", checked="text")
    return button
