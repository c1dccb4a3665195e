"""The Geometry view: angles against the sphere's density, tests of uniformity, and their course over training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.geometry.numbers import GeometryNumbers
from explorer.views.view import View, side_words
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.legend import Legend, LegendEntry
from explorer.widgets.plot import Plot
from explorer.widgets.progress_row import Cancelled, Ticket, Working
from trainer.charts.uniformity import UniformityChart, UniformityRun, sphere_density, spread_chart, with_own_course
from trainer.errors import Problem
from trainer.store import SplitKey, Workspace, of_split

METHOD = """\
Uniform directions in d dimensions stand nearly at right angles: the angle of two of them has a density of \
sin^(d−2), the dashed curve. What an embedding adds or lacks to either side of it is structure.

Ajne: A = n/4 − (sum of the angles of all pairs)/(nπ): .25 if uniform, n/4 if all rows are equal. It grows with n off \
uniformity, so A of two sizes must not be compared; A/n and the mean angle may. It is blind to whatever is symmetric \
about the origin. Giné: G = n/2 − (d−1)/(2n) (Γ((d−1)/2)/Γ(d/2))² (sum of the sines): .5 if uniform, n/2 if all are \
equal; it sees just that (Prentice, 1978).

p-values: 199 samples of as many uniform directions are simulated; p = (1 + number as large)/200, so .005 is the \
least. They are of up to 400 rows drawn at random. With n large every embedding is significantly non-uniform: look at \
the sizes.

Alignment: mean squared distance of an image to its text. Uniformity: log of the mean of exp(−2 squared distance) over \
pairs (Wang and Isola, 2020). Mean resultant length: length of the mean row, from all rows.

The course over the steps is of up to 1,000 rows a snapshot. The paper's values were read off its figures, at about \
13,000 rows: only their mean angles can be compared with other sizes."""

NO_RUN = (
    "Choose run A, and run B beside it, in the bar above. How evenly their embeddings are spread then appears here."
)
NUMBERS_PX = 428
COURSES = (
    Choice("mean_angle", "mean angle (°)"),
    Choice("uniformity", "uniformity"),
    Choice("resultant", "mean resultant length"),
    Choice("ajne_per_n", "Ajne A / n"),
)


@dataclass(frozen=True)
class Reading:
    """Both runs by place (0 is A), why one is missing, and what was sampled."""

    runs: dict[int, UniformityRun]
    problems: dict[int, str]
    note: str


