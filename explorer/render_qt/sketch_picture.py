"""Draws the sketch of a chart into a small picture; may be called on a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPolygonF

from explorer import theme
from explorer.render_qt.xy_plot import tone_color
from trainer.charts.sketch import CLASS, Shape, Sketch, SketchFrame

GAP_PX: Final = 14
LINE_PX: Final = 1.6
DOT_PX: Final = 3.2
CLASSES: Final = 8
AREA_ALPHA: Final = 0.45
GROUND: Final = "ground"
AXIS: Final = "axis"


def sketch_colors(sketch: Sketch) -> dict[str, str]:
    """Return tone -> color in the current theme; on the GUI thread."""
    tones = dict.fromkeys(shape.tone for frame in sketch for shape in frame.shapes)
    colors = {tone: _color(tone).name() for tone in tones}
    return {**colors, GROUND: theme.color("surface").name(), AXIS: theme.color("line").name()}


def draw_sketch(sketch: Sketch, size: QSize, ratio: float, colors: Mapping[str, str]) -> QImage:
    """Return the picture; `size` in pixels of the window, `ratio` of the screen to these."""
    image = QImage(size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor(colors[GROUND]))
    painter = theme.smooth_painter(image)
    wide = (size.width() - GAP_PX * (len(sketch) - 1)) / max(1, len(sketch))
    for at, frame in enumerate(sketch):
        _draw_frame(painter, frame, QRectF(at * (wide + GAP_PX), 0, wide, size.height()), colors)
    painter.end()
    return image


def _color(tone: str) -> QColor:
    if tone.startswith(CLASS):
        return QColor(theme.class_colors(CLASSES)[int(tone.removeprefix(CLASS)) % CLASSES])
    return tone_color(tone)


def _draw_frame(painter: QPainter, frame: SketchFrame, room: QRectF, colors: Mapping[str, str]) -> None:
    if frame.axes:
        painter.setPen(QPen(QColor(colors[AXIS]), 1))
        painter.drawPolyline([room.topLeft(), room.bottomLeft(), room.bottomRight()])
        room = room.adjusted(3, 2, -2, -2)
    painter.setClipRect(room.adjusted(-2, -2, 2, 2))
    for shape in frame.shapes:
        _DRAW[shape.kind](painter, shape, room, QColor(colors[shape.tone]), QColor(colors[GROUND]))
    painter.setClipping(False)


def _points(shape: Shape, room: QRectF) -> list[QPointF]:
    return [QPointF(room.x() + x * room.width(), room.bottom() - y * room.height()) for x, y in shape.numbers]


def _draw_line(painter: QPainter, shape: Shape, room: QRectF, color: QColor, _ground: QColor) -> None:
    painter.setPen(QPen(color, LINE_PX, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.drawPolyline(QPolygonF(_points(shape, room)))


def _draw_area(painter: QPainter, shape: Shape, room: QRectF, color: QColor, _ground: QColor) -> None:
    points = _points(shape, room)
    pale = QColor(color)
    pale.setAlphaF(AREA_ALPHA)
    is_closed = points[0].x() == points[-1].x()
    ends = [] if is_closed else [QPointF(points[-1].x(), room.bottom()), QPointF(points[0].x(), room.bottom())]
    theme.fill_with(painter, pale)
    painter.drawPolygon(QPolygonF([*points, *ends]))
    if not is_closed:
        painter.setPen(QPen(color, 1))
        painter.drawPolyline(QPolygonF(points))


def _draw_dots(painter: QPainter, shape: Shape, room: QRectF, color: QColor, _ground: QColor) -> None:
    theme.fill_with(painter, color)
    for point in _points(shape, room):
        painter.drawEllipse(point, DOT_PX / 2, DOT_PX / 2)


def _draw_bars(painter: QPainter, shape: Shape, room: QRectF, color: QColor, _ground: QColor) -> None:
    theme.fill_with(painter, color)
    for x, y, width, height in shape.numbers:
        left, top = room.x() + x * room.width(), room.bottom() - (y + height) * room.height()
        painter.drawRect(QRectF(left, top, width * room.width(), height * room.height()))


def _draw_cells(painter: QPainter, shape: Shape, room: QRectF, color: QColor, ground: QColor) -> None:
    rows, columns = len(shape.numbers), len(shape.numbers[0])
    # Square where there are as many rows as columns, else to the edges.
    side = min(room.width(), room.height() * columns / rows)
    wide, high = side / columns, room.height() / rows
    left = room.x() + (room.width() - side) / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for at, row in enumerate(shape.numbers):
        for column, share in enumerate(row):
            cell = QRectF(left + column * wide, room.y() + at * high, wide + 0.5, high + 0.5)
            painter.fillRect(cell, _mixed(color, ground, share))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _mixed(color: QColor, ground: QColor, share: float) -> QColor:
    pairs = ((color.redF(), ground.redF()), (color.greenF(), ground.greenF()), (color.blueF(), ground.blueF()))
    return QColor.fromRgbF(*(share * a + (1 - share) * b for a, b in pairs))


_DRAW: Final = {
    "line": _draw_line,
    "area": _draw_area,
    "dots": _draw_dots,
    "bars": _draw_bars,
    "cells": _draw_cells,
}
