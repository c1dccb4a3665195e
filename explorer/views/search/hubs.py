"""Beside the search: how often every image is found, and what CSLS changes."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets.histogram import Bars, Histogram
from explorer.widgets.pickers import Badge
from explorer.widgets.working import Working
from trainer.charts.hubness import Hubness

ROWS = (
    ("Skewness", "Of how often an image is found: large where few images are hubs.", "skewness", 2),
    ("R@1", "Share of captions that find their own image first.", 1, 3),
    ("R@5", "Share of captions that find their own image among the first 5.", 5, 3),
    ("R@10", "Share of captions that find their own image among the first 10.", 10, 3),
)


class Hubs(QWidget):
    """A histogram a run, a table before and after, and the switch that lets the search use CSLS.

    Signals:
        toggled: CSLS is on or off now.
    """

    toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="search-hubs")
        self.csls = QCheckBox("Take hubs down (CSLS)", objectName="search-csls")
        self.csls.setToolTip("Order hits by cosine minus half the hit's mean cosine to its 10 nearest captions")
        self.working = Working("search-hubs-working")
        self.plots = tuple(Histogram(x_label="captions that find an image in their first 10") for _ in "AB")
        self.notes = tuple(QLabel(wordWrap=True) for _ in "AB")
        self.cells: dict[tuple[str, int, bool], QLabel] = {}
        self._lay_out()
        self.csls.toggled.connect(self.toggled)
        for index in (0, 1):
            self.show_hubs(index, None, "")

    def show_hubs(self, index: int, found: Hubness | None, problem: str) -> None:
        """Shows one run's hubs, or why there are none."""
        plot, note = self.plots[index], self.notes[index]
        plot.setVisible(found is not None)
        for (words, place, after), cell in self.cells.items():
            if place == index:
                cell.setText("–" if found is None else _value(found, words, after=after))
        if found is None:
            note.setText(problem or "No run is chosen.")
            return
        top = int(max(found.occurrences.max(initial=1), found.occurrences_csls.max(initial=1)))
        edges = np.linspace(-0.5, top + 0.5, min(top + 2, 41))
        counts, taken = (np.histogram(c, edges)[0] for c in (found.occurrences, found.occurrences_csls))
        none = float("nan")
        bars = (Bars("cosine", ("run_a", "run_b")[index], counts, none), Bars("CSLS", "secondary", taken, none, False))
        plot.show_bars(edges, bars)
        sampled = f" of {found.texts:,}, sampled" if found.n < found.texts else ""
        most = int(found.occurrences.max(initial=0))
        note.setText(f"{found.n:,} distinct captions{sampled}; the greatest hub is found by {most:,}. Outline: CSLS.")

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.BETWEEN, theme.BETWEEN, theme.INSIDE, theme.INSIDE)
        column.setSpacing(theme.INSIDE)
        heading = QLabel("Hubs")
        theme.set_role(heading, "heading")
        column.addWidget(heading)
        column.addWidget(self.csls)
        column.addWidget(self.working)
        for index, plot in enumerate(self.plots):
            plot.setObjectName(f"search-hubs-{'ab'[index]}")
            plot.setAccessibleName(f"How often images are found, run {'AB'[index]}")
            plot.set_labels(y="share of images (%)")
            plot.setFixedHeight(168)
            line = QHBoxLayout()
            line.setSpacing(theme.INSIDE)
            line.addWidget(Badge("AB"[index], index), alignment=Qt.AlignmentFlag.AlignTop)
            line.addWidget(self.notes[index], 1)
            theme.set_role(self.notes[index], "small")
            self.notes[index].setTextFormat(Qt.TextFormat.PlainText)
            column.addLayout(line)
            column.addWidget(plot)
        column.addLayout(self._table())
        column.addStretch(1)

    def _table(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.INSIDE)
        grid.setVerticalSpacing(theme.SPACE)
        grid.setColumnStretch(0, 1)
        right = Qt.AlignmentFlag.AlignRight
        for index in (0, 1):
            grid.addWidget(Badge("AB"[index], index), 0, 1 + 2 * index, 1, 2, right)
            for after in (0, 1):
                head = QLabel("CSLS" if after else "cosine")
                theme.set_role(head, "small")
                grid.addWidget(head, 1, 1 + 2 * index + after, right)
        for line, (words, hint, *_) in enumerate(ROWS, start=2):
            name = QLabel(words, toolTip=hint)
            grid.addWidget(name, line, 0)
            for index in (0, 1):
                for after in (0, 1):
                    cell = QLabel("–")
                    self.cells[words, index, bool(after)] = cell
                    grid.addWidget(cell, line, 1 + 2 * index + after, right)
        return grid


def _value(found: Hubness, words: str, *, after: bool) -> str:
    _, _, what, digits = next(row for row in ROWS if row[0] == words)
    if what == "skewness":
        value = found.skewness_csls if after else found.skewness
    else:
        value = (found.recall_csls if after else found.recall)[what]
    return f"{value:.{digits}f}".replace("-", "−")
