"""Draw maps of pairs, their colors and the legend of a figure with maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.dominant_classes import dominant_points
from trainer.charts.colored_points import SHADES, ColoredPoints, Palette
from trainer.charts.marks import FEW_LIT, Marker, PairMap, XYPlot, dash_of
from trainer.charts.pair_colors import MODALITY
from trainer.render_mpl.style import HAIRLINE, IMAGE_COLOR, INK, QUIET, TEXT_COLOR, class_colors, heading, run_color
from trainer.render_mpl.xy_plot import tone_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

MOST_VECTOR_POINTS: Final = 50_000
"""More points than this in a figure are drawn as a picture of 300 dpi inside it; text and axes stay vectors."""
LAYERS: Final = 16
"""Of images and of texts, in turn, where points are a picture: else texts, drawn last, hide the images."""
_MOST_CLASSES: Final = 20
"""Classes that the legend names."""
_LETTERS: Final = 32
"""Of the name of a class."""
HALF_PAGE_IN, _GROWTH = 2.6, (0.3, 1.5)
"""Side of a map on half a page, and how much smaller or larger than there points are."""
_ENTRY_IN, _LETTER_IN = 0.35, 0.055
"""Width of an entry of the legend without its name, and of a letter."""


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


def draw_map(axes: Axes, mark: PairMap, *, rasterized: bool = False, layers: int = 1) -> list[Any]:
    """Draw the map and return the drawn images and texts in color, which a film moves; each in layers."""
    size = _area(axes, mark.count)
    images, drawn = 0 if mark.images is None else len(mark.images), []
    clear = _clearness(mark)
    for points, marker, plain, scale, alpha in (
        (mark.images, "o", IMAGE_COLOR, 1.0, clear[:images]),
        (mark.texts, "D", TEXT_COLOR, 0.8, clear[images:]),
    ):
        if points is None:
            continue
        color = colors_of_pairs(mark.colors, plain)
        color = color if isinstance(color, str) else color[: len(points)]
        style: dict[str, Any] = {"linewidths": 0, "rasterized": rasterized, "marker": marker, "s": size * scale}
        if mark.lit is not None:
            lit = mark.lit[: len(points)]
            is_few, one_color = mark.lit.sum() <= FEW_LIT, isinstance(color, str)
            rest = HAIRLINE if not is_few else color if one_color else color[~lit]
            axes.scatter(points[~lit, 0], points[~lit, 1], c=rest, alpha=0.35 if is_few else 0.7, zorder=1, **style)
            points, alpha, color = points[lit], 1 if is_few else alpha[lit], color if one_color else color[lit]
            style |= {"s": 4 * size * scale, "linewidths": 1, "edgecolors": INK} if is_few else {}
        layer = np.random.default_rng(0).integers(layers, size=len(points))
        for number in range(layers):
            part = layer == number
            look = {"c": color, "alpha": alpha} | style
            look |= {name: look[name][part] for name in ("c", "alpha") if np.ndim(look[name])}
            drawn.append(axes.scatter(*points[part].T, zorder=2 + number / layers, **look))
    _frame(axes, mark)
    if mark.bar and (scale_of_colors := scale_of(mark.colors)) is not None:
        bar = axes.figure.colorbar(scale_of_colors, cax=axes.inset_axes((1.03, 0.2, 0.04, 0.6)))
        bar.set_label(mark.bar_label)
        bar.outline.set_visible(False)
    heading(axes, mark.title, *mark.notes, swatch=tone_color(mark.tone) if mark.tone else None)
    return drawn


def _area(axes: Axes, count: int) -> float:
    """Return the area of a point in square points: a tenth of the map is covered, within what an eye can see."""
    box = axes.bbox
    side_in = min(box.width, box.height) / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    return float(np.clip(9000 / max(count, 1), 1.2, 16) * np.clip(side_in / HALF_PAGE_IN, *_GROWTH))


def class_names_on(mark: PairMap) -> list[Marker]:
    """Return the name of each class that dominates somewhere, where it is densest, as the window writes them."""
    if mark.colors.place is None or mark.lit is not None:
        return []
    clouds = [points for points in (mark.images, mark.texts) if points is not None]
    classes = np.concatenate([mark.colors.place[: len(points)] for points in clouds])
    points_of = dominant_points(classes, np.concatenate(clouds))
    return [Marker("", "quiet", x, y, 0.0, label=mark.colors.names[at]) for at, (x, y) in points_of.items() if at >= 0]


def _frame(axes: Axes, mark: PairMap) -> None:
    axes.set(xticks=[], yticks=[])
    axes.set_box_aspect(1)
    axes.spines[:].set(visible=True, color=HAIRLINE)
    axes.set_xlabel(mark.x_label, color=QUIET, fontsize=7.5)
    axes.set_ylabel(mark.y_label or mark.row_label, color=INK if mark.row_label else QUIET, fontsize=7.5)
    if mark.frame is None:
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.04)
        return
    left, bottom, right, top = mark.frame
    half = 0.54 * max(right - left, top - bottom, 1e-9)
    x, y = (left + right) / 2, (bottom + top) / 2
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half))


def _clearness(mark: PairMap) -> Any:
    """Return the opacity of the images and then the texts; in space, distant ones are paler."""
    if mark.near is None:
        return np.full(mark.count, 0.7)
    low, high = float(np.nanmin(mark.near)), float(np.nanmax(mark.near))
    return 0.3 + 0.6 * np.nan_to_num((mark.near - low) / max(high - low, 1e-12))


def scale_of(points: ColoredPoints) -> ScalarMappable | None:
    """Return what a color bar shows; None without a scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    if points.numbers is None or points.ends is None or not np.isfinite(points.numbers).any():
        return None
    return ScalarMappable(Normalize(*points.ends, clip=True), ListedColormap(colors_of_table(points)))


