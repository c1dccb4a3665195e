"""Colors of both maps together, cached until the data, the choice or the theme changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Final

from msgspec import Struct

from explorer.views.map.coloring import COMPUTED, MODALITY, Coloring, colorings
from explorer.views.map.load import MapSide, same_items
from trainer.charts.metadata_columns import MetadataColumn
from trainer.charts.pair_colors import AGREEMENT, CHANGED, ColoredMap, PairNumbers

AT_ONCE: Final = 100_000
"""Points whose colors are found where they are wanted; those of more are found on a thread."""


class ColorRequest(Struct, frozen=True):
    """A request for colors."""

    by: str  # What is chosen; a side that has no such column is colored by modality with the others.
    sides: tuple[MapSide, ...]
    numbers: tuple[PairNumbers | None, ...]  # How each run sees its pairs, as far as that is known.
    more: tuple[Mapping[str, MetadataColumn], ...] = ()  # Further columns of each side, by their name.
    dark: bool = False  # The theme's ground is dark.
    runs: tuple[str, ...] = ()  # The colors of A and B.

    @property
    def few(self) -> bool:
        """Whether computing them is immediate."""
        return sum(side.images + side.texts for side in self.sides) <= AT_ONCE

    def same(self, other: ColorRequest | None) -> bool:
        if other is None or len(self.sides) != len(other.sides):
            return False
        if (self.by, self.dark, self.runs) != (other.by, other.dark, other.runs):
            return False
        used = self.by in COMPUTED
        pairs = [*zip(self.sides, other.sides, strict=True)]
        pairs += [*zip(self.numbers, other.numbers, strict=True)] if used else []
        mine, theirs = ([columns.get(self.by) for columns in request.more] for request in (self, other))
        return all(a is b for a, b in pairs) and len(mine) == len(theirs) and all(map(is_, mine, theirs))


def found(request: ColorRequest) -> list[Coloring]:
    """Return the colors of each side, with the same meaning in all."""
    more = request.more or ({},) * len(request.sides)
    offered = columns_of(request.sides) + [name for columns in more for name in columns]
    by = request.by if request.by in offered else MODALITY
    maps = [
        (ColoredMap(side.n, {**side.values, **columns}, numbers), side.images, side.texts)
        for side, numbers, columns in zip(request.sides, request.numbers, more, strict=True)
    ]
    return colorings(by, maps, request.runs) if maps else []


class SharedColors:
    """One cached coloring for all maps shown, so that one legend fits all."""

    def __init__(self) -> None:
        self._request: ColorRequest | None = None
        self._made: list[Coloring] = []

    def known(self, request: ColorRequest) -> bool:
        """Return whether `of` can respond without computing."""
        return request.few or request.same(self._request)

    def of(self, request: ColorRequest) -> list[Coloring]:
        if not request.same(self._request):
            self.keep(request, found(request))
        return self._made

    def last(self, sides: Sequence[MapSide]) -> list[Coloring] | None:
        """Return the colors that these sides have now; None if none yet."""
        colored = self._request.sides if self._request is not None else ()
        return self._made if len(colored) == len(sides) and all(map(is_, colored, sides)) else None

    def keep(self, request: ColorRequest, made: list[Coloring]) -> None:
        """Store colors computed on a thread."""
        self._request, self._made = request, made


def columns_of(sides: Sequence[MapSide]) -> list[str]:
    """Return columns by which any side can be colored, modality first; agreement needs two sides of the same pairs."""
    columns = dict.fromkeys([MODALITY, *(column for side in sides for column in side.columns)])
    pairs = [side for side in sides if side.images and side.texts]
    computed = list(COMPUTED) if pairs else []
    if len(pairs) != 2 or not same_items(*pairs):
        computed = [by for by in computed if by != AGREEMENT]
    return [*columns, *computed, *(CHANGED if _comparable(sides) else ())]


def _comparable(sides: Sequence[MapSide]) -> bool:
    """Return whether two snapshots of the same pairs are shown, so that changes can be computed."""
    return len(sides) == 2 and sides[0].row != sides[1].row and same_items(*sides)
