"""One panel of the lab: its controls and numbers on the left, what they make on the right."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from explorer import theme
from explorer.event_loop.idle_scheduler import turns
from explorer.render_qt.controls import Cells, Choose, Control, Slide
from explorer.render_qt.shaded_table import ShadedTableCard
from explorer.render_qt.xy_plot import XYPlotCard
from trainer.charts.lab import Panel
from trainer.charts.lab.pieces import LabChart
from trainer.charts.settings import Setting, settings_of

SIDE_PX = 288
COLUMNS = 2


class LabPanel(QWidget):
    """Controls made from the panel's settings, its facts, and a card for every plot and table.

    Signals:
        changed: A setting has another value.
    """

    changed = Signal()

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName=f"lab-{panel.name}")
        self.panel = panel
        self.chart: LabChart | None = None
        self.controls: dict[str, Control] = {}
        self.cards: dict[str, XYPlotCard] = {}
        self.matrices: dict[str, ShadedTableCard] = {}
        self._facts: list[tuple[QLabel, QLabel]] = []
        self.source = QLabel(wordWrap=True)
        self.source.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.source, "small")
        self._fact_grid = QGridLayout()
        self.content = QGridLayout()
        self._lay_out()

    @property
    def settings(self) -> Any:
        """What the controls say now: an instance of the panel's settings."""
        return self.panel.settings(**{name: control.value for name, control in self.controls.items()})

    def show_settings(self, settings: Any) -> None:
        """Puts the controls to these values, without a signal for each."""
        for name, control in self.controls.items():
            control.show_value(getattr(settings, name))

    def show_chart(self, chart: LabChart) -> None:
        """Draws what was computed of the settings; plots that are still to be made come in later turns."""
        self.chart = chart
        self._show_facts(chart)
        self.source.setText(chart.source)
        self._draw(chart)

    def _draw(self, chart: LabChart) -> None:
        if chart is not self.chart:
            return
        while self.build_next(chart):
            if turns().is_full:
                turns().later(self, lambda: self._draw(chart))
                return
        for plot in chart.plots:
            self.cards[plot.key].show_plot(plot)
        for table in chart.tables:
            if table.key in self.matrices:
                self.matrices[table.key].show_table(table)

    def build_next(self, chart: LabChart) -> bool:
        """Makes the next card that is missing; False when all are there. A plot takes 30 ms to make."""
        for place, plot in enumerate(chart.plots):
            if plot.key not in self.cards:
                card = self.cards[plot.key] = XYPlotCard(self.panel.name, plot.key)
                room = _PLACES.get((self.panel.name, plot.key), (*divmod(place, COLUMNS), 1, 1))
                self.content.addWidget(card, *room)
                for row in range(room[0], room[0] + room[2]):
                    self.content.setRowStretch(row, 1)
                if plot.key in _GRABBED or (self.panel.name, plot.key) in _CURSORS:
                    card.plot.viewport().setCursor(Qt.CursorShape.PointingHandCursor)
                card.plot.dragged.connect(lambda x, y, key=plot.key: self.drag(key, x, y))
                return True
        self._build_tables(chart)
        return False

    def drag(self, key: str, x: float, y: float) -> None:
        """Takes the pointer's place on a plot for the setting it shows: the cursor, or the angle of the query."""
        name, value = None, x
        if key == "circle" and math.hypot(x, y) > 0.2:
            name, value = "angle", round(math.degrees(math.atan2(y, x)) % 360, 1)
        else:
            name = _CURSORS.get((self.panel.name, key))
        if name is None:
            return
        control = self.controls[name]
        if isinstance(control, Slide):
            digits = 0 if control.setting.kind == "whole" else 3
            value = min(max(round(value, digits), control.setting.low), control.setting.high)
            control.show_value(int(value) if control.setting.kind == "whole" else value)
            self.changed.emit()

    def _build_tables(self, chart: LabChart) -> None:
        for table in chart.tables:
            if table.key not in self.matrices:
                matrix = self.matrices[table.key] = ShadedTableCard(f"lab-{self.panel.name}-{table.key}")
                room = _PLACES.get((self.panel.name, table.key), (self.content.rowCount(), 0, 1, COLUMNS))
                self.content.addWidget(matrix, *room)

    def new_control(self, setting: Setting) -> Control:
        """The control of a setting, connected."""
        control = (
            Choose(setting, f"lab-{self.panel.name}")
            if setting.kind == "choice"
            else Slide(setting, f"lab-{self.panel.name}")
        )
        return self.keep(control)

    def keep(self, control: Control) -> Control:
        """Takes a control in."""
        self.controls[control.setting.name] = control
        control.changed.connect(self.changed)
        return control

    def new_cells(self, name: str, *, rows: tuple[str, ...], columns: tuple[str, ...]) -> Control:
        """The editable matrix of a setting, connected."""
        setting = next(k for k in settings_of(self.panel.settings) if k.name == name)
        return self.keep(Cells(setting, f"lab-{self.panel.name}", rows=rows, columns=columns))

    def _show_facts(self, chart: LabChart) -> None:
        while len(self._facts) < len(chart.facts):
            pair = (QLabel(), QLabel())
            for column, label in enumerate(pair):
                label.setTextFormat(Qt.TextFormat.PlainText)
                self._fact_grid.addWidget(label, len(self._facts), column)
            pair[1].setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            theme.set_role(pair[0], "secondary")
            self._facts.append(pair)
        for (words, number), fact in zip(self._facts, chart.facts, strict=True):
            words.setText(fact.words)
            number.setText(fact.text)
            number.setObjectName(f"lab-fact-{fact.words}")
            role = "bad" if fact.text == "NaN" else "strong" if fact.strong else ""
            if number.property("role") != role:
                theme.set_role(number, role)
            for label in (words, number):
                label.setToolTip(fact.hint)

    def fact(self, words: str) -> str:
        """What stands beside these words."""
        return next(number.text() for label, number in self._facts if label.text() == words)

    def _lay_out(self) -> None:
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, theme.BETWEEN, 0)
        column.setSpacing(theme.SPACE)
        for setting in settings_of(self.panel.settings):
            if setting.kind != "cells":
                column.addWidget(self.new_control(setting))
        line = QWidget()
        line.setFixedHeight(theme.SPACE)
        column.addWidget(line)
        self._fact_grid.setHorizontalSpacing(theme.BETWEEN)
        self._fact_grid.setVerticalSpacing(theme.SPACE)
        self._fact_grid.setColumnStretch(0, 1)
        column.addLayout(self._fact_grid)
        column.addStretch()
        scroll = QScrollArea(widgetResizable=True, objectName=f"lab-{self.panel.name}-side")
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(side)
        scroll.setFixedWidth(SIDE_PX)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.content.setHorizontalSpacing(theme.AROUND)
        self.content.setVerticalSpacing(theme.BETWEEN)
        for place in range(COLUMNS):
            self.content.setColumnStretch(place, 1)
        right = QVBoxLayout()
        right.setSpacing(theme.INSIDE)
        right.addLayout(self.content, 1)
        right.addWidget(self.source)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.BETWEEN)
        row.addWidget(scroll)
        row.addLayout(right, 1)


_PLACES = {
    ("retrieval", "circle"): (0, 0, 2, 1),
    ("retrieval", "shares"): (0, 1, 1, 1),
    ("retrieval", "self_weight"): (1, 1, 1, 1),
    ("retrieval", "number"): (2, 0, 1, 1),
    ("retrieval", "golden"): (2, 1, 1, 1),
}
"""Row, column and spans of a piece; others follow each other, two in a row."""

_GRABBED = ("circle",)

_CURSORS = {
    ("saturation", "pulls"): "match",
    ("saturation", "factor"): "match",
    ("saturation", "merge"): "match",
    ("margins", "drawn"): "positive",
    ("retrieval", "number"): "beta",
    ("retrieval", "self_weight"): "n",
}
"""Which setting the dashed line of a plot stands for: it may be dragged."""
