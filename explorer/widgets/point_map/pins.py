"""Images pinned to positions of a map that are not among its points, with their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPixmap

from explorer.theme import SMALL_PX, SPACE, color, pixel_font
from explorer.widgets.point_map.labels import place_without_overlap
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.scene import MapScene

PICTURE_PX: Final = 48
WIDTH_PX: Final = 72
OFF_PX: Final = 14
"""From the place to the picture that hangs over it."""
DOT_PX: Final = 5


class Pin(Struct, frozen=True):
    """An image and its position."""

    path: str
    name: str
    x: float
    y: float


class Pins(QObject):
    """The pins of one map."""

    def __init__(
        self,
        layer: PointLayer,
        picture: Callable[[str], QPixmap | None],
        ink: Callable[[], QColor],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._layer, self._picture, self._ink = layer, picture, ink
        self.pins: tuple[Pin, ...] = ()
        layer.add_overlay(self._paint)

    def show(self, pins: Sequence[Pin]) -> None:
        """Pin exactly these."""
        self.pins = tuple(pins)
        self._layer.update()

    def placed(self, scene: MapScene) -> list[tuple[Pin, QPointF, QRectF | None]]:
        """Return each visible pin, its position in pixels, and its image's rectangle if it fits."""
        if not self.pins:
            return []
        positions = scene.to_pixels(np.array([(pin.x, pin.y) for pin in self.pins]))
        height = PICTURE_PX + SMALL_PX + 3 * SPACE
        middles = [(float(x), float(y) - OFF_PX - height / 2) for x, y in positions]
        room = QRectF(scene.corner[0], scene.corner[1], scene.width, scene.height)
        # A place at the upper edge has its picture pushed into sight, where labels would be left away.
        inside = [
            (min(max(x, room.left() + WIDTH_PX / 2), room.right() - WIDTH_PX / 2), max(y, room.top() + height / 2))
            for x, y in middles
        ]
        cards = place_without_overlap(inside, [(WIDTH_PX, height)] * len(inside), room)
        rows = zip(self.pins, (QPointF(*map(float, position)) for position in positions), cards, strict=True)
        return [(pin, position, card) for pin, position, card in rows if room.contains(position)]

    def _paint(self, painter: QPainter, scene: MapScene) -> None:
        if not self.pins:
            return
        painter.save()
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        painter.setFont(pixel_font(SMALL_PX))
        ink = self._ink()
        for pin, position, card in self.placed(scene):
            if card is not None:
                painter.setPen(QPen(ink, 1.5))
                painter.drawLine(QPointF(position.x(), card.bottom()), position)
                self._paint_card(painter, pin, card, ink)
            painter.setPen(QPen(color("surface"), 2))
            painter.setBrush(ink)
            painter.drawEllipse(position, DOT_PX, DOT_PX)
        painter.restore()

    def _paint_card(self, painter: QPainter, pin: Pin, card: QRectF, ink: QColor) -> None:
        painter.setPen(QPen(ink, 1.5))
        painter.setBrush(color("raised"))
        painter.drawRoundedRect(card, SPACE, SPACE)
        room = QRectF(card.center().x() - PICTURE_PX / 2, card.top() + SPACE, PICTURE_PX, PICTURE_PX)
        picture = self._picture(pin.path)
        if picture is None:
            painter.fillRect(room, color("sunken"))
        else:
            size = picture.deviceIndependentSize().scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRectF(QPointF(0, 0), size)
            target.moveCenter(room.center())
            painter.drawPixmap(target, picture, QRectF(picture.rect()))
        painter.setPen(color("text"))
        text_rect = QRectF(card.left() + SPACE, room.bottom() + SPACE, card.width() - 2 * SPACE, SMALL_PX + SPACE)
        said = QFontMetricsF(painter.font()).elidedText(pin.name, Qt.TextElideMode.ElideMiddle, text_rect.width())
        painter.drawText(text_rect, Qt.AlignmentFlag.AlignCenter, said)
