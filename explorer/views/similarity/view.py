"""The Similarity view: distributions of cosines, and the panes beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.state.selection import Side
from explorer.views.similarity.axes import AxesPane
from explorer.views.similarity.facets import FacetTable
from explorer.views.similarity.matrix import MatrixPane
from explorer.views.similarity.method import METHOD
from explorer.views.similarity.pane import Pane
from explorer.views.similarity.panel import SimilarityPanel
from explorer.views.similarity.strip import PairStrip, Zone
from explorer.views.similarity.table import SimilarityTable
from explorer.views.similarity.word_pane import WordsPane
from explorer.views.view import View, side_words
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.current_page_stack import OpenPage
from explorer.widgets.flow_row import WrappingRow
from explorer.widgets.progress_row import Cancelled, Ticket, Working
from trainer.charts.facets import facet_columns
from trainer.charts.similarity import NOTE, SimilarityChart, SimilarityRun, similarity
from trainer.charts.snapshots import choose_snapshot
from trainer.errors import UserError
from trainer.store import SplitKey, Workspace, of_split
from trainer.store.snapshot_files import Items, read_snapshot

NO_RUN = "Choose run A in the bar above, and run B to compare. The cosines of their pairs then appear here."
BINS = 60
TABLE_PX = 404
TYPING_MS = 300
TABS = (
    ("Cosines", "How far matched pairs are from unmatched ones"),
    ("Matrix", "All cosines of images with texts, ordered"),
    ("Words", "What each word of a caption is worth"),
    ("Axes", "Pairs along axes that texts define"),
)
PANES: dict[int, type[Pane]] = {1: MatrixPane, 2: WordsPane, 3: AxesPane}
COMPARED = (
    Choice("hardest", "most similar", "The k most similar unmatched texts of every image, as in the paper's figure"),
    Choice("sampled", "sampled", "100,000 unmatched pairs drawn at random"),
    Choice("all", "all", "Each of the n (n − 1) unmatched pairs: minutes at 100,000 pairs; the time left is shown"),
)
NO_FACET = Choice(None, "nothing")


@dataclass(frozen=True)
class SimilarityResult:
    """The chart of the sides that have one, and why others have none; places are 0 for A and 1 for B."""

    chart: SimilarityChart | None
    runs: dict[int, SimilarityRun] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    items: Items | None = None
    columns: tuple[str, ...] = ()


class SimilarityView(View):
    """Four ways to look at the cosines: their distributions, their matrix, their words, and axes of texts."""

    title = "Similarity"
    question = "How far apart are matched and unmatched pairs?"
    icon = "chart-column"
    method = METHOD

    def build(self) -> Iterator[None]:
        context = self.context
        self._reading = SimilarityResult(None)
        self._asked: tuple[object, ...] | None = None
        self._only: str | None = None
        self._zone: Zone | None = None
        self.pictures = Pictures(context.background, self)
        self.tabs = QTabBar(objectName="similarity-tabs", accessibleName="Ways to look at cosines")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        for words, hint in TABS:
            self.tabs.setTabToolTip(self.tabs.addTab(words), hint)
        self.k = _Count(objectName="similarity-k", accessibleName="Unmatched texts of every image")
        self.k.setRange(1, 100)
        self.k.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.k.setValue(int(context.settings.value("similarity/k", 10)))
        self.compared = Picker(name="similarity-compared", words="Unmatched pairs", width=132)
        self.compared.show_choices(COMPARED, context.settings.value("similarity/compared", "hardest"))
        self.facet = Picker(name="similarity-facet", words="Tell apart by", width=120)
        self.facet.show_choices((NO_FACET,), None)
        self.same_axis = QCheckBox("Same axis", objectName="similarity-axis", accessibleName="Same axis for A and B")
        self.same_axis.setChecked(bool(context.settings.value("similarity/same_axis", True)))
        self.density = QCheckBox(
            "Density", objectName="similarity-density", accessibleName="Smooth densities over the bars"
        )
        self.density.setChecked(bool(context.settings.value("similarity/density", False)))
        self.zone_button = QPushButton("Brush overlap", objectName="similarity-zone")
        self.zone_button.setToolTip(
            "Select run A's matched pairs below the cosine that 95 % of the unmatched stay below"
        )
        self.note = QLabel(wordWrap=True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.note, "small")
        self.working = Working("similarity-working")
        yield
        self.panels = (SimilarityPanel(0), SimilarityPanel(1))
        yield
        self.table, self.facets = SimilarityTable(), FacetTable()
        yield
        self.strip = PairStrip(self.pictures)
        self.panes: dict[int, Pane] = {}
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        yield
        self._lay_out()
        yield
        self._connect()

    def pane(self, place: int) -> Pane:
        """The pane of a tab after the first; made when first asked for."""
        if place not in self.panes:
            self.panes[place] = made = PANES[place](self.context, self.pictures)
            made.failed.connect(self.failed)
            self.stack.addWidget(made)
        return self.panes[place]

    def command(self) -> list[str] | None:
        if self.tabs.currentIndex():
            return self.pane(self.tabs.currentIndex()).command()
        shown = [panel.run for panel in self.panels if panel.run is not None]
        if not shown:
            return None
        places = [panel.index for panel in self.panels if panel.run is not None]
        words = ["export", "similarity", *side_words(self.context.selection, places)]
        words += ["--dataset", shown[0].dataset, "--split", shown[0].split, "--k", str(self.k.value())]
        if self.compared.key != "hardest":
            words += ["--compared", self.compared.key]
        if self.facet.key:
            words += ["--facet", self.facet.key]
        return [*words, "--only", self._only] if self._only is not None else words

    def actions_for_palette(self) -> list[QAction]:
        actions = []
        for place, (words, _) in enumerate(TABS):
            action = QAction(f"Similarity: {words}", self, objectName=f"similarity-action-{words.lower()}")
            action.triggered.connect(lambda _=False, i=place: self.tabs.setCurrentIndex(i))
            actions.append(action)
        for words, does in (
            ("Same axis for A and B", self.same_axis.toggle),
            ("Brush the overlap of run A", self.brush_overlap),
        ):
            action = QAction(words, self)
            action.triggered.connect(does)
            actions.append(action)
        actions[-2].setObjectName("similarity-action-axis")
        return actions

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._asked = None
            self._reading = SimilarityResult(None)
            self.working.end()
            self.show_no_run("chart-column", NO_RUN)
            return
        self.show_content()
        place = self.tabs.currentIndex()
        if place:
            self.stack.setCurrentWidget(self.pane(place))
            self.pane(place).refresh()
            return
        self.stack.setCurrentIndex(0)
        choices = (self.k.value(), self.compared.key, self.facet.key, self._only)
        asked = (selection.run_a, selection.run_b, selection.sides, selection.dataset, *choices)
        if asked != self._asked:
            self._asked = asked
            self._read()

    def brush_overlap(self) -> None:
        """Brushes, in run A (or B alone), the matched pairs that stand among the unmatched ones."""
        panel = next((panel for panel in self.panels if panel.run is not None), None)
        if panel is None:
            return
        run = panel.run
        low, high = overlap_zone(run)
        panel.plot.set_brush((low, high) if high > low else None)
        self._brush(panel.index, panel.plot.brush)

    # Reading ----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        selection = self.context.selection
        self.context.background.run(
            self,
            read,
            self.context.workspace,
            selection.sides,
            selection.dataset,
            self.k.value(),
            self.compared.key,
            self.facet.key,
            self._only,
            self.working.start(),
            done=self._show,
            failed=self._refuse,
            key="similarity",
        )

    def _show(self, reading: SimilarityResult) -> None:
        self._reading = reading
        self.working.end()
        choices = (NO_FACET, *(Choice(name, name.replace("_", " ")) for name in reading.columns))
        self.facet.show_choices(choices, self.facet.key if self.facet.key in reading.columns else None)
        self._draw()

    def _draw(self) -> None:
        reading, chart = self._reading, self._reading.chart
        runs = (self.context.selection.run_a, self.context.selection.run_b)
        # B that is the very snapshot of A is measured once and shown twice.
        again = runs[0] == runs[1] and self.context.selection.step_of(0) == self.context.selection.step_of(1)
        places = (0, 0) if again else (0, 1)
        shown = [reading.runs.get(place) if run is not None else None for place, run in zip(places, runs, strict=True)]
        self.note.setText(" ".join(dict.fromkeys((NOTE, chart.note))) if chart and chart.note else NOTE)
        self.table.show_runs(*shown)
        self.facets.show_facets(*shown, self._only)
        self.facets.setVisible(bool(self.facet.key))
        tops = [_top(run, self._edges(run)) for run in shown if run is not None]
        for panel, place, run_id, run in zip(self.panels, places, runs, shown, strict=True):
            if run is not None:
                top = max(tops) if self.same_axis.isChecked() else None
                panel.show_run(run, chart, self._edges(run), top=top, density=self.density.isChecked())
            elif run_id is None:
                panel.show_nothing(
                    "columns-2", f"No run {'AB'[panel.index]}", "Choose one in the bar above to compare."
                )
            else:
                panel.show_nothing("triangle-alert", "No cosines of this run", reading.problems.get(place, ""))
        self._show_pairs()

    def _edges(self, run: SimilarityRun) -> Float[np.ndarray, " bins+1"]:
        """Bins of both runs together, or of this one alone."""
        if self.same_axis.isChecked():
            return self._reading.chart.edges
        values = np.concatenate([run.matched, run.unmatched])
        values = values[np.isfinite(values)]
        return np.linspace(values.min(), max(values.max(), values.min() + 1e-3), BINS + 1)

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        self._asked = None
        self.working.end()
        if not isinstance(error, UserError):
            self.context.background.failed.emit(error)
        self.show_empty("triangle-alert", "The pairs cannot be compared", str(error) or type(error).__name__)

    # Selecting --------------------------------------------------------------------------------------------------

    def _brush(self, index: int, brush: tuple[float, float] | None) -> None:
        """Selects, everywhere, the matched pairs of a range of one run; the other panel's brush is gone."""
        self.panels[1 - index].plot.set_brush(None)
        run = self.panels[index].run
        if brush is None or run is None:
            self._zone = None
            self.context.selection.pairs = ()
            return
        inside = (run.matched >= brush[0]) & (run.matched <= brush[1])
        rows = tuple(run.rows[inside].tolist())
        self._zone = Zone(index, *brush, rows)
        self.context.selection.pairs = rows
        self._show_pairs()

    def _on_pairs(self) -> None:
        pairs = tuple(self.context.selection.pairs.tolist())
        if self._zone is not None and pairs != self._zone.rows:
            self._zone = None
            for panel in self.panels:
                panel.plot.set_brush(None)
        if self.isVisible():
            self._show_pairs()

    def _show_pairs(self) -> None:
        rows = self.context.selection.pairs.tolist()
        words = self._zone.words if self._zone is not None else f"{len(rows):,} pairs selected"
        shown = [panel.run for panel in self.panels]
        if self._zone is not None and self._zone.index == 1:
            words += " (matched, then the most similar unmatched text)"
        elif rows:
            words += " (matched cosine against that of the most similar unmatched text)"
        self.strip.show_pairs(rows, self._reading.items, shown, words)

    # Controls ---------------------------------------------------------------------------------------------------

    def _on_axis(self) -> None:
        self.context.settings.set("similarity/same_axis", self.same_axis.isChecked())
        self.context.settings.set("similarity/density", self.density.isChecked())
        if self._reading.chart is not None:
            self._draw()

    def _on_k(self) -> None:
        self.context.settings.set("similarity/k", self.k.value())
        self.refresh()

    def _on_compared(self) -> None:
        self.context.settings.set("similarity/compared", self.compared.key)
        self.k.setEnabled(self.compared.key == "hardest")
        self.refresh()

    def _on_facet(self) -> None:
        self._only = None
        self.refresh()

    def _on_value(self, value: str | None) -> None:
        self._only = value
        self.refresh()

    def _on_cancel(self) -> None:
        """Back to what is quick: the most similar texts."""
        self.compared.show_choices(COMPARED, "hardest")
        self._on_compared()

    def _on_tab(self) -> None:
        if self.isVisible():
            self.refresh()

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.follows(run):
            self._asked = None
            for pane in self.panes.values():
                pane.forget()
            self._refresh_if_seen()

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()

    def _on_data(self) -> None:
        self._only = None
        self._refresh_if_seen()

    def _connect(self) -> None:
        selection = self.context.selection
        for signal in (selection.runs_changed, selection.step_changed):
            signal.connect(self._refresh_if_seen)
        selection.dataset_changed.connect(self._on_data)
        selection.pairs_changed.connect(self._on_pairs)
        self.context.jobs.snapshots_changed.connect(self._on_snapshot)
        self.tabs.currentChanged.connect(lambda _place: self._on_tab())
        self.k.valueChanged.connect(lambda _value: self._typing.start())
        self._typing.timeout.connect(self._on_k)
        self.compared.picked.connect(lambda _key: self._on_compared())
        self.facet.picked.connect(lambda _key: self._on_facet())
        self.facets.chosen.connect(self._on_value)
        self.same_axis.toggled.connect(lambda _on: self._on_axis())
        self.density.toggled.connect(lambda _on: self._on_axis())
        self.zone_button.clicked.connect(self.brush_overlap)
        self.working.cancelled.connect(self._on_cancel)
        for panel in self.panels:
            panel.plot.brushed.connect(lambda brush, index=panel.index: self._brush(index, brush))
        self.k.setEnabled(self.compared.key == "hardest")

    def _lay_out(self) -> None:
        bar = WrappingRow()
        for words, widget in (("Unmatched", self.compared), ("k", self.k), ("Tell apart by", self.facet)):
            label = QLabel(words)
            theme.set_role(label, "secondary")
            label.setBuddy(widget)
            bar.add(label, gap=theme.INSIDE + theme.SPACE)
            bar.add(widget, gap=theme.INSIDE, stretch=widget is not self.k)
        self.compared.setMaximumWidth(180)
        self.facet.setMaximumWidth(180)
        for widget in (self.same_axis, self.density, self.zone_button):
            bar.add(widget, gap=theme.INSIDE + theme.SPACE)
        bar.add(self.working, gap=theme.INSIDE + theme.SPACE, stretch=True)
        plots = QVBoxLayout()
        plots.setSpacing(theme.BETWEEN)
        for panel in self.panels:
            plots.addWidget(panel, 1)
        plots.addWidget(self.strip)
        side = QVBoxLayout()
        side.setSpacing(theme.BETWEEN)
        side.addWidget(self.table)
        side.addWidget(self.facets, 1)
        side.addWidget(self.note)
        side.addStretch()
        inside = QWidget()
        inside.setLayout(side)
        side.setContentsMargins(0, 0, theme.INSIDE, 0)
        beside = QScrollArea(widgetResizable=True)
        beside.setFrameShape(QScrollArea.Shape.NoFrame)
        beside.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        beside.setWidget(inside)
        beside.setFixedWidth(TABLE_PX)
        beside.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        row = QHBoxLayout()
        row.setSpacing(theme.AROUND)
        row.addLayout(plots, 1)
        row.addWidget(beside)
        cosines = QWidget()
        column = QVBoxLayout(cosines)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.BETWEEN)
        column.addWidget(bar)
        column.addLayout(row, 1)
        self.stack = OpenPage()
        self.stack.addWidget(cosines)
        self.body.addWidget(self.tabs)
        self.body.addWidget(self.stack, 1)


