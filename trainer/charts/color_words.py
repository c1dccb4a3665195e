"""Classes that are colors are drawn in their own: a legend that shows `red` as green misleads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_ON_LIGHT: Final[dict[str, str]] = {
    "red": "#d62d30",
    "orange": "#f08620",
    "yellow": "#e3c100",
    "green": "#309e44",
    "turquoise": "#2bb8ae",
    "cyan": "#17a5c4",
    "blue": "#2a5cd6",
    "purple": "#803eb8",
    "pink": "#f27fb8",
    "brown": "#8a5a33",
    "white": "#c4c8d0",
    "grey": "#8a8f99",
    "gray": "#8a8f99",
    "black": "#17181c",
}
_ON_DARK: Final[dict[str, str]] = _ON_LIGHT | {
    "yellow": "#fcdc32",
    "blue": "#5c8bff",
    "purple": "#a76be0",
    "white": "#ffffff",
    "black": "#666d7a",
}
"""White and black give way to the ground they stand on."""


def own_colors(names: Sequence[str], *, dark: bool = False) -> list[str] | None:
    """The color that each name says, as `#rrggbb`, if every name is a color; None otherwise."""
    known = _ON_DARK if dark else _ON_LIGHT
    return [known[name] for name in names] if names and all(name in known for name in names) else None
