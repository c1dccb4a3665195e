"""Live training curves of the runs whose eye is open, with a few drawing controls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QLabel, QMenu, QPushButton, QWidget

from explorer import theme
from explorer.intents import Replay
from explorer.models.curve_book import CurveBook, RunCurves, read_curves
from explorer.models.runs import preparing
from explorer.run_control.jobs import working
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.command_palette import COMMAND
from explorer.widgets.curves import CurveGrid, CurveLine, CurvePlotData
from explorer.widgets.state_area import StateArea
from explorer.widgets.still import StillSlider
from trainer.charts import ChartError
from trainer.charts.marks import Axis, dash_of, run_tone
from trainer.charts.measures import curves as charts
from trainer.experiments.run_style import RunStyle
from trainer.metrics import HEADLINE, METRICS, logged_name, main_first, metric
from trainer.store import RunRow, ScalarRow

DEFAULT_METRICS: Final = ("val/image_to_text_R@1", "val/text_to_image_R@1", "train/loss")
DEFAULT_SMOOTHING: Final = 0.6
_OWN_METRICS: Final = 3
"""Metrics drawn at first of a run of another program."""
REDRAW_MS: Final = 200
X_AXES: Final[dict[charts.Axis, Axis]] = {
    "step": Axis("step", 0.0, 1.0, integer=True),
    "time": Axis("seconds of training", 0.0, 1.0),
}
"""Their ends follow the curves."""


class MetricMenu(QMenu):
    """Checkable metrics, one submenu per group of the catalog."""

    changed = Signal()  # Other metrics are chosen.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="metric-menu")
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, _StaysOpen] = {}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the selected metrics: validation first, then catalog order, unknown ones last."""
        order = {name: rank for rank, name in enumerate(METRICS)}
        names = [name for name, action in self._actions.items() if action.isChecked()]
        return tuple(sorted(names, key=lambda n: (not n.startswith("val/"), order.get(n, len(order)), n)))

    def offer(self, names: Iterable[str]) -> None:
        """Add the metrics that are not in the menu yet."""
        for name in names:
            if name not in self._actions:
                self._add(name)

    def choose(self, names: Iterable[str]) -> None:
        """Select exactly these."""
        selected = set(names)
        self.offer(selected)
        self.blockSignals(True)
        for name, action in self._actions.items():
            action.setChecked(name in selected)
        self.blockSignals(False)
        self.changed.emit()

    def metric_actions(self) -> list[QAction]:
        """Return all actions, for the command palette."""
        return list(self._actions.values())

    def _add(self, name: str) -> None:
        entry = metric(name)
        if entry.group not in self._groups:
            group = _StaysOpen(entry.group, self)
            self._groups[entry.group] = group
            self.addMenu(group)
        action = QAction(entry.label, self, objectName=f"metric-{name}", checkable=True, toolTip=name)
        action.setProperty(COMMAND, f"Show curve: {entry.label}")
        action.toggled.connect(lambda _: self.changed.emit())
        self._groups[entry.group].addAction(action)
        self._actions[name] = action


class _StaysOpen(QMenu):
    """A menu that stays open when a checkable action is clicked."""

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        action = self.activeAction()
        if action is not None and action.isCheckable() and action.isEnabled():
            action.toggle()
            event.accept()
            return
        super().mouseReleaseEvent(event)


