"""Figures of embedding maps: images as discs, texts as diamonds, runs side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts import objective_label
from trainer.charts.figure_choices import WHOLE, FigureChoices
from trainer.charts.map import MapChart
from trainer.charts.pair_colors import MODALITY, words
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.point_colors import colors_of_pairs, colors_of_table, scale_of
from trainer.render_mpl.style import (
    HAIRLINE,
    IMAGE_COLOR,
    PAGE_IN,
    QUIET,
    TEXT_COLOR,
    footnote,
    heading,
    in_style,
    new_figure,
    run_color,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_VECTOR_POINTS: Final = 50_000
"""More points than this in a figure are drawn as a picture of 300 dpi inside it; text and axes stay vectors."""
_MOST_LEGEND: Final = 20
LARGEST_IN: Final = 4.4
"""Of a map that stands alone."""
LETTERS_PER_IN: Final = 18
"""Of a line of notes."""

_METHODS: Final = {
    "pca": ("First two principal components of images and texts together", ""),
    "umap": ("UMAP of images and texts together", "; distances between clusters are not meaningful"),
    "umap-learn": ("UMAP of images and texts together", "; distances between clusters are not meaningful"),
    "tsne": ("t-SNE of images and texts together", "; distances between clusters are not meaningful"),
    "pacmap": ("PaCMAP of images and texts together", "; distances between clusters are not meaningful"),
    "file": ("Coordinates of a file, shown as they are", ""),
}


@in_style
def draw(charts: Sequence[MapChart], choices: FigureChoices = WHOLE) -> Figure:
    """Draw the maps of one or several runs, each with its own axes, with a common legend."""
    columns = min(2, len(charts)) if choices.arrange == "row" else 1
    lines = -(-len(charts) // columns)
    page_in = choices.layout_in if columns == 2 else min(choices.layout_in, LARGEST_IN)
    figure = new_figure(page_in, 0.75 + (page_in / columns + 0.1) * lines, scale=choices.scale)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.07, hspace=0.05, wspace=0.05)
    grid = figure.subplots(lines, columns, squeeze=False)
    points = sum(_count(chart) for chart in charts)
    for index, (axes, chart) in enumerate(zip(grid.flat, charts)):
        _draw_map(axes, chart, index, wide=page_in / columns, rasterized=points > MOST_VECTOR_POINTS)
    for axes in list(grid.flat)[len(charts) :]:
        axes.set_axis_off()
    _color_bars(figure, list(grid.flat), charts)
    _legend(figure, charts, page_in)
    if choices.notes:
        footnote(figure, _in_lines(_note(charts), int(LETTERS_PER_IN * page_in)))
    return figure


def rows(charts: Sequence[MapChart]) -> NumberRows:
    """Return every point: run, pair, modality, class or number, coordinates, caption and path."""
    header = ("run", "name", "step", "dataset", "split", "method", "pair", "modality", "class", "x", "y")
    lit = ("in color",) if any(chart.lit is not None for chart in charts) else ()
    return NumberRows((*header, *lit, "caption", "path"), _rows(charts, with_lit=bool(lit)))


def _rows(charts: Sequence[MapChart], *, with_lit: bool) -> Iterator[tuple[Any, ...]]:
    for chart in charts:
        facts = (chart.run, chart.name, chart.step, chart.dataset, chart.split, chart.method)
        for modality, points in (("image", chart.images), ("text", chart.texts)):
            for pair, (x, y) in enumerate([] if points is None else points.tolist()):
                lit = (int(chart.lit is None or chart.lit[pair]),) if with_lit else ()
                yield *facts, pair, modality, _value(chart, pair), x, y, *lit, chart.captions[pair], chart.paths[pair]


def _value(chart: MapChart, pair: int) -> str | float:
    colors = chart.colors
    if colors.numbers is not None:
        return "" if np.isnan(colors.numbers[pair]) else float(colors.numbers[pair])
    return colors.names[colors.place[pair]] if colors.place is not None and colors.place[pair] >= 0 else ""


def _color_bars(figure: Figure, axes: Sequence[Axes], charts: Sequence[MapChart]) -> None:
    """Draw one color bar for all maps, or one next to each map with its own scale."""
    own_scales = any(chart.colors.own_scale for chart in charts)
    for index, chart in enumerate(charts):
        scale = scale_of(chart.colors)
        if scale is None or (index > 0 and not own_scales):
            continue
        bar = figure.colorbar(scale, ax=axes[index] if own_scales else list(axes), shrink=0.6, aspect=24, pad=0.02)
        bar.set_label(words(chart.colors.by))
        bar.outline.set_visible(False)


def _draw_map(axes: Axes, chart: MapChart, index: int, *, wide: float, rasterized: bool) -> None:
    # Area in points^2: about a tenth of the panel is covered, whatever n, within what an eye can see.
    size = float(np.clip(9000 / max(_count(chart), 1), 1.2, 16))
    clear = _clearness(chart)
    for points, marker, plain, scale, alpha in (
        (chart.images, "o", IMAGE_COLOR, 1.0, clear[0]),
        (chart.texts, "D", TEXT_COLOR, 0.8, clear[1]),
    ):
        if points is not None:
            color = colors_of_pairs(chart.colors, plain)
            style: dict[str, Any] = {"linewidths": 0, "rasterized": rasterized, "marker": marker, "s": size * scale}
            if chart.lit is None:
                axes.scatter(points[:, 0], points[:, 1], c=color, alpha=alpha, **style)
                continue
            lit = chart.lit[: len(points)]
            axes.scatter(points[~lit, 0], points[~lit, 1], c=HAIRLINE, alpha=0.7, zorder=1, **style)
            color = color[lit] if isinstance(color, np.ndarray) else color
            alpha = alpha[lit] if isinstance(alpha, np.ndarray) else alpha
            axes.scatter(points[lit, 0], points[lit, 1], c=color, alpha=alpha, zorder=2, **style)
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_box_aspect(1)
    axes.margins(0.04)
    axes.spines[:].set(visible=True, color=HAIRLINE)
    if chart.method == "pca" and chart.side is None:
        named = [f"Component {number}{_of_variance(chart, number - 1)}" for number in (1, 2)]
        axes.set_xlabel(named[0], color=QUIET, fontsize=7.5)
        axes.set_ylabel(named[1], color=QUIET, fontsize=7.5)
    sampled = " (sampled)" if chart.sampled else ""
    detail = f"{objective_label(chart.objective)}, step {chart.step:,}, {chart.dataset} {chart.split}, n = {chart.n:,}"
    letters = int(LETTERS_PER_IN * wide) - 4
    details = textwrap.wrap(f"{detail} pairs{sampled}", letters, break_long_words=False)
    heading(axes, chart.name, *details, swatch=run_color(index))


def _of_variance(chart: MapChart, axis: int) -> str:
    return "" if chart.shares is None else f", {100 * chart.shares[axis]:.0f} % of the variance"


def _clearness(chart: MapChart) -> tuple[Any, Any]:
    """Return the opacity of the images and of the texts; in 3-D, distant ones are paler."""
    if chart.near is None:
        return 0.7, 0.7
    low, high = float(np.nanmin(chart.near)), float(np.nanmax(chart.near))
    clear = 0.3 + 0.6 * np.nan_to_num((chart.near - low) / max(high - low, 1e-12))
    images = 0 if chart.images is None else len(chart.images)
    return clear[:images], clear[images:]


def _legend(figure: Figure, charts: Sequence[MapChart], page_in: float) -> None:
    from matplotlib.lines import Line2D

    def mark(marker: str, color: str, label: str) -> Line2D:
        return Line2D([], [], marker=marker, color=color, linestyle="", markersize=4.2, label=label)

    modality = charts[0].colors.by == MODALITY
    handles = []
    if any(chart.images is not None for chart in charts):
        handles.append(mark("o", IMAGE_COLOR if modality else QUIET, "Images"))
    if any(chart.texts is not None for chart in charts):
        handles.append(mark("D", TEXT_COLOR if modality else QUIET, "Texts"))
    colored = next((chart.colors for chart in charts if chart.colors.names), charts[0].colors)
    classes = colored.names
    colors = colors_of_table(colored) if classes else []
    handles += [mark("s", colors[i], name[:32]) for i, name in enumerate(classes[:_MOST_LEGEND])]
    if len(classes) > _MOST_LEGEND:
        handles.append(mark("", QUIET, f"and {len(classes) - _MOST_LEGEND} more"))
    a_page = 10 if len(classes) <= 8 else 7
    across = max(1, min(len(handles), int(a_page * page_in / PAGE_IN)))
    placing: dict[str, Any] = {"loc": "outside upper left", "ncols": across, "borderaxespad": 0.7}
    figure.legend(handles=handles, columnspacing=1.2, handletextpad=0.2, **placing)


def _note(charts: Sequence[MapChart]) -> str:
    first = charts[0]
    what, caution = _METHODS.get(first.method, (first.method, ""))
    if first.side is not None:
        what = "First three principal components of images and texts together, paler where farther away"
    notes = [what + (f" ({first.parameters})" if first.parameters else "") + caution]
    if len(charts) > 1 and first.side is None and first.method != "file":
        notes.append("Maps of the same pairs are aligned to the first")
    highlighted = next((chart for chart in charts if chart.lit is not None), None)
    if highlighted is not None:
        notes.append(
            f"{highlighted.lit_note[0].upper()}{highlighted.lit_note[1:]}, n = {highlighted.lit_n:,}; the others gray"
        )
    if first.colors.by != MODALITY:
        missing = "; gray where it is missing" if any(chart.colors.has_missing for chart in charts) else ""
        said, note = words(first.colors.by), first.colors.note
        notes.append(f"Colored by {said[0].lower() + said[1:]}{missing}")
        notes += [f"{note[0].upper()}{note[1:]}"] if note else []
    return ". ".join(notes) + "."


def _in_lines(note: str, most: int) -> str:
    """Wrap sentences to lines of at most `most` characters, because longer ones would be cut off."""
    lines = [""]
    for sentence in note.split(". "):
        joined = f"{lines[-1]}. {sentence}" if lines[-1] else sentence
        if len(joined) <= most or not lines[-1]:
            lines[-1] = joined
        else:
            lines[-1] += "."
            lines.append(sentence)
    return "\n".join(lines)


def _count(chart: MapChart) -> int:
    return sum(len(points) for points in (chart.images, chart.texts) if points is not None)
