"""Tabs of charts: A against B, the groups that one run separates, and the similarity of whole snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.changes import pairs_inside
from trainer.charts.measures.changes import bad_pairs
from trainer.charts.mispairs import Mispairs
from trainer.charts.pair_changes import Changes
from trainer.charts.spec import Request, Target


class Compared(ChartTab):
    """One snapshot against the other, pair by pair; a rectangle selects pairs. Its comparison fills the whole view."""

    brushed = Signal(object, bool)  # Rows of the pairs in the rectangle; whether they add to the selection.

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "changes", pictures)
        # Another day's data may have other classes.
        self.controls.show_settings(replace(self.controls.settings, suite=""))
        self.request = Request()
        hint = layouts.elided("Drag to select · Ctrl adds", "small")
        self.column.insertWidget(1, hint)
        self.pane.panel.plot_brushed.connect(self._brush)

    def request_now(self) -> Request:
        return self.request

    @property
    def found(self) -> Changes | None:
        """The comparison of A and B; None before the first result."""
        return self.data.found[0] if self.data is not None else None

    @property
    def mispairs(self) -> Mispairs | None:
        """Badly ranked pairs; None if a run has only one modality."""
        return bad_pairs(self.found, self.pane.answer.settings) if self.found is not None and self.pane.answer else None

    def _brush(self, key: str, box: tuple[float, float, float, float] | None) -> None:
        adds = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier)
        self.pane.panel.set_brush(key, None)
        if box is None:
            if not adds:
                self.brushed.emit(np.empty(0, np.int64), False)
        elif self.pane.answer is not None:
            self.brushed.emit(pairs_inside(self.data, self.pane.answer.settings, key, box), adds)


class OneRunGroups(ChartTab):
    """Groups of pairs that one run separates and the other merges; a click selects one in every view."""

    chosen = Signal(object)  # The pairs of a group, which the person wants to select.
    pair_chosen = Signal(int)  # One pair, whose picture was clicked.

    def __init__(self, context: Context, pictures: Thumbnails, request: Callable[[], Request | None]) -> None:
        super().__init__(context, "separated-groups", pictures)
        self._request = request
        self.groups = SearchableComboBox(name="separated-groups-group", label="Group to select", width=360)
        self.column.insertLayout(1, layouts.row(self.groups, layouts.STRETCH))
        self.groups.hide()
        self.groups.picked.connect(self.choose)
        self.pane.panel.concept_chosen.connect(self.choose)
        self.pane.panel.pair_chosen.connect(self.pair_chosen)
        self.answered.connect(self._list)

    def request_now(self) -> Request:
        return self._request() or super().request_now()

    def choose(self, number: object) -> None:
        """Select the pairs of a group."""
        if self.data is not None and isinstance(number, int) and 0 <= number < len(self.data.groups):
            self.chosen.emit(self.data.pairs_of(number))

    def _list(self) -> None:
        groups = self.data.groups if self.data is not None else ()
        choices = [
            Choice(group.number, f"Only {'AB'[group.side]}: {group.words} ({len(group.pairs):,} pairs)")
            for group in groups
        ]
        self.groups.show_choices([Choice(-1, "Select a group\u2026"), *choices], -1)
        self.groups.setVisible(bool(choices))


class WholeRuns(ChartTab):
    """Every snapshot of the selected runs against every other; a cell selects its two as A and B."""

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
