"""Selecting and hovering in two maps, linked if both show the same pairs."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int
from PySide6.QtCore import QObject, Signal

from explorer.event_loop.background import Background
from explorer.state.selection import Selection
from explorer.views.map.load import MOST_ASKING, MapSide, read_neighbors, same_items
from explorer.views.map.panel import MapPanel
from explorer.views.map.tools import Tools
from trainer.untrusted import confined

NEIGHBORS = 10
"""Nearest pairs that each selected pair takes in when the selection grows."""


class Selecting(QObject):
    """Converts lassos and clicks in the maps to the shared selection, and shows it in both."""

    marked = Signal()  # The selection, or what it is of, is another.
    noticed = Signal(str)  # What growing did, a sentence.

    def __init__(
        self, panels: Sequence[MapPanel], selection: Selection, background: Background, tools: Tools, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._panels, self._selection, self._background, self._tools = panels, selection, background, tools
        self._selected_in = self._pointed_in = 0
        self._marked = 0
        for index, panel in enumerate(panels):
            panel.map.hovered.connect(partial(self._point_at, index))
            panel.map.clicked.connect(partial(self._click, index))
            panel.map.outlined.connect(partial(self._outline, index))
        selection.pairs_changed.connect(self.mark)
        for signal in (selection.hovered_changed, selection.current_changed):
            signal.connect(self._ring)
        tools.tool_changed.connect(self._set_tool)

    # What is shown ----------------------------------------------------------------------------------------------

    @property
    def sides(self) -> list[MapSide]:
        """The sides shown, A first."""
        return [panel.side for panel in self._panels if panel.side is not None]

    @property
    def linked(self) -> bool:
        """Whether both maps show the same pairs, so that hovering and selecting are linked."""
        sides = self.sides
        return len(sides) == 2 and same_items(*sides)

    @property
    def owner(self) -> MapSide | None:
        """The side with the selected pairs: the first, or if unlinked, the one last selected in."""
        sides = self.sides
        if len(sides) == 2 and not self.linked:
            return sides[self._selected_in]
        return sides[0] if sides else None

    @property
    def rows(self) -> Int[np.ndarray, " k"]:
        """The selected pairs of `owner`."""
        rows, owner = self._selection.pairs, self.owner
        return rows[: int(np.searchsorted(rows, owner.n))] if owner else rows[:0]

    def letter(self, side: MapSide | None) -> str:
        """Return `A` or `B` for a side with its own pairs; empty if both share them."""
        return "" if self.linked else next(("AB"[p.index] for p in self._panels if p.side is side), "")

    def panels_of(self, index: int) -> list[MapPanel]:
        """Return the maps that mark a pair of map `index`: both, unless they show different items."""
        return [p for p in self._panels if p.side is not None and (self.linked or p.index == index)]

    # Selecting --------------------------------------------------------------------------------------------------

    def select_all(self) -> None:
        """Select every pair."""
        if (owner := self.owner) is not None:
            self._selection.pairs = np.arange(owner.n)

    def invert(self) -> None:
        if (owner := self.owner) is not None:
            left = np.ones(owner.n, bool)
            left[self.rows] = False
            self._select(np.flatnonzero(left))

    def grow(self) -> None:
        """Add each selected pair's nearest neighbors, in the embeddings of the focused map."""
        rows, owner = self.rows, self.owner
        if owner is None or not len(rows):
            self.noticed.emit("Select pairs first: their nearest neighbors are then added.")
            return
        index = next((i for i, panel in enumerate(self._panels) if panel.map.hasFocus()), self._selected_in)
        side = self._panels[index].side or owner
        if not self.linked:
            side = owner
        self._background.run(
            self,
            read_neighbors,
            side,
            rows,
            NEIGHBORS,
            done=partial(self._take_neighbors, side, rows),
            key="grow",
        )

    def _take_neighbors(self, side: MapSide, rows: np.ndarray, neighbors: np.ndarray) -> None:
        grown = np.union1d(rows, neighbors)
        if side not in self.sides or not np.array_equal(rows, self.rows):
            return
        limit = f" of {MOST_ASKING:,} of them" if len(rows) > MOST_ASKING else ""
        self.noticed.emit(
            f"{len(grown) - len(rows):,} pairs added: the {NEIGHBORS} nearest neighbors{limit} in {side.name}."
        )
        self._select(grown)

    def _set_tool(self, tool: str) -> None:
        for panel in self._panels:
            panel.map.tool = tool

    def _before(self, index: int) -> Int[np.ndarray, " k"]:
        """Return the pairs to extend when selecting in map `index`; none if the selection belongs to the other map."""
        other = index != self._selected_in
        self._selected_in = index
        return self._selection.pairs[:0] if other and not self.linked else self._selection.pairs

    def _outline(self, index: int, points: np.ndarray, mode: str) -> None:
        side = self._panels[index].side
        if side is None:
            return
        for panel in self._panels:
            panel.map.hover.leave()  # what was hovered before is no part of the selection
        inside = np.zeros(side.images + side.texts, bool)
        inside[points] = True
        hit = np.zeros(side.n, bool)
        hit[: side.images] = inside[: side.images]
        hit[: side.texts] |= inside[side.images :]
        before = self._before(index)
        if mode != "replace":
            selected = np.zeros(side.n, bool)
            selected[before[before < side.n]] = True
            hit = selected | hit if mode == "add" else selected & ~hit
        self._select(np.flatnonzero(hit))

    def _click(self, index: int, point: int, mode: str) -> None:
        side = self._panels[index].side
        if point < 0 or side is None:
            return
        row = side.pair_of(point)
        before = self._before(index)
        if mode == "replace":
            self._select([row])
        elif mode == "remove" or row in before:
            self._select(before[before != row])
        else:
            self._select(np.insert(before, np.searchsorted(before, row), row))

    def select_in(self, index: int, rows: Int[np.ndarray, " k"]) -> None:
        """Select these pairs of map `index`, and no other."""
        self._selected_in = index
        self._select(rows)

    def _select(self, rows: Iterable[int]) -> None:
        before = self._marked
        self._selection.pairs = rows
        if before == self._marked:
            # The same numbers are another map's pairs now, which the selection itself cannot tell.
            self.mark()

    def mark(self) -> None:
        """Show the selection in both maps."""
        self._marked += 1
        rows = self.rows
        pairs = np.zeros(max((side.n for side in self.sides), default=0), bool)
        pairs[rows] = True
        for panel in self._panels:
            if (side := panel.side) is None:
                continue
            lifted = pairs if self.linked or side is self.owner else np.zeros_like(pairs)
            panel.select(np.concatenate([lifted[: side.images], lifted[: side.texts]]) if len(rows) else None)
        self._ring()
        self.marked.emit()

    # Pointing ---------------------------------------------------------------------------------------------------

    def _point_at(self, index: int, point: int) -> None:
        side = self._panels[index].side
        self._pointed_in = index
        self._selection.hovered = side.pair_of(point) if side is not None and point >= 0 else None

    def _ring(self) -> None:
        hovered, current = self._selection.hovered, self._selection.current

        def points_of(panel: MapPanel, row: int | None, index: int) -> Sequence[int]:
            return panel.side.points_of(row) if row is not None and panel in self.panels_of(index) else ()

        for panel in self._panels:
            panel.map.set_hovered(
                *points_of(panel, hovered, self._pointed_in), current=points_of(panel, current, self._selected_in)
            )


MOST_WRITTEN: Final = 2_000
"""Letters of a list of pairs that a command holds; longer ones are kept in a file."""


def written_rows(rows: Int[np.ndarray, " k"], folder: Path) -> str:
    """Format ascending rows as `0-59,70`; if long, write them to a file in `folder` and return its name."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(rows) > 1) + 1])
    ends = np.concatenate([starts[1:] - 1, [len(rows) - 1]])
    if len(starts) <= MOST_WRITTEN // 4:
        blocks = zip(rows[starts].tolist(), rows[ends].tolist(), strict=True)
        text = ",".join(f"{a}-{b}" if b > a else str(a) for a, b in blocks)
        if len(text) <= MOST_WRITTEN:
            return text
    confined.make_folder(folder.parent, folder.name)
    name = f"pairs-{hashlib.blake2b(rows.tobytes(), digest_size=8).hexdigest()}.npy"
    content = io.BytesIO()
    np.save(content, rows)
    confined.write(folder, name, content.getvalue())
    return str(folder / name)
