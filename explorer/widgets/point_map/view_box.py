"""How the mouse moves a map and outlines points on it."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal


class MapBox(pg.ViewBox):
    """Equal scales, drag pans, wheel zooms, Shift + drag outlines a rectangle, drag with the lasso outlines freely.

    Signals:
        outlining: The outline so far, in the map's coordinates (m x 2); empty when it ended.
        outlined: The finished outline, and whether it adds to what is selected.
        clicked: A click, in the map's coordinates, and whether it adds.
        fit_asked: A double click.
    """

    outlining = Signal(object)
    outlined = Signal(object, bool)
    clicked = Signal(object, bool)
    fit_asked = Signal()

    def __init__(self) -> None:
        super().__init__(lockAspect=True, enableMenu=False, border=None)
        self.disableAutoRange()
        self.lasso = False
        self._corners: list[tuple[float, float]] = []

    def mouseDragEvent(self, ev: object, axis: int | None = None) -> None:
        shift = bool(ev.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if ev.button() == Qt.MouseButton.LeftButton and (shift or self.lasso or self._corners):
            ev.accept()
            self._outline(ev, rectangle=shift and not self.lasso)
        elif ev.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            super().mouseDragEvent(ev, axis)
        else:
            ev.ignore()

    def mouseClickEvent(self, ev: object) -> None:
        if ev.button() != Qt.MouseButton.LeftButton:
            return
        ev.accept()
        if ev.double():
            self.fit_asked.emit()
        else:
            place = self.mapSceneToView(ev.scenePos())
            self.clicked.emit((place.x(), place.y()), bool(ev.modifiers() & Qt.KeyboardModifier.ControlModifier))

    def _outline(self, ev: object, *, rectangle: bool) -> None:
        start, now = self.mapSceneToView(ev.buttonDownScenePos()), self.mapSceneToView(ev.scenePos())
        if ev.isStart():
            self._corners = [(start.x(), start.y())]
        self._corners.append((now.x(), now.y()))
        if rectangle:
            corners = np.array([[start.x(), start.y()], [now.x(), start.y()], [now.x(), now.y()], [start.x(), now.y()]])
        else:
            corners = np.array(self._corners)
        if not ev.isFinish():
            self.outlining.emit(corners)
            return
        self._corners = []
        self.outlining.emit(np.empty((0, 2)))
        self.outlined.emit(corners, bool(ev.modifiers() & Qt.KeyboardModifier.ControlModifier))
