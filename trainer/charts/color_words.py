"""Own colors for classes named after colors, because `red` in green would be misleading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_ON_LIGHT: Final[dict[str, str]] = {
    "red": "#d62d30",
    "orange": "#c76a0c",
    "yellow": "#9a8300",
    "green": "#309e44",
    "turquoise": "#1c938b",
    "cyan": "#1390ac",
    "blue": "#2a5cd6",
    "purple": "#803eb8",
    "pink": "#dc5c9d",
    "brown": "#8a5a33",
    "white": "#868b95",
    "grey": "#5d626c",
    "gray": "#5d626c",
    "black": "#17181c",
    "none": "#5d626c",
}
_ON_DARK: Final[dict[str, str]] = _ON_LIGHT | {
    "orange": "#f08620",
    "yellow": "#fcdc32",
    "turquoise": "#2bb8ae",
    "cyan": "#17a5c4",
    "pink": "#f27fb8",
    "blue": "#5c8bff",
    "purple": "#a76be0",
    "red": "#e5484b",
    "green": "#3fb457",
    "brown": "#b07a4c",
    "grey": "#9aa0ab",
    "gray": "#9aa0ab",
    "none": "#9aa0ab",
    "white": "#ffffff",
    "black": "#6b7280",
}
"""White and black give way to the ground they stand on, and each has a contrast of 3 or more to it."""


def own_colors(names: Sequence[str], *, dark: bool = False) -> list[str] | None:
    """Return the named colors as `#rrggbb` if every name is a color, and each another one; None otherwise."""
    palette = _ON_DARK if dark else _ON_LIGHT
    colors = [palette[name] for name in names if name in palette]
    return colors if names and len(set(colors)) == len(names) else None
