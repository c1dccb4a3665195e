"""Mouse handling of a map: panning, rotating a cloud, and outlining points."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal

Tool = Literal["pan", "lasso", "rectangle", "brush"]
Mode = Literal["replace", "add", "remove"]

BRUSH_PX: Final = (4.0, 18.0, 120.0)
"""Least, first and greatest radius of the brush."""
DEGREES_PER_PX: Final = 0.4
_BRUSH_STEP: Final = 1.25


class MapBox(pg.ViewBox):
    """A view box with equal scales and wheel zoom; dragging depends on `tool` and `in_space`.

    With `pan` a drag moves the map, or turns the cloud in space; with Shift or Alt it outlines a rectangle. The other
    tools outline points. Shift adds to what is selected, Alt takes away. The middle button always moves the map.
    """

    outlining = Signal(object)  # The outline so far, in the map's coordinates (m x 2); empty when it ended.
    outlined = Signal(object, str)  # The finished outline, and what becomes of the points inside.
    # The brush's way (m x 2), its radius in the map's units, and what becomes of the points under it.
    brushed = Signal(object, float, str)
    brush_at = Signal(object)  # Where the brush is now (1 x 2), or its way so far; empty when there is none.
    turned = Signal(float, float)  # Degrees by which the cloud is to turn to the right and towards the eye.
    clicked = Signal(object, str)  # A click, in the map's coordinates, and what becomes of the point.
    fit_asked = Signal()  # A double click.

    def __init__(self) -> None:
        super().__init__(lockAspect=True, enableMenu=False, border=None)
        self.disableAutoRange()
        self.tool: Tool = "pan"
        self.in_space = False
        self.brush_px = BRUSH_PX[1]
        self._corners: list[tuple[float, float]] = []
        self._under_way: Tool | None = None

    def resize_brush(self, steps: int) -> None:
        """Make the brush larger, or smaller for negative `steps`."""
        self.brush_px = float(np.clip(self.brush_px * _BRUSH_STEP**steps, BRUSH_PX[0], BRUSH_PX[2]))

    def mouseDragEvent(self, ev: object, axis: int | None = None) -> None:
        left = ev.button() == Qt.MouseButton.LeftButton
        if left and (tool := self._under_way or self._tool_of(ev)) != "pan":
            ev.accept()
            self._outline(ev, tool)
        elif left and self.in_space:
            ev.accept()
            offset = ev.screenPos() - ev.lastScreenPos()
            self.turned.emit(-DEGREES_PER_PX * offset.x(), DEGREES_PER_PX * offset.y())
        elif ev.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            super().mouseDragEvent(ev, axis)
        else:
            ev.ignore()

    def mouseClickEvent(self, ev: object) -> None:
        if ev.button() != Qt.MouseButton.LeftButton:
            return
        ev.accept()
        position = self.mapSceneToView(ev.scenePos())
        if ev.double() and self.tool == "pan":
            self.fit_asked.emit()
        elif self.tool == "brush":
            dot = np.array([[position.x(), position.y()]])
            self.brushed.emit(dot, self._brush_radius(), _mode(ev))
        else:
            self.clicked.emit((position.x(), position.y()), _mode(ev))

    def point_brush(self, position: QPointF | None) -> None:
        """Handle the pointer's position in the scene, or None, while no button is pressed."""
        if position is None or self.tool != "brush":
            self.brush_at.emit(np.empty((0, 2)))
            return
        at = self.mapSceneToView(position)
        self.brush_at.emit(np.array([[at.x(), at.y()]]))

    def _tool_of(self, ev: object) -> Tool:
        modified = ev.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        return "rectangle" if self.tool == "pan" and modified else self.tool

    def _brush_radius(self) -> float:
        return float(self.brush_px * self.viewPixelSize()[0])

    def _outline(self, ev: object, tool: Tool) -> None:
        start, now = self.mapSceneToView(ev.buttonDownScenePos()), self.mapSceneToView(ev.scenePos())
        if ev.isStart():
            self._corners, self._under_way = [(start.x(), start.y())], tool
        self._corners.append((now.x(), now.y()))
        corners = np.array(self._corners)
        if tool == "rectangle":
            corners = np.array([[start.x(), start.y()], [now.x(), start.y()], [now.x(), now.y()], [start.x(), now.y()]])
        announce = self.brush_at if tool == "brush" else self.outlining
        if not ev.isFinish():
            announce.emit(corners)
            return
        self._corners, self._under_way = [], None
        announce.emit(corners[-1:] if tool == "brush" else np.empty((0, 2)))
        if tool == "brush":
            self.brushed.emit(corners, self._brush_radius(), _mode(ev))
        else:
            self.outlined.emit(corners, _mode(ev))


def _mode(ev: object) -> Mode:
    """Return the mode of the modifier keys: Shift (or Ctrl) adds, Alt removes."""
    if ev.modifiers() & Qt.KeyboardModifier.AltModifier:
        return "remove"
    adding = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier
    return "add" if ev.modifiers() & adding else "replace"
