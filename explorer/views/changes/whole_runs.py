"""The similarity of whole snapshots: a chart whose cells select two snapshots as A and B."""

from __future__ import annotations

from PySide6.QtCore import Signal

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from trainer.charts.spec import Request, Target


class WholeRuns(ChartTab):
    """Every snapshot of the selected runs against every other."""

    chosen = Signal(object, object)  # Two snapshots, as (run, step) each, that the person wants to see as A and B.

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "representation-similarity", pictures)
        hint = layouts.elided("Click a cell or press Enter to show its two snapshots as A and B", "small")
        self.column.insertWidget(1, hint)
        self.pane.panel.cell_chosen.connect(lambda _key, row, column: self._choose(row, column))

    def request_now(self) -> Request:
        # All steps, whichever is looked at: choosing a cell leaves the matrix as it is.
        request = super().request_now()
        runs = dict.fromkeys(target.run for target in request.targets)
        return Request(tuple(Target(run) for run in runs), request.dataset, request.split)

    def _choose(self, row: int, column: int) -> None:
        spaces = [self.data.spaces[index] for index in sorted((column, row))]
        self.chosen.emit(*((space.run, space.step) for space in spaces))
