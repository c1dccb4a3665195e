"""The vocabulary of Scenes: caption words, their colors, and the preferences of shapes."""

from __future__ import annotations

from typing import Final

COLORS: Final[dict[str, tuple[int, int, int]]] = {
    "red": (214, 45, 48),
    "orange": (243, 134, 32),
    "yellow": (252, 220, 50),
    "green": (48, 158, 68),
    "turquoise": (48, 200, 190),
    "blue": (42, 92, 214),
    "purple": (128, 62, 184),
    "pink": (248, 138, 190),
    "white": (248, 248, 246),
    "black": (36, 36, 42),
}
"""Name -> mean sRGB of a shape of that color."""

SHAPES: Final = ("circle", "square", "triangle", "star", "heart", "ring", "cross", "moon")

RELATIONS: Final = ("left of", "right of", "above", "below")

GROUNDS: Final[dict[str, str]] = {
    "grass": "on grass",
    "sand": "on sand",
    "water": "on water",
    "wood": "on wood",
    "brick": "on brick",
    "night sky": "in the night sky",
}
"""Name -> how a caption says it."""

FAVORITE_COLORS: Final[dict[str, tuple[str, ...]]] = {
    "circle": ("orange", "green", "blue"),
    "square": ("turquoise", "black", "red"),
    "triangle": ("green", "purple", "orange"),
    "star": ("yellow", "red", "white"),
    "heart": ("red", "pink", "purple"),
    "ring": ("blue", "turquoise", "yellow"),
    "cross": ("black", "blue", "pink"),
    "moon": ("white", "yellow", "turquoise"),
}
"""What a shape keeps to under co-occurrence. Together they name every color, so that all are still learned."""

FAVORITE_GROUNDS: Final[dict[str, tuple[str, ...]]] = {
    "circle": ("grass", "sand"),
    "square": ("brick", "wood"),
    "triangle": ("sand", "grass"),
    "star": ("night sky", "water"),
    "heart": ("wood", "grass"),
    "ring": ("water", "sand"),
    "cross": ("brick", "wood"),
    "moon": ("night sky", "water"),
}
"""Likewise for the ground, which follows the subject. Together they name every ground."""
