"""A against B: the chart whose comparison the whole view shows; a rectangle selects pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication

from explorer.models.thumbnails import Thumbnails
from explorer.views.chart_tab import ChartTab
from explorer.views.view import Context
from explorer.widgets import layouts
from trainer.charts.changes import pairs_inside
from trainer.charts.measures.changes import bad_pairs
from trainer.charts.mispairs import Mispairs
from trainer.charts.pair_changes import Changes
from trainer.charts.spec import Request


class Compared(ChartTab):
    """One snapshot against the other, pair by pair."""

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
