"""By what the points of a map are coloured: modality, class, or a column of the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from jaxtyping import Int, UInt8
from PySide6.QtGui import QColor

from explorer.theme import class_colours
from trainer.store.snapshot_files import Items

MODALITY: Final = "modality"
CLASS: Final = "label"
MOST_CLASSES: Final = 256
"""Past it colours repeat, and a column of words is an identity, not a class."""
MOST_WHOLE_NUMBERS: Final = 12
"""A column of more different numbers is coloured along a scale."""
SHADES: Final = 256
NOTHING: Final = "none"


@dataclass(frozen=True)
class Colouring:
    """Colour of every point.

    Attributes:
        by: `modality`, `label` or a column.
        index: Row of `palette` for every point, images first, then texts.
        palette: Red, green, blue.
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
    columns = [name for name, values in items.metadata.items() if _is_scale(values) or _is_class(values)]
    return [MODALITY, *([CLASS] if _is_class(items.label) else []), *columns]


def words(by: str) -> str:
    """What a choice is called: `subject_colour` reads `Subject colour`."""
    return "Class" if by == CLASS else by.replace("_", " ").capitalize()


def colouring(by: str, items: Items, *, images: int, texts: int) -> Colouring:
    """The colours of `images` + `texts` points; an image and its text have one colour unless modality is asked."""
    if by == MODALITY:
        # Not the first two colours: blue is run A and orange is run B, everywhere.
        palette = _rgb(class_colours(8)[2:4])
        return Colouring(by, np.repeat([0, 1], [images, texts]), palette, ("Images", "Texts"))
    values = items.label if by == CLASS else items.metadata.get(by, [])
    if _is_scale(values):
        return _scale(by, values, images, texts)
    names, index = np.unique([str(v) if v not in (None, "") else NOTHING for v in values], return_inverse=True)
    palette = _rgb(class_colours(max(len(names), 1)))
    return Colouring(by, _both(index.reshape(-1), images, texts), palette, tuple(map(str, names)))


def _scale(by: str, values: Sequence[Any], images: int, texts: int) -> Colouring:
    numbers = np.array([np.nan if v is None else float(v) for v in values])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    share = np.nan_to_num((numbers - low) / (high - low if high > low else 1.0))
    palette = pg.colormap.get("viridis").getLookupTable(nPts=SHADES, alpha=False)
    index = np.round(share * (SHADES - 1)).astype(np.int64)
    return Colouring(by, _both(index, images, texts), np.asarray(palette, np.uint8), (), (low, high))


def _both(index: Int[np.ndarray, " n"], images: int, texts: int) -> Int[np.ndarray, " m"]:
    return np.concatenate([index[:images], index[:texts]])


def _is_scale(values: Sequence[Any]) -> bool:
    numbers = [v for v in values if v is not None]
    whole_or_not = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in numbers)
    return bool(numbers) and whole_or_not and len(set(numbers)) > MOST_WHOLE_NUMBERS


def _is_class(values: Sequence[Any]) -> bool:
    try:
        different = {v for v in values if v not in (None, "")}
    except TypeError:  # lists and the like are no classes
        return False
    return 0 < len(different) <= MOST_CLASSES and len(different) < max(len(values), 2)


def _rgb(colours: Sequence[str]) -> UInt8[np.ndarray, "k 3"]:
    return np.array([QColor(name).getRgb()[:3] for name in colours], np.uint8).reshape(-1, 3)
