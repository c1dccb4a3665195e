"""The pairs of a brushed range: their images, and their cosines in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.widgets import layouts
from explorer.widgets.image_strip import ImageStrip, StripItem
from trainer.charts.marks import run_tone
from trainer.charts.measures.similarity import SimilarityRun

MOST = 200


@dataclass(frozen=True)
class Zone:
    """A brushed range: the run, the range of cosines, and the pairs of the snapshot in it."""

    run: str
    low: float
    high: float
    rows: tuple[int, ...]

    @property
    def words(self) -> str:
        """A description: `clip-pairs, matched cosine 0.41 to 0.55: 37 pairs`."""
        low, high = (f"{v:.3f}".replace("-", "−") for v in (self.low, self.high))
        return f"{self.run}, matched cosine {low} to {high}: {len(self.rows):,} pairs"


class PairStrip(QWidget):
    """Thumbnails of the selected pairs, with their cosine and that of their hardest unmatched text in each run."""

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="similarity-strip-pane")
        self.rows: tuple[int, ...] = ()
        self._pictures = pictures
        self.heading = layouts.elided(role="small")
        self.heading.setObjectName("similarity-strip-heading")
        self.strip = ImageStrip(pictures.get)
        self.strip.setObjectName("similarity-strip")
        self.strip.setAccessibleName("Pairs of the brushed range")
        pictures.arrived.connect(self.strip.picture_arrived)
        layouts.column(self.heading, self.strip, gap=theme.SPACE, of=self)
        self.hide()

    def show_pairs(self, rows: Sequence[int], runs: Sequence[SimilarityRun], sides: Sequence[int], title: str) -> None:
        """Show these pairs, least similar first; an empty list hides the strip."""
        self.rows = tuple(int(row) for row in rows)
        if not self.rows or not runs or max(self.rows) >= len(runs[0].items):
            self.strip.show_items([])
            self.hide()
            return
        lead = runs[0]
        at = {int(row): position for position, row in enumerate(lead.rows)}
        order = sorted(self.rows, key=lambda row: lead.matched[at[row]] if row in at else np.inf)
        more = f" · the {MOST} least similar of them are shown" if len(self.rows) > MOST else ""
        self.heading.setText(title + more)
        self.strip.show_items([_item(row, runs, sides) for row in order[:MOST]])
        self.show()


def _item(row: int, runs: Sequence[SimilarityRun], sides: Sequence[int]) -> StripItem:
    items = runs[0].items
    lines, tips = [], [items.caption[row]]
    for index, run in zip(sides, runs, strict=True):
        position = int(np.searchsorted(run.rows, row))
        if position >= len(run.rows) or run.rows[position] != row:
            continue
        matched, hard = float(run.matched[position]), float(run.hardest[position, 0])
        sign = ">" if matched > hard else "<"
        lines.append((f"{matched:.2f} {sign} {hard:.2f}".replace("-", "−"), run_tone(index)))
        other = int(run.hardest_row[position])
        if other >= 0:
            tips.append(f"{run.name} confuses it most with: {items.caption[other]}")
    return StripItem(items.path[row], tuple(lines[:2]), tip="\n".join(tips))
