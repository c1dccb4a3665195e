"""Parts of the inspector: ranks in each run, their course over training, the nearest pairs, and the metadata."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.render_qt.xy_plot import XYPlotCard
from explorer.views.selected.tiles import PairTile, Tiles
from explorer.widgets import layouts
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.run_badge import RunBadge
from trainer.charts.marks import Axis, Series, XYPlot, run_tone
from trainer.charts.one_pair import OnePair, PairInRun, rank_lines
from trainer.charts.pair_colors import words
from trainer.charts.run_tones import mark_with_sides

NEAR_PX: Final = 44
PER_ROW: Final = 4
"""Pictures beside each other, which share the width."""
VALUE_PX: Final = 44
COURSE_PX: Final = 128
MOST_COLUMNS: Final = 8
"""Values of the metadata that are shown; the tool tip has all of them."""
_HINTS: Final = {
    "Caption": "Rank of the own caption among the distinct captions for this image; 1 is best",
    "Image": "Rank of the own image among the distinct images for this caption; 1 is best",
    "Margin": "Cosine of the pair minus that of the best wrong caption, in standard deviations of this image's wrong "
    "cosines in the same run; above 0 the caption is found first",
}


class RanksTable(QWidget):
    """A line per measure and a column per run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="inspector-ranks")
        self._grid = layouts.grid(theme.INSIDE, theme.SPACE, stretch=0, of=self)
        self._shape: object = None
        self.cells: dict[tuple[int, int], QLabel] = {}

    def show_pair(self, pair: OnePair) -> None:
        """Show the ranks and margins of this pair."""
        lines = rank_lines(pair)
        shape = (len(lines), tuple(run.place for run in pair.runs))
        if shape != self._shape:
            self._shape = shape
            self._build(len(lines), pair.runs)
        for row, line in enumerate(lines):
            for column, text in enumerate(line):
                cell, hint = self.cells[row, column], _HINTS[line[0].split()[0]]
                cell.setText(text.replace("-", "−"))
                cell.setToolTip(hint)
        self.setVisible(bool(lines))
        self.setAccessibleName("Ranks of the pair")
        self.setAccessibleDescription("; ".join(" ".join(line) for line in lines))

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell; column 0 names the measure."""
        return self.cells[row, column].text()

    def _build(self, lines: int, runs: tuple[PairInRun, ...]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        self.cells = {}
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column, run in enumerate(runs):
            badge = RunBadge("AB"[run.place], run.place)
            badge.setToolTip(f"{run.name}, step {run.step:,}")
            self._grid.addWidget(badge, 0, column + 1, right)
            badge.show()
        for row in range(lines):
            for column in range(len(runs) + 1):
                cell = layouts.text(role="strong" if column else "secondary", wrap=not column)
                if column:
                    cell.setAlignment(right)
                    cell.setMinimumWidth(VALUE_PX)
                self.cells[row, column] = cell
                self._grid.addWidget(cell, row + 1, column)
                cell.show()


class CourseCard(XYPlotCard):
    """The rank of the own caption at every snapshot of each run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("inspector", "course", parent)
        self.setObjectName("inspector-course")
        self.setMinimumWidth(140)
        self.plot.setMinimumSize(140, COURSE_PX)
        self.setFixedHeight(COURSE_PX + 28)
        self.hide()

    def show_pair(self, pair: OnePair) -> None:
        """Show the course of this pair; hidden where no run has two snapshots."""
        courses = [run for run in pair.runs if len(run.course) > 1]
        self.setVisible(bool(courses))
        if not courses:
            return
        last = max(run.course[-1][0] for run in courses)
        worst = max(max(rank for _, rank in run.course) for run in courses)
        curves = tuple(
            Series(
                "AB"[run.place],
                run_tone(run.place),
                np.array([step for step, _ in run.course], np.float64),
                np.array([rank for _, rank in run.course], np.float64),
                marked=len(run.course) <= 12,
            )
            for run in courses
        )
        axis = Axis("rank", 0.8, max(worst, 10) * 1.25, log=True, integer=True)
        steps = Axis("step", 0.0, float(max(last, 1)), integer=True)
        plot = XYPlot("course", "Caption rank over training", steps, axis, curves, note="1 is best")
        self.show_mark(mark_with_sides(plot, theme.sides_of(self)))


