"""The colours of both maps together, kept until what is shown, the choice or the theme are others."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.theme import theme
from explorer.views.map.colouring import COMPUTED, MODALITY, Colouring, colourings
from explorer.views.map.reading import Side, same_items
from trainer.charts.pair_colours import AGREEMENT, ColouredMap, PairNumbers


class SharedColours:
    """One colouring for all maps that are shown, so that one legend is true of each."""

    def __init__(self) -> None:
        # What was coloured is kept beside its ids so that an id cannot become another's.
        self._kept: tuple[object, ...] = ()
        self._key: tuple[object, ...] = ()
        self._made: list[Colouring] = []

    def of(self, by: str, sides: Sequence[Side], numbers: Sequence[PairNumbers | None]) -> list[Colouring]:
        """The colours of each side by `by`; by modality where none of them has it.

        Args:
            by: What is chosen.
            sides: What is shown.
            numbers: How each run sees its pairs, as far as that is known.
        """
        by = by if by in columns_of(sides) else MODALITY
        used = tuple(numbers) if by in COMPUTED else ()
        key = (by, theme().dark, *map(id, sides), *map(id, used))
        if key != self._key:
            self._kept, self._key = (tuple(sides), used), key
            maps = [
                (ColouredMap(side.n, side.values, known), side.images, side.texts)
                for side, known in zip(sides, numbers, strict=True)
            ]
            self._made = colourings(by, maps) if sides else []
        return self._made


def columns_of(sides: Sequence[Side]) -> list[str]:
    """What any of the sides can be coloured by, modality first; agreement needs two sides of the same pairs."""
    columns = dict.fromkeys([MODALITY, *(column for side in sides for column in side.columns)])
    pairs = [side for side in sides if side.images and side.texts]
    computed = list(COMPUTED) if pairs else []
    if len(pairs) != 2 or not same_items(*pairs):
        computed = [by for by in computed if by != AGREEMENT]
    return [*columns, *computed]
