"""A map of points that can be panned, zoomed, hovered and selected; it knows numbers, not pairs or runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Int, UInt8
from PySide6.QtCore import QEasingCurve, QEvent, QObject, QPoint, QPointF, Qt, QTimer, QVariantAnimation, Signal
from PySide6.QtGui import QColor, QFocusEvent, QHideEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from explorer.theme import TRANSITION_MS, color, theme
from explorer.widgets.accessible import present
from explorer.widgets.deferred_paint import DeferredPaint
from explorer.widgets.point_map.grid import PointGrid
from explorer.widgets.point_map.layer import INDEXED_AT_ONCE, PointLayer
from explorer.widgets.point_map.marks import PlaceMarks
from explorer.widgets.point_map.note import Note
from explorer.widgets.point_map.view_box import MapBox, Tool
from trainer.charts.marks import FEW_LIT, HUE_KEPT

HIT_TEST_MS: Final = 50
DWELL_MS: Final = 125
GRACE_MS: Final = 260
PICK_PX: Final = 14
MARGIN: Final = 0.06
LEAST_WALK_PX: Final = 0.5
"""Points at one place are no way apart."""
FEW: Final = 2 * FEW_LIT
"""Selected points, images and texts, up to which each is drawn large and the others keep their hue, as in a figure."""
WAYS: Final = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)
}  # fmt: skip
"""Arrow key -> pixels to the right and down."""


class Hover(QObject):
    """Converts mouse moves to hovered points."""

    pointed = Signal(int)  # The point under the pointer is another now; -1 for none.
    settled = Signal(int)  # The pointer rests on this point.
    ended = Signal()  # The pointer left the last settled point a while ago.

    def __init__(self, hit_test: Callable[[QPointF], int], parent: QObject) -> None:
        super().__init__(parent)
        self._hit_test = hit_test
        self._place: QPointF | None = None
        self.point = -1
        self._next_test = QTimer(self, singleShot=True, interval=HIT_TEST_MS, timeout=self._test)
        self._dwell = QTimer(self, singleShot=True, interval=DWELL_MS, timeout=lambda: self.settled.emit(self.point))
        self._grace = QTimer(self, singleShot=True, interval=GRACE_MS)
        self._grace.timeout.connect(self.ended)

    def move(self, position: QPointF) -> None:
        """Handle a move of the pointer to `position`."""
        waiting, self._place = self._next_test.isActive(), position
        if not waiting:
            self._test()

    def leave(self) -> None:
        """Handle that the pointer has left."""
        self._place = None
        self._next_test.stop()
        self._point_at(-1)

    def go_to(self, point: int) -> None:
        """Hover `point` by keyboard."""
        self._place = None
        self._point_at(point)

    def _test(self) -> None:
        if self._place is None:
            return
        position, self._place = self._place, None
        self._next_test.start()
        self._point_at(self._hit_test(position))

    def _point_at(self, point: int) -> None:
        if point == self.point:
            return
        self.point = point
        self.pointed.emit(point)
        if point < 0:
            self._dwell.stop()
            self._grace.start()
        else:
            self._grace.stop()
            self._dwell.start()


class PointMap(DeferredPaint, pg.GraphicsView):
    """Points in the plane, discs and diamonds, drawn quickly at any number."""

    hovered = Signal(int)  # Another point (-1: none) is under the pointer.
    settled = Signal(int, QPoint)  # The pointer rests on this point, at this place of the screen.
    hover_ended = Signal()  # The pointer left the settled point a while ago.
    # This point was clicked (-1: none); whether it is to `replace` the selection, be `add`ed or `remove`d.
    clicked = Signal(int, str)
    outlined = Signal(object, str)  # These points were outlined or brushed (ascending numbers), and the same of them.
    turned = Signal(float, float)  # Degrees by which the cloud is to turn, to the right and towards the eye.
    moved = Signal()  # A person has panned or zoomed.
    fitted = Signal()  # All is in view.
    view_changed = Signal()  # Another part of the map is looked at.
    drawn = Signal()  # The present state is on the screen.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.defer_painting()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        present(self, "Chart")
        self.setMinimumSize(160, 160)
        self.box, self.layer, self.marks = MapBox(), PointLayer(), PlaceMarks()
        self.setCentralItem(self.box)
        self.box.addItem(self.layer, ignoreBounds=True)
        self.box.addItem(self.marks, ignoreBounds=True)
        self.note = Note(self.layer, self)
        self._hovered: Sequence[int] = ()
        self._current: Sequence[int] = ()
        self.selected: Bool[np.ndarray, " n"] | None = None
        self._isolated: Bool[np.ndarray, " n"] | None = None
        self._matches: Bool[np.ndarray, " n"] | None = None
        self._shown: Bool[np.ndarray, " n"] | None = None
        self._diamond, self._few = np.empty(0, bool), np.empty(0, np.int64)
        self._color, self._palette = np.empty(0, np.uint16), np.zeros((1, 3), np.uint8)
        self.is_fitted = True
        self._motion = QVariantAnimation(self, duration=TRANSITION_MS, startValue=0.0, endValue=1.0)
        self._motion.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self.hover = Hover(lambda position: self.pick(position.x(), position.y()), self)
        self._connect()
        self._recolor()

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
        """Show these points and fit them into the view; clears selected, hovered and hidden points.

        `instead`: those that are shown stand for these, and are seen until these are drawn.
        """
        self._motion.stop()
        self.selected = self._isolated = self._matches = self._shown = None
        self._few = np.empty(0, np.int64)
        self.set_hovered()
        self.note.expect(len(xy))
        texts = np.count_nonzero(diamond)
        self.setAccessibleDescription(f"{len(xy) - texts:,} images and {texts:,} texts as points of a plane")
        self.layer.set_points(xy, diamond=diamond, instead=instead)
        self._diamond = diamond
        self.set_colors(color, palette)
        self.is_fitted = True
        self.fit()

    def move_points(self, xy: Float[np.ndarray, "n 2"], *, animated: bool = True) -> None:
        """Move the points in 200 ms, so that movement can be followed, and fit them into the view."""
        self._motion.stop()
        before = self.layer.grid.xy
        smooth = animated and self.isVisible() and len(xy) <= INDEXED_AT_ONCE and theme().moves
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
        """Give point i the color `palette[color[i]]`."""
        self._color, self._palette = color, palette
        self._draw_colors()

    def set_selected(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Raise the selected points; the others turn pale if these are at most `FEW`, else gray."""
        self.selected = mask if mask is not None and mask.any() else None
        self._raise_few()

    def set_matches(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Raise these points as if they were selected, unless others are; None: none were sought."""
        self._matches = mask
        self._raise_few()

    def _raise_few(self) -> None:
        had_few, raised = len(self._few), self._matches if self.selected is None else self.selected
        self._few = np.empty(0, np.int64)
        if raised is not None and np.count_nonzero(raised) <= FEW:
            self._few = np.flatnonzero(raised)
        if had_few or len(self._few):
            self._draw_colors()
        self._set_states()

    def set_isolated(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Gray out all but these points; None: all in color."""
        self._isolated = mask
        self._set_states()

    def set_shown(self, mask: Bool[np.ndarray, " n"] | None) -> None:
        """Hide all but these points; None: show all."""
        self._shown = mask
        self._set_states()

    def set_hovered(self, *points: int, current: Sequence[int] = ()) -> None:
        """Ring these points, and the `current` ones in the accent color; join two with a line; skip hidden ones."""
        self._hovered, self._current = points, current
        self._place_rings()

    # Asking -----------------------------------------------------------------------------------------------------

    def pick(self, x: float, y: float) -> int:
        """Return the visible point nearest to (x, y), in widget pixels, within 14 px; -1 if there is none."""
        if not self.layer.is_sorted:
            return -1
        position = self.box.mapSceneToView(self.mapToScene(QPointF(x, y).toPoint()))
        across, down = self.box.viewPixelSize()
        return self.layer.grid.nearest(
            position.x(), position.y(), reach=(PICK_PX * across, PICK_PX * down), allowed=self.layer.allowed
        )

    def lasso(self, polygon: Float[np.ndarray, "m 2"]) -> Int[np.ndarray, " k"]:
        """Return the visible points inside a polygon in map coordinates, ascending."""
        if not self.layer.is_sorted:
            return np.empty(0, np.int64)
        inside = self.layer.grid.in_polygon(polygon)
        return inside if self.layer.allowed is None else inside[self.layer.allowed[inside]]

    def position(self, point: int) -> QPointF:
        """Return the position of a point in widget pixels."""
        return QPointF(self.mapFromScene(self.box.mapViewToScene(self.layer.place(point))))

    def brushed(self, stroke: Float[np.ndarray, "m 2"], radius: float) -> Int[np.ndarray, " k"]:
        """Return the visible points within `radius` (in map units) of a line, ascending."""
        if not self.layer.is_sorted:
            return np.empty(0, np.int64)
        under = swept(self.layer.grid, stroke, radius)
        return under[self.layer.shown[under]]

    @property
    def tool(self) -> Tool:
        """The tool for dragging: `pan`, `lasso`, `rectangle` or `brush`."""
        return self.box.tool

    @tool.setter
    def tool(self, tool: Tool) -> None:
        self.box.tool = tool
        self.box.point_brush(None)
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if tool == "pan" else Qt.CursorShape.CrossCursor)

    def resize_brush(self, steps: int) -> None:
        """Make the brush larger, or smaller for negative `steps`."""
        self.box.resize_brush(steps)
        self.marks.set_brush(self.marks.brush, self.box.brush_px)

    def fit(self) -> None:
        """Show all points with a margin, and keep them in view when the widget is resized."""
        self._show_range(*self.layer.grid.bounds)

    def leave_fit(self) -> None:
        """Keep the section that is in view when the widget is resized."""
        self.is_fitted = False

    def _show_range(self, left: float, bottom: float, right: float, top: float) -> None:
        self.is_fitted = True
        self.box.setRange(xRange=(left, right), yRange=(bottom, top), padding=MARGIN, disableAutoRange=True)
        self.fitted.emit()

    def walk(self, across: int, down: int) -> int:
        """Return the visible point nearest to the hovered one in direction (across, down); -1 if there is none.

        Where none is pointed at, it is the one nearest to the middle of the view.
        """
        if not self.layer.is_sorted or not len(self.layer.grid):
            return -1
        wide, high = self.box.viewPixelSize()
        hovered = self.hover.point
        middle = self.box.viewRect().center()
        start = self.layer.place(hovered) if hovered >= 0 else middle
        offsets = (self.layer.grid.xy - (start.x(), start.y())) / (wide, -high)
        along, aside = offsets @ (across, down), np.abs(offsets @ (down, across))
        reach = np.hypot(along, aside)
        allowed = np.isfinite(reach) & self.layer.shown
        if hovered >= 0:
            # An eighth of the way round, to both sides.
            allowed &= (along > LEAST_WALK_PX) & (aside <= along)
        return int(np.argmin(np.where(allowed, reach, np.inf))) if allowed.any() else -1

    # Events -----------------------------------------------------------------------------------------------------

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        super().mouseMoveEvent(ev)
        if ev.buttons() == Qt.MouseButton.NoButton:
            self.hover.move(ev.position())
            self.box.point_brush(self.mapToScene(ev.position().toPoint()))

    def keyPressEvent(self, ev: QKeyEvent) -> None:
        """Move between points with the arrow keys; Enter and Space click the hovered one."""
        if ev.key() in WAYS:
            if (point := self.walk(*WAYS[Qt.Key(ev.key())])) >= 0:
                self._show_place(self.layer.place(point))
                self.hover.go_to(point)
        elif ev.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.hover.point >= 0:
            adds = ev.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier)
            self.clicked.emit(self.hover.point, "add" if adds else "replace")
        else:
            super().keyPressEvent(ev)

    def _show_place(self, position: QPointF) -> None:
        """Pan the view to contain a position of the map."""
        view = self.box.viewRect()
        if not view.contains(position):
            self.box.translateBy(x=position.x() - view.center().x(), y=position.y() - view.center().y())
            self._leave_fit()

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self.hover.leave()
        self.box.point_brush(None)

    def focusOutEvent(self, ev: QFocusEvent) -> None:
        super().focusOutEvent(ev)
        if not self.underMouse():
            self.hover.leave()

    def hideEvent(self, ev: QHideEvent) -> None:
        super().hideEvent(ev)
        self.hover.leave()

    def resizeEvent(self, ev: QEvent) -> None:
        super().resizeEvent(ev)
        # pyqtgraph's constructor resizes before there is a box, and its `close` after the box is gone.
        if getattr(self, "is_fitted", False) and not self.closed:
            self.hover.leave()  # another point is under the pointer now
            self.fit()

    def _connect(self) -> None:
        self.hover.pointed.connect(self.hovered)
        self.hover.settled.connect(self._announce_settled)
        self.hover.ended.connect(self.hover_ended)
        self._motion.valueChanged.connect(self._step)
        self._motion.finished.connect(self._arrive)
        self.box.outlining.connect(self.marks.set_outline)
        self.box.outlined.connect(lambda corners, mode: self.outlined.emit(self.lasso(corners), mode))
        self.box.brushed.connect(lambda stroke, radius, mode: self.outlined.emit(self.brushed(stroke, radius), mode))
        self.box.brush_at.connect(lambda stroke: self.marks.set_brush(stroke, self.box.brush_px))
        self.box.turned.connect(self.turned)
        self.box.clicked.connect(self._announce_click)
        self.box.fit_asked.connect(self.fit)
        self.box.sigRangeChangedManually.connect(self._on_moved)
        self.box.sigRangeChanged.connect(lambda *_: self.view_changed.emit())
        self.layer.drawn.connect(self.drawn)
        self.layer.sampled.connect(self._on_placed)
        self.layer.indexed.connect(self._on_placed)
        theme().follow(self._recolor)

    def _announce_settled(self, point: int) -> None:
        # The timer may fire while the window is taken apart and the scene is gone.
        if self.isVisible():
            self.settled.emit(point, self.mapToGlobal(self.position(point).toPoint()))

    def _announce_click(self, position: tuple[float, float], mode: str) -> None:
        across, down = self.box.viewPixelSize()
        reach = (PICK_PX * across, PICK_PX * down)
        if self.layer.is_sorted:
            self.clicked.emit(self.layer.grid.nearest(*position, reach=reach, allowed=self.layer.allowed), mode)

    def _on_placed(self) -> None:
        self._place_rings()
        if self.is_fitted:
            self.fit()

    def _on_moved(self, *_: object) -> None:
        self.leave_fit()
        self.moved.emit()

    def _draw_colors(self) -> None:
        palette = self._palette
        if len(self._few):
            ground = color("surface")
            pale = (1 - HUE_KEPT) * np.array([ground.red(), ground.green(), ground.blue()])
            palette = np.rint(HUE_KEPT * palette + pale).astype(np.uint8)
        self.layer.set_colors(self._color, palette)
        self._place_rings()

    def _set_states(self) -> None:
        masks = [self._isolated]
        if not len(self._few) or self.selected is not None:
            masks.append(self._matches)
        if not len(self._few):
            masks.append(self.selected)
        some = [mask for mask in masks if mask is not None]
        lit = np.logical_and.reduce(some) if len(some) > 1 else some[0] if some else None
        self.layer.set_states(lit=lit, visible=self._shown)
        self._place_rings()

    def _place_rings(self) -> None:
        count, allowed = len(self.layer.grid), self.layer.allowed

        def visible(points: Iterable[int]) -> list[int]:
            return [i for i in points if 0 <= i < count and (allowed is None or (i < len(allowed) and allowed[i]))]

        self.marks.set_rings(
            *([self.layer.place(i) for i in visible(points)] for points in (self._hovered, self._current))
        )
        self.marks.set_large(
            [
                (self.layer.place(i), bool(self._diamond[i]), QColor(*map(int, self._palette[self._color[i]])))
                for i in visible(self._few.tolist())
            ]
        )

    def _step(self, share: float) -> None:
        start, end, _ = self._way
        self.layer.move_points(start + share * (end - start))

    def _arrive(self) -> None:
        self.layer.move_points(self._way[2])
        self.fit()

    def _recolor(self) -> None:
        if self.closed:
            return
        self.forget_painted()
        self.setBackground(color("surface"))
        self.layer.set_ground(halo=color("surface"), gray=color("unselected"))
        if len(self._few):
            self._draw_colors()
        self.marks.update()


