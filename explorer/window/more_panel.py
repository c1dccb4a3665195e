"""The panel of the bar's `...`: the controls of the open view that the bar has no room for, and its commands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QIcon, QKeySequence, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.refusal import refusal_of, set_refusal

WIDTH: Final = 376
LEAST_PX: Final = 120
EDGE_PX: Final = 8
MARK_PX: Final = 14


class MorePanel(QFrame):
    """Opens under a button; closes on Esc and on a click outside."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup, objectName="morePanel")
        theme.set_role(self, "raised")
        self.setAccessibleName("Further controls of this view")
        self.controls = layouts.column(gap=theme.BETWEEN)
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
        """Show the controls and those of these actions that are visible now under a button of the bar."""
        actions = [action for action in actions if action.isVisible()]
        items = map(self.controls.itemAt, range(self.controls.count()))
        panels = [panel for item in items if item is not None and (panel := item.widget()) is not None]
        for panel in panels:
            # Controls that hide themselves later would leave an empty row.
            layout = panel.layout()
            panel.setVisible(layout is None or not layout.isEmpty())
        self._show_entries(actions)
        has_controls = not all(panel.isHidden() for panel in panels)
        self.controls.setContentsMargins(*((theme.INSIDE, theme.INSIDE, theme.INSIDE, 0) if has_controls else (0,) * 4))
        self._line.setVisible(bool(actions) and has_controls)
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
        lines: list[QWidget] = []
        marks = any(action.isCheckable() for action in actions)
        for section, its_actions in itertools.groupby(actions, lambda action: action.property("section") or ""):
            lines += [layouts.text(section, "small", name="moreSection")] if section else []
            lines += [_Entry(action, self, marks=marks) for action in its_actions]
        entries = layouts.panel(layouts.column(*lines, gap=0))
        self._column.replaceWidget(self._entries, entries)
        self._entries.hide()
        self._entries.deleteLater()
        self._entries = entries


class _Entry(QPushButton):
    """A line of a menu: a check mark where the action is on, its text, and its keys at the right."""

    def __init__(self, action: QAction, menu: QWidget, *, marks: bool) -> None:
        self._keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        text = action.text().replace("&", "")
        super().__init__(text, accessibleName=text)
        theme.set_role(self, "entry")
        self.setAccessibleDescription("on" if action.isChecked() else "off" if action.isCheckable() else "")
        set_refusal(self, refusal_of(action), action.toolTip())
        if marks:  # room for one stands before all texts, which line up
            self.setIcon(theme.icon("check", MARK_PX, "accent") if action.isChecked() else QIcon(_gap()))
            self.setIconSize(QSize(MARK_PX, MARK_PX))
        self.clicked.connect(menu.hide)
        self.clicked.connect(lambda: action.trigger())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(self.rect().adjusted(0, 0, -EDGE_PX, 0), int(right), self._keys)


def _gap() -> QPixmap:
    """Return nothing, as wide as a check mark."""
    nothing = QPixmap(MARK_PX, MARK_PX)
    nothing.fill(Qt.GlobalColor.transparent)
    return nothing
