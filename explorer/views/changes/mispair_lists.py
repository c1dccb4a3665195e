"""Pairs that do not retrieve each other: in both runs, only in A, only in B."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QWidget

from explorer import theme
from explorer.models.thumbnails import Thumbnails
from explorer.views.selected import PairTile, Tiles
from explorer.widgets import layouts
from explorer.widgets.run_badge import RunBadge
from trainer.charts.mispairs import Mispairs
from trainer.charts.pair_changes import Changes

HEADS = (
    ("both", "Low-ranked in both", "possible mislabels"),
    ("only_a", "Low-ranked only in A", "the models differ"),
    ("only_b", "Low-ranked only in B", "the models differ"),
)
MOST = 500


class MispairLists(QWidget):
    """Three lists of images, worst first."""

    chosen = Signal(object)  # The selected pairs.
    hovered = Signal(int)  # The pair under the pointer; -1 for none.

    def __init__(self, pictures: Thumbnails, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="changes-mispairs")
        self.lists: dict[str, Tiles] = {}
        self.counts: dict[str, QLabel] = {}
        row = layouts.row(gap=theme.BETWEEN, margins=(0, theme.INSIDE, 0, 0), of=self)
        for key, heading, _hint in HEADS:
            tiles = Tiles(pictures, name=f"changes-{key.replace('_', '-')}", label=heading, edge=88, lines=5)
            count = layouts.text(role="small", wrap=True)
            title = layouts.text(heading, "strong")
            head = layouts.row(gap=theme.SPACE)
            for letter, index in (("A", 0), ("B", 1)):
                if key in ("both", f"only_{letter.lower()}"):
                    head.addWidget(RunBadge(letter, index))
            head.addSpacing(theme.SPACE)
            head.addWidget(title, 1)
            row.addLayout(layouts.column(head, count, (tiles, 1), gap=theme.SPACE), 1)
            self.lists[key], self.counts[key] = tiles, count
            tiles.chosen.connect(lambda pairs, key=key: self._announce(key, pairs))
            tiles.hovered.connect(self.hovered)

    def show_mispairs(self, changes: Changes, mispairs: Mispairs | None) -> None:
        """Show the mispairs; nothing if a run has only one modality."""
        for key, _words, hint in HEADS:
            if mispairs is None:
                self.lists[key].show_tiles([])
                self.counts[key].setText("Ranks of pairs need images and texts of both runs." if key == "both" else "")
                continue
            indices = getattr(mispairs, key)
            limit = f", the first {MOST} shown" if len(indices) > MOST else ""
            chance = f"; {mispairs.expected:.1f} by chance" if key == "both" else ""
            pairs = "" if len(indices) == mispairs.pictures[key] else f" · {len(indices):,} pairs"
            self.counts[key].setText(
                f"{mispairs.pictures[key]:,} of {changes.units.count('picture'):,} pictures{pairs}{limit}{chance} · "
                f"{hint} · image / text rank"
            )
            self.counts[key].setToolTip(f"Of the worst {100 * mispairs.share:g} % of each run's pairs")
            self.lists[key].show_tiles([_tile(changes, int(index)) for index in indices[:MOST]])

    def mark(self, pairs: Iterable[int]) -> None:
        """Show these pairs as selected."""
        chosen = set(np.asarray(pairs).tolist())
        for tiles in self.lists.values():
            tiles.mark(chosen)

    def _announce(self, key: str, pairs: list[int]) -> None:
        for other, tiles in self.lists.items():
            if other != key:
                tiles.mark(set())
        self.chosen.emit(pairs)


def _tile(changes: Changes, index: int) -> PairTile:
    pair, values = int(changes.rows[index]), changes.values
    ranks = "\n".join(
        f"{side.upper()} {values[f'image_rank_{side}'][index]:,.0f} / {values[f'text_rank_{side}'][index]:,.0f}"
        for side in "ab"
    )
    return PairTile(pair, changes.items.path[pair], changes.items.caption[pair], ranks)
