"""A hover card: image, text, and a few numbers in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.accessible import announce

PICTURE_PX = 96
WORDS_PX = 232
AWAY_PX = 18


@dataclass(frozen=True)
class HoverRow:
    """One line of numbers: a colored name and its values."""

    name: str
    color: str
    values: tuple[str, ...]


class HoverCard(QFrame):
    """A card near a point inside its parent, never under the pointer; ignores the mouse."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("hoverCard")
        theme.set_role(self, "raised")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._picture = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._picture.setFixedSize(PICTURE_PX, PICTURE_PX)
        theme.set_role(self._picture, "small")
        self._caption, self._line = QLabel(wordWrap=True), QLabel(wordWrap=True)
        theme.set_role(self._line, "small")
        for label in (self._caption, self._line):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setFixedWidth(WORDS_PX)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.BETWEEN)
        self._grid.setVerticalSpacing(2)
        self._lay_out()
        self.hide()

    def show_message(self, caption: str, line: str, heads: Sequence[str], rows: Sequence[HoverRow]) -> None:
        """Show this text, and the numbers under their headings."""
        self._caption.setText(caption)
        self._line.setText(line)
        self._line.setVisible(bool(line))
        while (item := self._grid.takeAt(0)) is not None:
            item.widget().setParent(None)
        for column, head in enumerate(("", *heads)):
            self._grid.addWidget(_label(head, "small", right=column > 0), 0, column)
        for place, row in enumerate(rows, start=1):
            name = _label(f"● {row.name}", "", right=False)
            name.setStyleSheet(f"color: {row.color};")
            self._grid.addWidget(name, place, 0)
            for column, value in enumerate(row.values, start=1):
                self._grid.addWidget(_label(value, "", right=True), place, column)
        self.adjustSize()

    def set_picture(self, picture: QPixmap | None, *, instead: str = "") -> None:
        """Show the image, or text in its place."""
        if picture is None:
            self._picture.setPixmap(QPixmap())
            self._picture.setText(instead)
            return
        size = QSize(PICTURE_PX, PICTURE_PX) * self.devicePixelRatioF()
        fitted = picture.scaled(size, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation)
        fitted.setDevicePixelRatio(self.devicePixelRatioF())
        self._picture.setPixmap(fitted)

    @property
    def words(self) -> str:
        """The card's full text, for tests and screen readers."""
        labels = self.findChildren(QLabel)
        return "\n".join(label.text() for label in labels if label.text())

    def show_at(self, place: QPoint, room: QRect) -> None:
        """Show the card below `place`, or above it if there is more space, inside `room` of the parent."""
        self.adjustSize()
        room = room if room.width() >= self.width() else self.parentWidget().rect()
        below = place.y() + AWAY_PX
        y = below if below + self.height() <= room.bottom() else place.y() - AWAY_PX - self.height()
        x = min(max(place.x() - self.width() // 2, room.left()), room.right() - self.width())
        self.move(max(x, 0), max(y, 0))
        announce(self, self.words)
        self.show()
        self.raise_()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(theme.SPACE)
        words.addWidget(self._caption)
        words.addWidget(self._line)
        words.addLayout(self._grid)
        words.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.INSIDE + 2, theme.INSIDE + 2, theme.INSIDE + 2, theme.INSIDE + 2)
        row.setSpacing(theme.INSIDE + 4)
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words)


def _label(words: str, role: str, *, right: bool) -> QLabel:
    label = QLabel(words)
    label.setTextFormat(Qt.TextFormat.PlainText)
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    if role:
        theme.set_role(label, role)
    return label
