"""A legend of series with their colors, marks, and selected / total counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme

Mark = Literal["disc", "diamond", "line", "square"]
MARK_PX = 18
"""Width of a line in front of a text; of other marks, that of the room around them."""
DOT_PX, LEAST_DOT_PX = 9.0, 8.0  # of less, a disc and a diamond look alike


@dataclass(frozen=True)
class LegendEntry:
    """One series: text, color (`#rrggbb`), mark, dashes and width of a line, brush of a bar, counts, and size."""

    words: str
    color: str
    mark: Mark = "disc"
    dash: tuple[float, ...] = ()
    width: float = 2.0
    brush: QBrush | None = None
    total: int | None = None
    selected: int | None = None
    size: float = field(default=DOT_PX, compare=False)

    @property
    def text(self) -> str:
        """The text with the count: `images 12 / 1,024`."""
        if self.total is None:
            return self.words
        count = f"{self.total:,}" if self.selected is None else f"{self.selected:,} / {self.total:,}"
        return f"{self.words}  {count}"


class Legend(QWidget):
    """A row of entries that moves closer together, then wraps, where it has no room."""

    clicked = Signal(int)  # The place of the entry that was clicked.

    LINE = 22

    def __init__(self, parent: QWidget | None = None) -> None:
        # Qt tells of its font before the rest is there.
        self._laid: dict[int, list[QRectF]] = {}
        super().__init__(parent)
        self.entries: tuple[LegendEntry, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.theme().changed.connect(self.update)

    def show_entries(self, entries: Sequence[LegendEntry]) -> None:
        """Show exactly these."""
        if tuple(entries) != self.entries:
            self.entries = tuple(entries)
            self._laid.clear()
            self.setAccessibleDescription(", ".join(entry.text for entry in self.entries))
            self.updateGeometry()
            self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        rects = self._places(width)
        return int(rects[-1].bottom()) if rects else self.LINE

    def sizeHint(self) -> QSize:
        return QSize(240, self.heightForWidth(max(240, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.LINE)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        for index, room in enumerate(self._places(self.width())):
            if room.contains(event.position()):
                self.clicked.emit(index)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        painter.setFont(theme.pixel_font(theme.SMALL_PX))
        for entry, room in zip(self.entries, self._places(self.width()), strict=True):
            paint_mark(
                painter,
                QPointF(room.left() + MARK_PX / 2, room.center().y()),
                entry.mark,
                QColor(entry.color),
                entry.dash,
                entry.brush,
                min(max(entry.size, LEAST_DOT_PX), MARK_PX - 4),
                entry.width,
            )
            painter.setPen(theme.color("secondary"))
            text_rect = room.adjusted(MARK_PX + 5, 0, 0, 0)
            middle, width = Qt.TextElideMode.ElideMiddle, math.ceil(text_rect.width())
            text = painter.fontMetrics().elidedText(entry.text, middle, width)  # wider than the whole legend
            painter.drawText(text_rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def changeEvent(self, event: QEvent) -> None:
        self._laid.clear()
        super().changeEvent(event)

    def _places(self, width: int) -> list[QRectF]:
        # Layouts ask dozens of times for one change of theirs.
        if width not in self._laid:
            self._laid[width] = self._lay(width)
        return self._laid[width]

    def _lay(self, width: int) -> list[QRectF]:
        metrics, most = QFontMetrics(theme.pixel_font(theme.SMALL_PX)), max(width, 2.0 * MARK_PX)
        widths = [min(metrics.horizontalAdvance(entry.text) + MARK_PX + 6.0, most) for entry in self.entries]
        gap = theme.BETWEEN if sum(widths) + theme.BETWEEN * (len(widths) - 1) <= width else theme.INSIDE
        rects, x, y = [], 0.0, 0.0
        for wide in widths:
            if x > 0 and x + wide > width:
                x, y = 0.0, y + self.LINE
            rects.append(QRectF(x, y, wide, self.LINE))
            x += wide + gap
        return rects


def paint_mark(
    painter: QPainter,
    center: QPointF,
    mark: Mark,
    paint: QColor,
    dash: tuple[float, ...] = (),
    brush: QBrush | None = None,
    size: float = DOT_PX,
    width: float = 2.0,
) -> None:
    """Draw one mark around `center`, about `size` px wide, or a line of this width with these dashes."""
    theme.fill_with(painter, brush if brush is not None else paint)
    x, y, half = center.x(), center.y(), size / 2
    if mark == "disc":
        painter.drawEllipse(center, half, half)
    elif mark == "diamond":
        half += 1
        corners = [QPointF(x, y - half), QPointF(x + half, y), QPointF(x, y + half), QPointF(x - half, y)]
        painter.drawPolygon(QPolygonF(corners))
    elif mark == "square":
        painter.drawRoundedRect(QRectF(x - half, y - half, size, size), 2, 2)
    else:
        pen = QPen(paint, width)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if dash:
            # Shorter than in the plot, so that the pattern fits; of less than a square, dots would be a pale line.
            pen.setDashPattern([max(1.0, 0.6 * part) * 2.0 / width for part in dash])
        painter.setPen(pen)
        painter.drawLine(QPointF(x - MARK_PX / 2, y), QPointF(x + MARK_PX / 2, y))
