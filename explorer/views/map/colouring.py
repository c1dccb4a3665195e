"""By what the points of a map are coloured: modality, class, or a column of the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Int, UInt8
from PySide6.QtGui import QColor

from explorer.theme import class_colours, colour, theme
from trainer.charts.colour_words import own_colours
from trainer.charts.columns import as_numbers, is_scale
from trainer.store.snapshot_files import Items

MODALITY: Final = "modality"
CLASS: Final = "label"
MOST_CLASSES: Final = 256
"""Past it colours repeat, and a column of words is an identity, not a class."""
SHADES: Final = 256
NOTHING: Final = "none"


@dataclass(frozen=True)
class Colouring:
    """Colour of every point.

    Attributes:
        by: `modality`, `label` or a column.
        index: Row of `palette` for every point, images first, then texts.
        palette: Red, green, blue. Of a scale, `SHADES` from least to greatest, then the grey of a missing number.
        names: What each row of the palette stands for; empty for a scale.
        scale: Least and greatest value of a scale; None for classes.
    """

    by: str
    index: Int[np.ndarray, " m"]
    palette: UInt8[np.ndarray, "k 3"]
    names: tuple[str, ...]
    scale: tuple[float, float] | None = None


def choices(items: Items) -> list[str]:
    """What these items can be coloured by, modality and class first."""
    columns = [name for name, values in items.metadata.items() if is_scale(values) or _is_class(values)]
    return [MODALITY, *([CLASS] if _is_class(items.label) else []), *columns]


def words(by: str) -> str:
    """What a choice is called: `subject_colour` reads `Subject colour`."""
    return "Class" if by == CLASS else by.replace("_", " ").capitalize()


def colouring(by: str, items: Items, *, images: int, texts: int) -> Colouring:
    """The colours of one map's `images` + `texts` points."""
    return colourings(by, [(items, images, texts)])[0]


def colourings(by: str, maps: Sequence[tuple[Items, int, int]]) -> list[Colouring]:
    """The colours of each map's points; every colour means the same in all of them, whatever data they show.

    An image and its text have one colour unless modality is asked. Items without such a column are `none`.

    Args:
        by: `modality`, `label` or a column.
        maps: Items, number of images and number of texts of each map.
    """
    if by == MODALITY:
        # Not the first two colours: blue is run A and orange is run B, everywhere.
        palette = _rgb(class_colours(8)[2:4])
        names = ("Images", "Texts")
        return [Colouring(by, np.repeat([0, 1], [images, texts]), palette, names) for _, images, texts in maps]
    columns = [_column(by, items) for items, _, _ in maps]
    if all(is_scale(values) for values in columns):
        return _scales(by, columns, maps)
    words_of = [[str(v) if v not in (None, "") else NOTHING for v in values] for values in columns]
    names = tuple(sorted({word for words_ in words_of for word in words_}))
    place = {name: i for i, name in enumerate(names)}
    palette = _rgb(own_colours(names, dark=theme().dark) or class_colours(max(len(names), 1)))
    return [
        Colouring(by, _both(np.array([place[word] for word in words_], np.int64), images, texts), palette, names)
        for words_, (_, images, texts) in zip(words_of, maps, strict=True)
    ]


def _column(by: str, items: Items) -> Sequence[Any]:
    return items.label if by == CLASS else items.metadata.get(by, [NOTHING] * len(items.id))


def _scales(by: str, columns: Sequence[Sequence[Any]], maps: Sequence[tuple[Items, int, int]]) -> list[Colouring]:
    numbers = [as_numbers(values) for values in columns]
    known = np.concatenate(numbers)
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    ramp = np.asarray(pg.colormap.get("viridis").getLookupTable(nPts=SHADES, alpha=False), np.uint8)
    palette = np.vstack([ramp, _rgb([colour("unselected").name()])])
    made = []
    for values, (_, images, texts) in zip(numbers, maps, strict=True):
        share = np.clip((values - low) / (high - low if high > low else 1.0), 0, 1)
        index = np.where(np.isfinite(values), np.round(np.nan_to_num(share) * (SHADES - 1)), SHADES).astype(np.int64)
        made.append(Colouring(by, _both(index, images, texts), palette, (), (low, high)))
    return made


def _both(index: Int[np.ndarray, " n"], images: int, texts: int) -> Int[np.ndarray, " m"]:
    return np.concatenate([index[:images], index[:texts]])


def _is_class(values: Sequence[Any]) -> bool:
    try:
        different = {v for v in values if v not in (None, "")}
    except TypeError:  # lists and the like are no classes
        return False
    return 0 < len(different) <= MOST_CLASSES and len(different) < max(len(values), 2)


def _rgb(colours: Sequence[str]) -> UInt8[np.ndarray, "k 3"]:
    return np.array([QColor(name).getRgb()[:3] for name in colours], np.uint8).reshape(-1, 3)