class GeometryView(View):
    """Angles of images and texts, numbers beside them, their course below."""

    title = "Geometry"
    question = "How evenly do the embeddings cover the sphere?"
    icon = "globe"
    method = METHOD

    def build(self) -> Iterator[None]:
        context = self.context
        self.reading: Reading | None = None
        self._asked: tuple[object, ...] | None = None
        self.plots = {
            name: Plot(x_label="angle of two rows (°)", y_label="share of pairs (%)") for name in ("image", "text")
        }
        for name, plot in self.plots.items():
            plot.setAccessibleName(f"Angles of {name}s")
        yield
        self.course_plot = Plot(x_label="step")
        self.course = Picker(name="geometry-course", words="What is followed over training", width=170)
        self.course.setMaximumWidth(220)
        self.course.show_choices(COURSES, context.settings.value("geometry/course", "mean_angle"))
        yield
        self.legend = Legend()
        self.numbers = GeometryNumbers()
        self.note = QLabel(wordWrap=True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self.working = Working("geometry-working")
        yield
        self._lay_out()
        yield
        self._connect()

    def command(self) -> list[str] | None:
        if self.reading is None or not self.reading.runs:
            return None
        runs = [run for _, run in sorted(self.reading.runs.items())]
        words = ["export", "uniformity", *side_words(self.context.selection, self.reading.runs)]
        return [*words, "--dataset", runs[0].dataset, "--split", runs[0].split]

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._asked = self.reading = None
            self.working.end()
            self.show_no_run("globe", NO_RUN)
            return
        self.show_content()
        steps = (selection.step_of(0), selection.step_of(1))
        asked = (selection.run_a, selection.run_b, steps, selection.dataset)
        if asked == self._asked:
            return
        self._asked = asked
        self.context.background.run(
            self,
            read,
            self.context.workspace,
            asked[:2],
            *asked[2:],
            self.working.start(),
            done=self._show,
            failed=self._refuse,
            key="geometry",
        )

    def _show(self, reading: Reading) -> None:
        self.working.end()
        self.reading = reading
        for index in (0, 1):
            self.numbers.show_run(index, reading.runs.get(index))
        problems = [f"{'AB'[index]}: {why}" for index, why in sorted(reading.problems.items())]
        self.note.setText(" ".join([reading.note, *problems]))
        self._draw()

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        self._asked = None
        self.working.end()
        if not isinstance(error, Problem):
            self.context.background.failed.emit(error)
        self.show_empty("triangle-alert", "The geometry cannot be measured", str(error) or type(error).__name__)

    def _draw(self) -> None:
        self._draw_legend()
        self._draw_images()
        self._draw_texts()
        self._draw_course()

    def _draw_legend(self) -> None:
        runs = self.reading.runs if self.reading else {}
        entries = [
            LegendEntry(f"{run.name}, step {run.step:,}", theme.run_colour(index), "line")
            for index, run in sorted(runs.items())
        ]
        widths = sorted({s.d for run in runs.values() for s in run.spreads.values()})
        entries += [LegendEntry(f"uniform, d = {d} (dashed)", theme.colour("secondary").name(), "line") for d in widths]
        self.legend.show_entries(entries)

    def _draw_images(self) -> None:
        self._draw_angles("image")

    def _draw_texts(self) -> None:
        self._draw_angles("text")

    def _draw_angles(self, modality: str) -> None:
        plot, runs = self.plots[modality], self.reading.runs if self.reading else {}
        plot.clear()
        degrees, spreads = np.arange(180) + 0.5, {}
        for index, run in sorted(runs.items()):
            spread = run.spreads.get(modality)
            if spread is not None:
                spreads[index] = spread
                ink = theme.colour(theme.run_colour(index))
                plot.plot(degrees, 100 * spread.angle_density, pen=pg.mkPen(ink, width=2))
        pen = pg.mkPen(theme.colour("secondary"), width=1.5, style=Qt.PenStyle.DashLine)
        curves = [100 * sphere_density(d) for d in sorted({s.d for s in spreads.values()})]
        for uniform in curves:
            plot.plot(degrees, uniform, pen=pen)
        tops = [100 * float(s.angle_density.max()) for s in spreads.values()] + [float(c.max()) for c in curves]
        plot.setXRange(0, 180, padding=0.01)
        plot.setYRange(0, max(tops, default=1) * 1.06, padding=0)

    def _draw_course(self) -> None:
        self.course_plot.clear()
        field = self.course.key
        self.course_plot.set_labels(y=self.course.currentText())
        runs = self.reading.runs if self.reading else {}
        own = with_own_course([*runs.values()])
        for place, (index, run) in enumerate(runs.items()):
            ink = theme.colour(theme.run_colour(index))
            if len({one.step for one in runs.values()}) > 1:
                pen = pg.mkPen(ink, width=1.5, style=Qt.PenStyle.DotLine)
                self.course_plot.addItem(pg.InfiniteLine(run.step, pen=pen), ignoreBounds=True)
            for modality, style, symbol in (("image", Qt.PenStyle.SolidLine, "o"), ("text", Qt.PenStyle.DashLine, "d")):
                course = run.course[modality]
                if course and place in own:
                    self.course_plot.plot(
                        np.array([float(at.step) for at in course]),
                        np.array([getattr(at, field) for at in course]),
                        pen=pg.mkPen(ink, width=2, style=style),
                        symbol=symbol,
                        symbolSize=7,
                        symbolBrush=ink,
                        symbolPen=None,
                    )
        self.course_plot.autoRange()

    def _on_course(self) -> None:
        self.context.settings.set("geometry/course", self.course.key)
        self._draw_course()

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
        self.course.picked.connect(lambda _key: self._on_course())
        self.working.cancelled.connect(lambda: self.note.setText("Cancelled. Choose another step or run to go on."))
        # One by one: together they would hold the window for a tenth of a second.
        for draw in (self._draw_legend, self._draw_images, self._draw_texts, self._draw_course):
            theme.theme().follow(draw)

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.BETWEEN)
        grid.setVerticalSpacing(theme.SPACE)
        for place, (name, plot) in enumerate(self.plots.items()):
            label = ElidedLabel(f"Angles of {name}s")
            theme.set_role(label, "strong")
            plot.setMinimumHeight(120)
            grid.addWidget(label, 0, place)
            grid.addWidget(plot, 1, place)
            grid.setColumnStretch(place, 1)
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        label = QLabel("Over training")
        theme.set_role(label, "strong")
        hint = ElidedLabel("images solid, texts dashed")
        theme.set_role(hint, "small")
        head.addWidget(label)
        head.addWidget(self.course)
        head.addWidget(hint, 1)
        grid.addLayout(head, 2, 0, 1, 2)
        self.course_plot.setMinimumHeight(120)
        grid.addWidget(self.course_plot, 3, 0, 1, 2)
        grid.setRowStretch(1, 3)
        grid.setRowStretch(3, 2)
        side = QVBoxLayout()
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(theme.BETWEEN)
        side.addWidget(self.numbers)
        side.addWidget(self.note)
        side.addStretch()
        beside = QWidget()
        beside.setLayout(side)
        beside.setFixedWidth(NUMBERS_PX)
        row = QHBoxLayout()
        row.setSpacing(theme.AROUND)
        left = QVBoxLayout()
        left.setSpacing(theme.INSIDE)
        top = QHBoxLayout()
        top.addWidget(self.legend, 3)
        top.addWidget(self.working, 1)
        left.addLayout(top)
        left.addLayout(grid, 1)
        row.addLayout(left, 1)
        row.addWidget(beside)
        self.body.addLayout(row, 1)


def read(
    workspace: Workspace,
    runs: Sequence[int | None],
    steps: Sequence[int | None],
    data: SplitKey | None,
    ticket: Ticket,
) -> Reading:
    """Measures both runs, each at its own step. Pure, for a thread."""
    found, problems, notes = {}, {}, []
    for index, run in enumerate(runs):
        if run is None:
            continue
        try:
            chart: UniformityChart = spread_chart(
                workspace,
                [run],
                step=steps[index],
                **of_split(data),
                progress=lambda share, note, i=index: ticket((i + share) / len(runs), note),
            )
        except Problem as error:
            problems[index] = str(error)
            continue
        found[index] = chart.runs[0]
        notes.append(chart.note)
    return Reading(found, problems, notes[0] if notes else "")
