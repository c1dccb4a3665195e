"""Point colors: palettes for the categories of `trainer.charts.pair_colors`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Int, UInt8
from PySide6.QtGui import QColor

from explorer.theme import class_colors, color, run_color, theme
from trainer.charts.color_words import own_colors
from trainer.charts.metadata_columns import is_class, is_scale
from trainer.charts.pair_colors import (
    AGREEMENT,
    CLASS,
    COMPUTED,
    MODALITY,
    ColoredMap,
    PairColors,
    pair_colors,
    words,
)
from trainer.store.snapshot_files import Items

__all__ = ["CLASS", "COMPUTED", "MODALITY", "SHADES", "Coloring", "choices", "colorings", "words"]

MOST_CLASSES: Final = 256
"""Past it colors repeat, and a column of words is an identity, not a class."""
SHADES: Final = 256


@dataclass(frozen=True)
class Coloring:
    """The color of every point.

    Attributes:
        by: `modality`, `label`, what is computed, or a column.
        index: Row of `palette` for every point, images first, then texts.
        palette: Red, green, blue; the last row is the gray of what is not known. Of a scale, `SHADES` before it.
        names: What each row of the palette but the last stands for; empty for a scale.
        scale: Least and greatest value of a scale; None for classes.
        own_scale: The scale is this map's alone.
        note: What else must be said; may be empty.
        unknown: Points of which it is not known, or not yet.
    """

    by: str
    index: Int[np.ndarray, " m"]
    palette: UInt8[np.ndarray, "k 3"]
    names: tuple[str, ...]
    scale: tuple[float, float] | None = None
    own_scale: bool = False
    note: str = ""
    unknown: int = 0


def choices(items: Items) -> list[str]:
    """Return the stored columns by which these items can be colored, modality and class first."""
    columns = [name for name, values in items.metadata.items() if is_scale(values) or is_class(values, MOST_CLASSES)]
    columns = [name for name in columns if name not in COMPUTED]
    return [MODALITY, *([CLASS] if is_class(items.label, MOST_CLASSES) else []), *columns]


def colorings(by: str, maps: Sequence[tuple[ColoredMap, int, int]]) -> list[Coloring]:
    """Return the colors of each map's points; a color has the same meaning in all maps, whatever their data.

    An image and its text have one color unless modality is asked. Items without such a column are `none`.

    Args:
        by: `modality`, `agreement`, `rank`, `cosine`, `label` or a column.
        maps: What is known of the pairs, number of images and number of texts of each map.
    """
    gray = _rgb([color("unselected").name()])
    if by == MODALITY:
        # Not the first two colors: blue is run A and orange is run B, everywhere.
        palette = np.vstack([_rgb(class_colors(8)[2:4]), gray])
        names = ("Images", "Texts")
        return [
            Coloring(by, np.repeat(np.arange(2, dtype=np.int32), [images, texts]), palette, names)
            for _, images, texts in maps
        ]
    made = []
    colors = pair_colors(by, [colored_map for colored_map, _, _ in maps])
    for pairs, (_, images, texts) in zip(colors, maps, strict=True):
        palette = np.vstack([_palette(pairs), gray])
        index = _index(pairs, len(palette) - 1)
        unknown = int((index == len(palette) - 1).sum())
        both = np.concatenate([index[:images], index[:texts]])
        made.append(Coloring(by, both, palette, pairs.names, pairs.ends, pairs.own_scale, pairs.note, unknown))
    return made


def classes_of(colors: Coloring) -> Int[np.ndarray, " m"] | None:
    """Return the class of each point; None where colors mean modality, a number or a scale."""
    return None if colors.by == MODALITY or not colors.names or colors.scale is not None else colors.index


def _palette(pairs: PairColors) -> UInt8[np.ndarray, "k 3"]:
    if pairs.numbers is not None and pairs.better:
        ends = (run_color(0), color("unselected").name(), run_color(1))
        return _between(_rgb(ends)[:: pairs.better], SHADES)
    if pairs.numbers is not None:
        return _ramp(SHADES)
    if pairs.by == AGREEMENT:
        # Only A is right in A's color, only B in B's; both and neither are neither's.
        both, neither = class_colors(8)[2:4]
        return _rgb([both, run_color(0), run_color(1), neither])
    if pairs.ordered:
        # The ends that come too near to the ground are left away: black on dark, yellow on white.
        low, high = (0.3, 1.0) if theme().dark else (0.0, 0.88)
        # The dark end changes slowly: the first steps are longer.
        steps = low + (high - low) * np.linspace(0, 1, len(pairs.names)) ** 0.75
        return _ramp(SHADES)[(steps * (SHADES - 1)).astype(int)]
    return _rgb(own_colors(pairs.names, dark=theme().dark) or class_colors(max(len(pairs.names), 1)))


def _index(pairs: PairColors, unknown: int) -> Int[np.ndarray, " n"]:
    """Return the palette row of every pair."""
    if pairs.place is not None:
        return np.where(pairs.place < 0, unknown, pairs.place).astype(np.int32)
    low, high = pairs.ends or (0.0, 0.0)
    numbers = np.asarray(pairs.numbers, np.float32)
    share = (numbers - np.float32(low)) * np.float32((SHADES - 1) / (high - low if high > low else 1.0))
    is_number = np.isfinite(numbers)
    return np.where(is_number, np.rint(np.clip(np.where(is_number, share, 0), 0, SHADES - 1)), unknown).astype(np.int32)


def _ramp(shades: int) -> UInt8[np.ndarray, "k 3"]:
    return np.asarray(pg.colormap.get("viridis").getLookupTable(nPts=shades, alpha=False), np.uint8)


def _between(stops: UInt8[np.ndarray, "k 3"], shades: int) -> UInt8[np.ndarray, "s 3"]:
    positions = np.linspace(0, len(stops) - 1, shades)
    channels = [np.interp(positions, np.arange(len(stops)), stops[:, part]) for part in range(3)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def _rgb(colors: Sequence[str]) -> UInt8[np.ndarray, "k 3"]:
    return np.array([QColor(name).getRgb()[:3] for name in colors], np.uint8).reshape(-1, 3)
