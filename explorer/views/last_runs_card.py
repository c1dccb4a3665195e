"""On Home without an experiment: what trains now, and the last finished runs with what would decide between them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from explorer import theme
from explorer.views.chart_pane import ChartPane
from explorer.views.seed_rows import RunCell
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal
from explorer.widgets.truth_line import EVALUATE
from trainer.charts.curves import CHART as CURVES
from trainer.charts.spec import Request, targets_of
from trainer.experiments.last_runs import LastRuns
from trainer.experiments.training_news import TrainingNews, training_news
from trainer.metrics import HEADLINE
from trainer.store import RunRow

MOST_TRAINING: Final = 4
"""Runs that train now and are listed: the ways to begin stay in sight."""

REDRAWN_S: Final = 2.0
"""Between two drawings of curves that grow."""
LONGEST: Final = 24
"""Letters of the name of data on a button."""


class LastRunsCard(QFrame):
    """The last runs, two that compare where there are: values, seeds, curves, and the experiment that would decide."""

    repeated = Signal(object)  # These one or two runs are to be trained with more seeds.
    evaluated = Signal(object)  # These two runs are to be measured on one data set.

    def __init__(self, context: Context) -> None:
        super().__init__(objectName="last-runs")
        theme.set_role(self, "card")
        self._context = context
        self._runs: tuple[int, ...] = ()
        self._apart: tuple[int, ...] = ()
        self._last: LastRuns | None = None
        self.title = layouts.text("The last finished runs", role="heading")
        self.headline = layouts.text(role="title", name="last-runs-headline", wrap=True)
        self.about = layouts.text(role="small", name="last-runs-about", wrap=True)
        self.flaws = layouts.text(role="warn", name="last-runs-flaws", wrap=True)
        self.apart = layouts.text(role="small", name="last-runs-apart", wrap=True)
        self.evaluate = QPushButton(EVALUATE, clicked=lambda: self.evaluated.emit(self._apart))
        self.evaluate.setObjectName("last-runs-evaluate")
        self.more = QPushButton(objectName="last-runs-more", clicked=lambda: self.repeated.emit(self._runs))
        theme.keep_icon(self.more, "plus")
        self.note = layouts.elided("", "small")
        self.pane = ChartPane(context, "last-runs")
        self.pane.panel.fills = True
        context.selection.runs_changed.connect(self._draw)
        inset = (theme.BETWEEN, 12, theme.BETWEEN, 12)
        # A row of hidden parts would take room.
        self.apart_row = layouts.panel(layouts.row((self.apart, 1), self.evaluate))
        heads = layouts.column(
            self.title, self.headline, self.about, self.flaws, self.apart_row, gap=theme.SPACE, margins=inset
        )
        foot = layouts.row(self.more, theme.SPACE, (self.note, 1), margins=inset)
        stage = layouts.column(self.pane, margins=inset)
        layouts.column(heads, layouts.hairline(), (stage, 1), layouts.hairline(), foot, gap=0, of=self)
        for part in (self.flaws, self.apart_row, self.more):
            part.hide()

    def show_runs(self, last: LastRuns) -> None:
        """Show these runs; their curves are those of values on held-out pairs, which have one scale."""
        self._last, self._runs = last, tuple(run.id for run in last.repeated)
        both, drawn = len(self._runs) > 1, tuple(run.id for run in last.runs)
        self._apart = tuple(run.id for run in last.apart)
        compare = "The last two finished runs" if self._apart in ((), drawn) else "The last two runs that compare"
        self.title.setText(compare if len(drawn) > 1 else "The last finished run")
        self.apart.setText(last.apart_note)
        self.apart_row.setVisible(bool(self._apart))
        self.headline.setText(last.headline)
        self.about.setText(last.about)
        self.flaws.setText(last.flaws)
        self.flaws.setVisible(bool(last.flaws))
        data = last.runs[-1].data
        self.more.setText("Add seeds" if both else f"CLIP and CLOOB on {data if len(data) <= LONGEST else 'its data'}")
        what = "both settings with 3 to 5 further" if both else "each with 3 to 5"
        self.note.setText(last.note or f"Trains {what} seeds, until it is decided.")
        self.more.setVisible(bool(self._runs))
        set_refusal(self.more, self._context.jobs.read_only_reason)
        self.pane.forget()
        self._draw()

    def _draw(self) -> None:
        """Draw the curves, A before B as everywhere."""
        if self._last is None:
            return
        sides, drawn = self._context.selection.runs, (run.id for run in self._last.runs)
        ordered = sorted(drawn, key=lambda run: (sides.index(run) if run in sides else len(sides), run))
        metric = self._last.runs[0].metric
        names = (HEADLINE, "val/text_to_image_R@1") if metric == HEADLINE else (metric,)
        self.pane.ask(CURVES, Request(targets_of(ordered)), CURVES.settings(names))


class TrainingNow(QWidget):
    """The runs that train or wait now, and how far each is; hidden where none does."""

    followed = Signal(int)  # The curves of this run, the first, are to be shown.

    def __init__(self) -> None:
        super().__init__(objectName="training-now")
        self.curves = QPushButton("Show curves", clicked=lambda: self.followed.emit(next(iter(self._cells))))
        self._column = layouts.column(gap=theme.SPACE)
        self._heading = layouts.text("", "heading")
        layouts.column(self._heading, self._column, layouts.row(self.curves, layouts.STRETCH), of=self)
        self._cells: dict[int, RunCell] = {}

    def show_runs(self, runs: Sequence[RunRow], ends: Mapping[int, float | None]) -> None:
        """Show these runs, those that train before those that wait; `ends` are the seconds until each ends."""
        first = sorted(runs, key=lambda run: run.status == "queued")[:MOST_TRAINING]
        self.setVisible(bool(first))
        self._heading.setText("Watching" if all(run.is_watched for run in first) else "Training now")
        if [run.id for run in first] != list(self._cells):
            while (item := self._column.takeAt(0)) is not None:
                if (label := item.widget()) is not None:
                    label.deleteLater()
            self._cells = {run.id: RunCell() for run in first}
            for run in first:
                layouts.add(self._column, layouts.elided(run.short_name, "strong"), self._cells[run.id])
        waiting = [run.id for run in first if run.status == "queued"]
        for run in first:
            turn = waiting.index(run.id) + 1 if run.id in waiting else 0
            self._cells[run.id].show_run(run, ends.get(run.id), turn)


class TrainingCard(QFrame):
    """The runs that train while none has finished: how far each is, what comes when, and the curves as they grow."""

    def __init__(self, context: Context) -> None:
        super().__init__(objectName="training-card")
        theme.set_role(self, "card")
        self._context, self._drawn_at = context, -math.inf
        self._steps: tuple[tuple[int, str, int], ...] = ()
        self.now = TrainingNow()
        self.now.curves.setText("Show in Runs")
        self.next = layouts.text(role="small", name="training-next", wrap=True)
        self.pane = ChartPane(context, "training")
        self.pane.panel.fills = True
        inset = (theme.BETWEEN, 12, theme.BETWEEN, 12)
        heads = layouts.column(self.now, self.next, gap=theme.INSIDE, margins=inset)
        layouts.column(heads, layouts.hairline(), (layouts.column(self.pane, margins=inset), 1), gap=0, of=self)

    def show_runs(self, runs: Sequence[RunRow], ends: Mapping[int, float | None]) -> None:
        """Show how far these runs are, and redraw their curves where one is further, at most every two seconds."""
        self.now.show_runs(runs, ends)
        steps = tuple((run.id, run.status, run.step) for run in runs)
        if steps != self._steps and time.monotonic() - self._drawn_at >= REDRAWN_S:
            self._steps, self._drawn_at = steps, time.monotonic()
            arguments = training_news, self._context.workspace, [run.id for run in runs]
            self._context.background.run(self, *arguments, done=self._show_news, failed=self._failed, key="training")

    def _show_news(self, news: TrainingNews) -> None:
        self.next.setText(news.next)
        if news.metrics:
            self.pane.forget()
            self.pane.ask(CURVES, Request(targets_of(news.runs)), CURVES.settings(news.metrics))
        else:
            self.pane.area.empty("clock", "No curve yet", "The curves begin with the first values.")

    def _failed(self, problem: Exception) -> None:
        self.pane.area.failed("Could not read the curves", problem)
