"""The Modality gap view: a slider that closes the gap, and what that does to loss and recall."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, QTimer
from PySide6.QtGui import QAction, QWheelEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QSlider, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.gap.clouds import Clouds
from explorer.views.gap.load import Exact, Reading, curve, measure, read, read_exactly
from explorer.views.gap.numbers import GapNumbers
from explorer.views.view import View, side_words
from explorer.widgets.combo_boxes import Badge, Choice, Picker
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.plot import Plot
from explorer.widgets.progress_row import Cancelled, Working
from trainer.charts.gap import LIVE, MOST_PAIRS, SHARES, GapPoint, note
from trainer.errors import UserError

METHOD = """\
The gap is the mean image embedding minus the mean text embedding; its size is the length of that vector (Liang et \
al., Mind the Gap, 2022). 0: the modalities have one center; √2: two points at right angles; 2 at most.

Shift moves every image by −s/2 and every text by +s/2 of the gap, then makes them unit rows again; beyond 100 % \
they have changed sides. Project out takes a share of each row's own component along the gap away. At 100 % the \
centers meet before the rows are unit rows again; that parts them a little, so a small gap remains. Neither trains \
anything: it asks whether the gap carries what the model knows.

The loss is the run's own objective: CLOOB with its fixed temperature and beta for CLOOB, else symmetric InfoNCE at \
the temperature of that step. All n pairs count as one batch, so it depends on n and is not the loss of training. \
Losses of different objectives are different quantities and share no axis: compare recall.

While the slider moves, numbers are of a random sample (n is shown); when it rests, of all pairs, or of 8,000 drawn \
at random where there are more. "Measure all" then measures every pair, tile by tile, and does so again whenever the \
slider rests. The map \
shows up to 320 of them on the two principal axes of images and texts together, as trained; the axes stay put.

