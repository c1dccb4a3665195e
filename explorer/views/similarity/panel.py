"""The histograms of one run."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QStackedLayout, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.combo_boxes import Badge
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.empty_state import EmptyState
from explorer.widgets.histogram import Histogram, HistogramBars
from explorer.widgets.legend import Legend, LegendEntry
from trainer.charts.similarity import SimilarityChart, SimilarityRun

EMPTY_PX = 360
RUN_TOKENS = ("run_a", "run_b")


class SimilarityPanel(QFrame):
    """Matched cosines in the run's color, unmatched ones in gray."""

    def __init__(self, index: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = index
        self.run: SimilarityRun | None = None
        self.setObjectName(f"similarity-panel-{'ab'[index]}")
        self.title, self.note = QLabel(), ElidedLabel()
        for label, role in ((self.title, "strong"), (self.note, "small")):
            label.setTextFormat(Qt.TextFormat.PlainText)
            theme.set_role(label, role)
        self.plot = Histogram(x_label="cosine of image and text")
        self.plot.setAccessibleName(f"Histogram of cosines of run {'AB'[index]}; drag to brush a range")
        self.plot.setMinimumHeight(88)
        self.legend, self.empty = Legend(), EmptyState(width=EMPTY_PX)
        self._words = ""
        self._lay_out()
        self.plot.pointed.connect(self._tell_bin)
        theme.theme().follow(self._tell_legend)

    def show_run(
        self, run: SimilarityRun, chart: SimilarityChart, edges: np.ndarray, *, top: float | None, density: bool
    ) -> None:
        """Draws one run's cosines over these bins; `top` is the greatest share on the axis."""
        self.run, self._words = run, chart.unmatched_words
        matched, unmatched = np.histogram(run.matched, edges)[0], run.unmatched_histogram(edges)
        curves: list[tuple[np.ndarray, np.ndarray] | None] = [None, None]
        if density:
            # As a share of pairs per bar, so that curve and bars have one axis.
            curves = [(chart.grid, 100 * values * (edges[1] - edges[0])) for values in run.densities]
        bars = (
            HistogramBars("unmatched", "secondary", unmatched, run.mean_unmatched, filled=False, density=curves[1]),
            HistogramBars("matched", RUN_TOKENS[self.index], matched, run.mean_matched, density=curves[0]),
        )
        self.plot.show_bars(edges, bars, top=top)
        self.title.setText(f"{run.name} · step {run.step:,}")
        self._tell_bin(-1)
        self._tell_legend()
        self._pages.setCurrentIndex(0)

    def show_nothing(self, icon: str, title: str, text: str) -> None:
        """Shows why there is no histogram, and what to do."""
        self.run = None
        self.title.setText("")
        self.note.setText("")
        self.legend.show_entries([])
        self.empty.tell(icon, title, text)
        self._pages.setCurrentIndex(1)

    def _tell_bin(self, number: int) -> None:
        if self.run is None:
            return
        sampled = f" of {self.run.pairs:,}" if self.run.sampled else ""
        words = (
            f"{self.run.n:,} pairs{sampled}, {self.run.n_unmatched:,} unmatched · {self.run.dataset}, {self.run.split}"
        )
        self.note.setText(self.plot.bin_words(number) if number >= 0 else words)

    def _tell_legend(self) -> None:
        if self.run is None:
            return
        run_color = theme.color(RUN_TOKENS[self.index]).name()
        gray = theme.color("outline").name()
        matched = LegendEntry(f"matched, mean {self.run.mean_matched:.3f}", run_color, "square")
        words = f"{self._words}, mean {self.run.mean_unmatched:.3f}"
        self.legend.show_entries([matched, LegendEntry(words, gray, "square")])

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        head.addWidget(Badge("AB"[self.index], self.index))
        head.addWidget(self.title)
        head.addWidget(self.note, 1)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addWidget(self.legend)
        column.addWidget(self.plot, 1)
        self._pages = QStackedLayout()
        self._pages.addWidget(content)
        self._pages.addWidget(self.empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACE)
        column.addLayout(head)
        column.addLayout(self._pages, 1)
