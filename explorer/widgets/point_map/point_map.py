"""A map of points that can be panned, zoomed, pointed at and outlined. It knows numbers, not pairs or runs."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Int, UInt8
from PySide6.QtCore import QEasingCurve, QEvent, QPoint, QPointF, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer.theme import TRANSITION_MS, color, theme
from explorer.widgets.deferred_paint import InTurn
from explorer.widgets.point_map.brush import swept
from explorer.widgets.point_map.hover import Hover
from explorer.widgets.point_map.layer import INDEXED_AT_ONCE, PointLayer
from explorer.widgets.point_map.marks import PlaceMarks
from explorer.widgets.point_map.note import Note
from explorer.widgets.point_map.view_box import MapBox, Tool

PICK_PX: Final = 14
MARGIN: Final = 0.06


class PointMap(InTurn, pg.GraphicsView):
    """Points in the plane, discs and diamonds, drawn quickly at every number.

    Signals:
        hovered: Another point (-1: none) is under the pointer.
        settled: The pointer rests on this point, at this place of the screen.
        hover_ended: The pointer left the settled point a while ago.
        clicked: This point was clicked (-1: none); whether it is to `replace` the selection, be `add`ed or `remove`d.
        outlined: These points were outlined or brushed (ascending numbers), and the same of them.
        turned: Degrees by which the cloud is to turn, to the right and towards the eye.
        view_changed: Another part of the map is looked at.
        drawn: The present state is on the screen.
    """

    hovered = Signal(int)
    settled = Signal(int, QPoint)
    hover_ended = Signal()
    clicked = Signal(int, str)
    outlined = Signal(object, str)
    turned = Signal(float, float)
    view_changed = Signal()
    drawn = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.wait_for_turns()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(160, 160)
        self.box, self.layer, self.marks = MapBox(), PointLayer(), PlaceMarks()
        self.setCentralItem(self.box)
        self.box.addItem(self.layer, ignoreBounds=True)
        self.box.addItem(self.marks, ignoreBounds=True)
        self.note = Note(self.layer, self)
        self._hovered: tuple[int, ...] = ()
        self.selected: Bool[np.ndarray, " n"] | None = None
        self._isolated: Bool[np.ndarray, " n"] | None = None
        self._shown: Bool[np.ndarray, " n"] | None = None
        self._follows_fit = True
        self._motion = QVariantAnimation(self, duration=TRANSITION_MS, startValue=0.0, endValue=1.0)
        self._motion.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self._hover = Hover(lambda place: self.pick(place.x(), place.y()), self)
        self._connect()
        self._dress()

    # Points -----------------------------------------------------------------------------------------------------

    def set_points(
        self,
        xy: Float[np.ndarray, "n 2"],
        *,
        diamond: Bool[np.ndarray, " n"],
        color: Int[np.ndarray, " n"],
        palette: UInt8[np.ndarray, "k 3"],
        instead: bool = False,
    ) -> None:
        """Shows these points and fits them into the view; nothing is selected, hovered or hidden any more.

        `instead`: those that are shown stand for these, and are seen until these are drawn.
        """
        self._motion.stop()
        self.selected = self._isolated = self._shown = None
        self.set_hovered()
        self.note.expect(len(xy))
        self.layer.set_points(xy, diamond=diamond, instead=instead)
        self.layer.set_colors(color, palette)
        self._follows_fit = True
        self.fit()

    def move_points(self, xy: Float[np.ndarray, "n 2"], *, animated: bool = True) -> None:
        """Moves the points that are shown to other places, in 200 ms so that the eye can follow, and fits them."""
        self._motion.stop()
        before = self.layer.grid.xy
        smooth = animated and self.isVisible() and len(xy) <= INDEXED_AT_ONCE and _motion_wanted()
        if not smooth or before.shape != xy.shape:
            self.layer.move_points(xy)
            self.fit()
            return
        # Both layouts are seen whole, so the way leads from one frame's unit square to the other's.
        start, end = _unit(before), _unit(xy)
        self._way = (start, end, np.asarray(xy, np.float64))
        self.layer.move_points(start)
        self.fit()
        self._motion.start()

    def set_colors(self, color: Int[np.ndarray, " n"], palette: UInt8[np.ndarray, "k 3"]) -> None:
        """Gives point i the color `palette[color[i]]`."""
        self.layer.set_colors(color, palette)

    def set_selected(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Lifts the selected points above the others, which turn gray; None or nothing selected: all in color."""
        self.selected = mask if mask is not None and mask.any() else None
        self._set_states()

    def set_isolated(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Grays out all but these points; None: all in color."""
        self._isolated = mask
        self._set_states()

    def set_shown(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Leaves out all but these points; None: all are there."""
        self._shown = mask
        self._set_states()

    def set_hovered(self, *points: int) -> None:
        """Rings these points; two are joined by a line. Hidden points get no ring."""
        self._hovered = points
        self._place_rings()

    @property
    def drawn_words(self) -> str:
        """What the corner says of the picture: that not every point is drawn while the map moves; empty if all are."""
        return self.note.words

    @property
    def view_rect(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top of the part of the layout that is looked at."""
        view = self.box.viewRect()
        return view.left(), view.top(), view.right(), view.bottom()

    # Asking -----------------------------------------------------------------------------------------------------

    def pick(self, x: float, y: float) -> int:
        """The shown point nearest to (x, y), in pixels of the widget, within 14 px; -1 if there is none."""
        if not self.layer.is_sorted:
            return -1
        place = self.box.mapSceneToView(self.mapToScene(QPointF(x, y).toPoint()))
        across, down = self.box.viewPixelSize()
        return self.layer.grid.nearest(
            place.x(), place.y(), reach=(PICK_PX * across, PICK_PX * down), allowed=self.layer.allowed
        )

    def lasso(self, polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
        """Ascending numbers of the shown points inside a polygon of map coordinates."""
        if not self.layer.is_sorted:
            return np.empty(0, np.int64)
        inside = self.layer.grid.in_polygon(polygon)
        return inside if self.layer.allowed is None else inside[self.layer.allowed[inside]]

    def position(self, point: int) -> QPointF:
        """Where a point stands, in pixels of the widget."""
        return QPointF(self.mapFromScene(self.box.mapViewToScene(self.layer.place(point))))

    def brushed(self, way: Float[np.ndarray, "m 2"], radius: float) -> Int[np.ndarray, " k"]:
        """Ascending numbers of the shown points at most `radius` (in the map's units) away from a line."""
        if not self.layer.is_sorted:
            return np.empty(0, np.int64)
        under = swept(self.layer.grid, way, radius)
        return under[self.layer.shown[under]]

    @property
    def tool(self) -> Tool:
        """What a drag does: `pan`, `lasso`, `rectangle` or `brush`."""
        return self.box.tool

    @tool.setter
    def tool(self, tool: Tool) -> None:
        self.box.tool = tool
        self.box.point_brush(None)
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if tool == "pan" else Qt.CursorShape.CrossCursor)

    def resize_brush(self, steps: int) -> None:
        """Makes the brush larger, or smaller for negative `steps`."""
        self.box.resize_brush(steps)
        self.marks.set_brush(self.marks.brush, self.box.brush_px)

    def fit(self) -> None:
        """Shows all points, with a margin, and keeps them in view when the widget changes its size."""
        self._follows_fit = True
        left, bottom, right, top = self.layer.grid.bounds
        self.box.setRange(xRange=(left, right), yRange=(bottom, top), padding=MARGIN, disableAutoRange=True)

    # Events -----------------------------------------------------------------------------------------------------

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        super().mouseMoveEvent(ev)
        if ev.buttons() == Qt.MouseButton.NoButton:
            self._hover.move(ev.position())
            self.box.point_brush(self.mapToScene(ev.position().toPoint()))

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self._hover.leave()
        self.box.point_brush(None)

    def resizeEvent(self, ev: QEvent) -> None:
        super().resizeEvent(ev)
        # pyqtgraph's constructor resizes before there is a box, and its `close` after the box is gone.
        if getattr(self, "_follows_fit", False) and not self.closed:
            self.fit()

    def _connect(self) -> None:
        self._hover.pointed.connect(self.hovered)
        self._hover.settled.connect(self._announce_settled)
        self._hover.ended.connect(self.hover_ended)
        self._motion.valueChanged.connect(self._step)
        self._motion.finished.connect(self._arrive)
        self.box.outlining.connect(self.marks.set_outline)
        self.box.outlined.connect(lambda corners, mode: self.outlined.emit(self.lasso(corners), mode))
        self.box.brushed.connect(lambda way, radius, mode: self.outlined.emit(self.brushed(way, radius), mode))
        self.box.brush_at.connect(lambda way: self.marks.set_brush(way, self.box.brush_px))
        self.box.turned.connect(self.turned)
        self.box.clicked.connect(self._announce_click)
        self.box.fit_asked.connect(self.fit)
        self.box.sigRangeChangedManually.connect(self._leave_fit)
        self.box.sigRangeChanged.connect(lambda *_: self.view_changed.emit())
        self.layer.drawn.connect(self.drawn)
        self.layer.indexed.connect(self._on_indexed)
        theme().follow(self._dress)

    def _announce_settled(self, point: int) -> None:
        self.settled.emit(point, self.mapToGlobal(self.position(point).toPoint()))

    def _announce_click(self, place: tuple[float, float], mode: str) -> None:
        across, down = self.box.viewPixelSize()
        reach = (PICK_PX * across, PICK_PX * down)
        if self.layer.is_sorted:
            self.clicked.emit(self.layer.grid.nearest(*place, reach=reach, allowed=self.layer.allowed), mode)

    def _on_indexed(self) -> None:
        self._place_rings()
        if self._follows_fit:
            self.fit()

    def _leave_fit(self, *_: object) -> None:
        self._follows_fit = False

    def _set_states(self) -> None:
        lit = self._isolated
        if self.selected is not None:
            lit = self.selected if lit is None else lit & self.selected
        self.layer.set_states(lit=lit, shown=self._shown)
        self._place_rings()

    def _place_rings(self) -> None:
        count, shown = len(self.layer.grid), self.layer.allowed
        visible = [i for i in self._hovered if 0 <= i < count and (shown is None or (i < len(shown) and shown[i]))]
        self.marks.set_rings([self.layer.place(i) for i in visible])

    def _step(self, share: float) -> None:
        start, end, _ = self._way
        self.layer.move_points(start + share * (end - start))

    def _arrive(self) -> None:
        self.layer.move_points(self._way[2])
        self.fit()

    def _dress(self) -> None:
        if self.closed:
            return
        self.forget_painted()
        self.setBackground(color("surface"))
        self.layer.set_ground(halo=color("surface"), gray=color("unselected"))
        self.marks.update()


def _unit(xy: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
    """The points moved and scaled, equally both ways, so that they just fit the unit square around zero."""
    low, high = np.nanmin(xy, axis=0), np.nanmax(xy, axis=0)
    return (np.asarray(xy, np.float64) - (low + high) / 2) / max(float((high - low).max()), 1e-12)


def _motion_wanted() -> bool:
    hints = QApplication.styleHints()
    # Qt 6.10 and later know the desktop's wish for less motion; before, animations run.
    accessibility = getattr(hints, "accessibility", None)
    preference = getattr(accessibility() if accessibility else None, "motionPreference", None)
    return preference is None or "Reduced" not in str(preference())
