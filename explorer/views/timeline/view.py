"""The Timeline view: two maps, each in its frame, a slider, and synchronized curves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QHideEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QToolButton

from explorer import theme
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.views.timeline.coloring import Colors, choices_of, colors_of, numbers_at_the_end
from explorer.views.timeline.hover import TimelineHover
from explorer.views.timeline.load import UMAP, TimelineResult, placed_by, placed_by_kept, placed_by_pca, read
from explorer.views.timeline.panel import TimelinePanel
from explorer.views.timeline.query import TimelineQuery
from explorer.views.timeline.time_curve import TimeCurve
from explorer.views.timeline.transport import Transport
from explorer.views.view import View
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.finder import Choice
from explorer.widgets.legend import Legend
from explorer.widgets.point_map.locking import Locking
from explorer.widgets.progress_row import Cancelled, ProgressRow
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.metadata_columns import MetadataColumn
from trainer.charts.pair_colors import CHANGED, COMPUTED, MOST_RANKED, PairNumbers
from trainer.charts.pair_colors import words as color_words
from trainer.charts.point_placement import PointPlacement
from trainer.charts.settings import options
from trainer.charts.snapshot_curves import METHOD as CURVES_METHOD
from trainer.charts.snapshot_curves import by_data
from trainer.charts.snapshot_series import MEASURES, MeasureCurve, TimelineRun, measured
from trainer.charts.timeline import MOST_STRETCH, TimelineChart, what_changed
from trainer.errors import UserError, reason_words
from trainer.messages import Failure
from trainer.store import of_split

CURVES_PX = (240, 420)
"""Least and most: maps need the rest of a wide window."""
APART_PX = (400, 640)
"""The same where each run has plots of its own."""
COLOR_PX = 112
NARROW_PX, MAPS_PX = 700, 280
"""In a narrower view the curves are below the maps, which keep this height."""


class TimelineView(View):
    """Snapshots of A and B in a fixed frame of each, and their measures over time."""

    title = "Timeline"
    question = "The geometry over the course of training."
    icon = "film"
    compares = "pictures"
    when_chosen = "Their snapshots then play here."
    method = CURVES_METHOD
    holds_plot = True
    exports = (("gif", "Film as GIF"), ("mp4", "Film as MP4"), *View.exports)

    def build(self) -> Iterator[None]:
        context = self.context
        self._reading = TimelineResult(None)
        self._stays_on_pca = False
        self.colors: Colors | None = None
        self._key: tuple[object, ...] | None = None
        self.panels = (TimelinePanel(0), TimelinePanel(1))
        yield
        self.transport = Transport()
        yield
        self.curves = [TimeCurve(measure) for measure in MEASURES]
        self.measuring = layouts.text("Reading the measures…", "small")
        yield
        self.pca, self.umap = (
            QToolButton(objectName=f"timeline-{word.lower()}", text=word, accessibleName=word, checkable=True)
            for word in ("PCA", "UMAP")
        )
        for button in (self.pca, self.umap):
            present(button, "RadioButton")
        self.note, self.legend = layouts.elided(role="small"), Legend()
        self.color = SearchableComboBox(name="timeline-color", label="Color the points by", width=COLOR_PX)
        self.color.setPlaceholderText("Colors")
        self.hover = TimelineHover(context, self.panels, self)
        self._numbers: dict[int, PairNumbers | None] = {}
        self._changed: dict[str, MetadataColumn] | None = None
        self.working = ProgressRow("timeline-working", self)
        self.placing = ProgressRow("timeline-placing", self, asks=True)
        self._asking = TimelineQuery(context.client, self)
        yield
        self._lay_out()
        for curve in self.curves:
            idle_scheduler().later(curve, curve.prepare, unseen=True)
        yield
        self._actions = self._make_actions()
        self._choose(PointPlacement())
        self._connect()

    # What the window asks ---------------------------------------------------------------------------------------

    def command(self) -> list[str] | None:
        chart = self._reading.chart
        if chart is None:
            return None
        arguments = ["export", "timeline", "--runs", *dict.fromkeys(str(run.run) for run in chart.runs)]
        arguments += ["--dataset", chart.runs[0].dataset, "--split", chart.runs[0].split]
        arguments += options(chart.placement)
        return [*arguments, "--color", self.colors.by] if self.colors is not None else arguments

    def actions_for_palette(self) -> list[QAction]:
        return self._actions

    def refresh(self) -> None:
        selection = self.context.selection
        runs = (selection.run_a, selection.run_b)
        if runs == (None, None):
            self._key, self._reading = None, TimelineResult(None)
            self.context.background.forget(self)
            self.show_no_run()
            return
        self.show_content()
        key = (*runs, selection.dataset)
        if key == self._key:
            return
        self._key = key
        self._asking.cancel()
        is_other = any(panel.run is not None and panel.run.run != runs[panel.index] for panel in self.panels)
        if is_other:
            # What is shown of the runs of before would stand under the names and in the colors of these.
            self._reading = TimelineResult(None)
            self._draw_curves()
        for index, panel in enumerate(self.panels):
            if is_other:
                panel.clear()
            if runs[index] is not None:
                panel.area.loading(keep=not is_other, what="Reading the snapshots…")
        data = of_split(selection.dataset)
        self.context.background.run(
            self,
            partial(read, umap=not self._stays_on_pca),
            self.context.workspace,
            runs,
            *data.values(),
            done=self._show,
            failed=self._refuse,
            key="read",
        )

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.transport.play.setChecked(False)

    # Showing ----------------------------------------------------------------------------------------------------

    @property
    def chart(self) -> TimelineChart | None:
        return self._reading.chart

    def _show(self, reading: TimelineResult) -> None:
        self._reading, self._numbers, self._changed = reading, {}, None
        self.context.background.forget(self, "changed")
        self.working.end()
        self.hover.card.end()
        chart = reading.chart
        self._choose(chart.placement if chart else PointPlacement())
        self._draw(stay=False)
        if chart and chart.placement != UMAP and not self._stays_on_pca and (reading.has_umap or self._is_soon(chart)):
            self._ask_umap()
        for run in chart.runs if chart else ():
            self.context.background.run(
                self,
                measured,
                self.context.workspace,
                run,
                done=partial(self._take_curves, run),
                key=f"curves {run.index}",
            )

    def _is_soon(self, chart: TimelineChart) -> bool:
        """Whether UMAP is to follow on PCA, as it does in Map for finished runs of few pairs."""
        rows = [self.context.jobs.run(run) for run in self.context.selection.runs]
        finished = all(row is not None and row.status == "finished" for row in rows)
        is_quick = sum(run.n * len(run.folders) for run in chart.runs) <= MOST_RANKED
        return finished and is_quick and not self.context.jobs.look_only

    def _draw(self, *, stay: bool) -> None:
        """Show the chart at the current step with `stay`, else at the step selected in the bar."""
        chart, selection = self._reading.chart, self.context.selection
        at = self.transport.step if stay else selection.step
        self.transport.set_steps(chart.steps if chart else (), at)
        self.note.setText(chart.note if chart else "")
        self._find_colors()
        stretch = MOST_STRETCH if chart and chart.placement.method != "pca" else 1.0
        for index, panel in enumerate(self.panels):
            run = self._reading.run(index)
            if run is not None:
                color, palette = self.colors.index[index], self.colors.palette
                panel.show_run(run, color, palette, step=self._step, stretch=stretch)
            elif index in self._reading.problems:
                panel.clear()
                panel.area.failed("No timeline of this run", self._reading.problems[index], retry=self._read_again)
            else:
                panel.clear()
                panel.area.empty("columns-2", f"No run {'AB'[index]}", "Choose one in the bar above to compare.")
        self._mark_pairs()
        self._beside.setVisible(chart is not None)  # while runs are read, it keeps its room
        self._draw_curves()

    # Colors and card -------------------------------------------------------------------------------------------

    def _find_colors(self) -> None:
        """Apply the selected colors as far as their data are known, and request the rest."""
        runs = self._reading.chart.runs if self._reading.chart else ()
        if not runs:
            self.colors = None
            self.legend.show_entries(())
            self.color.show_choices([], None)
            return
        chosen = str(self.context.settings.value("timeline/color", ""))
        sides = (theme.run_color(0, self), theme.run_color(1, self))
        self.colors = colors_of(runs, chosen, self._numbers, self._changed, sides)
        self.legend.show_entries(self.colors.legend)
        self.color.show_choices([Choice(by, color_words(by)) for by in choices_of(runs)], self.colors.by)
        if self.colors.by in CHANGED:
            self._find_changes()
        for run in runs if self.colors.by in COMPUTED else ():
            if run.index not in self._numbers:
                self.context.background.run(
                    self, numbers_at_the_end, run, done=partial(self._take_numbers, run), key=f"numbers {run.index}"
                )

    def _find_changes(self) -> None:
        """Request the changes once; with 100,000 pairs it takes minutes and can be canceled."""
        runs = tuple(self._reading.chart.runs) if self._reading.chart else ()
        if self._changed is None and not self.working.busy:
            self.context.background.run(
                self,
                what_changed,
                self.context.workspace,
                runs,
                self.working.start(),
                done=self._take_changes,
                failed=self._no_changes,
                key="changed",
            )

    def _take_changes(self, changed: dict[str, MetadataColumn]) -> None:
        self._changed = changed
        self.working.end()
        self._recolor()

    def _no_changes(self, error: Exception) -> None:
        self.working.end()
        self.context.settings.set("timeline/color", "")
        self._recolor()
        if not isinstance(error, Cancelled):
            self.failed.emit(reason_words(error), "Choose another color.")

    def _take_numbers(self, run: TimelineRun, numbers: PairNumbers | None) -> None:
        drawn = self._reading.run(run.index)
        if drawn is not None and drawn.folders == run.folders:
            self._numbers[run.index] = numbers
            self._recolor()

    def _recolor(self) -> None:
        self._find_colors()
        if self.colors is not None:
            for panel in self.panels:
                if panel.run is not None:
                    panel.map.set_colors(self.colors.index[panel.index], self.colors.palette)

    def _on_color(self, by: str) -> None:
        self.context.settings.set("timeline/color", by)
        self._recolor()

    def _draw_curves(self, begin: int = 0) -> None:
        """Draw the curves from this index on, continuing in a later iteration when this one is full.

        Axes stand only where something is measured.
        """
        runs = self._reading.chart.runs if self._reading.chart else ()
        self._arrange()
        measured = [
            index for index, curve in enumerate(self.curves) if any(curve.measure.key in r.curves for r in runs)
        ]
        self.measuring.setVisible(not measured)
        for index, curve in enumerate(self.curves):
            curve.setVisible(index in measured)
        for index, curve in enumerate(self.curves[begin:], begin):
            if index > begin and idle_scheduler().is_full:
                idle_scheduler().later(self, lambda index=index: self._draw_curves(index))
                return
            curve.show_runs(runs, bottom=index in measured[-1:])
            curve.point_at(self._step)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the curves at the right of the maps, or below them."""
        runs, is_narrow = self.chart.runs if self.chart else (), self.width() < NARROW_PX
        least, most = APART_PX if len(by_data(runs)) > 1 else CURVES_PX
        layouts.stack(self._parts, is_narrow)
        self._maps.setMinimumHeight(MAPS_PX if is_narrow else 0)
        self._beside.setMinimumWidth(0 if is_narrow else least)
        self._beside.setMaximumWidth(self.width() if is_narrow else most)

    def _take_curves(self, run: TimelineRun, curves: dict[str, MeasureCurve]) -> None:
        # The run's dict is its only part that is filled in later; points may have been replaced meanwhile.
        drawn = self._reading.run(run.index)
        if drawn is not None and drawn.run == run.run:
            drawn.curves.update(curves)
            self._draw_curves()

    def _refuse(self, error: Exception) -> None:
        self._key = None
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.area.failed("Could not read the snapshots of these runs", error, retry=self._read_again)

    def _read_again(self) -> None:
        self._key = None
        self.refresh()

    # Time -------------------------------------------------------------------------------------------------------

    @property
    def _step(self) -> float:
        return float(self.transport.step or 0)

    def _on_moved(self, _place: int) -> None:
        self.hover.card.end()
        for panel in self.panels:
            panel.go_to(self._step)
        for curve in self.curves:
            curve.point_at(self._step)

    def _on_step(self) -> None:
        """Move to the step selected in the bar."""
        if self._reading.chart is not None:
            step = self.context.selection.step
            self.transport.jump(self._reading.chart.steps[-1] if step is None else step)

    def _on_snapshot(self, run: int) -> None:
        if run in self.context.selection.runs:
            self._key = None
            self.refresh_if_seen()

    # Projections ------------------------------------------------------------------------------------------------

    def _choose(self, placement: PointPlacement) -> None:
        """Show which method is displayed."""
        for button, method in ((self.pca, "pca"), (self.umap, "umap")):
            button.setChecked(placement.method == method)

    def _pick(self, method: str) -> None:
        self._stays_on_pca = method == "pca"
        self._ask_umap() if method == "umap" else self._show_pca()

    def _ask_umap(self) -> None:
        if self._reading.chart is None:
            self._choose(PointPlacement())
            return
        self._choose(UMAP)
        self.context.background.run(
            self,
            placed_by_kept,
            self.context.workspace.folder,
            self._reading.chart,
            UMAP,
            done=self._take_kept,
            key="place",
        )

    def _take_kept(self, chart: TimelineChart | None) -> None:
        if not self.umap.isChecked() or self._reading.chart is None:
            return
        if chart is not None:
            self._replace(chart)
        else:
            self._asking.ask(self._reading.chart, UMAP)

    def _show_pca(self) -> None:
        self._asking.cancel()
        self._choose(PointPlacement())
        if self._reading.chart is not None and self._reading.chart.placement.method != "pca":
            chart = self._reading.chart
            self.context.background.run(self, placed_by_pca, chart, done=self._replace, key="place")

    def _on_placed(self, placement: PointPlacement, files: dict[int, list[str]]) -> None:
        if self._reading.chart is not None:
            self.context.background.run(
                self, placed_by, self._reading.chart, placement, files, done=self._replace, key="place"
            )

    def _replace(self, chart: TimelineChart) -> None:
        if self._reading.chart is None or [r.folders for r in chart.runs] != [
            r.folders for r in self._reading.chart.runs
        ]:
            return
        self._reading = TimelineResult(chart, self._reading.problems)
        self._draw(stay=True)

    def _show_progress(self, share: float, note: str) -> None:
        self.placing.show_progress(share, f"UMAP: {note}")
        self.note.setText("UMAP is being computed: the maps come with it.")
        for panel in self.panels:
            if panel.run is not None:
                panel.area.loading()

    def _end_progress(self) -> None:
        self.placing.end()
        self.note.setText(self._reading.chart.note if self._reading.chart else "")
        for panel in self.panels:
            if panel.area.kind == "loading" and panel.run is not None:
                panel.area.ready()

    def _on_failed(self, failure: Failure) -> None:
        self.failed.emit(*failure.sentences)
        self._show_pca()

    # Pairs ------------------------------------------------------------------------------------------------------

    def _mark_pairs(self) -> None:
        rows = np.asarray(self.context.selection.pairs)
        for panel in self.panels:
            if (run := panel.run) is None:
                continue
            mask = np.zeros(run.images + run.texts, bool)
            mask[rows[rows < run.images]] = True
            mask[run.images + rows[rows < run.texts]] = True
            panel.map.set_selected(mask)

    def shorten(self, on: bool) -> None:
        # Where the points stand is the first question; what their colors are is asked behind `...` then.
        (self.more if on else self.main).addWidget(self.color)
        self.color.show()  # of another parent now, which hid it
        self.main.activate()  # the bar measures it at once

    # Wiring -----------------------------------------------------------------------------------------------------

    def _make_actions(self) -> list[QAction]:
        made = []
        for label, key, do in (
            ("Play or pause", Qt.Key.Key_Space, self.transport.play.toggle),
            ("Next step", Qt.Key.Key_Right, lambda: self.transport.go(1)),
            ("Previous step", Qt.Key.Key_Left, lambda: self.transport.go(-1)),
            ("First step", Qt.Key.Key_Home, lambda: self.transport.go(-10_000)),
            ("Last step", Qt.Key.Key_End, lambda: self.transport.go(10_000)),
        ):
            action = QAction(label, self, objectName=f"timeline-action-{label.lower().replace(' ', '-')}")
            action.setProperty("icon-name", "film")
            action.setShortcut(QKeySequence(key))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(lambda _checked=False, do=do: do())
            self.addAction(action)
            made.append(action)
        return made

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.dataset_changed):
            signal.connect(self.refresh_if_seen)
        selection.step_changed.connect(self._on_step)
        selection.pairs_changed.connect(self._mark_pairs)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.transport.moved.connect(self._on_moved)
        for curve in self.curves:
            curve.jumped.connect(self.transport.jump)
        self.color.picked.connect(self._on_color)
        self.pca.clicked.connect(lambda _on: self._pick("pca"))
        self.umap.clicked.connect(lambda _on: self._pick("umap"))
        self.placing.cancelled.connect(self._show_pca)
        self._asking.placed.connect(self._on_placed)
        self._asking.progressed.connect(self._show_progress)
        self._asking.ended.connect(self._end_progress)
        self._asking.failed.connect(self._on_failed)
        theme.theme().follow(self._recolor)  # the curves follow by themselves

    def _lay_out(self) -> None:
        curves = layouts.column(*((curve, 1) for curve in self.curves), gap=theme.SPACE)
        self._beside = layouts.panel(layouts.column(self.measuring, curves, gap=theme.SPACE))
        for curve in self.curves:
            curve.hide()
        layouts.add(self.main, self.pca, self.umap, self.color)
        # Both maps have the same axes: they are panned and zoomed together.
        self._locking = Locking([panel.map for panel in self.panels], self, lambda points: points.frame_looked_at)
        self._locking.set_on(True)
        self._maps = layouts.panel(layouts.row(*((panel, 1) for panel in self.panels), gap=theme.BETWEEN))
        left = layouts.column((self._maps, 1), self.legend, self.note, self.transport)
        self._parts = layouts.row((left, 3), (self._beside, 1), gap=theme.BETWEEN)
        self.body.addLayout(self._parts, 1)
