"""Point colors in figures: those of `ColoredPoints` in the colors of figures."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.charts.colored_points import SHADES, ColoredPoints, Palette
from trainer.render_mpl.style import HAIRLINE, IMAGE_COLOR, QUIET, TEXT_COLOR, class_colors, run_color

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable


@cache
def palette() -> Palette:
    """Return the colors of figures, which stand on white."""
    import matplotlib

    shades = np.rint(255 * matplotlib.colormaps["viridis"](np.arange(SHADES))[:, :3]).astype(np.uint8)
    runs, modalities = (run_color(0), run_color(1)), (IMAGE_COLOR, TEXT_COLOR)
    return Palette(class_colors, runs, modalities, QUIET, HAIRLINE, shades)


def colors_of_pairs(points: ColoredPoints, plain: str) -> Any:
    """Return red, green and blue of each pair in [0, 1]; `plain` where pairs have no color of their own."""
    if points.is_plain:
        return plain
    table = points.table(palette())
    return table[points.rows(len(table) - 1)] / 255


def colors_of_table(points: ColoredPoints) -> list[str]:
    """Return the colors of the classes or shades as `#rrggbb`."""
    return ["#" + bytes(row).hex() for row in points.table(palette())[:-1].tolist()]


def scale_of(points: ColoredPoints) -> ScalarMappable | None:
    """Return what a color bar shows; None without a scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    if points.numbers is None or points.ends is None or not np.isfinite(points.numbers).any():
        return None
    return ScalarMappable(Normalize(*points.ends, clip=True), ListedColormap(colors_of_table(points)))
