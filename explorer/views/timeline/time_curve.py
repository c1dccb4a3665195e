"""A small plot of one quantity over the steps of A and B, with the time cursor; a click jumps there."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.render_qt.xy_plot import line_pen
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.plot import Plot
from trainer.charts.marks import run_tone
from trainer.charts.timeline import Curve, TimelineMeasure, TimelineRun, measure_name

AXIS_PX: Final = 44
"""The same for all, so that one step stands at one place in every curve."""
LEAST_PX: Final = 44
FEW: Final = 20
"""So many points are marked one by one."""


class TimeCurve(QWidget):
    """A small panel: name, values at the cursor, curves.

    Signals:
        jumped: The person clicked at this step.
    """

    jumped = Signal(float)

    def __init__(self, measure: TimelineMeasure, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.measure = measure
        self.setObjectName(f"timeline-{measure.key}")
        self._curves: dict[int, Curve] = {}
        self._items: dict[int, pg.PlotDataItem] = {}
        self.name = ElidedLabel(measure.label)
        theme.set_role(self.name, "small")
        self.values = (QLabel(), QLabel())
        self._plot: Plot | None = None
        self.cursor = pg.InfiniteLine(angle=90, movable=False)
        self.cursor.hide()  # beside it the axes would name values of nothing
        self._lay_out()
        theme.theme().follow(self._recolor)
        self._recolor()

    @property
    def plot(self) -> Plot:
        """The plot, created by `prepare` if needed."""
        return self._plot or self.prepare()

    def prepare(self) -> Plot:
        """Create the plot if needed; creating all seven with the view would block the window."""
        if self._plot is None:
            self._plot = plot = _Clickable(self)
            plot.setMinimumHeight(LEAST_PX)
            plot.setAccessibleName(self.measure.label)
            plot.getPlotItem().getAxis("left").setWidth(AXIS_PX)
            plot.getPlotItem().getAxis("left").setTickDensity(0.45)
            plot.getViewBox().setMouseEnabled(x=False, y=False)
            if self.measure.unit == "%":
                plot.setLimits(yMin=0, yMax=100)
            plot.addItem(self.cursor, ignoreBounds=True)
            plot.clicked.connect(self.jumped)
            self._column.addWidget(plot, 1)
        return self._plot

    def show_runs(self, runs: list[TimelineRun], *, last: float, bottom: bool) -> None:
        """Draw the runs' curves up to `last`; `bottom` adds numbers to the horizontal axis."""
        self._curves = {run.index: run.curves[self.measure.key] for run in runs if self.measure.key in run.curves}
        axis = self.plot.getPlotItem().getAxis("bottom")
        axis.setStyle(showValues=bottom)
        axis.setHeight(None if bottom else 4)
        self.plot.setXRange(0, max(last, 1), padding=0.02)
        self._recolor()
        label = measure_name(self.measure, runs)
        self.name.setText(label)
        self.plot.setAccessibleName(label)
        logged = {curve.logged for curve in self._curves.values()}
        words = "not known for these runs" if not logged else "as logged" if logged == {True} else "from the snapshots"
        self.setToolTip(f"{label}, {words if len(logged) < 2 else 'logged, or from the snapshots'}")

    def point_at(self, step: float) -> None:
        """Move the cursor there and show the last value at or before it."""
        self.cursor.setValue(step)
        self.cursor.setVisible(bool(self._curves))
        for index, label in enumerate(self.values):
            curve = self._curves.get(index)
            label.setText("" if curve is None else self._read(curve, step))

    def _read(self, curve: Curve, step: float) -> str:
        known = np.isfinite(curve.y) & (curve.x <= step)
        if not known.any():
            return "–"
        unit = f" {self.measure.unit}" if self.measure.unit else ""
        return f"{curve.y[known][-1]:,.{self.measure.digits}f}{unit}".replace("-", "−")

    def _recolor(self) -> None:
        tokens = theme.theme().tokens
        self.cursor.setPen(pg.mkPen(theme.color("text"), width=1))
        for label, ink in zip(self.values, (tokens.run_a_text, tokens.run_b_text), strict=True):
            label.setFont(theme.pixel_font(theme.SMALL_PX))
            label.setStyleSheet(f"color: {ink}")
        for index in set(self._items) - set(self._curves):
            self.plot.removeItem(self._items.pop(index))
        for index, curve in self._curves.items():
            ink, few = theme.run_color(index), len(curve.x) <= FEW
            if index not in self._items:
                self._items[index] = pg.PlotDataItem(connect="finite", symbolSize=4, symbolPen=None)
                # A stands above B, whichever was there first.
                self._items[index].setZValue(-index)
                self.plot.addItem(self._items[index])
            # New data for the old item: to make one takes longer than to draw it.
            self._items[index].setData(
                curve.x, curve.y, pen=line_pen(run_tone(index)), symbol="o" if few else None, symbolBrush=ink
            )
        known = [curve.y[np.isfinite(curve.y)] for curve in self._curves.values()]
        together = np.concatenate(known) if known else np.empty(0)
        if len(together):
            low, high = float(together.min()), float(together.max())
            self.plot.setYRange(low, high if high > low else low + 1e-3, padding=0.12)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        head.addWidget(self.name, 1)
        for label in self.values:
            label.setTextFormat(Qt.TextFormat.PlainText)
            head.addWidget(label)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        self._column = column


class _Clickable(Plot):
    """A plot that reports where it is pressed or dragged, in axis coordinates.

    Signals:
        clicked: The abscissa.
    """

    clicked = Signal(float)

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        self._tell(ev)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        if ev.buttons() & Qt.MouseButton.LeftButton:
            self._tell(ev)

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        ev.accept()

    def _tell(self, ev: QMouseEvent) -> None:
        if ev.buttons() & Qt.MouseButton.LeftButton:
            self.clicked.emit(self.getViewBox().mapSceneToView(self.mapToScene(ev.position().toPoint())).x())
            ev.accept()
