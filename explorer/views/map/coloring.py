"""Point colors: palettes for the categories of `trainer.charts.pair_colors`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Int, UInt8
from msgspec import Struct
from PySide6.QtGui import QColor

from explorer.theme import class_colors, color, theme
from explorer.widgets.point_map.class_glyphs import STROKES
from trainer.charts.colored_points import SHADES, ColoredPoints, Palette
from trainer.charts.metadata_columns import is_class, is_scale
from trainer.charts.pair_colors import CLASS, COMPUTED, MODALITY, ColoredMap, pair_colors, words
from trainer.store.snapshot_files import Items

__all__ = ["CLASS", "COMPUTED", "MODALITY", "SHADES", "Coloring", "choices", "colorings", "words"]

MOST_CLASSES: Final = 256
"""Past it colors repeat, and a column of words is an identity, not a class."""

LEAST_APART: Final = 25
"""Degrees of hue between images or texts and a run."""


class Coloring(Struct, frozen=True):
    """The color of every point."""

    by: str  # `modality`, `label`, what is computed, or a column.
    index: Int[np.ndarray, " m"]  # Row of `palette` for every point, images first, then texts.
    # Red, green, blue; the last row is the gray of what is not known. Of a scale, `SHADES` before it.
    palette: UInt8[np.ndarray, "k 3"]
    names: tuple[str, ...]  # What each row of the palette but the last stands for; empty for a scale.
    scale: tuple[float, float] | None = None  # Least and greatest value of a scale; None for classes.
    own_scale: bool = False  # The scale is this map's alone.
    note: str = ""  # What else must be said; may be empty.
    unknown: int = 0  # Points of which it is not known, or not yet.


def choices(items: Items) -> list[str]:
    """Return the columns by which these items can be colored, modality and class first, each coloring once."""
    columns = [name for name, values in items.metadata.items() if is_scale(values) or is_class(values, MOST_CLASSES)]
    columns = [name for name in columns if name not in COMPUTED and items.metadata[name] != items.label]
    return [MODALITY, *([CLASS] if is_class(items.label, MOST_CLASSES) else []), *columns]


def colorings(by: str, maps: Sequence[tuple[ColoredMap, int, int]], runs: Sequence[str] = ()) -> list[Coloring]:
    """Return the colors of each map's points; a color has the same meaning in all maps, whatever their data.

    An image and its text have one color unless modality is asked. Items without such a column have no value.

    Args:
        by: `modality`, `agreement`, `rank`, `cosine`, `label` or a column.
        maps: What is known of the pairs, number of images and number of texts of each map.
        runs: The colors of A and B.
    """
    palette = window_palette(runs)
    if by == MODALITY:
        names, table = ("Images", "Texts"), ColoredPoints(by).table(palette)
        return [
            Coloring(by, np.repeat(np.arange(2, dtype=np.int32), [images, texts]), table, names)
            for _, images, texts in maps
        ]
    made = []
    colored = pair_colors(by, [colored_map for colored_map, _, _ in maps])
    for points, (_, images, texts) in zip(colored, maps, strict=True):
        table = points.table(palette)
        index = points.rows(len(table) - 1)
        unknown = int((index == len(table) - 1).sum())
        both = np.concatenate([index[:images], index[:texts]])
        made.append(Coloring(by, both, table, points.names, points.ends, points.own_scale, points.note, unknown))
    return made


def window_palette(runs: Sequence[str] = ()) -> Palette:
    """Return the colors of the window's theme, those of A and B if they are given."""
    gray = color("unselected").name()
    shades = np.asarray(pg.colormap.get("viridis").getLookupTable(nPts=SHADES, alpha=False), np.uint8)
    first, second = tuple(runs) or class_colors(2)
    others = class_colors(8)[2:]
    unlike = [other for other in others if all(_hue_apart(other, run) > LEAST_APART for run in (first, second))]
    images, texts = [*unlike, *others][:2]
    return Palette(class_colors, (first, second), (images, texts), gray, gray, shades, theme().dark)


def _hue_apart(first: str, second: str) -> float:
    """Return how far the hues of two colors are apart, in degrees."""
    apart = abs(QColor(first).hue() - QColor(second).hue())
    return min(apart, 360 - apart)


def classes_of(colors: Coloring) -> Int[np.ndarray, " m"] | None:
    """Return the class of each point; None where colors mean modality or a scale, or glyphs are too few for them."""
    return colors.index if means_classes(colors) and len(colors.names) <= len(STROKES) else None


def means_classes(colors: Coloring) -> bool:
    """Return whether colors mean classes: not modality, and not a scale."""
    return colors.by != MODALITY and colors.scale is None and len(colors.names) > 0
