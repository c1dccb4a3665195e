"""The navigation rail on the left: one button per place, grouped by purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QSpacerItem, QToolButton, QWidget

from explorer import theme
from explorer.views import Place
from explorer.widgets import layouts
from explorer.widgets.accessible import present

WIDTH, FOLDED = 144, 52
GAP_PX = 2
NORMAL_PX, LEAST_PX = 28, 18
"""Heights of a button in a low window: below which its groups come closer, and below which the rail scrolls."""


class Rail(QWidget):
    """Icon and name of each place, with the open one marked; scrolls if the window is too low."""

    opened = Signal(str)  # Name of the place whose button was clicked.

    def __init__(self, rail_places: Sequence[Place], parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="rail")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH)
        self._group, self._places = QButtonGroup(self), tuple(rail_places)
        self.buttons: dict[str, QToolButton] = {}
        self._between: list[QSpacerItem] = []
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
        """Say in each tool tip which view a click opens, by which keys (name -> keys, may be empty), and what follows.

        It is the description for screen readers, too.
        """
        for rail_place in self._places:
            first, *others = (entry.label for entry in rail_place.views)
            opens = f"{rail_place.title}: opens {first}" if first != rail_place.title else first
            opens += f" ({keys[rail_place.name]})" if keys.get(rail_place.name) else ""
            follow = f". In the menu of the bar: {', '.join(others)}" if others else ""
            self.buttons[rail_place.name].setToolTip(opens + follow)
            self.buttons[rail_place.name].setAccessibleDescription(opens + follow)

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
        """Make groups and buttons as low as the window asks for, and widen the rail by a scroll bar if that remains."""
        buttons = [button for button in self.findChildren(QToolButton) if not button.isHidden()]
        for between, gap in ((theme.BETWEEN, GAP_PX), (theme.SPACE, 0)):
            rest = 2 * theme.INSIDE + gap * (len(buttons) - 1) + between * len(self._between)
            height = (self.height() - rest) // len(buttons)
            if height >= NORMAL_PX:
                break
        for column in (self._column, self._inner_column):
            column.setSpacing(gap)
        for spacer in self._between:
            spacer.changeSize(0, between)
        self._inner_column.invalidate()
        height = min(theme.ROW_PX, max(LEAST_PX, height))
        for button in buttons:
            button.setFixedHeight(height)
        bar = self._views.verticalScrollBar()
        self.setFixedWidth((FOLDED if self._is_folded else WIDTH) + (bar.sizeHint().width() if bar.maximum() else 0))

    def _lay_out(self, rail_places: Sequence[Place]) -> QWidget:
        content = QWidget(objectName="rail-views")
        self._inner_column = column = layouts.column(gap=GAP_PX, of=content)
        group = ""
        for rail_place in rail_places:
            if rail_place.group != group:
                group = rail_place.group
                if column.count():
                    self._between.append(QSpacerItem(0, theme.BETWEEN))
                    column.addItem(self._between[-1])
            button = _button(f"rail-{rail_place.name}", rail_place.icon, rail_place.title)
            button.setCheckable(True)
            present(button, "RadioButton")
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
