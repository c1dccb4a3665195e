"""The Loss lab: how strongly the objectives attract and repel which embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from explorer import theme
from explorer.render_qt.controls import Cells, Slide
from explorer.render_qt.xy_plot import XYPlotCard
from explorer.views.chart_view import ChartView

CURSORS: Final = {
    ("loss-saturation", "pulls"): "match",
    ("loss-saturation", "factor"): "match",
    ("loss-saturation", "merge"): "match",
    ("loss-margins", "drawn"): "positive",
    ("hopfield-temperature", "number"): "beta",
    ("hopfield-temperature", "self_weight"): "n",
}
"""Which setting the dashed line of a plot stands for: it may be dragged."""

CIRCLE: Final = "circle"
"""The plot on which the query is dragged round."""

LEAST_RADIUS: Final = 0.2
"""Nearer to the middle of the circle, the pointer says nothing about an angle."""


class LosslabView(ChartView):
    """Interactive plots of the objectives; needs no run."""

    title = "Loss lab"
    question = "Gradients of each objective on matched and unmatched pairs."
    icon = "flask-conical"
    name = "losslab"
    controls_left = True

    def build(self) -> Iterator[None]:
        yield from super().build()
        self.reset_button = QPushButton("Reset", objectName="losslab-reset", accessibleName="Reset this chart")
        self.reset_button.setToolTip("Restore the default settings of this chart")
        theme.keep_icon(self.reset_button, "rotate-ccw", 16, "secondary")
        self.main.addWidget(self.reset_button)
        self.reset_button.clicked.connect(self.reset)
        self.pane.panel.plot_dragged.connect(self.drag)
        self.pane.answered.connect(self._show_what_can_be_dragged)

    def _show_what_can_be_dragged(self) -> None:
        """Show a hand cursor over draggable items, and no table of what is typed at the left."""
        controls = self.controls_of(self.chart).controls
        for key, card in self.pane.panel.cards.items():
            card.setVisible(not isinstance(controls.get(key), Cells))
            if isinstance(card, XYPlotCard):
                held = key == CIRCLE or (self.chart.name, key) in CURSORS
                card.plot.viewport().setCursor(
                    Qt.CursorShape.PointingHandCursor if held else Qt.CursorShape.ArrowCursor
                )

    def drag(self, key: str, x: float, y: float) -> None:
        """Apply a drag on a plot to the setting that it shows: the cursor, or the query's angle."""
        if key == CIRCLE and math.hypot(x, y) > LEAST_RADIUS:
            name, value = "angle", round(math.degrees(math.atan2(y, x)) % 360, 1)
        else:
            name, value = CURSORS.get((self.chart.name, key), ""), x
        controls = self.controls_of(self.chart)
        control = controls.controls.get(name)
        if isinstance(control, Slide):
            is_whole = control.setting.kind == "integer"
            value = min(max(round(value, 0 if is_whole else 3), control.setting.low), control.setting.high)
            control.show_value(int(value) if is_whole else value)
            controls.changed.emit()