def _unit(xy: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
    """Scale and center the points uniformly to just fit the unit square around zero."""
    low, high = np.nanmin(xy, axis=0), np.nanmax(xy, axis=0)
    return (np.asarray(xy, np.float64) - (low + high) / 2) / max(float((high - low).max()), 1e-12)


def swept(grid: PointGrid, stroke: Float[np.ndarray, "m 2"], radius: float) -> Int[np.ndarray, " k"]:
    """Return the points within `radius` of the line through `stroke`, ascending; `stroke` may be a single position.

    Only the points near each piece of the line are looked at.
    """
    ends = stroke[1:] if len(stroke) > 1 else stroke
    hit = []
    for (x0, y0), (x1, y1) in zip(stroke[: len(ends)], ends, strict=True):
        near = grid.in_rectangle(min(x0, x1) - radius, min(y0, y1) - radius, max(x0, x1) + radius, max(y0, y1) + radius)
        along, offset = np.array([x1 - x0, y1 - y0]), np.asarray(grid.xy[near], np.float64) - (x0, y0)
        length = float(along @ along)
        share = np.clip(offset @ along / length, 0, 1) if length > 0 else np.zeros(len(near))
        distance = ((offset - share[:, None] * along) ** 2).sum(axis=1)
        hit.append(near[distance <= radius**2])
    return np.unique(np.concatenate(hit)) if hit else np.empty(0, np.int64)
