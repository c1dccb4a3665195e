"""A hover card: image, text, and a few numbers in columns."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import announce
from explorer.widgets.wrapped_label import WrappedLabel

PICTURE_PX = 96
WORDS_PX = 232
AWAY_PX = 18


class HoverRow(Struct, frozen=True):
    """One line of numbers: a colored name and its values."""

    name: str
    color: str
    values: tuple[str, ...]


class HoverCard(QFrame):
    """A card about a point of its parent, docked away from the pointer; ignores the mouse."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="hoverCard")
        theme.set_role(self, "raised")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._picture = layouts.text(role="small", align=Qt.AlignmentFlag.AlignCenter, name="hoverPicture")
        self._picture.setFixedSize(PICTURE_PX, PICTURE_PX)
        self._caption, self._line = WrappedLabel(), WrappedLabel()
        theme.set_role(self._line, "small")
        for label in (self._caption, self._line):
            label.setFixedWidth(WORDS_PX)
        self._grid = layouts.grid(theme.BETWEEN, 2)
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
        for row_index, row in enumerate(rows, start=1):
            name = _label(f"● {row.name}", "", right=False)
            name.setStyleSheet(f"color: {row.color};")
            self._grid.addWidget(name, row_index, 0)
            for column, value in enumerate(row.values, start=1):
                self._grid.addWidget(_label(value, "", right=True), row_index, column)
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

    def show_at(self, on_screen: QPoint, over: QWidget) -> None:
        """Show the card in the corner of `over` that is farthest from this point: it covers nothing near it.

        Over a widget too narrow for it, it takes the width of its parent: what is above and below stays uncovered.
        """
        self.adjustSize()
        parent = self.parentWidget() or over
        position, room = parent.mapFromGlobal(on_screen), QRect(over.mapTo(parent, QPoint()), over.size())
        if room.width() < self.width() + AWAY_PX:
            room = QRect(0, room.y(), parent.width(), room.height())
        middle = room.center()
        x = room.right() - AWAY_PX - self.width() if position.x() < middle.x() else room.left() + AWAY_PX
        y = room.bottom() - AWAY_PX - self.height() if position.y() < middle.y() else room.top() + AWAY_PX
        self.move(max(x, 0), max(y, 0))
        announce(self, self.words)
        self.show()
        self.raise_()

    def _lay_out(self) -> None:
        texts = layouts.column(self._caption, self._line, self._grid, layouts.STRETCH, gap=theme.SPACE)
        picture = (self._picture, 0, Qt.AlignmentFlag.AlignTop)
        layouts.row(picture, texts, gap=theme.INSIDE + 4, margins=theme.INSIDE + 2, of=self)


def _label(text: str, role: str, *, right: bool) -> QLabel:
    label = layouts.text(text, role)
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    return label
