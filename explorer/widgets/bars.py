"""A horizontal bar chart with several columns and shared row names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from explorer import theme
from trainer.analysis.label_shares import percent

ROW_PX, MOST_ROW_PX, WIDEST_PX = 32, 40, 1_400
"""Least and largest height of a row, and largest width of all: a value stands near its label."""
HEAD_PX: Final = 52
BAR_PX: Final = 14
MIN_BAR_PX: Final = 12
DOT_PX: Final = 10
NAME_SHARE: Final = 0.28
MIN_NAME_PX: Final = 72
MAX_NAME_PX: Final = 220
PALE: Final = 0.38
"""Opacity of a bar that is not the largest of its column."""


class BarColumn(Struct, frozen=True):
    """One column of bars."""

    title: str  # Over the column, beside the swatch.
    note: str  # Under the title, small.
    color: str  # Token, or `#rrggbb`, of the swatch and the bars.
    shares: tuple[float, ...] = ()  # One share in [0, 1] for every row; empty while there is none.
    texts: tuple[str, ...] = ()  # In place of the percentages; empty: the shares in percent.
    adds_up: bool = True  # Whether the sum of shares has a meaning; otherwise rows that do not fit are counted alone.

    def words(self, row: int) -> str:
        """Return the number at the end of a bar."""
        return self.texts[row] if self.texts else percent(self.shares[row])

    @property
    def top(self) -> int | None:
        """The row of the largest share."""
        return max(range(len(self.shares)), key=self.shares.__getitem__) if self.shares else None


class BarChart(QWidget):
    """Rows with a name and, in each column, a bar with its percentage; the largest of a column is emphasized.

    Rows that do not fit are summed up in a line at the end.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, accessibleName="Probabilities")
        self.names: tuple[str, ...] = ()
        self.columns: tuple[BarColumn, ...] = ()
        self._stale = False
        self._marked: frozenset[int] = frozenset()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.theme().changed.connect(self.update)

    def lanes(self) -> list[QRectF]:
        """Return where the head of each column is."""
        n = max(1, len(self.columns))
        left = self._name_width() + theme.BETWEEN
        width = (min(self.width(), WIDEST_PX) - left - (n - 1) * theme.AROUND) / n
        return [QRectF(left + i * (width + theme.AROUND), 0, width, HEAD_PX) for i in range(len(self.columns))]

    def show_bars(
        self,
        names: Sequence[str],
        columns: Sequence[BarColumn],
        *,
        stale: bool = False,
        marked: Collection[int] = (),
    ) -> None:
        """Show these rows and columns.

        Args:
            names: Of the rows, the first on top.
            columns: Each with one share a row, or with none yet.
            stale: The answer to a newer question is on its way: drawn paler.
            marked: Rows whose name has a wavy line below: no run has read it.
        """
        self.names, self.columns, self._stale = tuple(names), tuple(columns), stale
        self._marked = frozenset(marked)
        self.setAccessibleDescription(self._in_words())
        self.updateGeometry()
        self.update()

    @property
    def row_px(self) -> int:
        """The height of a row: the rows share what room there is."""
        return min(MOST_ROW_PX, max(ROW_PX, (self.height() - HEAD_PX) // max(1, len(self.names))))

    def sizeHint(self) -> QSize:
        return QSize(480, HEAD_PX + ROW_PX * max(4, min(len(self.names), 10)) + 4)

    def minimumSizeHint(self) -> QSize:
        number = QFontMetricsF(_font(strong=True)).horizontalAdvance("100.0 %") + theme.INSIDE
        columns = max(1, len(self.columns))
        lanes = columns * (number + MIN_BAR_PX) + (columns - 1) * theme.AROUND
        return QSize(round(MIN_NAME_PX + theme.BETWEEN + lanes), HEAD_PX + 3 * ROW_PX)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self._row_in_words(event.pos().y()), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = theme.smooth_painter(self)
        fitting, row_px = self._fitting(), self.row_px
        name_width, lanes = self._name_width(), self.lanes()
        for column, lane in zip(self.columns, lanes, strict=True):
            self._paint_head(painter, lane, column)
        if not self.columns:
            return
        painter.setPen(theme.color("line"))
        painter.drawLine(QPointF(0, HEAD_PX - 4.5), QPointF(min(self.width(), WIDEST_PX), HEAD_PX - 4.5))
        if self._stale:
            painter.setOpacity(0.5)
        for row in range(fitting):
            top = HEAD_PX + row * row_px
            tops = [column for column in self.columns if column.top == row]
            painter.setFont(_font(strong=bool(tops)))
            painter.setPen(theme.color("text" if tops else "secondary"))
            room = QRectF(0, top, name_width, row_px)
            _draw_elided(painter, room, self.names[row])
            if row in self._marked:
                _draw_wave(painter, room, self.names[row])
            for column, lane in zip(self.columns, lanes, strict=True):
                if column.shares:
                    self._paint_bar(painter, QRectF(lane.left(), top, lane.width(), row_px), column, row)
        self._paint_rest(painter, fitting, name_width, lanes)

    def _fitting(self) -> int:
        """Return how many rows are drawn; if not all fit, the last line sums up the others."""
        room = max(0, (self.height() - HEAD_PX) // ROW_PX)
        return len(self.names) if len(self.names) <= room else max(0, room - 1)

    def _name_width(self) -> float:
        metrics = QFontMetricsF(_font(strong=True))
        widest = max((metrics.horizontalAdvance(name) for name in self.names), default=0.0) + 2
        return min(max(widest, MIN_NAME_PX), MAX_NAME_PX, max(MIN_NAME_PX, NAME_SHARE * self.width()))

    def _paint_head(self, painter: QPainter, lane: QRectF, column: BarColumn) -> None:
        theme.fill_with(painter, theme.color(column.color, self))
        painter.drawEllipse(QRectF(lane.left(), 5, DOT_PX, DOT_PX))
        painter.setPen(theme.color("text"))
        painter.setFont(_font(strong=True))
        title = QRectF(lane.left() + DOT_PX + theme.INSIDE, 0, lane.width() - DOT_PX - theme.INSIDE, 20)
        _draw_elided(painter, title, column.title)
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        _draw_elided(painter, title.translated(0, 20), column.note)

    def _paint_bar(self, painter: QPainter, room: QRectF, column: BarColumn, row: int) -> None:
        share, is_top = column.shares[row], column.top == row
        number = QFontMetricsF(_font(strong=True)).horizontalAdvance("100.0 %")
        thick = BAR_PX * room.height() / ROW_PX
        track = QRectF(room.left(), room.center().y() - thick / 2, room.width() - number - theme.INSIDE, thick)
        theme.fill_with(painter, theme.color("sunken"))
        painter.drawRoundedRect(track, 3, 3)
        color = theme.color(column.color, self)
        if share * track.width() >= 0.5:
            # Bars that are not the largest are pale; their full edge shows where they end.
            painter.setPen(color)
            color.setAlphaF(1.0 if is_top else PALE)
            painter.setBrush(color)
            bar = QRectF(track.left(), track.top(), share * track.width(), thick)
            painter.drawRoundedRect(bar.adjusted(0.5, 0.5, -0.5, -0.5) if bar.width() > 2 else bar, 3, 3)
        painter.setPen(theme.color("text" if is_top else "secondary"))
        painter.setFont(_font(strong=is_top))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), column.words(row))

    def _paint_rest(self, painter: QPainter, fitting: int, name_width: float, lanes: list[QRectF]) -> None:
        hidden = len(self.names) - fitting
        if hidden <= 0:
            return
        theme.text_pen(painter, theme.SMALL_PX, "secondary")
        room = QRectF(0, HEAD_PX + fitting * ROW_PX, name_width, ROW_PX)
        _draw_elided(painter, room, f"{hidden} more")
        for column, lane in zip(self.columns, lanes, strict=True):
            if column.shares and column.adds_up:
                room = QRectF(lane.left(), room.top(), lane.width(), ROW_PX)
                text = percent(sum(column.shares[fitting:]))
                painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)

    def _row_in_words(self, y: float) -> str:
        row = int((y - HEAD_PX) // self.row_px)
        if not 0 <= row < self._fitting():
            return ""
        shares = [f"{column.title}: {column.words(row)}" for column in self.columns if column.shares]
        return "\n".join([self.names[row], *shares])

    def _in_words(self) -> str:
        tops = [
            f"{column.title} gives {column.words(column.top)} to {self.names[column.top]}"
            for column in self.columns
            if column.top is not None
        ]
        return "; ".join(tops)


def _font(*, strong: bool) -> QFont:
    return theme.pixel_font(theme.BODY_PX, weight=QFont.Weight.DemiBold if strong else QFont.Weight.Normal)


def _draw_wave(painter: QPainter, room: QRectF, text: str) -> None:
    """Draw a wavy line below a name."""
    metrics = QFontMetricsF(painter.font())
    right = room.left() + min(metrics.horizontalAdvance(text), room.width())
    y, x, side = room.center().y() + metrics.ascent() / 2 + 3, room.left(), 1
    points = []
    while x <= right:
        points.append(QPointF(x, y + side))
        x, side = x + 2, -side
    painter.save()
    painter.setPen(QPen(theme.color("warn"), 1))
    painter.drawPolyline(points)
    painter.restore()


def _draw_elided(painter: QPainter, room: QRectF, text: str) -> None:
    elided = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(room, int(left | Qt.TextFlag.TextSingleLine), elided)
