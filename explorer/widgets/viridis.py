"""The color scale of heat maps: viridis, dark for low and bright for high, readable without color vision."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8
from PySide6.QtGui import QImage

NOTHING: Final = 140
"""Gray of a cell without a number."""


def shade(shares: Float[np.ndarray, "r c"]) -> UInt8[np.ndarray, "r c 3"]:
    """Return RGB of shares from 0 to 1, clipped beyond; gray for NaN."""
    known = np.isfinite(shares)
    colors = _table()[(np.where(known, shares, 0.0).clip(0, 1) * 255).astype(np.int64)]
    colors[~known] = NOTHING
    return colors


def picture(shares: Float[np.ndarray, "r c"]) -> QImage:
    """Return the colors as an image with one pixel per cell."""
    colors = np.ascontiguousarray(shade(shares))
    height, width = colors.shape[:2]
    return QImage(colors.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


@cache
def _table() -> UInt8[np.ndarray, "256 3"]:
    import pyqtgraph as pg

    return pg.colormap.get("viridis").getLookupTable(nPts=256)[:, :3].astype(np.uint8)
