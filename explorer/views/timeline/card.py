"""Information about the pair under the pointer at the current step."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.theme import run_ink
from explorer.views.map.card import written
from explorer.widgets.hover_card import HoverCard, HoverRow
from trainer.charts.common_pairs import same_pairs
from trainer.charts.pair_colors import PairNumbers, numbers_of_pair
from trainer.charts.snapshot_series import TimelineRun
from trainer.store.snapshot_files import read_snapshot

HEADS: Final = ("step", "cosine", "caption rank")
MOST_CAPTIONS: Final = 20_000


class TimelineCard(HoverCard):
    """A hover card of one pair: thumbnail, caption, class, and each run's numbers at the current step."""

    def __init__(self, pictures: Thumbnails, parent: QWidget) -> None:
        super().__init__(parent)
        self._pictures = pictures
        self._run: TimelineRun | None = None
        self.row = -1
        self._rows: dict[int, tuple[int, PairNumbers | None]] = {}

    def show_pair(self, run: TimelineRun, row: int, steps: dict[int, int]) -> None:
        """Show pair `row` of `run`; `steps` maps each run's place to its current step."""
        self._run, self.row = run, row
        self._rows = {index: (step, None) for index, step in steps.items()}
        self.fill()

    def take(self, index: int, row: int, step: int, numbers: PairNumbers | None) -> None:
        """Show computed numbers of the pair if it is still the current one."""
        if row == self.row and self._rows.get(index, (None,))[0] == step:
            self._rows[index] = (step, numbers)
            self.fill()

    def end(self) -> None:
        """Hide the card, because no pair is under the pointer."""
        self._run, self.row = None, -1
        self.hide()

    def fill(self) -> None:
        """Show what has been computed or decoded since."""
        if self._run is None:
            return
        rows = [
            HoverRow("AB"[i], run_ink(i, self), (f"{step:,}", *written(pair, 0)))
            for i, (step, pair) in sorted(self._rows.items())
        ]
        items = self._run.items
        path = items.path[self.row]
        self.show_message(items.caption[self.row], items.label[self.row], HEADS, rows)
        self.set_picture(self._pictures.get(path), instead="no image" if self._pictures.problem(path) else "")


def pair_of(run: TimelineRun, point: int) -> int:
    """Return the pair of a point; images come first, then texts."""
    return point if point < run.images else point - run.images


def is_same_pair(run: TimelineRun, other: TimelineRun, row: int) -> bool:
    """Return whether both runs have the same item in this row."""
    mine, theirs = run.items, other.items
    if row >= min(run.n, other.n) or mine.id[row] != theirs.id[row]:
        return False
    return bool(mine.caption[row] == theirs.caption[row]) or same_pairs(mine, theirs)


def read_pair(folder: Path, row: int) -> PairNumbers | None:
    """Return one pair's numbers in a snapshot, as `numbers_of_pair` does. Reads all captions: for a thread."""
    return numbers_of_pair(read_snapshot(folder), row, MOST_CAPTIONS)
