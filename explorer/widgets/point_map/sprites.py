"""Images in place of a map's discs when few enough points are visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from explorer.theme import SPACE, color
from explorer.widgets.point_map.layer import PointLayer
from explorer.widgets.point_map.scene import MapScene

SIDE_PX: Final = 44
"""Longer side of a picture; pictures never overlap, so that each is seen whole."""
MOST_NEAR: Final = 1_200
"""More points in sight are too many to look at one by one: they stay marks."""
MOST: Final = 160
"""Pictures drawn at once."""
FEWEST_SHARE: Final = 0.3
"""Pictures come when at least this share of the discs in sight have room for one: before, they would hide the rest."""
SETTLED_MS: Final = 120
DIMMED: Final = 0.2
"""Opacity of the pictures that are not selected, where any is."""


class Sprites(QObject):
    """The images of one map.

    Args:
        layer: Whose points.
        picture: The picture of a point, None while it is being decoded or cannot be. Called for few points only.
        wanted: Which points may have a picture (images, not texts).
        parent: Lives as long.
    """

    def __init__(
        self,
        layer: PointLayer,
        picture: Callable[[int], QPixmap | None],
        ink: Callable[[int], QColor],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._layer, self._picture, self._ink = layer, picture, ink
        self._wanted: Bool[np.ndarray, " n"] = np.empty(0, bool)
        self._first: Bool[np.ndarray, " n"] | None = None
        self.shown = True
        self.twin: Sprites | None = None
        """Of the map beside this one: pictures come to both, if there is room for enough of them in one."""
        self.share = 0.0
        """Of the images in sight, those that have room for a picture."""
        self._chosen: Int[np.ndarray, " k"] = np.empty(0, np.int64)
        self.points: Int[np.ndarray, " k"] = np.empty(0, np.int64)
        self._soon = QTimer(self, singleShot=True, interval=SETTLED_MS, timeout=self._choose)
        layer.framed.connect(self._soon.start)
        layer.indexed.connect(self._soon.start)
        layer.add_overlay(self._paint)

    def set_points(self, eligible: Bool[np.ndarray, " n"]) -> None:
        """Handle new points; `eligible` ones may have images."""
        self._wanted, self._first = eligible, None
        self.points = np.empty(0, np.int64)
        self._soon.start()

    def set_first(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Give selected points space before others, which are dimmed; None: none are selected."""
        self._first = mask
        self._soon.start()

    def set_shown(self, visible: bool) -> None:
        """Show or hide the images."""
        self.shown = visible
        self._choose()

    def refresh(self) -> None:
        """Repaint, because an image has been decoded."""
        if len(self.points):
            self._layer.update()

    def _choose(self) -> None:
        self.share, self._chosen = 0.0, np.empty(0, np.int64)
        box = self._layer.getViewBox()
        if self.shown and box is not None and self._layer.visible_count() <= 4 * MOST_NEAR:
            view = box.viewRect()
            near = self._layer.points_in(view.left(), view.top(), view.right(), view.bottom())
            near = near[near < len(self._wanted)]
            near = near[self._wanted[near]]
            if 0 < len(near) <= MOST_NEAR:
                across, down = box.viewPixelSize()
                positions = self._layer.grid.xy[near] / (across, down)
                first = self._first[near] if self._first is not None else np.zeros(len(near), bool)
                self._chosen = near[without_overlap(positions, first, SIDE_PX, most=MOST)]
                self.share = len(self._chosen) / len(near)
        for sprites in (self, self.twin):
            if sprites is not None:
                sprites.show_chosen()

    def show_chosen(self) -> None:
        """Show the pictures that have room, if they are enough in one of the two maps."""
        share = max(self.share, self.twin.share if self.twin is not None else 0.0)
        before, self.points = self.points, self._chosen if share >= FEWEST_SHARE else np.empty(0, np.int64)
        if not np.array_equal(before, self.points):
            self._layer.update()

    def rects(self, scene: MapScene) -> list[QRectF]:
        """Return the squares that the pictures take, in widget pixels."""
        middles = scene.to_pixels(self._layer.grid.xy[self.points]) if len(self.points) else ()
        half = (SIDE_PX - SPACE) / 2
        return [QRectF(float(x) - half, float(y) - half, 2 * half, 2 * half) for x, y in middles]

    def _paint(self, painter: QPainter, scene: MapScene) -> None:
        if not len(self.points):
            return
        painter.save()
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for point, (x, y) in zip(self.points.tolist(), scene.to_pixels(self._layer.grid.xy[self.points]), strict=True):
            picture = self._picture(point)
            if picture is None:
                continue
            painter.setOpacity(1.0 if self._first is None or self._first[point] else DIMMED)
            size = picture.size().scaled(SIDE_PX - SPACE, SIDE_PX - SPACE, Qt.AspectRatioMode.KeepAspectRatio)
            rect = QRectF(0, 0, size.width(), size.height())
            rect.moveCenter(QPointF(float(x), float(y)))
            painter.setPen(QPen(color("surface"), 4))
            painter.drawRect(rect)
            painter.drawPixmap(rect, picture, QRectF(picture.rect()))
            painter.setPen(QPen(self._ink(point), 2))
            painter.drawRect(rect)
        painter.restore()


def without_overlap(
    positions: Float[np.ndarray, "n 2"], first: Bool[np.ndarray, " n"], side: float, *, most: int
) -> Int[np.ndarray, " k"]:
    """Return at most `most` rows, ascending, whose squares of this side do not overlap; `first` ones have priority.

    Otherwise a lower row goes before a higher one, so that what is shown stays when the view moves a little.
    """
    order = np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)])
    cells: dict[tuple[int, int], list[tuple[float, float]]] = {}
    chosen = []
    for row in order.tolist():
        if len(chosen) == most:
            break
        x, y = float(positions[row, 0]), float(positions[row, 1])
        if not (np.isfinite(x) and np.isfinite(y)):
            continue
        column, line = int(x // side), int(y // side)
        near = (p for i in (-1, 0, 1) for j in (-1, 0, 1) for p in cells.get((column + i, line + j), ()))
        if all(abs(x - a) >= side or abs(y - b) >= side for a, b in near):
            cells.setdefault((column, line), []).append((x, y))
            chosen.append(row)
    return np.sort(np.array(chosen, np.int64))
