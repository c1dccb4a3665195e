"""Curves of an evaluation: reliability, accuracy under corruption, few-shot probes. A is blue, B is orange."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.plot import Plot
from trainer.charts.evaluation import EvaluationChart, asked_alike, curves, diagrams
from trainer.store.question import told

_PENS: Final = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DotLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DashDotDotLine,
)


@dataclass(frozen=True)
class Curve:
    """One line: `index` is the run's place (colour), `style` that of its kind (dashes), `name` is for readers.

    Attributes:
        low, high: Edges of a band around it; empty for none.
    """

    index: int
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    name: str
    hollow: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class CurvePlot(Plot):
    """Curves of both runs on one pair of axes."""

    def __init__(self, name: str, words: str, *, x_label: str, y_label: str) -> None:
        self._curves: tuple[Curve, ...] = ()
        self._diagonal = False
        self._level: float | None = None
        super().__init__(x_label=x_label, y_label=y_label)
        self.setObjectName(name)
        self.setAccessibleName(words)
        self.getPlotItem().setMouseEnabled(x=False, y=False)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """What is drawn."""
        return self._curves

    def show_curves(self, shown: Sequence[Curve], *, diagonal: bool = False, most: float = math.inf) -> None:
        """Draws exactly these, up to `most`; with `diagonal` both axes run from 0 to 1 and a line marks y = x."""
        self._curves, self._diagonal = tuple(shown), diagonal
        self.setAccessibleDescription("; ".join(f"{c.name}: {', '.join(f'{y:.2f}' for y in c.y)}" for c in shown))
        item = self.getPlotItem()
        if diagonal:
            item.setRange(xRange=(0, 1), yRange=(0, 1), padding=0.03)
        else:
            top = max((max(curve.high or curve.y) for curve in shown if curve.y), default=1.0)
            xs = [x for curve in shown for x in curve.x] or [0.0, 1.0]
            item.setRange(xRange=(min(xs), max(xs)), yRange=(0, min(max(top * 1.12, 1e-3), most)), padding=0.04)
        self.recolour()

    def show_level(self, level: float | None) -> None:
        """Marks a height with a dotted line, or none."""
        self._level = level
        self.recolour()

    def show_ticks(self, ticks: Sequence[tuple[float, str]]) -> None:
        """Marks these places of the horizontal axis only."""
        self.getPlotItem().getAxis("bottom").setTicks([list(ticks)])

    def recolour(self) -> None:
        super().recolour()
        item = self.getPlotItem()
        item.clear()
        if self._diagonal:
            pen = pg.mkPen(theme.colour("secondary"), width=1, style=Qt.PenStyle.DashLine)
            item.plot([0, 1], [0, 1], pen=pen)
        if self._level is not None:
            item.addItem(pg.InfiniteLine(self._level, angle=0, pen=pg.mkPen(theme.colour("secondary"), style=_PENS[2])))
        for curve in self._curves:
            colour = QColor(theme.run_colour(curve.index))
            if curve.low:
                _band(item, curve, colour)
            pen = pg.mkPen(colour, width=1.6, style=_PENS[curve.style % len(_PENS)])
            ground = theme.colour("surface") if curve.hollow else colour
            item.plot(
                np.array(curve.x),
                np.array(curve.y),
                pen=pen,
                symbol="o",
                symbolSize=6,
                symbolPen=pg.mkPen(colour),
                symbolBrush=ground,
            )


def _band(item: pg.PlotItem, curve: Curve, colour: QColor) -> None:
    """Fills what lies between the edges of the curve's band."""
    pale = QColor(colour)
    pale.setAlphaF(0.18)
    # A curve without a pen; an item of data without one would have no path that could be filled.
    nothing = pg.mkPen(None)
    edges = [pg.PlotCurveItem(np.array(curve.x), np.array(values), pen=nothing) for values in (curve.low, curve.high)]
    for edge in edges:
        item.addItem(edge)
    item.addItem(pg.FillBetweenItem(*edges, brush=pale))


