"""The pairs of a brushed range: their images, and their cosines in each run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from msgspec import Struct
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.image_strip import ImageStrip, StripItem, StripLine
from trainer.charts.common_pairs import same_pairs
from trainer.charts.marks import run_tone
from trainer.charts.measures.similarity import SimilarityRun

MOST = 200
PICTURE_PX = 72
"""Small, so that the plots above stay 400 pixels high in a window of 800."""


class Zone(Struct, frozen=True):
    """A brushed range: the run, the range of cosines, and the pairs of the snapshot in it."""

    run: str
    low: float
    high: float
    rows: Int[np.ndarray, " k"]

    @property
    def words(self) -> str:
        """A description: `clip-pairs, matched cosine 0.41 to 0.55: 37 pairs`."""
        low, high = (f"{v:.3f}".replace("-", "−") for v in (self.low, self.high))
        return f"{self.run}, matched cosine {low} to {high}: {len(self.rows):,} pairs"


class PairStrip(QWidget):
    """Thumbnails of some pairs, with their cosine and that of their hardest unmatched text in each run."""

    chosen = Signal(int)  # The clicked pair.

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="similarity-strip-pane")
        self.rows: Int[np.ndarray, " k"] = np.empty(0, np.int64)
        self._pictures = pictures
        self.heading = layouts.elided(role="small")
        self.heading.setObjectName("similarity-strip-heading")
        self.strip = ImageStrip(pictures.get, edge=PICTURE_PX)
        self.strip.setObjectName("similarity-strip")
        self.strip.setAccessibleName("Pairs by their margin: own minus closest other")
        pictures.arrived.connect(self.strip.picture_arrived)
        self._ordered: list[int] = []
        self.strip.clicked.connect(lambda index: self.chosen.emit(self._ordered[index.row()]))
        layouts.column(self.heading, self.strip, gap=theme.SPACE, of=self)
        self.hide()

    def show_pairs(
        self, rows: Int[np.ndarray, " k"], runs: Sequence[SimilarityRun], sides: Sequence[int], title: str
    ) -> None:
        """Show these pairs of ascending rows, smallest margin first; without rows the strip is hidden."""
        self.rows = rows
        if not len(rows) or not runs or rows[-1] >= len(runs[0].items):
            self.strip.show_items([])
            self.hide()
            return
        lead = runs[0]
        margins = np.full(len(rows), np.inf)
        _, of_rows, of_lead = np.intersect1d(rows, lead.rows, assume_unique=True, return_indices=True)
        margins[of_rows] = lead.margin[of_lead]
        order = np.argsort(margins, kind="stable")[:MOST]
        more = f" · the {MOST} with the smallest margins are shown" if len(rows) > MOST else ""
        self.heading.setText(title + more)
        ordered = rows[order].tolist()
        if ordered != self._ordered:
            self.strip.to_start()
        self._ordered = ordered
        # Of other data, the same row is another pair.
        alike = [pair for pair in zip(sides, runs, strict=True) if same_pairs(lead.items, pair[1].items)]
        self.strip.show_items([_item(row, alike) for row in ordered])
        wrong = int(np.sum(margins[order] <= 0))
        self.strip.divider = wrong if wrong < len(order) else 0
        self.show()


def _item(row: int, runs: Sequence[tuple[int, SimilarityRun]]) -> StripItem:
    items = runs[0][1].items
    lines, tips = [], [items.caption[row] or f"row {row}"]
    for index, run in runs:
        position = int(np.searchsorted(run.rows, row))
        if position >= len(run.rows) or run.rows[position] != row:
            continue
        matched, hard = float(run.matched[position]), float(run.hardest[position, 0])
        lines.append(StripLine(compared(matched, hard), run_tone(index)))
        tips.append(f"{run.name}: {matched:.5f}, {hard:.5f}")
        other = int(run.hardest_row[position])
        if other >= 0:
            tips.append(f"{run.name} confuses it most with: {items.caption[other]}")
    return StripItem(items.path[row], tuple(lines[:2]), tip="\n".join(tips))


def compared(matched: float, hard: float) -> str:
    """Return `0.79 > 0.62`: whether the pair is ranked first. More digits than two have no room below a picture."""
    first, second = (f"{cosine:.2f}".replace("-", "−") for cosine in (matched, hard))
    alike = "=" if matched == hard else "≈"
    return f"{first} {alike if first == second else '>' if matched > hard else '<'} {second}"
