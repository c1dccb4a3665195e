"""A chart of stored evaluations with settings of its own, as a tab of Evaluate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets.state_area import StatePage
from trainer.charts.evaluation import TASK_WORDS
from trainer.charts.spec import Request


class EvaluationTab(ChartTab):
    """Shows a chart of the data set that the view shows, or offers to measure the task that it is of."""

    measure_asked = Signal(str)  # The task that is to be measured of both runs.

    def __init__(self, context: Context, name: str, pictures: Thumbnails, task: Callable[[Any], str]) -> None:
        super().__init__(context, name, pictures)
        self._task = task
        self._request = Request()
        self._measured: Collection[str] = ()
        self._waiting: tuple[str, str, str, QAction | None] | None = None
        self.missing = StatePage()
        self.measure = QAction("Measure it", self, objectName=f"{name}-measure")
        self.measure.triggered.connect(lambda: self.measure_asked.emit(self._task(self.settings_now())))
        self.column.addWidget(self.missing, 1)
        self.tools_panel.setVisible(bool(vars(self.settings_now())))
        self.refresh()

    def request_now(self) -> Request:
        """Return the runs and data set of the view."""
        return self._request

    def show_evaluations(self, request: Request, measured: Collection[str]) -> None:
        """Draw the chart for these runs and this data set, of which these tasks are stored."""
        self._request, self._measured = request, measured
        self.forget()
        self.refresh()

    def show_waiting(self, message: tuple[str, str, str, QAction | None] | None) -> None:
        """Say this where there is no result: one is being measured, or that failed."""
        if message != self._waiting:
            self._waiting = message
            self.refresh()

    def refresh(self) -> None:
        task = self._task(self.settings_now())
        is_measured = task in self._measured
        self.pane.setVisible(is_measured)
        self.missing.setVisible(not is_measured)
        if is_measured:
            super().refresh()
        else:
            text = f"{TASK_WORDS[task]} takes a minute or more. The data is chosen under … in the bar (Ctrl+.)."
            self.missing.show_message(*(self._waiting or ("list-checks", "Not measured yet", text, self.measure)))
