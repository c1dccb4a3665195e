"""Hovering a point of the timeline: its card, and the pair highlighted everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QPoint
from PySide6.QtWidgets import QWidget

from explorer.models.thumbnails import Thumbnails
from explorer.views.timeline.card import TimelineCard, is_same_pair, pair_of, read_pair
from explorer.views.timeline.panel import TimelinePanel
from explorer.views.view import Context


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
        row = self._context.selection.ringed
        for panel in self._panels:
            run = panel.run
            if run is not None:
                points = () if row is None else ((row, run.images), (run.images + row, run.images + run.texts))
                panel.map.set_hovered(*(point for point, end in points if point < end))

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
