"""Pairs along two text-defined axes: the texts above the chart, and the selection of pairs."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QLineEdit

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from trainer.charts.axes import AxesSettings, pairs_inside

TYPING_MS = 600


class AxesTab(ChartTab):
    """Two text fields and a scatter plot per run; dragging across one selects its pairs everywhere."""

    def __init__(self, context: Context, pictures: Thumbnails) -> None:
        super().__init__(context, "axes", pictures)
        self.x_texts, self.y_texts = (
            QLineEdit(objectName=f"axes-{name}", accessibleName=f"Words of the {name} axis") for name in "xy"
        )
        for line, text in ((self.x_texts, self.settings_now().x), (self.y_texts, self.settings_now().y)):
            line.setText(text)
            line.setPlaceholderText("a photo of X - a photo of Y")
            line.setToolTip("From the texts after “ - ” to those before it; several texts apart by ;")
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._lay_out()
        self._connect()

    def _typed(self) -> None:
        self._typing.stop()
        default, now = AxesSettings(), self.settings_now()
        # A line that is empty means the axis that a new window shows.
        x = self.x_texts.text() if self.x_texts.text().strip() else default.x
        y = self.y_texts.text() if self.y_texts.text().strip() else default.y
        if (x, y) != (now.x, now.y):
            self.change(x=x, y=y)

    def _brush(self, key: str, box: tuple[float, float, float, float] | None) -> None:
        self.pane.panel.set_brush(key, None)
        self._select(pairs_inside(self.data, key, box) if box is not None else np.empty(0, np.int64))

    def _select(self, rows: np.ndarray) -> None:
        adds = bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier)
        selection = self.context.selection
        selection.pairs = np.concatenate([rows, selection.pairs]) if adds else rows

    def _mark_pairs(self) -> None:
        self.pane.panel.mark(self.context.selection.pairs)

    def _connect(self) -> None:
        for line in (self.x_texts, self.y_texts):
            line.textEdited.connect(lambda _text: self._typing.start())
            line.returnPressed.connect(self._typed)
        self._typing.timeout.connect(self._typed)
        self.pane.answered.connect(self._mark_pairs)
        self.pane.panel.plot_brushed.connect(self._brush)
        self.pane.panel.pair_chosen.connect(lambda pair: self._select(np.array([pair])))
        self.context.selection.pairs_changed.connect(self._mark_pairs)

    def _lay_out(self) -> None:
        bar = layouts.row()
        for name, line in (("x axis", self.x_texts), ("y axis", self.y_texts)):
            label = layouts.text(name, "secondary", buddy=line)
            layouts.add(bar, label, (line, 1))
        hint = layouts.elided("Drag to select · Ctrl adds", "small")
        self.column.insertLayout(0, bar)
        self.column.insertWidget(1, hint)
