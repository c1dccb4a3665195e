"""The calibration pane: reliability, likelihood and one image's bars at an adjustable temperature per run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, structs
from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.numbers_bar import NumbersBar
from explorer.render_qt.panel import PanelWidget
from explorer.views.prompts.tau_control import TauControl
from explorer.widgets import layouts
from explorer.widgets.bars import BarChart, BarColumn
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.image_box import ImageBox
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from trainer.analysis.calibration import probabilities
from trainer.charts.calibration import CHART, CalibrationSettings
from trainer.charts.marks import Panel, run_tone
from trainer.charts.measures.calibration import CalibrationRun
from trainer.charts.spec import PerRun

PICTURE_PX = 112
BESIDE_PX, MOST_BESIDE_PX = 340, 640
"""Of the bars beside the plots: at least, so that each column has room for its temperature, and at most."""
NARROW_PX = 900
"""In less, the bars are below the plots, which keep a height."""
PLOTS_PX, STACKED_PX = 440, 660
"""Side by side, and one above the other, which two bars would scroll otherwise."""


class Sample(Struct, frozen=True):
    """An image whose bars are shown."""

    name: str  # As a person knows it.
    path: str  # Of the file.
    cosines: dict[int, np.ndarray]  # With every label, by the place of the run (0 is A); one may be missing.


class CalibrationPane(QWidget):
    """The calibration of both runs."""

    sample_chosen = Signal(int)  # The person chose another image, by its place.

    def __init__(self, background: Background, pictures: Thumbnails) -> None:
        super().__init__()
        self._background, self._pictures = background, pictures
        self._labels: tuple[str, ...] = ()
        self._runs: list[CalibrationRun | None] = [None, None]
        self._sample: Sample | None = None
        self.taus = (TauControl(0), TauControl(1))
        self.panel = PanelWidget(pictures, CHART.name)
        self.bars = BarChart()
        self.bars.setObjectName("prompts-bars")
        self.picture = ImageBox()
        self.picture.setMinimumSize(PICTURE_PX, PICTURE_PX)
        self.picture.setMaximumWidth(PICTURE_PX)
        self.samples = StillComboBox(objectName="prompts-sample", accessibleName="Image whose bars are shown")
        self.samples.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._lay_out()
        for control in self.taus:
            control.changed.connect(self._moved)
        self.samples.activated.connect(self.sample_chosen)
        pictures.arrived.connect(self._picture_arrived)

    @property
    def chosen_taus(self) -> list[float]:
        """The temperature of each run shown, A first, as the chart's setting."""
        return [control.tau for control, run in zip(self.taus, self._runs, strict=True) if run is not None]

    def show_runs(self, runs: Sequence[CalibrationRun | None]) -> None:
        """Show A and B; a run already shown keeps its temperature."""
        labels = next((run.labels for run in runs if run is not None), ())
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
        self._draw()
        self._show_bars()

    def show_samples(self, names: Sequence[str], current: int) -> None:
        """Offer these images."""
        self.samples.clear()
        self.samples.addItems(list(names))
        self.samples.setCurrentIndex(current)
        set_refusal(
            self.samples, "" if len(names) > 1 else "There is only one image." if names else "There is no image."
        )

    def show_sample(self, sample: Sample | None) -> None:
        """Show one image's bars."""
        self._sample = sample
        self._show_picture()
        self._show_bars()

    def _moved(self) -> None:
        self._show_bars()
        self._draw()

    def _draw(self) -> None:
        runs = [run for run in self._runs if run is not None]
        if runs:
            # Of every place, so that B alone keeps its own.
            args = (draw_panel, runs, tuple(control.tau for control in self.taus))
            self._background.run(self, *args, done=self.panel.show_panel, key="panel")

    def _show_bars(self) -> None:
        sample, shares = self._sample, []
        if sample is None or not self._labels:
            self.bars.show_bars([], [])
            return
        for index, run in enumerate(self._runs):
            cosines = sample.cosines.get(index) if run is not None else None
            if run is None:
                continue
            tau = self.taus[index].tau
            row = () if cosines is None else tuple(probabilities(cosines, 1 / tau, run.offset).tolist())
            shares.append(
                BarColumn(run.name, f"temperature {tau:.3g}", run_tone(index), row, adds_up=run.offset is None)
            )
        first = next((column.shares for column in shares if column.shares), ())
        order = sorted(range(len(first)), key=lambda label: -first[label])
        ordered = [
            structs.replace(c, shares=tuple(c.shares[label] for label in order) if c.shares else ()) for c in shares
        ]
        self.bars.show_bars([self._labels[label] for label in order], ordered)

    def _show_picture(self) -> None:
        path = self._sample.path if self._sample else ""
        self.picture.show_picture(self._pictures.get(path) if path else None)

    def _picture_arrived(self, path: str) -> None:
        if self._sample is not None and path == self._sample.path:
            self._show_picture()

    def _lay_out(self) -> None:
        controls = FlowRow()
        for control in self.taus:
            controls.add(control, gap=theme.AROUND, stretch=True)
        self.picture.setFixedHeight(PICTURE_PX)
        image = layouts.panel(layouts.column(self.samples, self.picture, layouts.STRETCH))
        image.setMinimumWidth(BESIDE_PX // 2)
        self._answer = layouts.column(image, (self.bars, 1))
        self._beside = layouts.panel(self._answer)
        NumbersBar(self.panel)
        plots = layouts.column((self.panel, 1), controls, gap=theme.BETWEEN)
        self._parts = layouts.row((plots, 1), self._beside, gap=theme.AROUND, of=self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_narrow, has_two = self.width() < NARROW_PX, self.width() >= 2 * BESIDE_PX
        self.panel.setMinimumHeight(0 if not is_narrow else PLOTS_PX if has_two else STACKED_PX)
        beside = min(max(BESIDE_PX, self.width() // 4), MOST_BESIDE_PX)
        self._beside.setMinimumWidth(0 if is_narrow else beside)
        self._beside.setMaximumWidth(self.width() if is_narrow else beside)
        layouts.stack(self._parts, is_narrow)
        layouts.stack(self._answer, not (is_narrow and has_two))


def draw_panel(runs: Sequence[CalibrationRun], taus: tuple[float, ...]) -> Panel:
    """Return the panel of these runs at their temperatures. Pure, for a thread."""
    data = PerRun(tuple(runs), tuple(run.index for run in runs))
    return CHART.panel(data, CalibrationSettings(tau=taus))
