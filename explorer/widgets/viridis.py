"""The color scales of heat maps, readable without color vision.

Viridis is dark for low and bright for high. Differences are purple below 0, white at 0 and green above; over a picture
they have the colors of runs, and are clear at 0.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, UInt8
from PySide6.QtGui import QImage

Scale = tuple[str, ...]
LEVELS = 257
"""Shades of a scale: an odd number, so that 0 has the middle one."""


def shade(shares: Float[np.ndarray, "r c"], scale: Scale = ()) -> UInt8[np.ndarray, "r c 4"]:
    """Return RGBA of shares from 0 to 1, clipped beyond; clear for NaN. `scale`: its colors, if not viridis."""
    finite = np.isfinite(shares)
    colors = _table(scale)[np.rint(np.where(finite, shares, 0.0).clip(0, 1) * (LEVELS - 1)).astype(np.int64)]
    colors[~finite] = 0
    return colors


def picture(shares: Float[np.ndarray, "r c"], scale: Scale = ()) -> QImage:
    """Return the colors as an image with one pixel per cell; cells without a number are clear."""
    colors = np.ascontiguousarray(shade(shares, scale))
    height, width = colors.shape[:2]
    return QImage(colors.data, width, height, 4 * width, QImage.Format.Format_RGBA8888).copy()


@cache
def _table(scale: Scale) -> UInt8[np.ndarray, "levels 4"]:
    import pyqtgraph as pg

    colors = pg.ColorMap(None, list(scale)) if scale else pg.colormap.get("viridis")
    return colors.getLookupTable(nPts=LEVELS, alpha=True).astype(np.uint8)