class NeighborRows(QWidget):
    """The nearest pairs in each run; those that are near in both are framed."""

    chosen = Signal(int)  # Row of the clicked pair.
    hovered = Signal(int)  # Row of the pair under the pointer; -1 for none.

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="inspector-near")
        self.title = layouts.text(role="heading")
        self.rows = tuple(
            Tiles(
                pictures,
                name=f"inspector-near-{x.lower()}",
                label=f"Nearest pairs in {x}",
                edge=NEAR_PX,
                lines=0,
            )
            for x in "AB"
        )
        self._badges = tuple(RunBadge(x, index) for index, x in enumerate("AB"))
        column = layouts.column(self.title, gap=theme.SPACE, of=self)
        for badge, row in zip(self._badges, self.rows, strict=True):
            column.addLayout(layouts.row((badge, 0, Qt.AlignmentFlag.AlignTop), (row, 1)))
            row.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            row.chosen.connect(self._choose)
            row.hovered.connect(self.hovered)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for row, badge in zip(self.rows, self._badges, strict=True):
            beside = badge.sizeHint().width() + theme.INSIDE + row.verticalScrollBar().sizeHint().width()
            room = self.width() - beside
            row.cell.enlarge(max(NEAR_PX, room // PER_ROW - 2 * theme.SPACE - 1))
            row.setFixedHeight(2 * row.cell.size.height() + 2)
            row.doItemsLayout()

    def show_pair(self, pair: OnePair) -> None:
        sets = [{near.row for near in run.near} for run in pair.runs]
        shared = set.intersection(*sets) - {-1} if len(sets) > 1 else set()
        marks = dict.fromkeys(shared, "shared")
        kinds = " and ".join(sorted({run.modality for run in pair.runs}))
        overlap = f" · {len(shared)} shared" if len(sets) > 1 else ""
        self.title.setText(f"Nearest {kinds}s{overlap}")
        by_place = {run.place: run for run in pair.runs}
        for index, (badge, row) in enumerate(zip(self._badges, self.rows, strict=True)):
            run = by_place.get(index)
            for widget in (badge, row):
                widget.setVisible(run is not None)
            near = run.near if run else ()
            row.show_tiles([PairTile(n.row, n.path, n.caption, n.caption, marks.get(n.row, "")) for n in near])
        self.setVisible(bool(pair.runs))

    def _choose(self, rows: list[int]) -> None:
        if rows and rows[0] >= 0:
            self.chosen.emit(rows[0])


class FactsTable(QWidget):
    """Name and value of the metadata columns."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="inspector-facts")
        self._grid = layouts.grid(theme.BETWEEN, 2, stretch=1, of=self)
        self._lines: list[tuple[ElidedLabel, ElidedLabel]] = []
        for row in range(MOST_COLUMNS):
            pair = (ElidedLabel(), ElidedLabel())
            theme.set_role(pair[0], "small")
            self._lines.append(pair)
            for column, label in enumerate(pair):
                self._grid.addWidget(label, row, column)
        self._grid.setColumnMinimumWidth(0, 84)

    def show_pair(self, pair: OnePair) -> None:
        columns = [(words(name), value) for name, value in pair.columns]
        for index, labels in enumerate(self._lines):
            is_used = index < len(columns)
            for label, text in zip(labels, columns[index] if is_used else ("", ""), strict=True):
                label.setText(text)
                label.setVisible(is_used)
        self.setVisible(bool(columns))
        self.setToolTip("\n".join(f"{name}: {value}" for name, value in columns))
