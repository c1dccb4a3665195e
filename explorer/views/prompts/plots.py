"""Reliability and likelihood of both runs, redrawn in place while a slider moves."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.widgets.plot import Plot
from trainer.charts.calibration import CURVE, CalibrationAt, CalibrationRun, ece_words

LEAST_DOT, MOST_DOT = 5.0, 22.0


class ReliabilityPlot(Plot):
    """Confidence against accuracy; the area of a dot is the images of its bin."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._shown: list[CalibrationAt | None] = [None, None]
        self._lines: list[pg.PlotDataItem] = []
        self._dots: list[pg.ScatterPlotItem] = []
        self._diagonal: pg.PlotDataItem | None = None
        super().__init__(parent, x_label="Confidence (largest probability)", y_label="Accuracy")
        self.setObjectName("prompts-reliability")
        self.setAccessibleName("Reliability: confidence against accuracy")
        item = self.getPlotItem()
        item.setMouseEnabled(x=False, y=False)
        item.setRange(xRange=(0, 1), yRange=(0, 1), padding=0.06)
        self._diagonal = item.plot([0, 1], [0, 1])
        for _ in range(2):
            self._lines.append(item.plot())
            dots = pg.ScatterPlotItem()
            item.addItem(dots)
            self._dots.append(dots)
        self.recolor()

    @property
    def shown(self) -> list[CalibrationAt | None]:
        """What is drawn of A and of B."""
        return list(self._shown)

    def show_run(self, index: int, found: CalibrationAt | None) -> None:
        """Draws one run, or nothing of it."""
        self._shown[index] = found
        self._draw(index)
        said = [f"run {'AB'[i]} {ece_words(one)}" for i, one in enumerate(self._shown) if one]
        self.setAccessibleDescription("; ".join(said))

    def recolor(self) -> None:
        super().recolor()
        if self._diagonal is None:
            return
        self._diagonal.setPen(pg.mkPen(theme.color("secondary"), width=1, style=Qt.PenStyle.DashLine))
        for index in range(len(self._lines)):
            self._draw(index)

    def _draw(self, index: int) -> None:
        found = self._shown[index]
        if found is None:
            self._lines[index].setData([], [])
            self._dots[index].setData([], [])
            return
        bins, color = found.reliability, QColor(theme.run_color(index))
        filled = bins.counts > 0
        x, y = bins.confidence[filled], bins.accuracy[filled]
        self._lines[index].setData(x, y)
        self._lines[index].setPen(pg.mkPen(color, width=1.5))
        share = np.sqrt(bins.counts[filled] / max(int(bins.counts.max()), 1))
        ground = QColor(color)
        ground.setAlphaF(0.75)
        self._dots[index].setData(
            x, y, size=LEAST_DOT + (MOST_DOT - LEAST_DOT) * share, brush=pg.mkBrush(ground), pen=pg.mkPen(None)
        )


class LikelihoodPlot(Plot):
    """Negative log-likelihood against tau, with a line at the temperature shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._runs: list[CalibrationRun | None] = [None, None]
        self._shown: list[CalibrationAt | None] = [None, None]
        self._curves: list[pg.PlotDataItem] = []
        self._marks: list[pg.ScatterPlotItem] = []
        super().__init__(parent, x_label="Temperature tau", y_label="NLL (nats an image)")
        self.setObjectName("prompts-likelihood")
        self.setAccessibleName("Negative log-likelihood against temperature")
        item = self.getPlotItem()
        item.setMouseEnabled(x=False, y=False)
        item.getAxis("bottom").setTicks([[(value, f"{10.0**value:g}") for value in (-3, -2, -1, 0)]])
        for _ in range(2):
            self._curves.append(item.plot())
            marks = pg.ScatterPlotItem()
            item.addItem(marks)
            self._marks.append(marks)
        self.recolor()

    def show_run(self, index: int, run: CalibrationRun | None, found: CalibrationAt | None) -> None:
        """Draws one run's curve and marks: ring trained, cross best, dot shown."""
        self._runs[index], self._shown[index] = run, found
        self._draw(index)
        self._fit()

    def recolor(self) -> None:
        super().recolor()
        for index in range(len(self._curves)):
            self._draw(index)

    def _draw(self, index: int) -> None:
        run, found = self._runs[index], self._shown[index]
        if run is None or found is None:
            self._curves[index].setData([], [])
            self._marks[index].setData([], [])
            return
        color = QColor(theme.run_color(index))
        self._curves[index].setData(-np.log10(CURVE), run.curve)
        self._curves[index].setPen(pg.mkPen(color, width=2))
        spots = [
            self._spot(run.own, "o", theme.color("surface"), color),
            self._spot(run.fitted, "x", color, color),
            self._spot(found, "o", color, color),
        ]
        self._marks[index].setData([spot for spot in spots if CURVE[0] <= spot["data"] <= CURVE[-1]])

    @staticmethod
    def _spot(at: CalibrationAt, symbol: str, fill: QColor, edge: QColor) -> dict[str, object]:
        pen, brush = pg.mkPen(edge, width=1.5), pg.mkBrush(fill)
        place = (-np.log10(at.inv_tau), at.nll)
        return {"pos": place, "symbol": symbol, "size": 10, "brush": brush, "pen": pen, "data": at.inv_tau}

    def _fit(self) -> None:
        drawn = [(run, at) for run, at in zip(self._runs, self._shown) if run is not None and at is not None]
        if not drawn:
            return
        wanted = [3 * min(float(run.curve.min()) for run, _ in drawn), *(1.3 * run.own.nll for run, _ in drawn)]
        wanted += [1.2 * at.nll for _, at in drawn]
        top = min(max(wanted), max(float(run.curve.max()) for run, _ in drawn))
        self.getPlotItem().setRange(xRange=(-3, 0), yRange=(0, max(top, 0.01)), padding=0.02)
