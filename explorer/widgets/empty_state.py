"""What a view shows while there is nothing to show: a sign, what to do, and a button that does it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer import theme


class EmptyState(QWidget):
    """A centred picture, title, sentence and at most one primary button."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("emptyState")
        self._icon_name = "info"
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._title = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self._title, "title")
        self._text = QLabel(alignment=Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, wordWrap=True)
        theme.set_role(self._text, "secondary")
        for label in (self._title, self._text):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setFixedWidth(440)
        self.button = QPushButton(objectName="emptyStateButton")
        theme.set_role(self.button, "primary")
        self._action: QAction | None = None
        self.button.clicked.connect(self._trigger)
        self._lay_out()
        theme.theme().changed.connect(self._draw_icon)

    def tell(self, icon: str, title: str, text: str, action: QAction | None = None) -> None:
        """Shows this; the button is there if there is an action, with its words."""
        self._icon_name, self._action = icon, action
        self._draw_icon()
        self._title.setText(title)
        self._text.setText(text)
        self.button.setVisible(action is not None)
        if action is not None:
            self.button.setText(action.text())
            self.button.setAccessibleName(action.text())
            self.button.setEnabled(action.isEnabled())

    def _trigger(self) -> None:
        if self._action is not None:
            self._action.trigger()

    def _draw_icon(self) -> None:
        self._icon.setPixmap(theme.icon(self._icon_name, 40, "outline").pixmap(40, 40))

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(self.button)
        row.addStretch()
        column = QVBoxLayout(self)
        column.setSpacing(theme.INSIDE)
        column.addStretch(2)
        column.addWidget(self._icon)
        column.addSpacing(theme.INSIDE)
        column.addWidget(self._title)
        column.addWidget(self._text, alignment=Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(theme.BETWEEN)
        column.addLayout(row)
        column.addStretch(3)
