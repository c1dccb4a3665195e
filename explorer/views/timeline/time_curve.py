"""A plot of one measure over the steps of A and B, with the time cursor; a click jumps there."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.render_qt.xy_plot import XYPlotWidget
from explorer.widgets import layouts
from trainer.charts.run_tones import mark_with_sides
from trainer.charts.snapshot_curves import measure_plot, value_at
from trainer.charts.snapshot_series import MeasureCurve, TimelineMeasure, TimelineRun

AXIS_PX: Final = 44
"""The same for all, so that one step stands at one place in every curve."""
LEAST_PX: Final = 44


class TimeCurve(QWidget):
    """A plot of the chart `snapshot-curves` with its name and the values at the cursor.

    Signals:
        jumped: The person clicked at this step.
    """

    jumped = Signal(float)

    def __init__(self, measure: TimelineMeasure, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.measure = measure
        self.setObjectName(f"timeline-{measure.key}")
        self._curves: dict[int, MeasureCurve] = {}
        self.name = layouts.elided(measure.label, "small")
        self.values = (layouts.text(), layouts.text())
        self._plot: XYPlotWidget | None = None
        self._lay_out()
        theme.theme().follow(self._recolor)
        self._recolor()

    @property
    def plot(self) -> XYPlotWidget:
        """The plot, created by `prepare` if needed."""
        return self._plot or self.prepare()

    @property
    def cursor_step(self) -> float:
        """The step of the time cursor; NaN if none is shown."""
        return self.plot.spec.cursor if self.plot.spec is not None else math.nan

    def prepare(self) -> XYPlotWidget:
        """Create the plot if needed; creating all seven with the view would block the window."""
        if self._plot is None:
            self._plot = plot = XYPlotWidget(self)
            plot.setMinimumHeight(LEAST_PX)
            plot.setAccessibleName(self.measure.label)
            plot.getPlotItem().getAxis("left").setWidth(AXIS_PX)
            plot.getPlotItem().getAxis("left").setTickDensity(0.45)
            plot.dragged.connect(lambda x, _y: self.jumped.emit(x))
            self._column.addWidget(plot, 1)
        return self._plot

    def show_runs(self, runs: list[TimelineRun], *, bottom: bool) -> None:
        """Draw the runs' curves; `bottom` adds numbers to the horizontal axis."""
        self._curves = {run.index: run.curves[self.measure.key] for run in runs if self.measure.key in run.curves}
        axis = self.plot.getPlotItem().getAxis("bottom")
        axis.setStyle(showValues=bottom)
        axis.setHeight(None if bottom else 4)
        self._recolor()
        spec = mark_with_sides(measure_plot(self.measure, runs), theme.sides_of(self))
        # The name above the plot is the label of its axis.
        self.plot.show_plot(replace(spec, x=replace(spec.x, label=""), y=replace(spec.y, label="")))
        self.plot.setAccessibleName(spec.title)
        self.setToolTip(f"{spec.title}, {spec.note}")

    def point_at(self, step: float) -> None:
        """Move the cursor there and show the last value at or before it."""
        self.plot.move_cursor(step if self._curves else math.nan)
        for index, label in enumerate(self.values):
            curve = self._curves.get(index)
            label.setText("" if curve is None else self._read(curve, step))

    def _read(self, curve: MeasureCurve, step: float) -> str:
        value = value_at(curve, step)
        unit = f" {self.measure.unit}" if self.measure.unit else ""
        if not math.isfinite(value):
            return "–"
        rounded = round(value, self.measure.digits) + 0.0  # no −0.000
        return f"{rounded:,.{self.measure.digits}f}{unit}".replace("-", "−")

    def _recolor(self) -> None:
        for index, label in enumerate(self.values):
            label.setFont(theme.pixel_font(theme.SMALL_PX))
            label.setStyleSheet(f"color: {theme.run_ink(index, self)}")

    def _lay_out(self) -> None:
        self._column = layouts.column(layouts.row((self.name, 1), *self.values), gap=0, of=self)