class _Count(QSpinBox):
    """A spin box that scrolling past does not change."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def read(
    workspace: Workspace,
    sides: Sequence[Side],
    data: SplitKey | None,
    k: int,
    compared: str = "hardest",
    facet: str | None = None,
    only: str | None = None,
    ticket: Ticket | None = None,
) -> SimilarityResult:
    """The chart of those sides that have such a snapshot; the others' reasons beside it. Pure, for a thread."""
    chosen = of_split(data)
    asked = {**chosen, "k": k, "bins": BINS, "compared": compared, "facet": facet, "only": only, "progress": ticket}
    steps = {"step": sides[0].step} | ({"step_b": sides[1].step} if len(sides) > 1 else {})
    try:
        chart = similarity(workspace, [side.run for side in sides], **steps, **asked)
        row = choose_snapshot(workspace, workspace.runs.get(sides[0].run), step=sides[0].step, **chosen)
        items = read_snapshot(row.folder).items
        runs = {side.place: run for side, run in zip(sides, chart.runs, strict=True)}
        return SimilarityResult(chart, runs, {}, items, facet_columns(items))
    except UserError as error:
        if len(sides) == 1:
            return SimilarityResult(None, {}, {sides[0].place: str(error)})
    alone = [read(workspace, [side], data, k, compared, facet, only, ticket) for side in sides]
    problems = {place: words for reading in alone for place, words in reading.problems.items()}
    able = [reading for reading in alone if reading.chart is not None]
    return SimilarityResult(None, {}, problems) if not able else replace(able[0], problems=problems)


def overlap_zone(run: SimilarityRun) -> tuple[float, float]:
    """From the least matched cosine to the one that 95 of 100 unmatched pairs stay below."""
    matched = run.matched[np.isfinite(run.matched)]
    if not len(matched) or not len(run.unmatched):
        return 0.0, 0.0
    order = np.argsort(run.unmatched)
    weights = np.ones(len(order)) if run.unmatched_weights is None else run.unmatched_weights[order]
    reached = np.searchsorted(np.cumsum(weights), 0.95 * weights.sum())
    return float(matched.min()), float(run.unmatched[order[min(int(reached), len(order) - 1)]])


def _top(run: SimilarityRun, edges: np.ndarray) -> float:
    """The greatest share of one bin, percent."""
    counts = [np.histogram(run.matched, edges)[0], run.unmatched_histogram(edges)]
    return max(100 * float(c.max()) / max(int(c.sum()), 1) for c in counts)
