"""The neighbors of one pair in A and in B."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.selected import PairTile, Tiles
from explorer.widgets import layouts
from explorer.widgets.image_row import SPACIOUS_PX
from explorer.widgets.run_badge import RunBadge
from trainer.analysis.chance import chance_text
from trainer.charts.pair_changes import MEASURES, Changes

EDGE_PX: Final = 56
MOST_TEXT_PX: Final = 112
NARROW_PX: Final = 900
"""Where there is less room, the note stands below the title, which it would cut."""


class Neighborhoods(QWidget):
    """Two rows of images; those in both rows are framed."""

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-neighborhoods")
        self.title, self.note = layouts.elided(role="strong"), layouts.elided(role="small")
        self.note.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.rows = tuple(
            Tiles(
                pictures, name=f"changes-near-{x.lower()}", label=f"Nearest in {x}", edge=EDGE_PX, lines=1, one_row=True
            )
            for x in "AB"
        )
        self._head = layouts.row((self.title, 1), self.note)
        column = layouts.column(self._head, gap=theme.SPACE, margins=(0, theme.INSIDE, 0, 0), of=self)
        self._badges = tuple(RunBadge("AB"[index], index) for index in range(2))
        for badge, row in zip(self._badges, self.rows, strict=True):
            column.addLayout(layouts.row((badge, 0, Qt.AlignmentFlag.AlignVCenter), (row, 1)))
        self.show_pair(None, -1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Arrange the head, and give pictures and their words what room there is."""
        both = self.title.sizeHint().width() + theme.BETWEEN + self.note.sizeHint().width()
        layouts.stack(self._head, self.width() < max(NARROW_PX, both))
        edge = 2 * EDGE_PX if self.width() >= SPACIOUS_PX else EDGE_PX
        across = self.rows[0].viewport().width() // max(len(self.rows[0].tiles.items), 1)
        # A class is a word, and a caption is not.
        lines = 1 if all(tile.words for row in self.rows for tile in row.tiles.items) else 2
        for row in self.rows:
            row.enlarge(edge, min(across - 2 * theme.INSIDE - 1, MOST_TEXT_PX), lines)

    def show_pair(self, changes: Changes | None, index: int) -> None:
        """Show the neighbors of the pair at `index` of the comparison; below 0 is none."""
        is_chosen = changes is not None and 0 <= index < changes.n
        for badge in self._badges:
            badge.setVisible(is_chosen)
        if changes is None or not is_chosen:
            self.title.setText("Select a pair to see its nearest neighbors in A and in B")
            self.note.setText("")
            for row in self.rows:
                row.show_tiles([])
            return
        near = (changes.neighbors_a[index], changes.neighbors_b[index])
        shared = np.intersect1d(*near)
        pair = int(changes.rows[index])
        caption = changes.items.caption[pair] or changes.items.path[pair]
        self.title.setText(f"Nearest {changes.modality}s of “{caption}”")
        jaccard = changes.values["overlap"][index]
        chance = chance_text(changes.k, changes.candidates)
        parts = [f"{len(shared)} of {changes.k} nearest {changes.modality}s shared (Jaccard {jaccard:.2f}, {chance})"]
        if "image_rank_a" in changes.values:
            ranks = [f"{changes.values[f'image_rank_{side}'][index]:,.0f}" for side in "ab"]
            parts.append(f"own caption ranked A {ranks[0]}, B {ranks[1]}")
        if len(changes.classes) and changes.verdict_a[index] >= 0:
            parts.append(_predicted(changes, index))
        self.note.setText(" · ".join(parts))
        self.note.set_details(f"{self.note.text()}. {MEASURES['overlap'].hint}")
        for row, neighbors in zip(self.rows, near, strict=True):
            row.show_tiles([self._tile(changes, int(p), "shared" if p in shared else "") for p in neighbors])
        self._fit()

    def _tile(self, changes: Changes, pair: int, shared: str) -> PairTile:
        items = changes.items
        return PairTile(pair, items.path[pair], items.caption[pair], items.label[pair], shared)


def _predicted(changes: Changes, index: int) -> str:
    """Return the class that each run predicts, and whether it is that of the data: the rank does not say that."""
    label = changes.items.label[int(changes.rows[index])]
    names = [changes.classes[int(side[index])] for side in (changes.verdict_a, changes.verdict_b)]
    is_known = label in changes.classes
    a, b = (f"{name} ({'right' if name == label else 'wrong'})" if is_known else name for name in names)
    return f"class predicted {a} by both" if a == b else f"class predicted A {a}, B {b}"
