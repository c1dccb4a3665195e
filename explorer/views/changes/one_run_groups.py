"""Groups of pairs that one run separates and the other merges; a click selects one in every view."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.spec import Request


class OneRunGroups(ChartTab):
    """The groups of A and of B."""

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
