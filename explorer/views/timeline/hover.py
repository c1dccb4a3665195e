"""Hovering a point of the timeline: its card, and the pair highlighted everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QPoint
from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.theme import run_ink
from explorer.views.map.card import written
from explorer.views.timeline.panel import TimelinePanel
from explorer.views.view import Context
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


def points_of(run: TimelineRun, row: int | None) -> list[int]:
    """Return the points of a pair: of its image and its text, where the run has them."""
    pair = () if row is None else ((row, run.images), (run.images + row, run.images + run.texts))
    return [point for point, end in pair if point < end]


def is_same_pair(run: TimelineRun, other: TimelineRun, row: int) -> bool:
    """Return whether both runs have the same item in this row."""
    mine, theirs = run.items, other.items
    if row >= min(run.n, other.n) or mine.id[row] != theirs.id[row]:
        return False
    return bool(mine.caption[row] == theirs.caption[row]) or same_pairs(mine, theirs)


def read_pair(folder: Path, row: int) -> PairNumbers | None:
    """Return one pair's numbers in a snapshot, as `numbers_of_pair` does. Reads all captions: for a thread."""
    return numbers_of_pair(read_snapshot(folder), row, MOST_CAPTIONS)


class TimelineHover(QObject):
    """The card of the pair under the pointer, with both runs' numbers if both contain the pair."""

    def __init__(self, context: Context, panels: Sequence[TimelinePanel], view: QWidget) -> None:
        super().__init__(view)
        self._context, self._panels, self._view = context, panels, view
        self.pictures = Thumbnails(context.background, self)
        self.card = TimelineCard(self.pictures, view)
        self.pictures.arrived.connect(lambda *_: self.card.fill())
        for index, panel in enumerate(panels):
            panel.map.hovered.connect(partial(self._hover, index))
            panel.map.settled.connect(partial(self._show, index))
            panel.map.hover_ended.connect(self.card.end)
            panel.map.view_changed.connect(self.card.end)
        selection = context.selection
        for signal in (selection.hovered_changed, selection.current_changed, selection.pairs_changed):
            signal.connect(self._mark)

    def _hover(self, index: int, point: int) -> None:
        run = self._panels[index].run
        self._context.selection.hovered = pair_of(run, point) if run is not None and point >= 0 else None

    def _mark(self) -> None:
        selection = self._context.selection
        for panel in self._panels:
            if panel.run is not None:
                panel.map.set_hovered(
                    *points_of(panel.run, selection.hovered), current=points_of(panel.run, selection.current)
                )

    def _show(self, index: int, point: int, point_on_screen: QPoint) -> None:
        panel = self._panels[index]
        if panel.run is None or point < 0:
            return
        row = pair_of(panel.run, point)
        of = [p for p in self._panels if p.run is not None and (p is panel or is_same_pair(p.run, panel.run, row))]
        self.card.show_pair(panel.run, row, {p.index: p.step for p in of})
        self.card.show_at(point_on_screen, panel.map)
        for same in of:
            folder = same.run.folders[same.run.at(same.step)]
            taken = partial(self.card.take, same.index, row, same.step)
            self._context.background.run(self._view, read_pair, folder, row, done=taken, key=f"one {same.index}")
