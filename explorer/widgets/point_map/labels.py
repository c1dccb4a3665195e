"""Labels of groups of points, placed without overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap

from explorer.theme import SMALL_PX, SPACE, color, pixel_font, smooth_painter, theme
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.scene import MapScene

NUDGES: Final = ((0.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.0, -2.0), (0.0, 2.0))
"""Where a label may stand, in its own widths and heights from its group's middle; the first free place is taken."""


HALO_PX: Final = 3
"""Width of the ground's color around the words."""


class Label(Struct, frozen=True):
    """A text and its position on the map; lists are sorted by importance."""

    text: str
    x: float
    y: float


class Labels(QObject):
    """The labels of one map."""

    def __init__(
        self, layer: PointLayer, parent: QObject, *, taken: Callable[[MapScene], Sequence[QRectF]] = lambda _scene: ()
    ) -> None:
        """Create them without a label; none is written over what is `taken`, in widget pixels."""
        super().__init__(parent)
        self._layer, self._taken = layer, taken
        self.labels: tuple[Label, ...] = ()
        self._grid = layer.grid
        self._dimmed = False
        self._pictures: dict[tuple[str, float, bool, bool], QPixmap] = {}
        self._font = pixel_font(SMALL_PX, weight=pixel_font(SMALL_PX).Weight.DemiBold)
        layer.add_overlay(self._paint)

    def show(self, labels: Sequence[Label]) -> None:
        """Show these labels until the points move, earlier ones first if not all fit."""
        self.labels, self._grid = tuple(labels), self._layer.grid
        said = {label.text for label in self.labels}
        self._pictures = {key: picture for key, picture in self._pictures.items() if key[0] in said}
        self._layer.update()

    def dim(self, on: bool) -> None:
        """Step back behind a selection: the words are of groups that are dimmed then."""
        if on != self._dimmed:
            self._dimmed = on
            self._layer.update()

    def placed(self, scene: MapScene) -> list[tuple[str, QRectF]]:
        """Return the visible labels that fit, with their rectangles in widget pixels."""
        metrics = QFontMetricsF(self._font)
        sizes = [(metrics.horizontalAdvance(label.text) + 2 * SPACE, metrics.height()) for label in self.labels]
        if not self.labels or self._grid is not self._layer.grid:
            return []
        middles = scene.to_pixels([(label.x, label.y) for label in self.labels])
        room = QRectF(0, 0, scene.width, scene.height)
        positions = [(float(x), float(y)) for x, y in middles]
        rects = place_without_overlap(positions, sizes, room, self._taken(scene))
        return [(label.text, rect) for label, rect in zip(self.labels, rects, strict=True) if rect is not None]

    def _paint(self, painter: QPainter, scene: MapScene) -> None:
        for text, rect in self.placed(scene):
            painter.drawPixmap(rect.topLeft() - QPointF(HALO_PX, HALO_PX), self._picture(text, scene.ratio))

    def _picture(self, text: str, ratio: float) -> QPixmap:
        """Return the text on a halo, cached because stroking its outline takes a millisecond.

        Words that step back are of a paler color, not translucent: how Qt rounds a picture that is drawn with an
        opacity depends on where in memory its lines begin, so that no two paintings would be equal.
        """
        key = (text, ratio, theme().dark, self._dimmed)
        if key not in self._pictures:
            metrics = QFontMetricsF(self._font)
            width, height = metrics.horizontalAdvance(text) + 2 * (SPACE + HALO_PX), metrics.height() + 2 * HALO_PX
            picture = QPixmap(ceil(width * ratio), ceil(height * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            outline = QPainterPath()
            outline.addText(QPointF(SPACE + HALO_PX, HALO_PX + metrics.ascent()), self._font, text)
            painter = smooth_painter(picture)
            style = Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin
            pen = QPen(color("surface"), 2 * HALO_PX, *style)
            painter.strokePath(outline, pen)
            painter.fillPath(outline, color("secondary" if self._dimmed else "text"))
            painter.end()
            self._pictures[key] = picture
        return self._pictures[key]


def place_without_overlap(
    middles: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    room: QRectF,
    taken: Sequence[QRectF] = (),
) -> list[QRectF | None]:
    """Return a free rectangle for each label nearest to its center, or None if there is no space.

    Args:
        middles: Where each would stand, in pixels; one that is outside the room gets no place.
        sizes: Width and height of each.
        room: What is seen.
        taken: Where none may stand.
    """
    taken = [*taken]
    rects: list[QRectF | None] = []
    for (x, y), (width, height) in zip(middles, sizes, strict=True):
        rect = None
        if room.contains(x, y):
            for across, down in NUDGES:
                tried = QRectF(x - width / 2 + across * width, y - height / 2 + down * height, width, height)
                if room.contains(tried) and not any(tried.intersects(other) for other in taken):
                    rect = tried
                    taken.append(tried)
                    break
        rects.append(rect)
    return rects
