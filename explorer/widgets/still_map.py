"""A map as a still picture: points in the colors of their classes, drawn for each size and theme."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPixmap, QPolygonF
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.run_badge import paint_badge
from trainer.charts.color_words import own_colors
from trainer.distribution.sample_card import SampleMap

_MARGIN: Final = 14
_HEAD: Final = 40
_RADIUS: Final = 2.1
_ACROSS: Final = _RADIUS * 1.25
_DIAMOND: Final = QPolygonF([QPointF(0, -_ACROSS), QPointF(_ACROSS, 0), QPointF(0, _ACROSS), QPointF(-_ACROSS, 0)])


class StillMap(QWidget):
    """The map of one run with its letter and name; images are discs and captions diamonds, as in the Map view."""

    def __init__(self, index: int, drawn: SampleMap, classes: list[str], parent: QWidget | None = None) -> None:
        """Prepare; `index` is 0 for run A and 1 for run B, and `classes` the names of the points' classes."""
        super().__init__(parent, accessibleName=f"Map of {drawn.name}")
        self._index, self.sample_map, self._classes = index, drawn, classes
        self._picture = QPixmap()
        theme.theme().changed.connect(self._forget)

    def sizeHint(self) -> QSize:
        return QSize(320, 396)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 140)

    def paintEvent(self, _event: QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        if self._picture.size() != self.size() * ratio:
            self._picture = QPixmap(self.size() * ratio)
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(Qt.GlobalColor.transparent)
            self._draw(QPainter(self._picture))
        QPainter(self).drawPixmap(0, 0, self._picture)

    def _forget(self) -> None:
        self._picture = QPixmap()
        self.update()

    def _draw(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._draw_points(painter)
        self._draw_labels(painter)
        paint_badge(painter, QRectF(12, 12, 20, 20), "AB"[self._index], QColor(theme.run_shade(self._index, 0)))
        theme.text_pen(painter, theme.BODY_PX, "text", weight=QFont.Weight.DemiBold)
        painter.drawText(
            QRectF(40, 12, self.width() - 48, 20), int(Qt.AlignmentFlag.AlignVCenter), self.sample_map.name
        )
        painter.end()

    def _at(self, x: float, y: float) -> QPointF:
        width, height = self.width() - 2 * _MARGIN, self.height() - _HEAD - _MARGIN
        return QPointF(_MARGIN + x * width / 1000, _HEAD + (1 - y / 1000) * height)

    def _draw_points(self, painter: QPainter) -> None:
        names = own_colors(self._classes, dark=theme.theme().dark) or theme.class_colors(len(self._classes))
        colors = [QColor(name) for name in names]
        painter.setPen(Qt.PenStyle.NoPen)
        for x, y, color, is_caption in self.sample_map.points:
            painter.setBrush(colors[color])
            center = self._at(x, y)
            if is_caption:
                painter.drawPolygon(_DIAMOND.translated(center))
            else:
                painter.drawEllipse(center, _RADIUS, _RADIUS)

    def _draw_labels(self, painter: QPainter) -> None:
        painter.setFont(theme.pixel_font(theme.SMALL_PX, weight=QFont.Weight.DemiBold))
        for label, x, y in self.sample_map.labels:
            center = self._at(x, y)
            width = painter.fontMetrics().horizontalAdvance(label) + theme.SPACE
            left = max(0.0, min(center.x() - width / 2, self.width() - width))
            box = QRectF(left, center.y() - 8, width, 16)
            ground = theme.color("surface")
            ground.setAlphaF(0.8)
            theme.fill_with(painter, ground)
            painter.drawRoundedRect(box, theme.SPACE, theme.SPACE)
            painter.setPen(theme.color("text"))
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), label)
