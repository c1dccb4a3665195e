"""Names at the ends of curves, in their colors: what a legend would say, where it is looked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QWidget

from explorer.theme import INSIDE, SMALL_PX, color, pixel_font, theme
from explorer.widgets.elided_label import elided_name
from explorer.widgets.plot import EDGE_PX, Plot
from trainer.analysis.palette import LEAST_TEXT, readable

MOST: Final = 8
"""More names than this hide each other."""
LINE_PX: Final = SMALL_PX + 2
MOST_SHARE: Final = 3
"""A panel gives a part of so many to the names: the curves are what is looked at."""
SEPARATOR: Final = " · "
LEADER_PX: Final = 12
"""Between the ends of curves and names, some of which lie higher or lower than their curve ends."""
LEAST_AHEAD, LONGEST_AHEAD = 0.1, 0.99
"""Of an axis behind the longest curve: less is no room for names, and one that has just begun has no more."""
GUTTER_STEP_PX: Final = 24
EARLY_PX, GROUND_ALPHA = 48, 0.8
"""A curve that ends so far before the longest one has its name at its own end, on a ground that lets others through."""


class EndLabel(Struct, frozen=True):
    """The name of one curve at its last point, in data units."""

    text: str
    color: str
    x: float
    y: float


class EndLabels(QWidget):
    """Names over a plot, behind its longest curve, which let the pointer through; `set_room` keeps the width free."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(plot)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._plot = plot
        self.labels: tuple[EndLabel, ...] = ()
        self._left_out: frozenset[str] = frozenset()
        self._font = pixel_font(SMALL_PX, weight=QFont.Weight.DemiBold)
        plot.getViewBox().sigRangeChanged.connect(lambda *_: self.update())
        plot.getViewBox().sigResized.connect(lambda *_: self.update())

    @property
    def room_px(self) -> int:
        """The width that the longest name takes."""
        metrics = QFontMetrics(self._font)
        behind = [label for label in self.labels if not self.ends_early(label)]
        wide = max((metrics.horizontalAdvance(self.written(label)) for label in behind), default=0)
        return wide + INSIDE + LEADER_PX * (len(behind) > 1) if wide else 0

    def ends_early(self, label: EndLabel) -> bool:
        """Whether the name stands at the end of its curve, because another curve is much longer."""
        (low, high), _ = self._plot.getViewBox().viewRange()
        last = min(max(each.x for each in self.labels), high)
        return (last - label.x) / (high - low) * self._plot.getViewBox().width() > EARLY_PX

    def written(self, label: EndLabel) -> str:
        """Return what is written of a name."""
        parts = label.text.split(SEPARATOR)
        return SEPARATOR.join(part for part in parts if part not in self._left_out) or label.text

    def leave_out(self, parts: frozenset[str]) -> None:
        """Write the names without these parts of them."""
        self._left_out = parts
        self.update()

    def gutter_px(self, panel_px: int) -> int:
        """Return the width that the names need outside the plot of a panel, in coarse steps.

        A curve that is being trained leaves room for its name in the plot, which becomes narrower with each step.
        """
        (low, high), _ = self._plot.getViewBox().viewRange()
        last = max((label.x for label in self.labels), default=high)
        ahead = min((high - last) / (high - low), LONGEST_AHEAD)
        if ahead < LEAST_AHEAD:
            return self.room_px
        plot_px = panel_px - EDGE_PX - self._plot.getPlotItem().getAxis("left").width()
        lacking = max(0.0, (self.room_px - ahead * plot_px) / (1 - ahead))
        return min(self.room_px, math.ceil(lacking / GUTTER_STEP_PX) * GUTTER_STEP_PX)

    def show_labels(self, labels: Sequence[EndLabel]) -> None:
        """Show these names; of more than `MOST` none."""
        self.labels = tuple(labels) if len(labels) <= MOST else ()
        self.update()

    def set_room(self, px: int) -> None:
        """Leave this width free, with the plot's edge: plots above each other have one, so that their axes align."""
        self._plot.getPlotItem().layout.setContentsMargins(0, 0, max(0, px - EDGE_PX), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._plot.keeps_pixels:  # The names are among them: drawn once more they would be doubled.
            return
        box = self._plot.getViewBox()
        rect = box.sceneBoundingRect()
        painter = QPainter(self)
        painter.setFont(self._font)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        early = [label for label in self.labels if self.ends_early(label)]
        labels = [label for label in self.labels if label not in early]
        for label, text_rect in zip(early, self._rects_of(early, rect), strict=True):
            ground = color("surface")
            ground.setAlphaF(GROUND_ALPHA)
            painter.fillRect(text_rect, ground)
            self._write(painter, label, text_rect)
        points = [self._end_of(label) for label in labels]
        tops = spread([point.y() - LINE_PX / 2 for point in points], rect.top(), rect.bottom())
        # Where the longest curve ends: at the end of one a little shorter they would stand on the others.
        last = max((point.x() for point in points), default=0.0)
        left = min(max(last, rect.left()), rect.right()) + INSIDE // 2 + 1
        leaders = [leader(point, left, top + LINE_PX / 2) for point, top in zip(points, tops, strict=True)]
        left += LEADER_PX * (not all(line.isEmpty() for line in leaders))
        for label, top, line in zip(labels, tops, leaders, strict=True):
            self._write(painter, label, QRectF(left, top, self.width() - left, LINE_PX), line)

    def _end_of(self, label: EndLabel) -> QPoint:
        return self._plot.mapFromScene(self._plot.getViewBox().mapViewToScene(QPointF(label.x, label.y)))

    def _rects_of(self, labels: Sequence[EndLabel], room: QRectF) -> list[QRectF]:
        """Return where the names of curves stand that end early: each behind its end, none on another."""
        metrics, points = QFontMetrics(self._font), [self._end_of(label) for label in labels]
        tops = spread([point.y() - LINE_PX / 2 for point in points], room.top(), room.bottom())
        wide = [metrics.horizontalAdvance(self.written(label)) + 1 for label in labels]
        return [QRectF(point.x() + INSIDE, top, px, LINE_PX) for point, top, px in zip(points, tops, wide, strict=True)]

    def _write(self, painter: QPainter, label: EndLabel, room: QRectF, line: QPolygonF | None = None) -> None:
        painter.setPen(color(readable(color(label.color).name(), theme().dark, LEAST_TEXT)))
        if line is not None:
            painter.drawPolyline(line)
        text = elided_name(self.written(label), painter.fontMetrics(), int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)


def leader(end: QPointF | QPoint, left: float, middle: float) -> QPolygonF:
    """Return the line from the end of a curve to its label; empty if they touch.

    Args:
        end: Of the curve.
        left: Where the name begins without a line.
        middle: Of the name's height.
    """
    gap = INSIDE // 2
    # From a curve that ends earlier it would lie over the others.
    if abs(middle - end.y()) <= LINE_PX / 3 or left - end.x() > LINE_PX:
        return QPolygonF()
    # Level up to where the longest curve ends: it bends where no curve is.
    start, bend = QPointF(end.x() + 2, end.y()), QPointF(left - gap, end.y())
    return QPolygonF([start, bend, QPointF(left + LEADER_PX - gap, middle)])


def give_room(ends: Sequence[EndLabels], panel_px: int) -> None:
    """Give panels of one axis one room for names; where it is too narrow, these are written without what all share."""
    names = {frozenset(label.text.split(SEPARATOR)) for end in ends for label in end.labels}
    shared = frozenset.intersection(*names) if len(names) > 1 else frozenset()
    for parts in (frozenset[str](), shared):
        for end in ends:
            end.leave_out(parts)
        room = max((end.gutter_px(panel_px) for end in ends), default=0)
        if room <= panel_px // MOST_SHARE:
            break
    for end in ends:
        end.set_room(min(room, panel_px // MOST_SHARE))


def spread(tops: Sequence[float], low: float, high: float) -> list[float]:
    """Return the tops moved as little as possible, in their order, so that no two lines overlap and all are inside."""
    order = sorted(range(len(tops)), key=tops.__getitem__)
    placed = [0.0] * len(tops)
    below = low - LINE_PX
    for index in order:
        below = placed[index] = max(tops[index], below + LINE_PX)
    above = high
    for index in reversed(order):
        above = placed[index] = min(placed[index], above - LINE_PX)
    return placed
