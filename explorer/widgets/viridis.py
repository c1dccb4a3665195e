"""The one color scale of heat maps: viridis, dark for little and bright for much, readable without colors too."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8
from PySide6.QtGui import QImage

NOTHING: Final = 140
"""Gray of a cell without a number."""


def shade(shares: Float[np.ndarray, "r c"]) -> UInt8[np.ndarray, "r c 3"]:
    """Red, green and blue of shares from 0 to 1; beyond that the end's color, gray where there is no number."""
    known = np.isfinite(shares)
    colors = _table()[(np.where(known, shares, 0.0).clip(0, 1) * 255).astype(np.int64)]
    colors[~known] = NOTHING
    return colors


def picture(shares: Float[np.ndarray, "r c"]) -> QImage:
    """The same as an image, a pixel a cell."""
    colors = np.ascontiguousarray(shade(shares))
    height, width = colors.shape[:2]
    return QImage(colors.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


@cache
def _table() -> UInt8[np.ndarray, "256 3"]:
    import pyqtgraph as pg

    return pg.colormap.get("viridis").getLookupTable(nPts=256)[:, :3].astype(np.uint8)
