"""One measure over the steps of A and B, with the time cursor; a click jumps there. Of different data in two plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.render_qt.xy_plot import XYPlotWidget
from explorer.widgets import layouts
from trainer.charts.run_tones import mark_with_sides
from trainer.charts.snapshot_curves import by_data, measure_plot, value_at
from trainer.charts.snapshot_series import MeasureCurve, TimelineMeasure, TimelineRun
from trainer.metrics import measured_name

AXIS_PX: Final = 52
"""The same for all, so that one step stands at one place in every curve."""
LEAST_PX: Final = 44


class TimeCurve(QWidget):
    """A plot of the chart `snapshot-curves` with its name and the values at the cursor."""

    jumped = Signal(float)  # The person clicked at this step.

    def __init__(self, measure: TimelineMeasure, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"timeline-{measure.key}")
        self.measure = measure
        self._curves: dict[int, MeasureCurve] = {}
        self.name = layouts.elided(measure.label, "small")
        self.name.mode = Qt.TextElideMode.ElideMiddle  # n stays
        self.values = (layouts.text(), layouts.text())
        for label in self.values:
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.plots: list[XYPlotWidget] = []
        self._lay_out()
        theme.theme().follow(self._recolor)
        self._recolor()

    @property
    def plot(self) -> XYPlotWidget:
        """The plot of A, and of B where both have the same data; created by `prepare` if needed."""
        return self.prepare()

    def prepare(self, count: int = 1) -> XYPlotWidget:
        """Create the first plots if needed; creating all seven with the view would block the window."""
        for column in self._columns[len(self.plots) : count]:
            plot = XYPlotWidget(self)
            plot.setMinimumHeight(LEAST_PX)
            plot.setAccessibleName(self.measure.label)
            plot.getPlotItem().getAxis("left").setWidth(AXIS_PX)
            plot.getPlotItem().getAxis("left").setTickDensity(0.45)
            plot.dragged.connect(lambda x, _y: self.jumped.emit(x))
            column.addWidget(plot, 1)
            self.plots.append(plot)
        return self.plots[0]

    def show_runs(self, runs: Sequence[TimelineRun], *, bottom: bool) -> None:
        """Draw the runs' curves; `bottom` adds numbers to the horizontal axis."""
        self._curves = {run.index: run.curves[self.measure.key] for run in runs if self.measure.key in run.curves}
        self._recolor()
        self.name.setText(measured_name(self.measure.label, n=[curve.n for curve in self._curves.values()]))
        parts = by_data(runs) or (runs,)
        self.prepare(len(parts))
        self._heads[len(parts) - 1].addWidget(self.values[1])
        self._row.setStretch(1, len(parts) - 1)
        specs = [mark_with_sides(measure_plot(self.measure, part), theme.sides_of(self)) for part in parts]
        for plot, spec in zip(self.plots, specs):
            axis = plot.getPlotItem().getAxis("bottom")
            axis.setStyle(showValues=bottom)
            axis.setHeight(None if bottom else 4)
            # The name above the plot is the label of its axis.
            plot.show_plot(replace(spec, x=replace(spec.x, label=""), y=replace(spec.y, label="")))
            plot.setAccessibleName(spec.title)
        for index, label in enumerate(self.values):  # the widest number has its room before the steps are played
            texts = [self._read(curve, step) for curve in (self._curves.get(index),) if curve for step in curve.x]
            label.setMinimumWidth(max(map(label.fontMetrics().horizontalAdvance, texts), default=0))
        for plot in self.plots[1:]:
            plot.setVisible(len(parts) > 1)
        facts = dict.fromkeys(f"{spec.title}, {spec.note}" for spec in specs)
        self.setToolTip("\n".join([*facts, *filter(None, [self.measure.hint])]))

    def point_at(self, step: float) -> None:
        """Move the cursor there and show the last value at or before it."""
        for plot in self.plots:
            plot.move_cursor(step if self._curves else math.nan)
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
        self._heads = (layouts.row((self.name, 1), *self.values), layouts.row(layouts.STRETCH))
        self._columns = [layouts.column(head, gap=0) for head in self._heads]
        # An empty column would take its part of the width.
        self._row = layouts.row((self._columns[0], 1), self._columns[1], gap=0, of=self)
