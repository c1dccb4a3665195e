"""Strokes inside the marks of a map that tell classes apart without their colors, where points are few."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import QLineF, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QPainter, QPen

from explorer.theme import color
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.rasterizer import radius
from explorer.widgets.point_map.scene import MapScene

STROKES: Final[tuple[tuple[tuple[float, float, float, float], ...], ...]] = (
    (),
    ((-1, 0, 1, 0),),
    ((0, -1, 0, 1),),
    ((-0.7, 0.7, 0.7, -0.7),),
    ((-0.7, -0.7, 0.7, 0.7),),
    ((-1, 0, 1, 0), (0, -1, 0, 1)),
    ((-0.7, 0.7, 0.7, -0.7), (-0.7, -0.7, 0.7, 0.7)),
    ((-0.8, -0.4, 0.8, -0.4), (-0.8, 0.4, 0.8, 0.4)),
    ((-0.4, -0.8, -0.4, 0.8), (0.4, -0.8, 0.4, 0.8)),
    ((-0.8, 0.6, 0, -0.6), (0, -0.6, 0.8, 0.6)),
    ((-0.8, -0.6, 0, 0.6), (0, 0.6, 0.8, -0.6)),
)
"""Lines of each glyph around the center of a mark of radius 1; the first class has none."""
LEAST_ROOM: Final = 3_000
"""Square pixels of the map for each point in sight: glyphs of marks that overlap hide their colors."""
MOST: Final = 3_000
"""More points in sight are not looked at one by one."""
REACH: Final = 0.75


def glyph_lines(class_index: int, x: float, y: float, size: float) -> list[QLineF]:
    """Return the strokes of the class at this place, inside a mark of this radius around (x, y)."""
    reach, strokes = REACH * size, STROKES[class_index % len(STROKES)]
    return [QLineF(x + reach * a, y + reach * b, x + reach * c, y + reach * d) for a, b, c, d in strokes]


def paint_glyph(painter: QPainter, class_index: int, center: QPointF, size: float) -> None:
    """Draw the glyph of a class over a mark of this radius, in the color of the ground."""
    painter.setPen(QPen(color("surface"), max(1.0, 0.25 * size), Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    painter.drawLines(glyph_lines(class_index, center.x(), center.y(), size))


class ClassGlyphs(QObject):
    """The glyphs of one map's points.

    Attributes:
        are_seen: Whether glyphs are drawn: not where points are dense.
    """

    seen_changed = Signal(bool)  # `are_seen` is another.

    def __init__(self, layer: PointLayer, parent: QObject) -> None:
        super().__init__(parent)
        self._layer = layer
        self._classes: Int[np.ndarray, " n"] | None = None
        self.are_seen = False
        layer.add_overlay(self._paint)

    def show_classes(self, classes: Int[np.ndarray, " n"] | None) -> None:
        """Set the class of every point; None where colors mean no classes."""
        self._classes = classes
        self._layer.update()

    def _paint(self, painter: QPainter, scene: MapScene) -> None:
        classes, visible = self._classes, self._layer.visible_count()
        pixels = int(scene.width * scene.height)
        has_room = classes is not None and 0 < visible <= min(MOST, pixels // LEAST_ROOM)
        if has_room != self.are_seen and not scene.moving:
            self.are_seen = has_room
            self.seen_changed.emit(has_room)
        if classes is None or scene.moving or not has_room:
            return
        size = radius(visible, pixels)
        box = self._layer.getViewBox().viewRect()
        near = self._layer.points_in(box.left(), box.top(), box.right(), box.bottom())
        near = near[near < len(classes)]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color("surface"), max(1.0, 0.25 * size), Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        centers = scene.to_pixels(self._layer.grid.xy[near]).tolist()
        lines = [
            line
            for number, (x, y) in zip(classes[near].tolist(), centers, strict=True)
            for line in glyph_lines(number, x, y, size)
        ]
        painter.drawLines(lines)
        painter.restore()
