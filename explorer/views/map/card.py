"""Information about the pair under the pointer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.theme import run_ink
from explorer.views.map.load import MapSide
from explorer.views.map.panel import MapPanel
from explorer.widgets.hover_card import HoverCard, HoverRow
from trainer.analysis.number_text import number
from trainer.charts.pair_colors import PairNumbers

HEADS = ("cosine", "caption rank")


class PairCard(HoverCard):
    """A hover card of one pair: thumbnail, caption, class, and each run's numbers."""

    def __init__(self, pictures: Thumbnails, parent: QWidget) -> None:
        super().__init__(parent)
        self._pictures = pictures
        self._side: MapSide | None = None
        self._row = 0

    def show_pair(self, side: MapSide, row: int, panels: Sequence[MapPanel]) -> None:
        """Show pair `row` of `side` with the numbers of the runs in `panels`."""
        self._side, self._row = side, row
        self.fill(panels)

    def end(self) -> None:
        """Hide the card, because no pair is under the pointer."""
        self._side = None
        self.hide()

    def fill(self, panels: Sequence[MapPanel]) -> None:
        """Show what has been computed or decoded since."""
        if self._side is None:
            return
        items, row = self._side.items, self._row
        rows = [HoverRow("AB"[p.index], run_ink(p.index, self), _of(p, row)) for p in panels if p.side]
        path = items.path[row]
        self.show_message(items.caption[row], items.label[row], HEADS, rows)
        self.set_picture(self._pictures.get(path), instead="no image" if self._pictures.problem(path) else "")


def written(numbers: PairNumbers | None, row: int) -> tuple[str, ...]:
    """Format cosine and rank of a pair; dots while they are being computed."""
    if numbers is None or row >= len(numbers.rank):
        return ("…", "…")
    return (number(numbers.cosine[row], 3), f"{numbers.rank[row]:,} of {numbers.among:,}")


def _of(panel: MapPanel, row: int) -> tuple[str, ...]:
    if panel.numbers is None and panel.one is not None and panel.one[0] == row:
        return written(panel.one[1], 0)
    return written(panel.numbers, row)
