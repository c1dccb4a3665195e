"""The calibration bench: reliability, likelihood and one image's bars, all moved by the temperature of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.models.thumbnails import Pictures
from explorer.views.prompts.plots import LikelihoodPlot, ReliabilityPlot
from explorer.views.prompts.tau_control import TauControl
from explorer.widgets.bars import BarChart, BarColumn
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.flow_row import WrappingRow
from explorer.widgets.image_box import ImageBox
from trainer.analysis.calibration import probabilities
from trainer.charts.calibration import CalibrationAt, CalibrationChart, CalibrationRun, at, ece_words

PICTURE_PX = 112
LEAST_PLOT_PX = 170
BELOW_PX = 212
COLUMNS = ("tau", "ECE", "NLL", "Confidence")
AT = ("Shown", "Trained", "Best")


@dataclass(frozen=True)
class Sample:
    """An image whose bars are shown.

    Attributes:
        name: As a person knows it.
        path: Of the file.
        cosines: With every label, by the place of the run (0 is A); one may be missing.
    """

    name: str
    path: str
    cosines: dict[int, np.ndarray]


class CalibrationPane(QWidget):
    """Both runs' calibration.

    Signals:
        taus_changed: A temperature is another now.
        sample_chosen: The person chose another image, by its place.
    """

    taus_changed = Signal()
    sample_chosen = Signal(int)

    def __init__(self, background: Background, pictures: Pictures) -> None:
        super().__init__()
        self._background, self._pictures = background, pictures
        self._labels: tuple[str, ...] = ()
        self._runs: list[CalibrationRun | None] = [None, None]
        self._sample: Sample | None = None
        self.taus = (TauControl(0), TauControl(1))
        self.reliability, self.likelihood = ReliabilityPlot(), LikelihoodPlot()
        self.bars = BarChart()
        self.bars.setObjectName("prompts-bars")
        self.picture = ImageBox()
        self.picture.setMinimumSize(PICTURE_PX, PICTURE_PX)
        self.picture.setMaximumWidth(PICTURE_PX)
        self.samples = QComboBox(objectName="prompts-sample", accessibleName="Image whose bars are shown")
        self.samples.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.note = QLabel(wordWrap=True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self._cells: dict[tuple[str, int, str], QLabel] = {}
        self._lay_out()
        for index, control in enumerate(self.taus):
            control.changed.connect(lambda i=index: self._moved(i))
        self.samples.activated.connect(self.sample_chosen)
        pictures.arrived.connect(self._picture_arrived)

    @property
    def chosen_taus(self) -> list[float]:
        """The temperature of each run that is shown, A first."""
        return [control.tau for control, run in zip(self.taus, self._runs, strict=True) if run is not None]

    def show_runs(self, chart: CalibrationChart | None, runs: Sequence[CalibrationRun | None]) -> None:
        """Shows A and B; a run that is shown already keeps its temperature."""
        labels = chart.labels if chart else ()
        if labels != self._labels:
            self._sample = None  # its cosines are with the labels of before
        self._labels = labels
        for index, run in enumerate(runs):
            before, control = self._runs[index], self.taus[index]
            same = before is not None and run is not None and (before.run, before.step) == (run.run, run.step)
            self._runs[index] = run
            control.setVisible(run is not None)
            if run is not None:
                trained, best = 1 / run.own.inv_tau, 1 / run.fitted.inv_tau
                control.show_run(run.name, trained=trained, best=best, tau=control.tau if same else None)
                found = run.own if control.tau == trained else at(run, 1 / control.tau)
                self._show_at(index, found)
            else:
                self._show_at(index, None)
        self.note.setText(_note(chart, self._runs))
        self._show_bars()

    def show_samples(self, names: Sequence[str], current: int) -> None:
        """Offers these images."""
        self.samples.clear()
        self.samples.addItems(list(names))
        self.samples.setCurrentIndex(current)
        self.samples.setEnabled(len(names) > 1)

    def show_sample(self, sample: Sample | None) -> None:
        """Shows one image's bars."""
        self._sample = sample
        self._show_picture()
        self._show_bars()

    def _moved(self, index: int) -> None:
        self._show_bars()
        run = self._runs[index]
        if run is not None:
            self._background.run(
                self,
                at,
                run,
                1 / self.taus[index].tau,
                done=lambda found, i=index, r=run: self._show_at(i, found) if self._runs[i] is r else None,
                key=f"at-{index}",
            )
        self.taus_changed.emit()

    def _show_at(self, index: int, found: CalibrationAt | None) -> None:
        run = self._runs[index]
        self.reliability.show_run(index, found)
        self.likelihood.show_run(index, run, found)
        points = (found, run.own if run else None, run.fitted if run else None)
        for name, one in zip(AT, points, strict=True):
            texts = ("",) * len(COLUMNS) if one is None else _numbers(one)
            for column, text in zip(COLUMNS, texts, strict=True):
                self._cells[column, index, name].setText(text)
            self._cells["ECE", index, name].setToolTip("" if one is None else ece_words(one))

    def _show_bars(self) -> None:
        sample, shares = self._sample, []
        if sample is None or not self._labels:
            self.bars.show_bars([], [])
            return
        for index, run in enumerate(self._runs):
            cosines = sample.cosines.get(index) if run is not None else None
            if run is None:
                continue
            row = () if cosines is None else tuple(probabilities(cosines, 1 / self.taus[index].tau).tolist())
            shares.append(BarColumn(run.name, f"tau {self.taus[index].tau:.3g}", theme.run_color(index), row))
        first = next((column.shares for column in shares if column.shares), ())
        order = sorted(range(len(first)), key=lambda place: -first[place])
        ordered = [
            BarColumn(c.title, c.note, c.color, tuple(c.shares[place] for place in order) if c.shares else ())
            for c in shares
        ]
        self.bars.show_bars([self._labels[place] for place in order], ordered)

    def _show_picture(self) -> None:
        path = self._sample.path if self._sample else ""
        self.picture.show_picture(self._pictures.get(path) if path else None)

    def _picture_arrived(self, path: str) -> None:
        if self._sample is not None and path == self._sample.path:
            self._show_picture()

    def _lay_out(self) -> None:
        plots = QGridLayout()
        plots.setHorizontalSpacing(theme.AROUND)
        plots.setVerticalSpacing(theme.SPACE)
        for place, (words, plot) in enumerate(
            (
                ("Does confidence mean accuracy? On the line it does.", self.reliability),
                ("Which tau fits? Dot: shown, ring: trained, cross: best.", self.likelihood),
            )
        ):
            heading = ElidedLabel(words)
            theme.set_role(heading, "secondary")
            plots.addWidget(heading, 0, place)
            plot.setMinimumHeight(LEAST_PLOT_PX)
            plots.addWidget(plot, 1, place)
            plots.setColumnStretch(place, 1)
        controls = WrappingRow()
        for control in self.taus:
            controls.add(control, gap=theme.AROUND, stretch=True)
        left = QVBoxLayout()
        left.setSpacing(theme.INSIDE)
        left.addLayout(self._numbers_grid())
        left.addWidget(self.note)
        left.addStretch()
        beside = QVBoxLayout()
        beside.setSpacing(theme.INSIDE)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.addWidget(self.samples)
        beside.addWidget(self.picture)
        beside.addStretch()
        picture_column = QWidget()
        picture_column.setFixedWidth(PICTURE_PX)
        picture_column.setLayout(beside)
        self.picture.setFixedHeight(PICTURE_PX)
        self.bars.setMinimumHeight(BELOW_PX)
        below = QHBoxLayout()
        below.setSpacing(theme.AROUND)
        below.addLayout(left, 6)
        below.addWidget(picture_column)
        below.addWidget(self.bars, 5)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        column.addWidget(controls)
        column.addLayout(plots, 3)
        column.addLayout(below, 2)

    def _numbers_grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.INSIDE)
        grid.setVerticalSpacing(2)
        for place, column in enumerate(COLUMNS, 1):
            head = QLabel(column)
            theme.set_role(head, "small")
            grid.addWidget(head, 0, place, Qt.AlignmentFlag.AlignRight)
        lines = [(index, name) for index in range(2) for name in AT]
        for line, (index, name) in enumerate(lines, 1):
            head = QLabel(f"{'AB'[index]} {name.lower()}")
            theme.set_role(head, "secondary")
            grid.addWidget(head, line, 0)
            for place, column in enumerate(COLUMNS, 1):
                cell = QLabel(objectName=f"prompts-{column.lower()}-{'ab'[index]}-{name.lower()}")
                theme.set_role(cell, "number")
                self._cells[column, index, name] = cell
                grid.addWidget(cell, line, place, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(0, 1)
        return grid


def _numbers(one: CalibrationAt) -> tuple[str, ...]:
    return f"{1 / one.inv_tau:.3g}", f"{one.ece:.3f}", f"{one.nll:.3f}", f"{100 * one.confidence:.1f} %"


def _note(chart: CalibrationChart | None, runs: Sequence[CalibrationRun | None]) -> str:
    if chart is None:
        return ""
    shown = [run for run in runs if run is not None]
    counts = {f"n = {r.n:,} of {r.pairs:,} images{' (sampled)' if r.n < r.labeled else ''}" for r in shown}
    column = " and ".join(sorted({run.column for run in shown}))
    right = ", ".join(f"{run.name} {100 * run.accuracy:.1f} %" for run in shown)
    words = f"Accuracy at any tau: {right}; {', '.join(sorted(counts))}; "
    words += f"{len(chart.labels)} classes from the column {column}, "
    return f"{words}mean of {len(chart.templates)} template{'s' * (len(chart.templates) > 1)}. {chart.note}"
