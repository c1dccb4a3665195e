"""One measure of A against the same of B: every pair counted, an outlined rectangle selects."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Bool, Float, Int
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.plot import Plot

BINS: Final = 160
"""Places along an axis: the marks drawn stay few whatever the number of pairs."""
LEAST_PX, MORE_PX = 6.0, 7.0
DRAG_PX: Final = 4


class Scatter(Plot):
    """Marks at the places where pairs are, larger for more of them. Drag to select, click to clear.

    Signals:
        brushed: Places (in the arrays shown) inside the rectangle; whether they add to the selection.
    """

    brushed = Signal(object, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        self._xy: Float[np.ndarray, "n 2"] = np.zeros((0, 2))
        self._selected: Bool[np.ndarray, " n"] = np.zeros(0, bool)
        self._ends = (0.0, 1.0)
        self._start: QPointF | None = None
        self._drawn = 0
        # Made once and filled anew: items that come and go under the pointer end in Qt's freed memory.
        self._equal, self._outline = pg.PlotCurveItem(), pg.PlotCurveItem()
        self._others, self._lit = pg.ScatterPlotItem(), pg.ScatterPlotItem()
        super().__init__(parent, x_label="A", y_label="B")
        self.setObjectName("changes-scatter")
        self.setAccessibleName("A against B")
        self.setMouseEnabled(x=False, y=False)
        self.setCursor(Qt.CursorShape.CrossCursor)
        for item in (self._equal, self._others, self._lit, self._outline):
            self.addItem(item)

    @property
    def marks(self) -> int:
        """How many marks are drawn."""
        return self._drawn

    def show_values(self, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"], *, log: bool, x: str, y: str) -> None:
        """Draws b over a; `log` for ranks, which begin at 1."""
        self._xy = np.log10(np.stack([a, b], axis=1)) if log else np.stack([a, b], axis=1).astype(np.float64)
        self._selected = np.zeros(len(a), bool)
        self.set_labels(x=x, y=y)
        finite = self._xy[np.isfinite(self._xy).all(1)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        pad = 0.05 * max(high - low, 0.3)
        self.setRange(xRange=(low - pad, high + pad), yRange=(low - pad, high + pad), padding=0)
        self._ends = (low, high)
        for side in ("bottom", "left"):
            ticks = _rank_ticks(high) if log else None
            self.getPlotItem().getAxis(side).setTicks([ticks] if ticks else None)
        self.recolor()

    def set_selected(self, places: Int[np.ndarray, " k"]) -> None:
        """Lifts these pairs out; the others turn gray."""
        self._selected = np.zeros(len(self._xy), bool)
        self._selected[places] = True
        self.recolor()

    def recolor(self) -> None:
        super().recolor()
        low, high = self._ends
        self._equal.setData([low, high], [low, high])
        self._equal.setPen(pg.mkPen(theme.color("outline"), style=Qt.PenStyle.DashLine))
        self._outline.setPen(pg.mkPen(theme.color("text"), style=Qt.PenStyle.DashLine))
        quiet = "unselected" if self._selected.any() else "accent"
        self._drawn = self._fill(self._others, self._xy[~self._selected], theme.color(quiet), 0.75)
        self._drawn += self._fill(self._lit, self._xy[self._selected], theme.color("accent"), 0.95)

    def inside(self, box: QRectF) -> Int[np.ndarray, " k"]:
        """Places of the pairs in a rectangle of the axes."""
        x, y = self._xy.T
        return np.flatnonzero((x >= box.left()) & (x <= box.right()) & (y >= box.top()) & (y <= box.bottom()))

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        if ev.button() == Qt.MouseButton.LeftButton and len(self._xy):
            self._start = ev.position()
            ev.accept()
            return
        super().mousePressEvent(ev)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        if self._start is None:
            super().mouseMoveEvent(ev)
            return
        box = self._between(self._start, ev.position())
        x, y = (box.left(), box.right()), (box.top(), box.bottom())
        self._outline.setData([x[0], x[1], x[1], x[0], x[0]], [y[0], y[0], y[1], y[1], y[0]])

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        if self._start is None:
            super().mouseReleaseEvent(ev)
            return
        start, self._start = self._start, None
        self._outline.setData([], [])
        adds = bool(ev.modifiers() & Qt.KeyboardModifier.ControlModifier)
        moved = (ev.position() - start).manhattanLength() > DRAG_PX
        found = self.inside(self._between(start, ev.position())) if moved else np.empty(0, np.int64)
        if moved or not adds:
            self.brushed.emit(found, adds)

    def _between(self, first: QPointF, second: QPointF) -> QRectF:
        view = self.getPlotItem().getViewBox()
        return QRectF(
            *(view.mapSceneToView(self.mapToScene(place.toPoint())) for place in (first, second))
        ).normalized()

    def _fill(self, item: pg.ScatterPlotItem, xy: Float[np.ndarray, "m 2"], ink: QColor, opacity: float) -> int:
        """Puts these pairs into an item; returns the number of marks."""
        xy = xy[np.isfinite(xy).all(1)]
        if not len(xy):
            item.setData([], [])
            return 0
        low, high = self._ends
        step = max(high - low, 1e-9) / BINS
        _, first, counts = np.unique(
            np.round(xy / step).astype(np.int64), axis=0, return_index=True, return_counts=True
        )
        fill = QColor(ink)
        fill.setAlphaF(opacity)
        item.setData(*xy[first].T, size=LEAST_PX + MORE_PX * np.log10(counts), brush=fill, pen=None)
        return len(first)


def _rank_ticks(high: float) -> list[tuple[float, str]]:
    """1, 2, 5, 10, ... as far as the ranks go."""
    decades = range(int(np.ceil(high)) + 1)
    values = [m * 10**d for d in decades for m in ((1, 2, 5) if high < 2.5 else (1,))]
    return [(float(np.log10(v)), f"{v:,}") for v in values if np.log10(v) <= high + 0.3]
