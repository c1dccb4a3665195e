"""The Modality gap view: the distance between images and texts, and the effect of closing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton

from explorer import theme
from explorer.views.chart_view import ChartView
from trainer.charts.measures.gap import MOST_PAIRS
from trainer.charts.spec import Request


class GapView(ChartView):
    """The gap over the steps, the point clouds, and a slider that closes the gap in every run."""

    title = "Modality gap"
    question = "The gap between image and text embeddings, and the effect of closing it."
    icon = "split"
    compares = "scores"
    name = "gap"

    def build(self) -> Iterator[None]:
        self._whole_of: Request | None = None
        yield from super().build()
        self.whole = QPushButton("Measure all", objectName="gap-whole")
        theme.keep_icon(self.whole, "list-checks", 16, "secondary")
        self.whole.hide()
        self.beside.addWidget(self.whole)
        self.whole.clicked.connect(self._measure_all)
        self._steps = [
            QAction(label, self, triggered=lambda _=False, value=share: self.change(share=value))
            for label, share in (("Close the gap", 100), ("Reset the gap", 0))
        ]
        self.pane.answered.connect(self._on_answer)
        self.pane.panel.pair_chosen.connect(lambda pair: setattr(self.context.selection, "pairs", (pair,)))

    def actions_for_palette(self) -> list[QAction]:
        return [*self._steps, *super().actions_for_palette()]

    def settings_now(self) -> Any:
        # All pairs of these snapshots only: those of the next may take hours.
        all_pairs = self._whole_of == self.request_now()
        return replace(super().settings_now(), most=max(self._pairs, MOST_PAIRS) if all_pairs else MOST_PAIRS)

    def _measure_all(self) -> None:
        self._whole_of = self.request_now()
        self.refresh()

    @property
    def _pairs(self) -> int:
        """The number of pairs in the largest snapshot."""
        return max((run.measures.pairs for run in self.pane.answer.data.found), default=0) if self.pane.answer else 0

    def _on_answer(self) -> None:
        self.whole.setText(f"Measure all {self._pairs:,} pairs")
        self.whole.setVisible(self._pairs > self.settings_now().most)
