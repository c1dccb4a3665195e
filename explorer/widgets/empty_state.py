"""What a view shows while there is nothing to show: a sign, what to do, and a button that does it."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer import theme

TEXT_PX = 440
LEAST_PX = 160
"""How narrow its lines may become where there is no room."""


class EmptyState(QWidget):
    """A centerd picture, title, sentence, at most one primary button and beside it at most two others."""

    def __init__(self, parent: QWidget | None = None, *, width: int = TEXT_PX) -> None:
        """Shows nothing yet; `width` is how wide its lines are, in pixels."""
        super().__init__(parent)
        self.setObjectName("emptyState")
        self._icon_name = "info"
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self.title = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        theme.set_role(self.title, "title")
        self.text = QLabel(alignment=Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, wordWrap=True)
        theme.set_role(self.text, "secondary")
        for label in (self.title, self.text):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._width = width
        self.text.setFixedWidth(width)
        self.button = QPushButton(objectName="emptyStateButton")
        theme.set_role(self.button, "primary")
        self.other, self.third = (QPushButton(objectName=f"emptyState{name}") for name in ("Other", "Third"))
        self._actions: list[QAction | None] = [None, None, None]
        for place, button in enumerate(self._buttons):
            button.clicked.connect(partial(self._trigger, place))
        self._lay_out()
        theme.theme().follow(self._draw_icon)

    @property
    def _buttons(self) -> tuple[QPushButton, QPushButton, QPushButton]:
        return self.button, self.other, self.third

    def tell(self, icon: str, title: str, text: str, *actions: QAction | None) -> None:
        """Shows this; the buttons are there if there are actions, with their words."""
        self._icon_name = icon
        self._actions = [*actions, None, None, None][:3]
        self._draw_icon()
        self.title.setText(title)
        self.text.setText(text)
        self.text.ensurePolished()
        self._make_room()
        for button, does in zip(self._buttons, self._actions, strict=True):
            button.setVisible(does is not None)
            if does is not None:
                button.setText(does.text())
                button.setAccessibleName(does.text())
                button.setEnabled(does.isEnabled())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._width, LEAST_PX), super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        margins = self.layout().contentsMargins()
        room = self.width() - margins.left() - margins.right() if self.isVisible() else self._width
        width = max(min(self._width, room), min(self._width, LEAST_PX))
        self.text.setFixedWidth(width)
        # A layout asks an aligned label for its hint only, and that of wrapped words is one line too few; without a
        # layout of its own yet, it is -1.
        self.text.setMinimumHeight(max(0, self.text.heightForWidth(width)))

    def _trigger(self, place: int, _checked: bool = False) -> None:
        if (action := self._actions[place]) is not None:
            action.trigger()

    def _draw_icon(self) -> None:
        self._icon.setPixmap(theme.icon(self._icon_name, 40, "outline").pixmap(40, 40))

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.addStretch()
        for button in self._buttons:
            row.addWidget(button)
        row.addStretch()
        column = QVBoxLayout(self)
        column.setSpacing(theme.INSIDE)
        column.addStretch(2)
        column.addWidget(self._icon)
        column.addSpacing(theme.INSIDE)
        column.addWidget(self.title)
        column.addWidget(self.text, alignment=Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(theme.BETWEEN)
        column.addLayout(row)
        column.addStretch(3)
