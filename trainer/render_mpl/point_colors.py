"""Point colors in figures: classes, values on a scale, or tints of the run that a number favors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from trainer.charts.color_words import own_colors
from trainer.charts.pair_colors import AGREEMENT
from trainer.render_mpl.style import HAIRLINE, QUIET, class_colors, run_color

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize

_SCALE: Final = "viridis"


class Colored(Protocol):
    """The colors of pairs, as in `trainer.charts.map.MapChart`."""

    color: str
    classes: tuple[str, ...]
    class_of: np.ndarray
    numbers: np.ndarray | None
    ordered: bool
    own_scale: bool
    ends: tuple[float, float] | None
    better: int


def scales_of(charts: Sequence[Colored]) -> list[Normalize | None]:
    """Return the scale of each map: a common one, unless each has its own."""
    from matplotlib.colors import Normalize

    def scale(of: Sequence[Colored]) -> Normalize | None:
        if of[0].ends is not None and of[0].better:
            return Normalize(*of[0].ends, clip=True)
        numbers = [chart.numbers for chart in of if chart.numbers is not None]
        together = np.concatenate(numbers) if numbers else np.empty(0)
        together = together[np.isfinite(together)]
        return Normalize(float(together.min()), float(together.max())) if len(together) else None

    if any(chart.own_scale for chart in charts):
        return [scale([chart]) for chart in charts]
    return [scale(charts)] * len(charts)


def colors_of_pairs(chart: Colored, norm: Normalize | None, plain: str) -> Any:
    """Return the color values of pairs: on the scale (gray if missing), by class, or by modality."""
    if chart.numbers is not None and norm is not None:
        scale = color_map_of(chart).with_extremes(bad=QUIET if not chart.better else HAIRLINE)
        missing = ~np.isfinite(chart.numbers)
        return scale(np.ma.array(norm(np.where(missing, 0, chart.numbers)), mask=missing))
    if chart.classes:
        # The last one is -1's: a pair of which it is not known.
        return np.asarray([*colors_of_classes(chart), QUIET])[chart.class_of]
    return plain


def color_map_of(chart: Colored) -> Colormap:
    """Return a color map from low to high, or diverging around zero toward the color of the favored run."""
    import matplotlib
    from matplotlib.colors import LinearSegmentedColormap

    if not chart.better:
        return matplotlib.colormaps[_SCALE]
    ends = (run_color(0), QUIET, run_color(1))[:: chart.better]
    return LinearSegmentedColormap.from_list("a-b", ends)


def colors_of_classes(chart: Colored) -> list[str]:
    """Return the color of each class: a run's color if only that run is correct, or a scale if ordered."""
    if chart.color == AGREEMENT:
        return [class_colors(4)[i] for i in (2, 0, 1, 3)]
    if chart.ordered:
        import matplotlib
        from matplotlib.colors import to_hex

        return [to_hex(color) for color in matplotlib.colormaps[_SCALE](np.linspace(0, 0.9, len(chart.classes)))]
    return own_colors(chart.classes) or class_colors(max(len(chart.classes), 1))
