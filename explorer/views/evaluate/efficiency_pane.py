"""Scores of two groups of runs over the pairs seen: the groups, data and measure, and their chart."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from explorer.views.chart_pane import ChartPane
from explorer.views.evaluate.group_bar import GroupBar
from explorer.views.view import Context
from explorer.widgets import layouts
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox
from trainer.charts.data_efficiency import CHART, EfficiencySettings
from trainer.charts.measures.data_efficiency import DEFAULT, PAIRS_SEEN, EfficiencyChart, measured_data
from trainer.charts.spec import Request
from trainer.metrics import data_label, metric
from trainer.store import SplitKey

NOTHING = "Choose two groups of runs. " + PAIRS_SEEN
Offers = dict[tuple[str, str], list[str]]


class EfficiencyPane(QWidget):
    """The groups, their measure and their curves."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.drawn: tuple[str, ...] = ()
        self.groups = GroupBar("evaluate-efficiency")
        self.data = SearchableComboBox(name="evaluate-efficiency-data", label="Data of the curves", width=220)
        self.measure = SearchableComboBox(name="evaluate-efficiency-measure", label="Measure of the curves", width=320)
        self.note = layouts.text(NOTHING, "small", wrap=True)
        self.pane = ChartPane(context, CHART.name)
        # On a line of their own: next to the groups, neither these nor the groups have room.
        layouts.column(
            self.groups,
            layouts.row(self.data, self.measure, (layouts.STRETCH, 1)),
            self.note,
            (self.pane, 1),
            layouts.STRETCH,
            of=self,
        )
        self.groups.changed.connect(self.draw)
        for picker in (self.data, self.measure):
            picker.picked.connect(lambda _key: self.draw(again=True))
        self._show(chart=False)

    @property
    def chart(self) -> EfficiencyChart | None:
        """The chart drawn; None if there is none."""
        return None if self.pane.answer is None else self.pane.answer.data

    def command(self) -> list[str] | None:
        """Return the `trainer` arguments for the same curves; None if there are none."""
        return None if self.chart is None else self.pane.command()

    def draw(self, *, again: bool = False) -> None:
        """Draw the groups chosen, unless they are drawn."""
        groups = self.groups.chosen
        if len(groups) < 2 or (groups == self.drawn and not again):
            return
        self.drawn = groups
        workspace = self._context.workspace
        self._context.background.run(
            self,
            measured_data,
            workspace,
            groups,
            done=lambda offers: self._ask(groups, offers),
            failed=self._refuse,
            key="efficiency-offers",
        )

    def _ask(self, groups: Sequence[str], offers: Offers) -> None:
        data = self.data.key if self.data.key in offers else None
        names = offers[data] if data else [name for some in offers.values() for name in some]
        first = DEFAULT if DEFAULT in names or not names else names[0]
        chosen = self.measure.key if self.measure.key in names else first
        if data is None:
            data = next((key for key, some in offers.items() if chosen in some), ("", ""))
        self.data.show_choices([Choice(key, data_label(SplitKey(*key))) for key in offers], data)
        self.measure.show_choices([Choice(name, metric(f"val/{name}").label) for name in dict.fromkeys(names)], chosen)
        settings = EfficiencySettings(group=tuple(groups), metric=chosen, dataset=data[0], split=data[1])
        self.pane.forget()
        self._show(chart=True)
        self.pane.ask(CHART, Request(), settings)

    def _refuse(self, error: Exception) -> None:
        self.pane.forget()
        self._show(chart=True)
        self.pane.area.failed("Could not read the evaluations", error, retry=lambda: self.draw(again=True))

    def _show(self, *, chart: bool) -> None:
        self.note.setHidden(chart)
        for widget in (self.pane, self.data, self.measure):
            widget.setVisible(chart)
