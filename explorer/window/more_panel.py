"""The panel of the bar's `...`: the controls of the open view that the bar has no room for, and its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts

WIDTH: Final = 376
LEAST_PX: Final = 120
EDGE_PX: Final = 8


class MorePanel(QFrame):
    """Opens under a button; closes on Esc and on a click outside."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("morePanel")
        theme.set_role(self, "raised")
        self.setAccessibleName("Further controls of this view")
        self.controls = layouts.column(gap=theme.BETWEEN, margins=(theme.INSIDE, theme.INSIDE, theme.INSIDE, 0))
        self._entries = QWidget()
        self._line = layouts.hairline()
        self._column = layouts.column(self.controls, self._line, self._entries, layouts.STRETCH)
        self._content = layouts.panel(self._column)
        self._scroll = layouts.scroll(self._content)
        layouts.column(self._scroll, margins=EDGE_PX, of=self)

    def take(self, panels: Sequence[QWidget]) -> None:
        """Hold these controls instead of those before, which are hidden until they are taken again."""
        while (part := self.controls.takeAt(0)) is not None:
            if (widget := part.widget()) is not None:
                widget.hide()
        for panel in panels:
            self.controls.addWidget(panel)
            panel.show()

    def open_under(self, button: QWidget, actions: Sequence[QAction]) -> None:
        """Show the controls and these actions under a button of the bar."""
        self._show_entries(actions)
        window = button.window()
        below = button.mapToGlobal(QPoint(button.width(), button.height() + 4))
        room = max(LEAST_PX, window.mapToGlobal(QPoint(0, window.height())).y() - below.y() - EDGE_PX)
        wide = max(WIDTH, self._content.minimumSizeHint().width() + 4 * EDGE_PX)
        self.setGeometry(below.x() - wide, below.y(), wide, room)
        self.show()
        # Rows that wrap know how high they are only when they are as wide as they will be.
        QTimer.singleShot(0, self, self._fit)

    def _fit(self) -> None:
        self._column.activate()
        self.resize(self.width(), min(self.height(), self._content.sizeHint().height() + 2 * EDGE_PX + 2))

    def _show_entries(self, actions: Sequence[QAction]) -> None:
        entries = layouts.panel(layouts.column(*map(self._entry, actions), gap=0))
        self._column.replaceWidget(self._entries, entries)
        self._entries.hide()
        self._entries.deleteLater()
        self._entries = entries
        self._line.setVisible(self.controls.count() > 0 and bool(actions))

    def _entry(self, action: QAction) -> QPushButton:
        keys = action.shortcut().toString()
        text = action.text().replace("&", "")
        button = QPushButton(f"{text}   {keys}" if keys else text, accessibleName=text)
        button.setToolTip(action.toolTip())
        button.setEnabled(action.isEnabled())
        theme.set_role(button, "entry")
        button.clicked.connect(self.hide)
        button.clicked.connect(lambda: action.trigger())
        return button
