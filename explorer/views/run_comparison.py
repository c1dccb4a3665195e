"""The Many runs view: charts of all runs that fit a filter, run A and B first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel, QLineEdit

from explorer import theme
from explorer.views.chart_view import ChartView
from trainer.charts.spec import Request, Target
from trainer.errors import UserError
from trainer.store import Workspace, of_split

METHOD = """\
Every run that fits the filter is shown, run A and run B first. A filter is words and terms between blanks: \
objective:cloob beta>8 tag:paper -is:failed. Charts of embeddings take runs that have a snapshot."""
REST_MS = 300
MOST: dict[str, int] = {"map-of-models": 20, "small-multiples": 12, "config-difference": 24}
"""Runs that a chart takes at most; of more the newest are shown."""


def runs_for(
    workspace: Workspace, text: str, first: Sequence[int], needs_snapshot: bool, most: int
) -> tuple[tuple[int, ...], int]:
    """Return the runs to show, `first` ones first, and how many fit in all. Pure, for a thread.

    Raises:
        FilterError: The text is no filter.
    """
    from trainer.store.run_values import fitting

    rows = fitting(workspace, text)
    if needs_snapshot:
        rows = [row for row in rows if workspace.results.snapshots(row.id)]
    ids = [row.id for row in rows]
    ahead = [run for run in first if run in ids]
    rest = [run for run in ids if run not in ahead]
    left = max(most - len(ahead), 0)
    return (*ahead, *(rest[-left:] if left else ())), len(ids)


class ManyRunsView(ChartView):
    """Charts of many runs."""

    title = "Many runs"
    question = "What do all of these runs have in common, and which one is different?"
    icon = "grid-2x2"
    name = "run_comparison"
    method = METHOD

    def build(self) -> Iterator[None]:
        yield from super().build()
        self._found: tuple[int, ...] = ()
        self._asked: object = None
        self.filter = QLineEdit(objectName="many-runs-filter", accessibleName="Filter runs")
        self.filter.setPlaceholderText("Filter: objective:cloob beta>8 tag:paper -is:failed")
        self.filter.setClearButtonEnabled(True)
        self.filter.setText(str(self.context.settings.value("run_comparison/filter", "")))
        self.shown = QLabel(objectName="many-runs-shown", wordWrap=True)
        theme.set_role(self.shown, "small")
        self.above.addWidget(self.filter)
        self.above.addWidget(self.shown)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._typed)
        self.filter.textChanged.connect(lambda _: self._rest.start())
        self.context.jobs.runs_changed.connect(lambda _: self._look_again())

    def show_filter(self, text: str) -> None:
        """Show the runs that fit this filter."""
        self.filter.setText(text)
        self._rest.stop()
        self._typed()

    def request_now(self) -> Request:
        targets = tuple(Target(run) for run in self._found)
        split = of_split(self.context.selection.dataset) if self._needs_snapshot else {}
        return Request(targets, **split)

    def refresh(self) -> None:
        if not self.context.jobs.is_read:
            self.show_unknown()
            return
        self._show_controls()
        chart = self.chart.name
        asked = (self.filter.text(), self.context.selection.runs, chart, self._rows())
        if asked == self._asked:
            self._show_found()
            return
        self.context.background.run(
            self,
            runs_for,
            self.context.workspace,
            self.filter.text(),
            self.context.selection.runs,
            self._needs_snapshot,
            MOST.get(chart, 2_000),
            done=partial(self._take, asked),
            failed=self._refuse,
            key="many-runs",
        )

    @property
    def _needs_snapshot(self) -> bool:
        return self.chart.needs not in ("none", "whole_runs")

    def _rows(self) -> tuple[tuple[object, ...], ...]:
        """Return what of the runs decides whether they fit, as of the last poll."""
        return tuple((run.id, run.status, run.tags, run.archived_at, run.last) for run in self.context.jobs.runs)

    def _take(self, asked: object, found: tuple[tuple[int, ...], int]) -> None:
        self._asked = asked
        runs, fit = found
        if runs != self._found:
            self._found = runs
            self.pane.stop()
        cut = f"{len(runs)} of the {fit} runs that fit: A, B and the newest." if len(runs) < fit else f"{fit} runs."
        self.shown.setText(cut)
        self._show_found()

    def _show_found(self) -> None:
        if not self._found:
            words = "No run fits this filter, or none of those has a snapshot yet."
            if self.filter.text():
                self.show_content()
                self.pane.stop()
                self.pane.area.empty("search", "No run fits", words)
            else:
                self.show_no_run(words)
            return
        self.show_content()
        self.tab_question.setText(self.chart.question)
        self.method = self.chart.method or METHOD
        self.pane.ask(self.chart, self.request_now(), self.settings_now())

    def _refuse(self, problem: Exception) -> None:
        self._asked = None
        if not isinstance(problem, UserError):
            self.context.background.failed.emit(problem)
        self.show_content()
        self.shown.setText("")
        self.pane.stop()
        self.pane.area.failed("Could not choose the runs", problem, retry=self.refresh)

    def _typed(self) -> None:
        self.context.settings.set("run_comparison/filter", self.filter.text())
        self.refresh_if_seen()

    def _look_again(self) -> None:
        if self.isVisible():
            self.refresh()
