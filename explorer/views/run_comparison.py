"""The Many runs view: charts of all runs that fit a filter, run A and B first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLineEdit

from explorer.views.chart_view import ChartView
from explorer.widgets import layouts
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, Target
from trainer.errors import UserError
from trainer.metrics import data_label
from trainer.store import SplitKey, Workspace, of_split

if TYPE_CHECKING:
    from explorer.state.view_link import ViewLink

REST_MS = 300
MOST: dict[str, int] = {"map-of-models": 20, "small-multiples": 12, "config-difference": 24}
"""Runs that a chart takes at most; of more the newest are shown."""


class ChosenRuns(Struct, frozen=True):
    """The runs to show."""

    runs: tuple[int, ...]  # Run A and run B first.
    fit: int  # How many fit the filter and have what the chart needs.
    lacking: int  # How many fit the filter only: they have no snapshot of the data.
    data: SplitKey | None = None  # Of which all of them have a snapshot; None if the chart needs none.

    @property
    def words(self) -> str:
        """What is shown and what is left out, in a line."""
        cut = f"{len(self.runs)} of the {self.fit} runs that fit: A, B and the newest."
        text = cut if len(self.runs) < self.fit else f"{self.fit:,} {'run' if self.fit == 1 else 'runs'}."
        if not self.lacking:
            return text
        of = f" of {data_label(self.data)}" if self.data else ""
        return f"{text} {self.lacking:,} more {'has' if self.lacking == 1 else 'have'} no snapshot{of}."


def runs_for(
    workspace: Workspace, text: str, first: Sequence[int], data: SplitKey | None, needs_snapshot: bool, most: int
) -> ChosenRuns:
    """Return the runs to show, `first` ones first. Pure, for a thread.

    Args:
        first: Runs that come first if they fit.
        data: Of which a run must have a snapshot; None: what the first of the runs prefers.
        needs_snapshot: Whether a run must have one.
        most: How many are shown.

    Raises:
        UserError: The text is no filter.
    """
    from trainer.store.run_values import fitting

    rows = fitting(workspace, text)
    ids = [row.id for row in rows]
    if needs_snapshot:
        snapshots = {run: workspace.results.snapshots(run) for run in ids}
        ordered = [run for run in (*first, *ids) if snapshots.get(run)]
        data = data or (choose_snapshot(workspace, workspace.runs.get(ordered[0])).key if ordered else None)
        ids = [run for run in ids if any(snapshot.key == data for snapshot in snapshots[run])]
    ahead = [run for run in first if run in ids]
    rest = [run for run in ids if run not in ahead]
    left = max(most - len(ahead), 0)
    chosen = (*ahead, *(rest[-left:] if left else ()))
    return ChosenRuns(chosen, len(ids), len(rows) - len(ids), data if needs_snapshot else None)


class RunComparisonView(ChartView):
    """Charts of many runs."""

    title = "Many runs"
    question = "Compare representations across runs."
    icon = "grid-2x2"
    name = "run_comparison"

    def build(self) -> Iterator[None]:
        yield from super().build()
        self._found: tuple[int, ...] = ()
        self._key: object = None
        self.filter = QLineEdit(objectName="many-runs-filter", accessibleName="Filter runs", clearButtonEnabled=True)
        self.filter.setPlaceholderText("Filter: objective:cloob beta>8 tag:paper -is:failed")
        self.filter.setText(str(self.context.settings.value("run_comparison/filter", "")))
        self.shown = layouts.text(role="small", name="many-runs-shown", wrap=True)
        layouts.add(self.above, self.filter, self.shown)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._typed)
        self.filter.textChanged.connect(lambda _: self._rest.start())
        self.context.jobs.runs_changed.connect(lambda _: self.refresh_if_seen())

    def link_state(self) -> tuple[str, dict[str, str]]:
        return self.filter.text(), super().link_state()[1]

    def show_link(self, link: ViewLink) -> None:
        super().show_link(link)
        self.filter.setText(link.filter)
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
        data = self.context.selection.dataset
        key = (self.filter.text(), self.context.selection.runs, chart, data, self._rows())
        if key == self._key:
            self._show_found()
            return
        self.context.background.run(
            self,
            runs_for,
            self.context.workspace,
            self.filter.text(),
            self.context.selection.runs,
            data,
            self._needs_snapshot,
            MOST.get(chart, 2_000),
            done=partial(self._take, key),
            failed=self._refuse,
            key="many-runs",
        )

    @property
    def _needs_snapshot(self) -> bool:
        return self.chart.needs not in ("none", "whole_runs")

    def _rows(self) -> tuple[tuple[object, ...], ...]:
        """Return what of the runs decides whether they fit, as of the last poll."""
        return tuple((run.id, run.status, run.tags, run.archived_at, run.last) for run in self.context.jobs.runs)

    def _take(self, key: object, chosen: ChosenRuns) -> None:
        self._key = key
        if chosen.runs != self._found:
            self._found = chosen.runs
            self.pane.stop()
        self.shown.setText(chosen.words)
        self._show_found()

    def _show_found(self) -> None:
        if not self._found:
            text = "No run fits this filter, or none of those has a snapshot yet."
            if self.filter.text():
                self.show_content()
                self.pane.stop()
                self.pane.area.empty("search", "No run fits", text)
            else:
                self.show_no_run(text)
            return
        self.show_content()
        self.method = self.chart.help_text
        self.pane.ask(self.chart, self.request_now(), self.settings_now())

    def _refuse(self, problem: Exception) -> None:
        self._key = None
        if not isinstance(problem, UserError):
            self.context.background.failed.emit(problem)
        self.show_content()
        self.shown.setText("")
        self.pane.stop()
        self.pane.area.failed("Could not choose the runs", problem, retry=self.refresh)

    def _typed(self) -> None:
        self.context.settings.set("run_comparison/filter", self.filter.text())
        self.refresh_if_seen()
