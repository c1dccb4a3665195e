"""What two groups of runs score over the pairs they have seen: a line a group, its seeds as a band."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import turns
from explorer.views.evaluate.group_bar import GroupBar
from explorer.views.evaluate.plots import Curve, CurvePlot
from explorer.widgets.combo_boxes import Badge, Choice, Picker
from explorer.widgets.elided_label import ElidedLabel
from trainer.charts.efficiency import DEFAULT, PAIRS_SEEN, EfficiencyChart, efficiency, measured_data
from trainer.errors import Problem
from trainer.metrics import metric
from trainer.store import Workspace

NOTHING = "Write names of runs, or patterns such as clip-*, and press Draw. " + PAIRS_SEEN
READING = "Reading what was measured of both groups …"
BY_WORDS = "A bag of words answers by the scores of the words of a class's name."
Offers = dict[tuple[str, str], list[str]]


class EfficiencyPane(QWidget):
    """The groups, what is measured of them, and their curves.

    Signals:
        wanted: Patterns of both groups, and which measure on which data (None: whatever there is) are to be drawn.
    """

    wanted = Signal(str, str, object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chart: EfficiencyChart | None = None
        self._offers: Offers = {}
        self.groups = GroupBar("evaluate-efficiency", "Draw")
        self.data = Picker(name="evaluate-efficiency-data", words="Data of the curves", width=170)
        self.measure = Picker(name="evaluate-efficiency-measure", words="Measure of the curves", width=190)
        self.told = QLabel(NOTHING)
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        theme.set_role(self.told, "small")
        self.heads = [ElidedLabel() for _ in range(2)]
        self._badges = [Badge("AB"[place], place) for place in range(2)]
        self._plot: CurvePlot | None = None
        self.groups.wanted.connect(lambda a, b: self.wanted.emit(a, b, self.measure.key, self.data.key))
        for picker in (self.data, self.measure):
            picker.picked.connect(lambda _key: self.groups.ask())
        self._lay_out()
        self.show_found(NOTHING)
        turns().later(self, lambda: self.plot, unseen=True)

    @property
    def plot(self) -> CurvePlot:
        """The curves; made when nothing else is to be done, for a plot takes long to build."""
        if self._plot is None:
            self._plot = CurvePlot(
                "evaluate-efficiency-plot", "Accuracy over pairs seen", x_label="Pairs seen (thousands)", y_label=""
            )
            self._column.insertWidget(self._column.count() - 1, self._plot, 1)
            # Not before it has its place: it would be shown as a window of its own.
            self._plot.setVisible(self.chart is not None)
        return self._plot

    def show_found(self, found: tuple[Offers, EfficiencyChart] | str) -> None:
        """Draws the curves, or says why there are none."""
        self.chart = None if isinstance(found, str) else found[1]
        self._offers = {} if isinstance(found, str) else found[0]
        chart = self.chart
        key = (chart.dataset, chart.split) if chart else None
        self.data.show_choices([Choice(one, " ".join(one)) for one in self._offers], key)
        names = self._offers.get(key, []) if key else []
        self.measure.show_choices(
            [Choice(name, metric(f"val/{name}").label) for name in names], chart.name if chart else None
        )
        for widget in (self.data, self.measure, *self.heads, *self._badges):
            widget.setVisible(chart is not None)
        if self._plot is not None:
            self._plot.setVisible(chart is not None)
        if chart is None:
            self.told.setText(str(found))
            return
        self._draw(chart)

    def tell_busy(self) -> None:
        """Says that the curves are being read, where there are none yet."""
        if self.chart is None:
            self.told.setText(READING)

    def command(self) -> list[str] | None:
        """What to write after `trainer` for the same curves; None where there are none."""
        if self.chart is None:
            return None
        groups = [word for group in self.chart.groups for word in ("--group", group.pattern)]
        where = ["--dataset", self.chart.dataset, "--split", self.chart.split]
        return ["export", "efficiency", *groups, "--metric", self.chart.name, *where]

    def _draw(self, chart: EfficiencyChart) -> None:
        scale = 100 if chart.metric.percent else 1
        shown = []
        for group in chart.groups:
            found = group.band
            x, mean = tuple((found.pairs / 1000).tolist()), scale * found.mean
            reach = scale * np.nan_to_num(found.std)
            several = len(group.runs) > 1
            low, high = (tuple(v.tolist()) if several else () for v in (mean - reach, mean + reach))
            shown.append(Curve(group.index, 0, x, tuple(mean.tolist()), group.pattern, low=low, high=high))
        self.plot.set_labels(y=f"{chart.metric.label} (%)" if chart.metric.percent else chart.metric.label)
        self.plot.show_curves(shown, most=105.0 if chart.metric.percent else math.inf)
        self.plot.show_level(scale * chart.level if chart.all_reach else None)
        for head, group in zip(self.heads, chart.groups):
            seeds = f"{len(group.runs)} seeds, band: one deviation" if len(group.runs) > 1 else "1 run"
            head.setText(f"{group.pattern}: {', '.join(group.objectives)}, {seeds}")
        n = f"n = {chart.n:,}. " if chart.n else ""
        sentence = chart.sentence()
        more = [] if sentence == PAIRS_SEEN else [PAIRS_SEEN]
        self.told.setText(" ".join([n + sentence, *more, *([BY_WORDS] if chart.words else [])]))

    def _lay_out(self) -> None:
        self.groups.row.addWidget(self.data)
        self.groups.row.addWidget(self.measure)
        heads = QHBoxLayout()
        heads.setSpacing(theme.SPACE)
        for badge, head in zip(self._badges, self.heads, strict=True):
            heads.addWidget(badge)
            heads.addWidget(head, 1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.INSIDE)
        self._column.addWidget(self.groups)
        self._column.addWidget(self.told)
        self._column.addLayout(heads)
        self._column.addStretch(0)


def efficiency_of(
    workspace: Workspace, a: str, b: str, measure: str | None, data: tuple[str, str] | None
) -> tuple[Offers, EfficiencyChart] | str:
    """What may be drawn of both groups, and the curves; or why there are none. Pure, for a thread."""
    try:
        offers = measured_data(workspace, (a, b))
        dataset, split = data if data in offers else (None, None)
        names = offers.get(data, []) if data in offers else [name for some in offers.values() for name in some]
        chosen = measure if measure in names else (DEFAULT if DEFAULT in names or not names else names[0])
        return offers, efficiency(workspace, (a, b), measure=chosen, dataset=dataset, split=split)
    except Problem as problem:
        return str(problem)
