"""A chart of stored evaluations with settings of its own, as a tab of Evaluate."""

from __future__ import annotations

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from trainer.charts.spec import Request


class EvaluationTab(ChartTab):
    """Shows a chart of the data set that the view shows."""

    def __init__(self, context: Context, name: str, pictures: Thumbnails) -> None:
        super().__init__(context, name, pictures)
        self._request = Request()

    def request_now(self) -> Request:
        """Return the runs and data set of the view."""
        return self._request

    def show_evaluations(self, request: Request) -> None:
        """Draw the chart for these runs and this data set, from what is stored now."""
        self._request = request
        self.forget()
        self.refresh()
