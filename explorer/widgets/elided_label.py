"""A one-line label that elides its text if necessary; the tool tip then has all of it."""

from __future__ import annotations

from itertools import takewhile

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QWidget

from explorer import theme

NARROWEST_PX = 48
"""Narrower than this a line says nothing, and is left empty."""
_CHANGES_WIDTH = (QEvent.Type.FontChange, QEvent.Type.StyleChange, QEvent.Type.ContentsRectChange)


def common_start(text: str, other: str) -> str:
    """Return what both texts begin with."""
    return "".join(sign for sign, _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def elided_apart(metrics: QFontMetrics, text: str, other: str, width: int) -> str:
    """Return a name that fits; where it does not, without words that `other` begins with too, then cut in its middle.

    Of those words the last are left out last.
    """
    if metrics.horizontalAdvance(text) <= width:
        return text
    common = common_start(text, other) if text != other else ""
    starts = [index + 1 for index, sign in enumerate(common) if sign in " -_,/"]
    rests = [f"…{text[start:].lstrip()}" for start in starts] or [text]
    rest = next((candidate for candidate in rests if metrics.horizontalAdvance(candidate) <= width), rests[-1])
    return metrics.elidedText(rest, Qt.TextElideMode.ElideMiddle, width)


class ElidedLabel(QLabel):
    """A label that uses the available width and never asks for more.

    Attributes:
        middle: It is the middle that is left out: for names that begin alike.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None, *, middle: bool = False) -> None:
        self.middle, self.apart_from = middle, ""
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(NARROWEST_PX, super().minimumSizeHint().width()), super().minimumSizeHint().height())

    def setText(self, text: str) -> None:
        super().setText(text)
        self._explain()

    @property
    def elided(self) -> str:
        """The text painted."""
        if self.width() < min(NARROWEST_PX, self.sizeHint().width()):
            return ""
        width = self.contentsRect().width()
        if self.middle:
            return elided_apart(self.fontMetrics(), self.text(), self.apart_from, width)
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, width)

    def tell_apart(self, other: str) -> None:
        """Leave out first what this text begins with as well, such as the name of the other run."""
        if other != self.apart_from:
            self.apart_from = other
            self._explain()
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._explain()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in _CHANGES_WIDTH:
            self._explain()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        side = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        self.style().drawItemText(
            painter, self.contentsRect(), side, self.palette(), self.isEnabled(), self.elided, self.foregroundRole()
        )

    def _explain(self) -> None:
        self.setToolTip("" if self.elided == self.text() else self.text())


def heading() -> ElidedLabel:
    """Return the title of a card: as wide as its text where there is room; names of runs are cut in their middle."""
    title = ElidedLabel(middle=True)
    title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
    theme.set_role(title, "strong")
    return title
