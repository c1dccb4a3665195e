"""Histograms over shared bins: filled and outlined, with mean lines, a brush, and counts under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from jaxtyping import Float, Int
from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.plot import Plot


@dataclass(frozen=True)
class HistogramBars:
    """One distribution: counts per bin, drawn as shares of their sum so that unlike numbers compare.

    Attributes:
        color: A token (`run_a`) or `#rrggbb`; asked again when the theme changes.
        filled: In full color, or as an outline over a pale ground.
        mean: Where the dashed line stands; NaN for none.
        density: A smooth curve over the bars: places, and share of pairs a bin would hold there, percent.
    """

    name: str
    color: str
    counts: Int[np.ndarray, " bins"]
    mean: float
    filled: bool = True
    density: tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]] | None = None

    @property
    def shares(self) -> Float[np.ndarray, " bins"]:
        """Percent of all counts in each bin."""
        return 100 * self.counts / max(int(self.counts.sum()), 1)


class Histogram(Plot):
    """Distributions over the same bins, one in front of the other. Dragging across it brushes a range; Esc clears it.

    Signals:
        pointed: Number of the bin under the pointer, -1 for none.
        brushed: The range that was brushed, as `(low, high)`, or None.
    """

    pointed = Signal(int)
    brushed = Signal(object)

    def __init__(self, parent: QWidget | None = None, *, x_label: str = "") -> None:
        self._edges: Float[np.ndarray, " bins+1"] = np.zeros(0)
        self._bars: tuple[HistogramBars, ...] = ()
        self._bin = -1
        self._brush: tuple[float, float] | None = None
        self._drag: float | None = None
        super().__init__(parent, x_label=x_label, y_label="share of pairs (%)")
        self.setMouseTracking(True)
        self.setMouseEnabled(x=False, y=False)
        self.getPlotItem().setMouseEnabled(x=False, y=False)

    @property
    def brush(self) -> tuple[float, float] | None:
        """The brushed range."""
        return self._brush

    def set_brush(self, brush: tuple[float, float] | None) -> None:
        """Shows a brushed range without announcing it."""
        if brush != self._brush:
            self._brush = brush
            self.recolor()

    @property
    def bars(self) -> tuple[HistogramBars, ...]:
        """What is drawn."""
        return self._bars

    def show_bars(
        self, edges: Float[np.ndarray, " bins+1"], bars: Sequence[HistogramBars], *, top: float | None = None
    ) -> None:
        """Draws these distributions over the bins, the last one in front.

        Args:
            edges: Ends of the bins, ascending.
            bars: At least one count array of the bins.
            top: Greatest share on the axis, to compare plots; None fits it.
        """
        self._edges, self._bars = np.asarray(edges, np.float64), tuple(bars)
        self.recolor()
        if len(self._edges):
            highest = top or max((float(b.shares.max(initial=0)) for b in self._bars), default=1.0)
            self.setXRange(self._edges[0], self._edges[-1], padding=0.01)
            self.setYRange(0, max(highest, 1e-9) * 1.06, padding=0)

    def bin_at(self, x: float) -> int:
        """Number of the bin that holds `x`, -1 outside."""
        if not len(self._edges) or not self._edges[0] <= x <= self._edges[-1]:
            return -1
        return min(int(np.searchsorted(self._edges, x, side="right")) - 1, len(self._edges) - 2)

    def bin_words(self, number: int) -> str:
        """Bounds and counts of a bin: `0.31 to 0.33: matched 24 (2.3 %), unmatched 103 (1.0 %)`."""
        parts = [f"{b.name} {int(b.counts[number]):,} ({b.shares[number]:.1f} %)" for b in reversed(self._bars)]
        return f"{self._edges[number]:.3f} to {self._edges[number + 1]:.3f}: {', '.join(parts)}"

    def recolor(self) -> None:
        super().recolor()
        self.clear()
        for bars in self._bars:
            self._draw(bars)
        for bars in self._bars:
            if np.isfinite(bars.mean):
                ink = theme.color("text" if bars.filled else "secondary")
                style = Qt.PenStyle.DashLine if bars.filled else Qt.PenStyle.DotLine
                pen = pg.mkPen(ink, width=1.5, style=style)
                self.addItem(pg.InfiniteLine(bars.mean, angle=90, pen=pen))
        self._light(self._bin)
        if self._brush is not None:
            self._shade(*self._brush, "focus", 0.16)

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        if ev.button() == Qt.MouseButton.LeftButton and len(self._edges):
            self._drag = self._x_at(ev)
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            ev.accept()
        else:
            super().mousePressEvent(ev)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        if self._drag is not None and ev.buttons() & Qt.MouseButton.LeftButton:
            self.set_brush(self._dragged(self._x_at(ev)))
            return
        super().mouseMoveEvent(ev)
        self._point_at(self.bin_at(self._x_at(ev)))

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        if self._drag is None:
            super().mouseReleaseEvent(ev)
            return
        brush, self._drag = self._dragged(self._x_at(ev)), None
        # A click, or a slip of the hand, takes the brush away.
        self.set_brush(brush if brush[1] - brush[0] > (self._edges[-1] - self._edges[0]) / 200 else None)
        self.brushed.emit(self._brush)

    def keyPressEvent(self, ev: QKeyEvent) -> None:
        if ev.key() == Qt.Key.Key_Escape and self._brush is not None:
            self.set_brush(None)
            self.brushed.emit(None)
            return
        super().keyPressEvent(ev)

    def leaveEvent(self, ev: QEvent) -> None:
        super().leaveEvent(ev)
        self._point_at(-1)

    def _point_at(self, number: int) -> None:
        if number != self._bin:
            self._bin = number
            self.recolor()
            self.pointed.emit(number)

    def _x_at(self, ev: QMouseEvent) -> float:
        return self.getPlotItem().getViewBox().mapSceneToView(QPointF(ev.position())).x()

    def _dragged(self, x: float) -> tuple[float, float]:
        low, high = sorted((self._drag, x))
        return max(low, float(self._edges[0])), min(high, float(self._edges[-1]))

    def _draw(self, bars: HistogramBars) -> None:
        fill = QColor(theme.color(bars.color))
        fill.setAlphaF(0.78 if bars.filled else 0.28)
        pen = None if bars.filled else pg.mkPen(theme.color("secondary"), width=1)
        curve = pg.PlotCurveItem(self._edges, bars.shares, stepMode="center", fillLevel=0, brush=fill, pen=pen)
        self.addItem(curve)
        if bars.density is not None:
            ink = theme.color(bars.color if bars.filled else "secondary")
            self.addItem(pg.PlotCurveItem(*bars.density, pen=pg.mkPen(ink, width=2), antialias=True))

    def _light(self, number: int) -> None:
        if 0 <= number < len(self._edges) - 1:
            self._shade(*self._edges[number : number + 2], "text", 0.08)

    def _shade(self, left: float, right: float, token: str, alpha: float) -> None:
        ground = QColor(theme.color(token))
        ground.setAlphaF(alpha)
        top = self.getPlotItem().getViewBox().viewRange()[1][1]
        self.addItem(pg.BarGraphItem(x0=[left], x1=[right], y0=[0], y1=[top], brush=ground, pen=None))
