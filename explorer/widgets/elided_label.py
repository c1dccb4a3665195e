"""A one-line label that elides its text if necessary; the tool tip then has all of it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QWidget

from explorer import theme

NARROWEST_PX = 48
"""Narrower than this a line says nothing, and is left empty."""
_CHANGES_WIDTH = (QEvent.Type.FontChange, QEvent.Type.StyleChange, QEvent.Type.ContentsRectChange)


class ElidedLabel(QLabel):
    """A label that uses the available width and never asks for more.

    It is for captions: what two runs are called is short, and is painted whole.
    """

    mode = Qt.TextElideMode.ElideRight  # Where a text without room is cut.
    is_run_name = False  # Whether it is cut as `elided_name` does.
    drops_parts = False  # Whether the last of the parts between ` · ` are left out whole before one is cut.

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        self._details, self._reserved, self._lines = "", "", 1
        super().__init__(text, parent, textFormat=Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(NARROWEST_PX, super().minimumSizeHint().width()), super().minimumSizeHint().height())

    def setText(self, text: str) -> None:
        super().setText(text)
        self._explain()

    def sizeHint(self) -> QSize:
        wide = self.fontMetrics().horizontalAdvance(self._reserved) if self._reserved else 0
        return super().sizeHint().expandedTo(QSize(wide, 0))

    def reserve(self, text: str) -> None:
        """Prefer room for this text, too, so that those that follow each other quickly need no new layout."""
        self._reserved = text
        self.updateGeometry()

    def set_lines(self, lines: int) -> None:
        """Let the text take as many lines before it is cut."""
        if lines != self._lines:
            self._lines = lines
            self.setMinimumHeight(lines * self.fontMetrics().lineSpacing() if lines > 1 else 0)
            self._explain()
            self.update()

    def set_details(self, text: str) -> None:
        """Let the tool tip say more than the line, whether that is cut or not."""
        self._details = text
        self._explain()

    @property
    def elided(self) -> str:
        """The text painted."""
        if self.width() < min(NARROWEST_PX, self.sizeHint().width()):
            return ""
        width = self.contentsRect().width()
        if self._lines > 1 and self.sizeHint().width() > width:
            return "\n".join(wrapped(self.text(), self.fontMetrics(), width, self._lines))
        if self.is_run_name:
            return elided_name(self.text(), self.fontMetrics(), width)
        parts = self.text().split(" · ")
        while self.drops_parts and len(parts) > 1 and self.fontMetrics().horizontalAdvance(" · ".join(parts)) > width:
            parts.pop()
        return self.fontMetrics().elidedText(" · ".join(parts), self.mode, width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._explain()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        # One that nobody sees is measured when it is shown: a start changes the fonts of a thousand.
        if event.type() in _CHANGES_WIDTH and self.isVisible():
            self._explain()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._explain()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse and self.elided == self.text():
            super().paintEvent(event)  # with what is selected
            return
        painter = QPainter(self)
        side = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        self.style().drawItemText(
            painter, self.contentsRect(), side, self.palette(), self.isEnabled(), self.elided, self.foregroundRole()
        )

    def _explain(self) -> None:
        is_whole = self.elided.replace("\n", " ") == self.text()
        self.setToolTip(self._details or ("" if is_whole else self.text()))


def elided_name(name: str, metrics: QFontMetrics, width: int) -> str:
    """Return the name of a run, cut before the seed that ends it: `CLOOB · cloth… · s0 (2)`, or `… s0 (2)`."""
    head, dot, end = name.rpartition(" · ")
    room = width - metrics.horizontalAdvance(dot + end)
    if metrics.horizontalAdvance(name) <= width or not head or room < metrics.horizontalAdvance(f"{head[:2]}…"):
        middle = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, width)
        fits = bool(head) and metrics.horizontalAdvance(f"… {end}") <= width
        return f"… {end}" if fits and middle != name else middle
    return metrics.elidedText(head, Qt.TextElideMode.ElideRight, room) + dot + end


def wrapped(text: str, metrics: QFontMetrics, width: int, most: int) -> list[str]:
    """Return a text wrapped to a width, in `most` lines or fewer; of a longer one the middle of the last is left out.

    Captions that differ by their last words stay distinct. No word is cut where two have room.
    """
    lines: list[str] = []
    parts = text.split()
    while parts:
        too_wide = (n for n in range(len(parts)) if metrics.horizontalAdvance(" ".join(parts[: n + 1])) > width)
        fitting = next(too_wide, len(parts))
        used = len(parts) if len(lines) == most - 1 else max(fitting, 1)
        lines.append(" ".join(parts[:used]) if fitting >= used else _without_middle(parts[:used], metrics, width))
        parts = parts[used:]
    return lines


def _without_middle(parts: list[str], metrics: QFontMetrics, width: int) -> str:
    """Return as many of the first and of the last words as fit; letters of them where not even two words do."""
    line = metrics.elidedText(" ".join(parts), Qt.TextElideMode.ElideMiddle, width)
    for total in range(2, len(parts)):
        longer = " ".join((*parts[: (total + 1) // 2], "…", *parts[-(total // 2) :]))
        if metrics.horizontalAdvance(longer) > width:
            break
        line = longer
    return line


def heading() -> ElidedLabel:
    """Return the title of a card: as wide as its text where there is room."""
    title = ElidedLabel()
    title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
    theme.set_role(title, "strong")
    return title
