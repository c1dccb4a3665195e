"""The Similarity view: reads the chart off the GUI thread and draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSizePolicy, QSpinBox, QVBoxLayout, QWidget

from explorer import theme
from explorer.views.similarity.panel import SimilarityPanel
from explorer.views.similarity.table import SimilarityTable
from explorer.views.view import Context, View
from trainer.charts.similarity import NOTE, SimilarityChart, SimilarityRun, similarity
from trainer.problem import Problem
from trainer.store import Workspace

METHOD = """\
Matched: the cosine of every image with its own text. Unmatched: the cosines of every image with the k most similar \
texts that are not its own; texts with the same caption count as its own. These are the pairs that retrieval confuses, \
not average ones.

AUC: the chance that a matched cosine exceeds an unmatched one (Mann-Whitney), 0.5 is chance. d′: difference of the \
means over the root of the mean variance. Overlap: area that both normalised histograms share. R@1: share of images \
whose own text is the most similar of all.

Cosines of two runs are not on one scale, because an objective may stretch or squeeze them: compare runs by AUC, d′, \
overlap and R@1. Differences of raw cosines are therefore not shown.

Each histogram is drawn as a share of its own pairs; k times as many unmatched as matched pairs are counted."""

NO_RUN = "Choose run A, and run B beside it, in the bar above. The cosines of their pairs then appear here."
BINS = 60
TABLE_PX = 316
TYPING_MS = 300


@dataclass(frozen=True)
class Reading:
    """The chart of the runs that have one, and why others have none."""

    chart: SimilarityChart | None
    problems: dict[int, str] = field(default_factory=dict)

    def run(self, run: int | None) -> SimilarityRun | None:
        """The numbers of one run."""
        return next((r for r in self.chart.runs if r.run == run), None) if self.chart else None


class SimilarityView(View):
    """Matched against the most similar unmatched pairs, run A above run B."""

    title = "Similarity"
    question = "How far apart are matched and unmatched pairs?"
    icon = "chart-column"
    method = METHOD

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._reading = Reading(None)
        self._asked: tuple[object, ...] | None = None
        self.k = _Count(objectName="similarity-k", accessibleName="Unmatched texts of every image")
        self.k.setRange(1, 100)
        self.k.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.k.setValue(int(context.settings.value("similarity/k", 10)))
        self.same_axis = QCheckBox("Same axis", objectName="similarity-axis", accessibleName="Same axis for A and B")
        self.same_axis.setChecked(bool(context.settings.value("similarity/same_axis", True)))
        self.status, self.note = QLabel(), QLabel(wordWrap=True)
        for label in (self.status, self.note):
            label.setTextFormat(Qt.TextFormat.PlainText)
            theme.set_role(label, "small")
        self.panels = (SimilarityPanel(0), SimilarityPanel(1))
        self.table = SimilarityTable()
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def command(self) -> list[str] | None:
        shown = [panel.run for panel in self.panels if panel.run is not None]
        if not shown:
            return None
        words = ["export", "similarity", "--runs", *dict.fromkeys(str(run.run) for run in shown)]
        if self.context.selection.step is not None:
            words += ["--step", str(self.context.selection.step)]
        return [*words, "--dataset", shown[0].dataset, "--split", shown[0].split, "--k", str(self.k.value())]

    def actions_for_palette(self) -> list[QAction]:
        action = QAction("Same axis for A and B", self, objectName="similarity-action-axis")
        action.triggered.connect(self.same_axis.toggle)
        return [action]

    def refresh(self) -> None:
        selection = self.context.selection
        if not selection.runs:
            self._asked = None
            self._reading = Reading(None)
            self.show_no_run("chart-column", NO_RUN)
            return
        self.show_content()
        asked = (selection.run_a, selection.run_b, selection.step, selection.dataset, self.k.value())
        if asked != self._asked:
            self._asked = asked
            self._read()

    def _read(self) -> None:
        selection = self.context.selection
        self.status.setText("Comparing pairs…")
        self.context.background.run(
            self,
            read,
            self.context.workspace,
            selection.runs,
            selection.step,
            selection.dataset,
            self.k.value(),
            done=self._show,
            failed=self._refuse,
            key="similarity",
        )

    def _show(self, reading: Reading) -> None:
        self._reading = reading
        self.status.setText("")
        chart = reading.chart
        runs = (self.context.selection.run_a, self.context.selection.run_b)
        shown = [reading.run(run) for run in runs]
        self.note.setText(" ".join(dict.fromkeys((NOTE, chart.note))) if chart and chart.note else NOTE)
        self.table.show_runs(*shown)
        tops = [_top(run, self._edges(run)) for run in shown if run is not None]
        for panel, run_id, run in zip(self.panels, runs, shown, strict=True):
            if run is not None:
                top = max(tops) if self.same_axis.isChecked() else None
                panel.show_run(run, chart.k, self._edges(run), top=top)
            elif run_id is None:
                panel.show_nothing(
                    "columns-2", f"No run {'AB'[panel.index]}", "Choose one in the bar above to compare."
                )
            else:
                panel.show_nothing("triangle-alert", "No cosines of this run", reading.problems.get(run_id, ""))

    def _edges(self, run: SimilarityRun) -> Float[np.ndarray, " bins+1"]:
        """Bins of both runs together, or of this one alone."""
        if self.same_axis.isChecked():
            return self._reading.chart.edges
        values = np.concatenate([run.matched, run.unmatched])
        values = values[np.isfinite(values)]
        return np.linspace(values.min(), max(values.max(), values.min() + 1e-3), BINS + 1)

    def _refuse(self, error: Exception) -> None:
        self._asked = None
        self.status.setText("")
        if not isinstance(error, Problem):
            self.context.background.failed.emit(error)
        self.show_empty("triangle-alert", "The pairs cannot be compared", str(error) or type(error).__name__)

    def _on_axis(self) -> None:
        self.context.settings.set("similarity/same_axis", self.same_axis.isChecked())
        if self._reading.chart is not None:
            self._show(self._reading)

    def _on_k(self) -> None:
        self.context.settings.set("similarity/k", self.k.value())
        self.refresh()

    def _on_snapshot(self, run: int) -> None:
        if self.context.selection.step is None and run in self.context.selection.runs:
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
        self.k.valueChanged.connect(lambda _value: self._typing.start())
        self._typing.timeout.connect(self._on_k)
        self.same_axis.toggled.connect(lambda _on: self._on_axis())

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(theme.INSIDE)
        words = QLabel("Most similar unmatched texts per image")
        theme.set_role(words, "secondary")
        words.setBuddy(self.k)
        for widget in (words, self.k, self.same_axis, self.status):
            bar.addWidget(widget)
            bar.addSpacing(theme.SPACE)
        bar.addStretch()
        plots = QVBoxLayout()
        plots.setSpacing(theme.BETWEEN)
        for panel in self.panels:
            plots.addWidget(panel, 1)
        side = QVBoxLayout()
        side.setSpacing(theme.BETWEEN)
        side.addWidget(self.table)
        side.addWidget(self.note)
        side.addStretch()
        beside = QWidget()
        beside.setLayout(side)
        side.setContentsMargins(0, 0, 0, 0)
        beside.setFixedWidth(TABLE_PX)
        beside.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        row = QHBoxLayout()
        row.setSpacing(theme.AROUND)
        row.addLayout(plots, 1)
        row.addWidget(beside)
        self.body.addLayout(bar)
        self.body.addLayout(row, 1)


class _Count(QSpinBox):
    """A spin box that scrolling past does not change."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def read(workspace: Workspace, runs: Sequence[int], step: int | None, data: str | None, k: int) -> Reading:
    """The chart of those runs that have such a snapshot; the others' reasons beside it. Pure, for a thread."""
    dataset, split = data.rpartition("-")[::2] if data else (None, None)
    asked = {"step": step, "dataset": dataset, "split": split, "k": k, "bins": BINS}
    try:
        return Reading(similarity(workspace, runs, **asked))
    except Problem as error:
        if len(runs) == 1:
            return Reading(None, {runs[0]: str(error)})
    alone = {run: read(workspace, [run], step, data, k) for run in runs}
    able = [run for run, reading in alone.items() if reading.chart is not None]
    problems = {run: words for reading in alone.values() for run, words in reading.problems.items()}
    return Reading(similarity(workspace, able, **asked) if able else None, problems)


def _top(run: SimilarityRun, edges: np.ndarray) -> float:
    """The greatest share of one bin, percent."""
    counts = [np.histogram(values, edges)[0] for values in (run.matched, run.unmatched)]
    return max(100 * float(c.max()) / max(int(c.sum()), 1) for c in counts)
