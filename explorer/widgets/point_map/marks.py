"""Marks drawn over the points: a few selected ones, rings around hovered ones, the line of a pair, lasso and brush."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from jaxtyping import Float
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from explorer.theme import color

RING_PX = 8.0
LARGE_PX = 6.0
"""Half of a selected point's size, where they are few."""


class PlaceMarks(pg.GraphicsObject):
    """Rings and outlines at map positions, of the same size at every zoom."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(10)
        self.rings: list[QPointF] = []
        self.current: list[QPointF] = []
        self.large: list[tuple[QPointF, bool, QColor]] = []
        self.outline: Float[np.ndarray, "m 2"] = np.empty((0, 2))
        self.brush: Float[np.ndarray, "m 2"] = np.empty((0, 2))
        self.brush_px = 0.0

    def set_rings(self, positions: list[QPointF], current: list[QPointF]) -> None:
        """Ring the image and the text of the hovered pair and of the `current` one, and join each two with a line."""
        self.rings, self.current = positions, current
        self.update()

    def set_large(self, points: list[tuple[QPointF, bool, QColor]]) -> None:
        """Draw these selected points large: the position of each, whether it is a diamond, and its color."""
        self.large = points
        self.update()

    def set_outline(self, corners: Float[np.ndarray, "m 2"]) -> None:
        """Draw the lasso or rectangle through `corners`; none for an empty array."""
        self.outline = corners
        self.update()

    def set_brush(self, stroke: Float[np.ndarray, "m 2"], radius_px: float) -> None:
        """Draw the brush at its position, or its stroke so far; none for an empty array."""
        self.brush, self.brush_px = stroke, radius_px
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF() if self.getViewBox() is None else self.getViewBox().viewRect()

    def viewTransformChanged(self) -> None:
        super().viewTransformChanged()
        self.prepareGeometryChange()

    def paint(self, painter: QPainter, *_: object) -> None:
        transform = painter.worldTransform()
        painter.save()
        painter.resetTransform()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_outline(painter, QPolygonF([transform.map(QPointF(*corner)) for corner in self.outline]))
        self._paint_brush(painter, [transform.map(QPointF(*position)) for position in self.brush])
        self._paint_large(painter, [(transform.map(position), diamond, ink) for position, diamond, ink in self.large])
        for positions, role in ((self.rings, "text"), (self.current, "accent")):
            self._paint_rings(painter, [transform.map(position) for position in positions], color(role))
        painter.restore()

    def _paint_outline(self, painter: QPainter, corners: QPolygonF) -> None:
        if len(corners) < 2:
            return
        fill = QColor(color("accent"))
        fill.setAlphaF(0.12)
        painter.setBrush(fill)
        painter.setPen(QPen(color("accent"), 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPolygon(corners, Qt.FillRule.WindingFill)

    def _paint_brush(self, painter: QPainter, stroke: list[QPointF]) -> None:
        if not stroke:
            return
        fill = QColor(color("accent"))
        fill.setAlphaF(0.16)
        round_pen = (Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
        if len(stroke) > 1:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(fill, 2 * self.brush_px, *round_pen))
            painter.drawPolyline(QPolygonF(stroke))
        painter.setBrush(Qt.BrushStyle.NoBrush if len(stroke) > 1 else fill)
        painter.setPen(QPen(color("accent"), 1.5))
        painter.drawEllipse(stroke[-1], self.brush_px, self.brush_px)

    def _paint_large(self, painter: QPainter, points: list[tuple[QPointF, bool, QColor]]) -> None:
        # The ground around each keeps it apart from its neighbors, whose color may be its own.
        pens = QPen(color("surface"), 5.0), QPen(color("text"), 1.75)
        for pen in pens if len(points) == 2 else ():
            painter.setPen(pen)
            self._paint_line(painter, points[0][0], points[1][0])
        for center, diamond, ink in points:
            reach = LARGE_PX * (1.25 if diamond else 1.0)
            corners = QPolygonF([center + QPointF(*corner) * reach for corner in ((0, -1), (1, 0), (0, 1), (-1, 0))])
            painter.setBrush(ink)
            for pen in pens:
                painter.setPen(pen)
                painter.drawPolygon(corners) if diamond else painter.drawEllipse(center, reach, reach)

    def _paint_rings(self, painter: QPainter, positions: list[QPointF], ink: QColor) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        # A wide stroke of the ground below a thin one of the ink stays visible on every color.
        for pen in (QPen(color("surface"), 4.5), QPen(ink, 1.75)):
            painter.setPen(pen)
            if len(positions) == 2:
                self._paint_line(painter, *positions)
            for position in positions:
                painter.drawEllipse(position, RING_PX, RING_PX)

    def _paint_line(self, painter: QPainter, start: QPointF, end: QPointF) -> None:
        vector = end - start
        length = float(np.hypot(vector.x(), vector.y()))
        if length > 2 * RING_PX:
            inset = vector * (RING_PX / length)
            painter.drawLine(start + inset, end - inset)