def legend_of(marks: Sequence[Any], page_in: float, most: int = 99) -> tuple[list[Any], int]:
    """Return the entries of the legend and its columns: runs of plots without their own, modalities, classes.

    Args:
        marks: Of the figure.
        page_in: Width of the legend in inches.
        most: Columns at most.

    Returns:
        The entries in the order in which matplotlib fills columns, so that they are read across.
    """
    from matplotlib.lines import Line2D

    def entry(marker: str, color: str, label: str) -> Line2D:
        return Line2D([], [], marker=marker, color=color, linestyle="", markersize=4.2, label=label)

    maps = [mark for mark in marks if isinstance(mark, PairMap)]
    if not maps:
        return [], 1
    tones = {curve.name: curve.tone for mark in marks if isinstance(mark, XYPlot) for curve in mark.curves}
    handles = [
        Line2D([], [], color=tone_color(tone), label=name, linestyle=(0, dash_of(tone) or (1, 0)))
        for name, tone in tones.items()
    ]
    by_modality = maps[0].colors.by == MODALITY
    if any(mark.images is not None for mark in maps):
        handles.append(entry("o", IMAGE_COLOR if by_modality else QUIET, "Images" if by_modality else "image"))
    if any(mark.texts is not None for mark in maps):
        handles.append(entry("D", TEXT_COLOR if by_modality else QUIET, "Texts" if by_modality else "caption"))
    colored = next((mark.colors for mark in maps if mark.colors.names), maps[0].colors)
    names = colored.names
    colors = colors_of_table(colored) if names else []
    handles += [entry("s", colors[i], name[:_LETTERS]) for i, name in enumerate(names[:_MOST_CLASSES])]
    if len(names) > _MOST_CLASSES:
        handles.append(entry("", QUIET, f"and {len(names) - _MOST_CLASSES} more"))
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(len(handles), most, int(page_in / (_ENTRY_IN + _LETTER_IN * longest))))
    return [handle for first in range(columns) for handle in handles[first::columns]], columns