class CurvesPane(QWidget):
    """Three plots side by side, each with a heading and what its lines are."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reliability = CurvePlot(
            "evaluate-reliability", "Reliability of zero-shot answers", x_label="Confidence", y_label="Accuracy"
        )
        self.robustness = CurvePlot(
            "evaluate-robustness", "Accuracy under corruption", x_label="Severity (0: clean)", y_label="Accuracy (%)"
        )
        self.few_shot = CurvePlot(
            "evaluate-few-shot", "Few-shot probes", x_label="Labels a class", y_label="Accuracy (%)"
        )
        self.robustness.show_ticks([(n, str(n)) for n in range(6)])
        self.few_shot.show_ticks([(n, str(2**n)) for n in range(5)])
        self._notes: list[QLabel] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.AROUND)
        titles = ("Reliability", "Under corruption", "Few-shot probes")
        for title, plot in zip(titles, (self.reliability, self.robustness, self.few_shot), strict=True):
            heading, note = QLabel(title), QLabel()
            theme.set_role(heading, "strong")
            theme.set_role(note, "small")
            note.setTextFormat(Qt.TextFormat.PlainText)
            note.setWordWrap(True)
            note.setMinimumHeight(56)
            note.setAlignment(Qt.AlignmentFlag.AlignTop)
            self._notes.append(note)
            column = QVBoxLayout()
            column.setSpacing(theme.INSIDE)
            column.addWidget(heading)
            column.addWidget(note)
            column.addWidget(plot, 1)
            column.addStretch(0)
            row.addLayout(column, 1)

    def show_chart(self, chart: EvaluationChart | None) -> None:
        """Draws what was measured; each note says what is missing, and who was asked another question than A."""
        shows = (self._show_reliability, self._show_robustness, self._show_few_shot)
        for show, note, task in zip(shows, self._notes, ("zero_shot", "robustness", "few_shot"), strict=True):
            alike = asked_alike(chart, task) if chart else []
            show(alike[0] if alike else None)
            note.setText(" ".join([note.text(), *(_left_out(other, task) for other in alike[1:])]))
        # Axes of nothing would be taken for results.
        for plot in (self.reliability, self.robustness, self.few_shot):
            plot.setVisible(bool(plot.curves))

    def _show_reliability(self, chart: EvaluationChart | None) -> None:
        shown, words = [], []
        for run, name, found in diagrams(chart) if chart else ():
            filled = [i for i, count in enumerate(found["counts"]) if count]
            x, y = (tuple(found[key][i] for i in filled) for key in ("confidence", "accuracy"))
            own = name == "own"
            shown.append(Curve(run.index, 0 if own else 2, x, y, f"{run.label}, {name} tau", not own))
            # Records of older versions lack it.
            chance = f" ({100 * found['ece_calibrated']:.1f} by chance)" if "ece_calibrated" in found else ""
            words.append(f"{'AB'[run.index]} {name} tau {100 * found['ece']:.1f} %{chance}")
        self.reliability.show_curves(shown, diagonal=True)
        missing = "Zero-shot was not measured."
        self._notes[0].setText(f"Calibration error: {', '.join(words)}. Hollow: tau fitted." if words else missing)

    def _show_robustness(self, chart: EvaluationChart | None) -> None:
        found = curves(chart) if chart else []
        kinds = list(dict.fromkeys(kind for _, kind, _ in found))
        severities = tuple(float(n) for n in range(6))
        shown = [
            Curve(run.index, kinds.index(kind), severities, tuple(100 * v for v in values), f"{run.label}, {kind}")
            for run, kind, values in found
        ]
        self.robustness.show_curves(shown)
        if not found:
            self._notes[1].setText("Robustness was not measured.")
            return
        record = found[0][0].tasks["robustness"]
        dashes = ("solid", "dashed", "dotted", "dash-dot", "dash-dot-dot")
        named = ", ".join(f"{kind} {dashes[place % 5]}" for place, kind in enumerate(kinds))
        shift = record.details.get("shift")
        moved = f" On {shift['dataset']} {shift['split']}: see the table." if shift else ""
        self._notes[1].setText(f"{_measure(record.details['measure'])}, n = {record.n:,}. {named}.{moved}")

    def _show_few_shot(self, chart: EvaluationChart | None) -> None:
        shown: list[Curve] = []
        words: list[str] = []
        probes = (
            [run.tasks["linear_probe"].question for run in chart.runs if "linear_probe" in run.tasks] if chart else []
        )
        for run in chart.runs if chart else ():
            points: list[Any] = run.tasks["few_shot"].details["curve"] if "few_shot" in run.tasks else []
            if points:
                x, y = (
                    tuple(map(float, part)) for part in (np.log2([p[0] for p in points]), [100 * p[1] for p in points])
                )
                shown.append(Curve(run.index, 0, x, y, run.label))
            if points and "linear_probe" in run.tasks and run.tasks["linear_probe"].question == probes[0]:
                value = run.tasks["linear_probe"].metrics["linear_probe_acc1"]
                words.append(f"{'AB'[run.index]} {100 * value:.1f} %")
        self.few_shot.show_curves(shown)
        whole = f" With all labels: {', '.join(words)}." if words else ""
        missing = "Few-shot probes were not measured, or no class has a label."
        self._notes[2].setText(f"Linear probe, mean of 3 draws of the labels.{whole}" if shown else missing)


def _left_out(chart: EvaluationChart, task: str) -> str:
    """Why these runs are not drawn: what they were asked instead."""
    names = ", ".join(run.label for run in chart.runs)
    return f"Not drawn, for the question was another: {names} ({told(chart.runs[0].tasks[task].question)})."


def _measure(name: str) -> str:
    return {"zero_shot_acc1": "Zero-shot accuracy", "image_to_text_R@1": "Image-to-text R@1"}.get(name, "kNN accuracy")