class CurvesPane(QWidget):
    """The curves of some runs over steps or time, extended as rows arrive.

    Attributes:
        controls: Of metrics, axis and smoothing, for the bar.
    """

    changed = Signal()  # Other metrics, another axis, or another smoothing: the headless command is another.
    requested = Signal(object)  # A `Replay`.

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._book = CurveBook()
        self._runs: tuple[RunRow, ...] = ()
        self._note = ""
        self._styles: dict[int, RunStyle] = {}
        self._waiting_rows: list[ScalarRow] = []
        self._reading, self._is_scrolled = False, True
        self._drawing = self._draw_again = False
        self.draw_later = QTimer(self, singleShot=True, interval=REDRAW_MS, timeout=self._draw)
        self._build()
        self._restore()
        context.jobs.scalars_arrived.connect(self._take_rows)
        context.jobs.snapshots_changed.connect(self._snapshot_came)
        theme.theme().follow(self._draw)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics drawn: the selected ones in catalog order, and the main metric of runs without recall.

        Until a person selects others, also the first ones of runs of other programs, which have names of their own.
        """
        extra = {run.metric for run in self._runs if run.metric not in (HEADLINE, "")}
        if {*self.menu.chosen} == {*DEFAULT_METRICS}:
            for run in self._runs:
                logged = self._book.scalar_names(run.id) if run.is_elsewhere else ()
                extra.update(main_first(name for name in logged if name not in METRICS)[:_OWN_METRICS])
        return (*self.menu.chosen, *main_first(extra.difference(self.menu.chosen)))

    @property
    def settings(self) -> charts.CurveSettings:
        """The settings of the chart that `trainer export curves` draws."""
        return charts.CurveSettings(self.metrics, self.axis, self.smoothing)

    @property
    def axis(self) -> charts.Axis:
        """The quantity on the horizontal axis."""
        return "time" if self.by_time.isChecked() else "step"

    @property
    def smoothing(self) -> float:
        """The weight of the moving average over training metrics, 0 to 0.99."""
        return self.slider.value() / 100

    def show_runs(self, runs: Sequence[RunRow], styles: Mapping[int, RunStyle], *, note: str = "") -> None:
        """Draw these runs, each in the style of its id, reading only those the book lacks; the note stands above."""
        before = {run.id: run for run in self._runs}
        self._runs, self._styles = tuple(runs), dict(styles)
        for run in runs:
            self._book.update(run)
            # A resumed run goes back to its checkpoint: what lies past it is drawn no more.
            if run.id in before and run.step < before[run.id].step:
                self._book.forget(run.id)
        self._note = note
        self._show_notes()
        self._read_missing()
        if runs and not before:
            self.area.loading(what="Reading the curves…")  # that there is no run to draw is true no more
        self.draw_later.start()

    def _show_notes(self, copies: Sequence[str] = ()) -> None:
        """Show why some runs are not drawn, and how many held-out pictures the others were trained on."""
        self.partial.setText(" ".join(filter(None, (self._note, *copies))))
        self.partial.setVisible(bool(self.partial.text()))

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_missing(self) -> None:
        missing = tuple(run.id for run in self._runs if not self._book.holds(run.id, self.metrics))
        if not missing:
            return
        self._reading = True
        self._context.background.run(
            self,
            read_curves,
            self._context.workspace,
            missing,
            self.metrics,
            done=self._take_curves,
            failed=self._reading_failed,
            key="read",
        )

    def _take_curves(self, read: tuple[RunCurves, ...]) -> None:
        self._reading = False
        self._book.load(read)
        # Rows that came while the older ones were being read; those read, too, are left out by the book.
        self._book.append(self._waiting_rows)
        self._waiting_rows = []
        self.menu.offer({name for run in self._runs for name in self._book.scalar_names(run.id)})
        self._read_missing()
        self._draw()

    def _reading_failed(self, error: Exception) -> None:
        self._reading = False
        self._waiting_rows = []
        self.area.failed("Could not read the curves", error, retry=self._read_missing)

    def _take_rows(self, rows: list[ScalarRow]) -> None:
        if self._reading:
            self._waiting_rows += rows
        if self._book.append(rows):
            self.menu.offer({row.name for row in rows})
            if not self.draw_later.isActive():
                self.draw_later.start()

    def _snapshot_came(self, run: int) -> None:
        """Read the run again when its first snapshot gives the number of pairs of its metrics."""
        if any(drawn.id == run for drawn in self._runs) and not self._book.snapshots(run):
            self._book.forget(run)
            self._read_missing()

    # -- drawing -----------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Smooth the curves off the GUI thread; at most one more drawing is queued meanwhile."""
        self._draw_again = self._drawing
        if self._drawing:
            return
        self._drawing = True
        ready = tuple(run.id for run in self._runs if self._book.holds(run.id, self.metrics))
        self._context.background.run(
            self,
            draw_panels,
            self._book.frozen(),
            ready,
            self.metrics,
            self.axis,
            self.smoothing,
            done=self._show_panels,
            failed=self._drawing_failed,
            key="draw",
        )

    def _drawing_failed(self, error: Exception) -> None:
        self._drawing = False
        self.area.failed("Could not draw the curves", error, retry=self._draw)

    def _show_panels(self, drawn: tuple[charts.CurvePanel, ...]) -> None:
        self._drawing = False
        run_ids = {run.id for run in self._runs}
        if self._draw_again:
            self.draw_later.start()
        if any(series.run not in run_ids for panel in drawn for series in panel.series):
            return  # other runs were chosen meanwhile; their drawing follows
        self._show_notes(copies=tuple(dict.fromkeys(warning for panel in drawn for warning in panel.warnings)))
        panels = self._with_waiting(self._without_lone_points(drawn))
        self.grid.show_panels(panels, X_AXES[self.axis])
        waits = [panel.waiting for panel in panels if not panel.lines]
        if self._runs and panels and len(waits) == len(panels):
            # Once, not in each of three empty charts; a loss comes before the first evaluation.
            wait = min(waits, key=lambda text: "evaluation" in text)
            self.area.empty("activity", wait[:1].upper() + wait[1:], "The curves appear with the first values.")
        elif self._runs and panels:
            if self.grid.is_complete or self.area.has_result:
                self.area.ready()
            else:
                self.area.loading(what="Drawing the curves…")
        elif not self._runs:
            self.area.empty("activity", "No run to draw", "The charts show runs of the list whose eye is open.")
        elif not self.metrics:
            self.area.empty("activity", "No metric to draw", "Choose one under Metrics.")
        elif self._reading or self._draw_again:
            self.area.loading()
        else:
            self.area.empty("activity", "No data for these metrics", "The run has logged none of them. See the log.")

    def _without_lone_points(self, panels: Sequence[charts.CurvePanel]) -> Sequence[charts.CurvePanel]:
        """Leave out those of ended runs with one value each, which the list shows, where there are curves."""
        growing = {run.id for run in self._runs if working(run)}
        curves = [panel for panel in panels if any(len(line.x) > 1 or line.run in growing for line in panel.series)]
        return curves if any(len(line.x) > 1 for panel in curves for line in panel.series) else panels

    def _with_waiting(self, panels: Sequence[charts.CurvePanel]) -> list[CurvePlotData]:
        """Return the panels in metric order, with empty ones for metrics that an active run has not logged yet."""
        # A program that logs under names of its own will not log ours.
        expected = [run for run in self._runs if not (run.is_elsewhere and self._book.scalar_names(run.id))]
        waiting = not self._runs or any(working(run) or run.status == "queued" for run in expected)
        plots: list[CurvePlotData] = []
        for name in self.metrics:
            drawn = [self._panel(*each) for each in enumerate(panel for panel in panels if panel.metric == name)]
            entry = metric(name)
            until = "evaluation" if name.startswith(("val/", "combinations/")) else "step"
            text = next(filter(None, map(preparing, self._runs)), f"Waiting for the first {until}")
            # Models of one tower have no recall to wait for.
            never = "_to_" in name and self._runs and all(run.metric != HEADLINE for run in self._runs)
            title = logged_name(name) if entry.is_recall else entry.label
            empty = CurvePlotData(name, title, "", entry.digits, (), text, axis=_axis_of(self._runs))
            plots += drawn or ([empty] if waiting and not never else [])
        return plots

    def _panel(self, index: int, panel: charts.CurvePanel) -> CurvePlotData:
        entry, factor = metric(panel.metric), 100.0 if panel.percent else 1.0
        lines = []
        for series in panel.series:
            raw = series.raw * factor
            smooth = raw if series.smooth is series.raw else series.smooth * factor
            style = self._styles[series.run]
            color = theme.run_shade(style.hue, style.tone)
            dash = dash_of(run_tone(style.hue))
            lines.append(CurveLine(series.run, series.name, color, series.x, raw, smooth, dash, style.symbol))
        drawn = {series.run for series in panel.series}
        runs = [run for run in self._runs if run.id in drawn]
        ends = [run.total_steps for run in runs if working(run)] if self.axis == "step" else []
        about = panel.about if entry.is_recall else f"n = {panel.n:,}" if panel.n else ""
        digits = max(0, entry.digits - 2) if panel.percent else entry.digits
        return CurvePlotData(
            f"{panel.metric} {index if entry.is_recall else panel.label}",
            panel.label,
            panel.unit,
            digits,
            tuple(lines),
            percent=panel.percent or panel.unit == "%",
            until=max(ends, default=-math.inf),
            about=about,
            axis=_axis_of(runs),
        )

    def _show_menu(self, where: QPoint, points: dict[int, float]) -> None:
        """Offer to replay the step of each curve's nearest point; over time no point has a step."""
        if self.axis != "step":
            return
        self.menu_of_point = menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        several = len(points) > 1
        for run in self._runs:
            step = round(points.get(run.id, 0))
            if step >= 1:
                label = f"Replay this step ({step:,}{f' of {run.short_name}' if several else ''})"
                action = menu.addAction(label.replace("&", "&&"))
                action.triggered.connect(lambda _=False, run=run.id, step=step: self.requested.emit(Replay(run, step)))
        if menu.actions():
            menu.popup(where)

    # -- controls ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.grid = CurveGrid()
        self._inside = layouts.panel(
            layouts.column((self.grid, 1), layouts.STRETCH, gap=None, margins=(0, 0, theme.INSIDE, 0))
        )
        self.area = StateArea(layouts.scroll(self._inside))
        self.partial = layouts.text(role="small", wrap=True)
        self.partial.hide()
        self.whole = layouts.elided(role="small")
        self.whole.setObjectName("curves-whole")
        self._context.selection.pairs_changed.connect(self._show_whole)
        self._show_whole()
        self.controls = self._make_controls()
        head = layouts.row((self.partial, 1), self.resume)
        margins = (theme.BETWEEN, theme.INSIDE, theme.BETWEEN, theme.INSIDE)
        layouts.column(head, (self.area, 1), self.whole, margins=margins, of=self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.grid.fill(self.area.height())

    def set_scrolled(self, on: bool) -> None:
        """Scroll the charts, or be as high as all of them in a page that scrolls."""
        self._is_scrolled = on
        self._fit()

    def _fit(self) -> None:
        self.area.setMinimumHeight(self._inside.minimumSizeHint().height() if not self._is_scrolled else 0)

    def _show_whole(self) -> None:
        """Say why the selected pairs are not drawn; the line has its place always, so that no curve jumps."""
        n = self._context.selection.pair_count
        subject = "1 pair is" if n == 1 else f"{n:,} pairs are"
        reason = "a value is of a batch or a whole split."
        self.whole.setText(f"{subject} selected and not drawn here: {reason}" if n else "")

    def _make_controls(self) -> tuple[QWidget, ...]:
        self.menu = MetricMenu(self)
        self.menu.changed.connect(self._metrics_changed)
        self.metrics_button = QPushButton("Metrics", objectName="curves-metrics", accessibleName="Metrics drawn")
        self.metrics_button.setMenu(self.menu)
        self.by_step, self.by_time = _axis_button("Step"), _axis_button("Time")
        axis = QButtonGroup(self)
        for button in (self.by_step, self.by_time):
            axis.addButton(button)
        self.by_step.setChecked(True)
        self.by_time.toggled.connect(self._look_changed)
        self.slider = StillSlider(Qt.Orientation.Horizontal)
        self.slider.setObjectName("curves-smoothing")
        self.slider.setAccessibleName("Smoothing of training curves")
        self.slider.setRange(0, 99)
        self.slider.setFixedWidth(120)
        average = "Weight of the moving average over training metrics; the faint line shows the logged values"
        self.slider.setToolTip(f"{average}. Held-out metrics are drawn as measured.")
        self.weight = QLabel()
        self.weight.setFixedWidth(32)
        self.slider.valueChanged.connect(self._look_changed)
        self.resume = QPushButton("Following paused. Reset zoom", objectName="curves-reset-zoom")
        self.resume.setToolTip("Show complete curves and follow new values (double-click a plot)")
        theme.keep_icon(self.resume, "rotate-ccw")
        self.resume.hide()
        self.resume.clicked.connect(self.grid.reset_zoom)
        self.grid.paused.connect(self.resume.setVisible)
        self.grid.menu_asked.connect(self._show_menu)
        self.grid.drawn.connect(self._fit)
        self.grid.drawn.connect(lambda: self.area.ready() if self.area.kind == "loading" and self.grid.plots else None)
        label = layouts.text("Smoothing, training", "small", buddy=self.slider)
        return self.metrics_button, self.by_step, self.by_time, label, self.slider, self.weight

    def _restore(self) -> None:
        remembered = self._context.settings.value("runs/curves", {})
        remembered = remembered if isinstance(remembered, dict) else {}
        names = [name for name in remembered.get("metrics", DEFAULT_METRICS) if isinstance(name, str)]
        self.menu.offer(METRICS)
        self.menu.choose(names)
        self.slider.setValue(round(100 * float(remembered.get("smoothing", DEFAULT_SMOOTHING))))
        (self.by_time if remembered.get("axis") == "time" else self.by_step).setChecked(True)
        self._look_changed()
        self._name_button()

    def _metrics_changed(self) -> None:
        self._name_button()
        self._read_missing()
        self._look_changed()

    def _look_changed(self) -> None:
        self.weight.setText(f"{self.smoothing:.2f}")
        remembered = {"metrics": list(self.menu.chosen), "axis": self.axis, "smoothing": self.smoothing}
        self._context.settings.set("runs/curves", remembered)
        self.draw_later.start()
        self.changed.emit()

    def _name_button(self) -> None:
        # No number: a loss of two objectives is one metric and two charts.
        self.metrics_button.setText("Metrics   ")
        self.metrics_button.setToolTip(f"{len(self.menu.chosen)} metrics are drawn")


def draw_panels(
    book: CurveBook, runs: Sequence[int], metrics: Sequence[str], axis: charts.Axis, smoothing: float
) -> tuple[charts.CurvePanel, ...]:
    """Return the panels that `trainer export curves` would draw; empty if nothing is logged yet."""
    try:
        # The book stands in for the workspace: same questions, answered from memory.
        return charts.curves(book, runs, metrics, axis=axis, smoothing=smoothing)  # type: ignore[arg-type]
    except ChartError:
        return ()


def _axis_button(label: str) -> QPushButton:
    button = QPushButton(label, objectName=f"curves-by-{label.lower()}", accessibleName=f"Draw over {label.lower()}")
    button.setCheckable(True)
    button.setAutoExclusive(True)
    return button


def _axis_of(runs: Sequence[RunRow]) -> str:
    """Return what tells the horizontal axis of their panels from that of others: the data."""
    return ", ".join(sorted({run.data for run in runs}))
