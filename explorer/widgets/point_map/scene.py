"""The view information an overlay needs to draw in the right place."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from explorer.widgets.point_map.rasterizer import Viewport


class MapScene(Struct, frozen=True):
    """The current view.

    Attributes:
        sight: The rectangle of the layout, and its size in device pixels.
        corner: Where the view's left top corner is in the widget, in logical pixels.
        width, height: Size of the view in logical pixels.
        ratio: Device pixels per logical pixel.
        moving: Whether the view changed a moment ago: draw what is quick.
    """

    sight: Viewport
    corner: tuple[float, float]
    width: float
    height: float
    ratio: float
    moving: bool

    @property
    def pixels_per_unit(self) -> tuple[float, float]:
        """Logical pixels per layout unit, horizontally and vertically."""
        across, down = self.sight.scale
        return across / self.ratio, down / self.ratio

    def to_pixels(self, xy: Float[np.ndarray, "k 2"]) -> Float[np.ndarray, "k 2"]:
        """Convert layout positions to logical widget pixels."""
        scale = np.array(self.pixels_per_unit)
        origin = np.array((self.sight.left, self.sight.top))
        return (np.asarray(xy, np.float64) - origin) * (scale * (1, -1)) + self.corner