Published, for comparison: Humer et al., Amumo: CLIP RN50 on 100 pairs of MS-COCO has a gap of .8186 and a loss of \
.3554; with the gap closed .0351 and 1.1248."""

NO_RUN = (
    "Choose run A in the bar above, and run B to compare. The gap between their images and texts then appears here."
)
RANGE = 150
REST_MS = 350
NUMBERS_PX = 424
WAYS = (
    Choice("shift", "shift", "Move both modalities by half the gap, then renormalize"),
    Choice("project", "project out", "Take the component along the gap away, then renormalize"),
)


class GapView(View):
    """The gap over the steps, the clouds it separates, and a slider that closes it in both runs."""

    title = "Modality gap"
    question = "How far apart are images and texts as a whole, and what does closing that do?"
    icon = "split"
    method = METHOD

    def build(self) -> Iterator[None]:
        context = self.context
        self.reading: Reading | None = None
        self.points: dict[int, GapPoint] = {}
        self._curve: dict[int, tuple[GapPoint, ...]] = {}
        self._exact: Exact | None = None
        self._opening = self._whole = False
        self._asked: tuple[object, ...] | None = None
        self.slider = _Slider(
            Qt.Orientation.Horizontal, objectName="gap-slider", accessibleName="Share of the gap closed"
        )
        self.slider.setRange(0, RANGE)
        self.slider.setPageStep(10)
        self.share = QLabel("0 % closed", objectName="gap-share")
        theme.set_role(self.share, "strong")
        self.way = Picker(name="gap-way", words="How the gap is closed", width=120)
        self.way.setMaximumWidth(160)
        self.way.show_choices(WAYS, context.settings.value("gap/way", "shift"))
        self.reset = QPushButton("Open again", objectName="gap-reset")
        theme.keep_icon(self.reset, "rotate-ccw", 16, "secondary")
        yield
        self.clouds = (Clouds(0), Clouds(1))
        self.titles = (ElidedLabel(), ElidedLabel())
        yield
        self.size_plot = Plot(x_label="step", y_label="size of the gap")
        yield
        self.recall_plot = Plot(x_label="share of the gap closed (%)", y_label="R@1")
        yield
        self.numbers = GapNumbers()
        self.note = QLabel(wordWrap=True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self.working = Working("gap-working")
        self.whole = QPushButton("Measure all", objectName="gap-whole")
        theme.keep_icon(self.whole, "list-checks", 16, "secondary")
        self.whole.hide()
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        yield
        self._lay_out()
        yield
        self._connect()

    def command(self) -> list[str] | None:
        if self.reading is None or not self.reading.sides:
            return None
        runs = [side.run for _, side in sorted(self.reading.sides.items())]
        words = ["export", "gap", *side_words(self.context.selection, self.reading.sides)]
        if self._whole and self._pairs > MOST_PAIRS:
            words += ["--most", str(self._pairs)]
        return [*words, "--dataset", runs[0].dataset, "--split", runs[0].split, "--way", self.way.key]

    def actions_for_palette(self) -> list[QAction]:
        actions = []
        for words, share in (("Close the gap", 100), ("Open the gap again", 0)):
            action = QAction(words, self)
            action.triggered.connect(lambda _=False, value=share: self.slider.setValue(value))
            actions.append(action)
        return actions

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._asked = self.reading = None
            self._opening = False
            self.working.end()
            self.show_no_run("split", NO_RUN)
            return
        self.show_content()
        steps = (selection.step_of(0), selection.step_of(1))
        asked = (selection.run_a, selection.run_b, steps, selection.dataset)
        if asked == self._asked:
            return
        self._asked = asked
        self._exact, self._opening, self._whole = None, True, False
        self.context.background.run(
            self,
            read,
            self.context.workspace,
            asked[:2],
            *asked[2:],
            LIVE,
            self.working.start(),
            done=self._show,
            failed=self._refuse,
            key="gap",
        )

    # Reading ----------------------------------------------------------------------------------------------------

    def _show(self, reading: Reading) -> None:
        self._opening = False
        self.whole.hide()
        self.reading, self._curve = reading, {}
        runs = (self.context.selection.run_a, self.context.selection.run_b)
        for index, (clouds, title) in enumerate(zip(self.clouds, self.titles, strict=True)):
            side = reading.sides.get(index)
            if side is None:
                clouds.show_points(np.zeros((0, 2)), np.zeros((0, 2)))
                empty = "No run chosen" if runs[index] is None else reading.problems.get(index, "")
                title.setText(empty)
                for head in ("open", "now"):
                    self.numbers.show_point(index, head, None)
                continue
            clouds.fit(*side.sample.places(0.0, "shift"))
            shown, run = len(clouds.image), side.run
            title.setText(f"{run.name} · step {run.step:,} · {shown:,} of {run.pairs:,} pairs")
        sides = [side for _, side in sorted(reading.sides.items())]
        self.numbers.objectives.setText("\n".join(f"{'AB'[s.run.index]}: {s.run.objective_words}" for s in sides))
        self.note.setText(_note(reading))
        self._draw_sizes()
        self._follow()
        self._ask_curve()

    def _ask_curve(self) -> None:
        if self.reading is not None and self.reading.sides:
            self.context.background.run(
                self, curve, self.reading.sides, SHARES, self.way.key, done=self._show_curve, key="curve"
            )

    def _show_curve(self, found: dict[int, tuple[GapPoint, ...]]) -> None:
        self._curve = found
        self._draw_recall()

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        self._asked, self._opening = None, False
        self.working.end()
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.show_empty("triangle-alert", "The gap cannot be measured", str(error) or type(error).__name__)

    # The slider -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Moves the clouds at once, asks for the sample's numbers, and for exact ones once the slider rests."""
        share = self.slider.value() / 100
        self.share.setText(f"{self.slider.value()} % closed")
        if self.reading is None or not self.reading.sides:
            return
        for index, side in self.reading.sides.items():
            self.clouds[index].show_points(*side.sample.places(share, self.way.key))
        if not self._opening:
            # Exact numbers of another share are not wanted any more; runs that are being read still are.
            self.working.end()
        self.context.background.run(
            self, measure, self.reading.sides, share, self.way.key, done=self._show_live, key="live"
        )
        self._draw_recall()
        self._rest.start()

    def _show_live(self, points: dict[int, GapPoint]) -> None:
        self.points = points
        for index, point in points.items():
            self.numbers.show_point(index, "now", point)

    def _measure_exactly(self) -> None:
        if self.slider.isSliderDown() or self._asked is None or self._opening or not self.isVisible():
            return
        self.context.background.run(
            self,
            read_exactly,
            self.context.workspace,
            self._asked[:2],
            *self._asked[2:],
            self.slider.value() / 100,
            self.way.key,
            self._pairs if self._whole else MOST_PAIRS,
            self._exact,
            self.working.start(),
            done=self._show_exact,
            failed=self._refuse,
            key="exact",
        )

    def _show_exact(self, found: Exact) -> None:
        self.working.end()
        self._exact = found
        left = self._pairs > MOST_PAIRS and not self._whole
        self.whole.setText(f"Measure all {self._pairs:,} pairs")
        self.whole.setVisible(left)
        for head, points in (("open", found.opened), ("now", found.now)):
            for index, point in points.items():
                self.numbers.show_point(index, head, point)
        self.points = found.now

    @property
    def _pairs(self) -> int:
        """Pairs of the larger snapshot."""
        return max((side.run.pairs for side in self._sides()), default=0)

    def _measure_whole(self) -> None:
        self._whole = True
        self.whole.hide()
        self._measure_exactly()

    # Plots ------------------------------------------------------------------------------------------------------

    def _draw_sizes(self) -> None:
        self.size_plot.clear()
        for index, side in (self.reading.sides if self.reading else {}).items():
            ink = theme.color(theme.run_color(index))
            self.size_plot.plot(
                np.array(side.run.steps, float),
                np.array(side.run.sizes),
                pen=pg.mkPen(ink, width=2),
                symbol="o",
                symbolSize=6,
                symbolBrush=ink,
                symbolPen=None,
            )
            now = [size for step, size in zip(side.run.steps, side.run.sizes, strict=True) if step == side.run.step]
            self.size_plot.plot(
                np.array([float(side.run.step)] * len(now)),
                np.array(now),
                pen=None,
                symbol="o",
                symbolSize=11,
                symbolBrush=None,
                symbolPen=pg.mkPen(theme.color("text"), width=1.5),
            )
        self.size_plot.setYRange(0, max([1e-3, *(max(s.run.sizes) for s in self._sides())]) * 1.06, padding=0)

    def _draw_recall(self) -> None:
        self.recall_plot.clear()
        for index, points in self._curve.items():
            ink = theme.color(theme.run_color(index))
            shares = np.array([100 * p.share for p in points])
            for field, style in (("image_to_text", Qt.PenStyle.SolidLine), ("text_to_image", Qt.PenStyle.DashLine)):
                values = np.array([getattr(p, field) for p in points])
                self.recall_plot.plot(shares, values, pen=pg.mkPen(ink, width=2, style=style))
        pen = pg.mkPen(theme.color("text"), width=1, style=Qt.PenStyle.DotLine)
        self.recall_plot.addItem(pg.InfiniteLine(self.slider.value(), angle=90, pen=pen))

    def _sides(self) -> list:
        return list(self.reading.sides.values()) if self.reading else []

    def _recolor(self) -> None:
        self._draw_sizes()
        self._draw_recall()

    # Controls ---------------------------------------------------------------------------------------------------

    def _on_way(self) -> None:
        self.context.settings.set("gap/way", self.way.key)
        self._follow()
        self._ask_curve()

    def _on_cancel(self) -> None:
        self.context.background.forget(self, "exact")
        self.whole.setVisible(self._whole)
        self._whole = False
        if self._opening:
            self.note.setText("Cancelled. Choose another run or step, or open this view again, to go on.")
            self._asked, self._opening = None, False

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run):
            self._asked = None
            self._refresh_if_seen()

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed, selection.dataset_changed):
            signal.connect(self._refresh_if_seen)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.slider.valueChanged.connect(lambda _value: self._follow())
        self.slider.sliderReleased.connect(self._rest.start)
        self.way.picked.connect(lambda _key: self._on_way())
        self.reset.clicked.connect(lambda: self.slider.setValue(0))
        self.whole.clicked.connect(self._measure_whole)
        self._rest.timeout.connect(self._measure_exactly)
        self.working.cancelled.connect(self._on_cancel)
        theme.theme().follow(self._recolor)

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.INSIDE)
        words = QLabel("Close the gap by")
        theme.set_role(words, "secondary")
        self.share.setMinimumWidth(96)
        bar.addWidget(words)
        bar.addWidget(self.way)
        bar.addWidget(self.slider, 1)
        bar.addWidget(self.share)
        bar.addWidget(self.reset)
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.SPACE)
        for index, (clouds, title) in enumerate(zip(self.clouds, self.titles, strict=True)):
            theme.set_role(title, "small")
            head = QHBoxLayout()
            head.setSpacing(theme.INSIDE)
            head.addWidget(Badge("AB"[index], index))
            head.addWidget(title, 1)
            grid.addLayout(head, 0, index)
            grid.addWidget(clouds, 1, index)
        for place, (heading, plot) in enumerate(
            (
                ("Size of the gap over training", self.size_plot),
                ("Recall of the sample (solid: image to text)", self.recall_plot),
            )
        ):
            label = ElidedLabel(heading)
            theme.set_role(label, "strong")
            plot.setMinimumHeight(120)
            grid.addWidget(label, 2, place)
            grid.addWidget(plot, 3, place)
            grid.setColumnStretch(place, 1)
        grid.setRowStretch(1, 3)
        grid.setRowStretch(3, 2)
        side = QVBoxLayout()
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(theme.BETWEEN)
        side.addWidget(self.numbers)
        side.addWidget(self.note)
        side.addWidget(self.whole, 0, Qt.AlignmentFlag.AlignLeft)
        side.addStretch()
        side.addWidget(self.working)
        beside = QWidget()
        beside.setLayout(side)
        beside.setFixedWidth(NUMBERS_PX)
        row = QHBoxLayout()
        row.setSpacing(theme.AROUND)
        row.addLayout(grid, 1)
        row.addWidget(beside)
        self.body.addLayout(bar)
        self.body.addLayout(row, 1)
        with QSignalBlocker(self.slider):
            self.slider.setValue(0)


def _note(reading: Reading) -> str:
    """What has to be said beside the numbers, which are of a sample only while the slider moves."""
    runs = [side.run for side in reading.sides.values()]
    if not runs:
        return ""
    whole = note([dataclasses.replace(run, n=run.pairs) for run in runs])
    sample = max(run.n for run in runs)
    if all(run.n == run.pairs for run in runs):
        return whole
    return f"{whole} While the slider moves, and in the plot of recall, {sample:,} pairs drawn at random are measured."


class _Slider(QSlider):
    """A slider that scrolling past does not move."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
