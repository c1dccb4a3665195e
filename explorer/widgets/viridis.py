"""The color scale of heat maps: viridis, dark for low and bright for high, readable without color vision."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, UInt8
from PySide6.QtGui import QImage


def shade(shares: Float[np.ndarray, "r c"]) -> UInt8[np.ndarray, "r c 4"]:
    """Return RGBA of shares from 0 to 1, clipped beyond; clear for NaN."""
    known = np.isfinite(shares)
    colors = _table()[(np.where(known, shares, 0.0).clip(0, 1) * 255).astype(np.int64)]
    colors[~known] = 0
    return colors


def picture(shares: Float[np.ndarray, "r c"]) -> QImage:
    """Return the colors as an image with one pixel per cell; cells without a number are clear."""
    colors = np.ascontiguousarray(shade(shares))
    height, width = colors.shape[:2]
    return QImage(colors.data, width, height, 4 * width, QImage.Format.Format_RGBA8888).copy()


@cache
def _table() -> UInt8[np.ndarray, "256 4"]:
    import pyqtgraph as pg

    return pg.colormap.get("viridis").getLookupTable(nPts=256, alpha=True).astype(np.uint8)
