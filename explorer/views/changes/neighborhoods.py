"""The neighbors of one pair in A and in B."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer import theme
from explorer.models.thumbnails import Pictures
from explorer.views.selected import PairTile, Tiles
from explorer.widgets.combo_boxes import Badge
from explorer.widgets.elided_label import ElidedLabel
from trainer.charts.pair_changes import MEASURES, Changes


class Neighborhoods(QWidget):
    """Two rows of images; those in both rows are framed."""

    def __init__(self, pictures: Pictures, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-neighborhoods")
        self.title, self.note = ElidedLabel(), QLabel()
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        theme.set_role(self.title, "strong")
        theme.set_role(self.note, "small")
        self.rows = tuple(
            Tiles(pictures, name=f"changes-near-{x.lower()}", words=f"Nearest in {x}", edge=64, lines=1, one_row=True)
            for x in "AB"
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.INSIDE, 0, 0)
        column.setSpacing(theme.SPACE)
        head = QHBoxLayout()
        head.setSpacing(theme.INSIDE)
        head.addWidget(self.title, 1)
        head.addWidget(self.note)
        column.addLayout(head)
        self._badges = tuple(Badge("AB"[index], index) for index in range(2))
        for badge, row in zip(self._badges, self.rows, strict=True):
            line = QHBoxLayout()
            line.setSpacing(theme.INSIDE)
            line.addWidget(badge, alignment=Qt.AlignmentFlag.AlignVCenter)
            line.addWidget(row, 1)
            column.addLayout(line)
        self.show_pair(None, -1)

    def show_pair(self, found: Changes | None, place: int, *, first: bool = False) -> None:
        """Show the neighbors of the pair at `place` of the comparison.

        Args:
            found: The comparison.
            place: Of the pair; below 0 for none.
            first: Nothing is selected, and it is the first one of the table.
        """
        is_chosen = found is not None and 0 <= place < found.n
        for badge in self._badges:
            badge.setVisible(is_chosen)
        if found is None or not is_chosen:
            self.title.setText("Select a pair to see its nearest neighbors in A and in B")
            self.note.setText("")
            for row in self.rows:
                row.show_tiles([])
            return
        near = (found.neighbors_a[place], found.neighbors_b[place])
        shared = np.intersect1d(*near)
        pair = int(found.rows[place])
        words = found.items.caption[pair] or found.items.path[pair]
        self.title.setText(f"First of the table: {words}" if first else words)
        parts = [f"{len(shared)} of {found.k} nearest {found.modality}s shared"]
        if "image_rank_a" in found.values:
            ranks = [f"{found.values[f'image_rank_{side}'][place]:,.0f}" for side in "ab"]
            parts.append(f"caption rank {ranks[0]} → {ranks[1]}")
        if len(found.classes) and found.verdict_a[place] >= 0:
            names = [found.classes[int(side[place])] for side in (found.verdict_a, found.verdict_b)]
            parts.append(
                f"predicted as {names[0]}" if names[0] == names[1] else f"predicted as {names[0]} → {names[1]}"
            )
        self.note.setText(" · ".join(parts))
        self.note.setToolTip(MEASURES["overlap"].hint)
        for row, places in zip(self.rows, near, strict=True):
            row.show_tiles([self._tile(found, int(p), bool(np.isin(p, shared))) for p in places])

    def _tile(self, found: Changes, pair: int, shared: bool) -> PairTile:
        items = found.items
        return PairTile(pair, items.path[pair], items.caption[pair], items.label[pair], shared)
