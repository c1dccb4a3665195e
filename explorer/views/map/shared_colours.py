"""The colours of both maps together, kept until what is shown, the choice or the theme are others."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.theme import theme
from explorer.views.map.colouring import MODALITY, Colouring, colourings
from explorer.views.map.reading import Side


class SharedColours:
    """One colouring for all maps that are shown, so that one legend is true of each."""

    def __init__(self) -> None:
        # The sides are kept beside their ids so that an id cannot become another's.
        self._sides: tuple[Side, ...] = ()
        self._key: tuple[object, ...] = ()
        self._made: list[Colouring] = []

    def of(self, by: str, sides: Sequence[Side]) -> list[Colouring]:
        """The colours of each side by column `by`; by modality where none of them has it."""
        by = by if by in columns_of(sides) else MODALITY
        key = (by, theme().dark, *map(id, sides))
        if key != self._key:
            self._sides, self._key = tuple(sides), key
            self._made = colourings(by, [(side.items, side.images, side.texts) for side in sides]) if sides else []
        return self._made


def columns_of(sides: Sequence[Side]) -> list[str]:
    """What any of the sides can be coloured by, modality first."""
    return list(dict.fromkeys([MODALITY, *(column for side in sides for column in side.columns)]))
