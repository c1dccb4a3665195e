"""Draw a panel of `trainer.charts.marks` with matplotlib, row by row."""

from __future__ import annotations

import itertools
import math
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.palette import DIVERGING, fading
from trainer.charts.figure_choices import WHOLE, FigureChoices, chosen_panel
from trainer.charts.marks import (
    HeatMap,
    ImageRow,
    Mark,
    NumberRow,
    NumberTable,
    PairMap,
    Panel,
    RowImage,
    ShadedTable,
    XYPlot,
    grayed,
    run_tone,
)
from trainer.charts.panel_rows import HEADER, panel_rows
from trainer.charts.run_tones import with_sides
from trainer.charts.timeline import MAP_IN, MOST_STEPS
from trainer.experiments.run_style import SIDES
from trainer.render_mpl.dot_labels import label_dots
from trainer.render_mpl.files import NumberRows, write_figure
from trainer.render_mpl.pair_map import LAYERS, MOST_VECTOR_POINTS, class_names_on, draw_map, legend_of
from trainer.render_mpl.style import HAIRLINE, INK, PAGE_IN, QUIET, footnote, heading, in_style, new_figure
from trainer.render_mpl.text_fitting import align_titles, shortened
from trainer.render_mpl.xy_plot import (
    TONES,
    draw_plot,
    draw_small,
    legend_lines,
    legend_names,
    lying_names,
    tone_color,
    with_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION_LETTERS: Final = 18
"""Of a line under an image, in an inch of its width."""
MOST_PICTURES: Final = 12
FEWEST_PICTURES: Final = 6
"""Of a row on a page, and of one on a narrow part of it."""
IMAGES_WIDE, IMAGE_LINE_IN = 0.96, 0.115
"""Share of its place that a row of images takes, and the height of a line of words over or under an image."""
COLUMN_IN: Final = 0.75
LETTER_IN: Final = 0.056
LINE_IN: Final = 0.19
"""Of a table of numbers: a column at least, a letter, and a line."""
HEAD_PT: Final = (7, 6)
"""Size of the names of up to four columns, and of more."""
TABLE_PT: Final = (7.0, 6.0)
"""Size of the words and numbers of a table, and of one that is too wide otherwise."""
AROUND_TABLE_IN: Final = 0.25
"""Of a page, what a table cannot take."""
LEAST_NAME: Final = 22
"""Letters of a line of a row's name: names are broken to these before the columns of a table are parted."""
LEAST_COLUMN_IN: Final = 0.42
LEAST_LETTERS: Final = 8
HEADING_LETTERS: Final = 13
"""Of a title and of a note above a mark, in an inch of its width."""
LYING_IN: Final = 0.22
"""Of a category whose bars lie."""
MOST_EQUAL_IN: Final = 4.6
"""Height of a plot whose axes have one scale, where its place is wide enough for more."""
MOST_COLUMNS: Final = 12
"""Of shaded tables next to each other, their names included."""
MOST_BESIDE: Final = 3
"""More marks of one row than these go into further lines."""
LEAST_MARK_IN: Final = 1.7
"""Of a plot next to another."""
LEAST_NAMED_IN, LONG_NAME = 2.6, 24
"""The same of a plot whose legend has names longer than this."""
LEAST_SMALL_IN, SMALL_IN = 1.4, 1.45
"""The same of small plots, and the height of one."""
LARGEST_MAP_IN, LARGEST_SMALL_IN = 4.4, 1.8
"""Of a map that stands alone, and of a small one."""
NAMED_IN, NAMED_PT, NAMED_LETTERS = 0.15, 7.0, 56
"""Of a row of a heat map whose rows have names: its height, and the size and the most letters of its name."""
LEGEND_LINE_IN: Final = 0.16
LETTERS_PER_IN: Final = 132 / PAGE_IN
"""Of a line of notes."""


@in_style
def draw(panel: Panel, choices: FigureChoices = WHOLE, runs: Sequence[str] = ()) -> Figure:
    """Draw the chosen parts of the panel, whose runs have these labels."""
    panel = with_sides(chosen_panel(panel, choices, runs), SIDES.get())
    panel, page_in = _with_legends(panel, notes=choices.notes), choices.layout_in
    maps = [mark for mark in panel.marks if isinstance(mark, PairMap)]
    if len(panel.marks) == len(maps) == 1:
        page_in = min(page_in, LARGEST_MAP_IN)
    letters = int(LETTERS_PER_IN * page_in)
    lines = list(_lines(panel, page_in))
    counts = _counts(lines) if maps else [*map(len, lines)]
    heights = [
        max(_height(mark, page_in / count, compact=panel.compact) for mark in row)
        for row, count in zip(lines, counts, strict=True)
    ]
    over = [*panel.head, *panel.warnings]
    head = [panel.title, *(line for part in over for line in broken(part.split(" "), " ", letters))]
    head = [line for line in head if line]
    notes = [line for note in panel.notes for line in broken(note.split(" "), " ", letters)]
    below_in = 0.5 + 0.12 * max(0, len(notes) - 2)
    handles, columns = legend_of(panel.marks if panel.compact else maps, page_in)
    legend_in = [0.16 + LEGEND_LINE_IN * -(-len(handles) // columns)] if handles else []
    figure = new_figure(page_in, sum(heights + legend_in) + below_in + 0.16 * len(head), scale=choices.scale)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.07, hspace=0.05, wspace=0.05)
    rows = figure.add_gridspec(len(heights + legend_in), 1, height_ratios=legend_in + heights)
    rasterized = sum(mark.count for mark in maps) > MOST_VECTOR_POINTS
    blocks = [[*block] for _, block in itertools.groupby(range(len(lines)), counts.__getitem__)] if maps else []
    cells: dict[tuple[int, int], Any] = {}
    for block in blocks:  # what stands below each other is aligned
        part = rows[len(legend_in) + block[0] : len(legend_in) + block[-1] + 1]
        ratios = [heights[index] for index in block]
        grid = part.subgridspec(len(block), counts[block[0]], height_ratios=ratios)
        cells |= {
            (index, column): grid[at, column] for at, index in enumerate(block) for column in range(counts[index])
        }
    for index, row in enumerate(lines):
        widths = [_table_width(mark) for mark in row if isinstance(mark, NumberTable)]
        if not maps:
            shares = widths if len(widths) == len(row) else None
            inner = rows[len(legend_in) + index].subgridspec(1, len(row), width_ratios=shares)
            cells |= {(index, column): inner[column] for column in range(len(row))}
        for column, mark in enumerate(row):
            axes = figure.add_subplot(cells[index, column])
            if isinstance(mark, PairMap):
                draw_map(axes, mark, rasterized=rasterized, layers=LAYERS if rasterized else 1)
                # Small maps leave the classes to the legend.
                label_dots(axes, [] if panel.compact else class_names_on(mark), over_lines=True)
            elif isinstance(mark, XYPlot) and panel.compact:
                plots_below = [len(line) for line in lines[index + 1 :] if isinstance(line[0], XYPlot)]
                draw_small(axes, mark, bottom=max(plots_below, default=0) < len(row), lines=2)
            else:
                _draw(axes, mark, wide=page_in / len(row), high=heights[index])
        if all(isinstance(mark, XYPlot) for mark in row):
            align_titles(figure.axes[-len(row) :])
    if handles:
        style = {"columnspacing": 1.2, "handletextpad": 0.4, "borderaxespad": 0.7}
        # A line is as long as two strokes of a dashed one.
        style |= {"handlelength": 3.2, "handletextpad": 0.6, "columnspacing": 0.6} if panel.compact else {}
        legend = figure.add_subfigure(rows[0]).legend(handles=handles, loc="upper left", ncols=columns, **style)
        for line in legend.get_lines() if panel.compact else ():
            line.set_markevery([2])  # of three points along the stroke: beside its name
    if head:
        figure.suptitle("\n".join(head), x=0.01, ha="left", fontsize=7.5, color=QUIET, linespacing=1.5)
    footnote(figure, "\n".join(notes))
    return figure


def write_panel(files: Sequence[Path], panel: Panel, name: str, command: str) -> None:
    """Write the panel of chart `name` to every file, its numbers to `.csv` and `.parquet`, tables to `.md` and `.tex`.

    Raises:
        UserError: As `write_figure`.
    """
    write_figure(
        files,
        figure=lambda: draw(panel),
        rows=lambda: NumberRows(HEADER, panel_rows(panel, name)),
        command=command,
        title=panel.title,
        panel=lambda: panel,
    )


def _counts(lines: Sequence[Sequence[Mark]]) -> list[int]:
    """Return into how many columns each row is divided: rows of maps alike, and so rows of other marks."""
    of_maps = [any(isinstance(mark, PairMap) for mark in row) for row in lines]
    most = {kind: max(len(row) for row, is_map in zip(lines, of_maps) if is_map == kind) for kind in {*of_maps}}
    return [most[is_map] for is_map in of_maps]


def _with_legends(panel: Panel, *, notes: bool) -> Panel:
    """Return the panel with the labels of curves in legends; notes take in what all of its plots note."""
    plots = [mark for mark in panel.marks if isinstance(mark, XYPlot)]
    same = {plot.note for plot in plots}
    moved = notes and len(plots) > 1 == len(same) and not panel.compact

    def drawn(mark: Mark) -> Mark:
        return replace(with_legend(mark), note="" if moved else mark.note) if isinstance(mark, XYPlot) else mark

    rows = tuple(tuple(map(drawn, row)) for row in panel.rows)
    return replace(panel, rows=rows, notes=(*(filter(None, same) if moved else ()), *panel.notes))


def _lines(panel: Panel, page_in: float) -> Iterator[tuple[Mark, ...]]:
    """Yield the rows of the panel, stacking tables that are too wide to be side by side."""
    for row in panel.rows:
        if sum(1 + len(mark.columns) for mark in row if isinstance(mark, ShadedTable)) > MOST_COLUMNS:
            yield from ((mark,) for mark in row)
        elif all(isinstance(mark, NumberTable) for mark in row):
            tables = [part for mark in row if isinstance(mark, NumberTable) for part in parted(mark, page_in)]
            yield from _fitting(tables, page_in)
        else:
            is_map = isinstance(row[0], PairMap)
            small_in = MAP_IN if is_map else LEAST_SMALL_IN
            most, least_in = (MOST_STEPS, small_in) if panel.compact else (MOST_BESIDE, LEAST_MARK_IN)
            most += isinstance(row[0], HeatMap) and row[0].picture is not None  # it stands with the maps over it
            if any(
                isinstance(mark, XYPlot) and max(map(len, legend_names(mark)), default=0) > LONG_NAME for mark in row
            ):
                least_in = LEAST_NAMED_IN
            beside = max(1, min(most, int(page_in / least_in)))
            yield from (row[at : at + beside] for at in range(0, len(row), beside))


def _fitting(tables: list[NumberTable], page_in: float) -> Iterator[tuple[Mark, ...]]:
    line: list[NumberTable] = []
    for table in tables:
        if line and sum(map(_table_width, [*line, table])) > page_in:
            yield tuple(line)
            line = []
        line.append(table)
    yield tuple(line)


def parted(table: NumberTable, page_in: float = PAGE_IN) -> list[NumberTable]:
    """Return the table; in parts with some of its columns and the rows that have a value there, for a narrow page."""
    room = page_in - AROUND_TABLE_IN - _names_width(table, LEAST_NAME) * TABLE_PT[1] / TABLE_PT[0]
    needed = sum(_least_widths(table, TABLE_PT[1]))
    count = min(len(table.columns), math.ceil(needed / room)) if room > 0 else 1
    if count <= 1:
        return [table]
    edges = [round(part * len(table.columns) / count) for part in range(count + 1)]
    return [_columns_of(table, low, high) for low, high in itertools.pairwise(edges)]


def _columns_of(table: NumberTable, low: int, high: int) -> NumberTable:
    lines = tuple(
        replace(line, values=line.values[low:high], best=frozenset(at - low for at in line.best if low <= at < high))
        for line in table.lines
    )
    title = table.title if low == 0 else f"{table.title}, continued"
    if low:
        lines = _with_values(lines)
    return replace(table, title=title, columns=table.columns[low:high], lines=lines, first=table.first + low)


def _with_values(lines: Sequence[NumberRow]) -> tuple[NumberRow, ...]:
    """Return the rows that have a value, with the heading of those under it."""
    filled: list[NumberRow] = []
    for line in reversed(lines):
        is_filled = any(line.text(column) not in ("", "–") for column in range(len(line.values)))
        if is_filled or (not line.values and filled and filled[-1].values):
            filled.append(line)
    return tuple(reversed(filled))


def _table_width(table: NumberTable) -> float:
    return _names_width(table) + _column_width(table) * len(table.columns) + 0.2


def _longest_part(head: str) -> int:
    """Return the letters of the longest word of a column's name that is not broken."""
    return min(LEAST_LETTERS, max(map(len, head.split()), default=0))


def _least_widths(table: NumberTable, points: float) -> list[float]:
    """Return what each column needs for its numbers in letters of this size."""
    letter = LETTER_IN * points / TABLE_PT[0]
    longest = [
        max([len(line.text(column)) for line in table.lines if column < len(line.values)] + [_longest_part(name)])
        for column, name in enumerate(table.columns)
    ]
    return [max(LEAST_COLUMN_IN, 0.15 + letter * letters) for letters in longest]


def _points(table: NumberTable, wide: float) -> float:
    """Return the size of letters with which the table fits into this width in inches, if any does."""
    usual, small = TABLE_PT
    return usual if _names_width(table, LEAST_NAME) + sum(_least_widths(table, usual)) <= wide else small


def _column_width(table: NumberTable) -> float:
    """Return the width of a column of numbers; texts may be wider."""
    texts = [value for line in table.lines for value in line.values if isinstance(value, str)]
    return max(COLUMN_IN, 0.15 + LETTER_IN * max(map(len, texts), default=0))


def _names_width(table: NumberTable, most: int = sys.maxsize) -> float:
    return 0.1 + LETTER_IN * min(most, max((len(line.words) for line in table.lines if line.values), default=0))


def _letters_of_names(table: NumberTable, wide: float) -> int:
    """Return the most letters of a line of a row's name: as many as the columns leave."""
    points = _points(table, wide)
    room = (wide - 0.1 - sum(_least_widths(table, points))) * TABLE_PT[0] / points
    return max(LEAST_NAME, int(room / LETTER_IN))


def _row_names(table: NumberTable, wide: float) -> list[tuple[list[str], float]]:
    """Return the lines of each row's name and the height of the row, in single lines; headings take the width."""
    letters, across = _letters_of_names(table, wide), int(0.95 * wide / LETTER_IN)
    names = [textwrap.wrap(line.words, letters if line.values else across) or [""] for line in table.lines]
    return [(lines, 1 + 0.6 * (len(lines) - 1)) for lines in names]


def _height(mark: Mark, wide: float, *, compact: bool = False) -> float:
    if isinstance(mark, PairMap):
        beside, below = 0.35 * bool(mark.y_label), 0.35 * bool(mark.x_label)
        largest = LARGEST_SMALL_IN if compact else LARGEST_MAP_IN
        head = max(_heading_lines(wide, mark.title, *mark.notes), compact)
        return min(wide - beside, largest) + below + 0.15 * head
    if compact and isinstance(mark, XYPlot):
        return SMALL_IN
    if isinstance(mark, ShadedTable):
        return 0.55 + 0.24 * (len(mark.rows) + 1)
    if isinstance(mark, ImageRow):
        return 0.5 + _side(mark, wide) * float(np.ptp(_ends(mark, wide))) if mark.cells else 0.85
    if isinstance(mark, NumberTable):
        rows = sum(height for _, height in _row_names(mark, wide))
        return 0.5 + LINE_IN * (rows + max(map(len, _heads(mark, wide)), default=1))
    if isinstance(mark, XYPlot):
        columns = _legend_columns(wide)
        least = _lying_height(mark, columns) if mark.lying else 2.7
        if mark.equal:  # as wide as its place, up to two thirds of a page
            shape = (mark.y.high - mark.y.low) / (mark.x.high - mark.x.low)
            least = max(least, min(MOST_EQUAL_IN, 0.9 * wide * shape))
        names = max((len(line) for lines in lying_names(mark, columns) for line in lines), default=0) * mark.lying
        head = _heading_lines(wide - LETTER_IN * names, mark.title, mark.note)
        return least + 0.15 * (max(0, legend_lines(mark, columns) - 3) + max(0, head - 2))
    square = mark.values.shape[0] == mark.values.shape[1]
    if mark.picture is not None:
        return min(2.7, wide) + 1.1
    if mark.named:
        return min(4.4, wide + 0.3) if square else 1.1 + NAMED_IN * len(mark.values)
    return min(2.7, 0.8 + 0.62 * wide) if square else 2.7


def _heading_lines(wide: float, *texts: str) -> int:
    return sum(len(textwrap.wrap(text, int(HEADING_LETTERS * wide))) for text in texts)


def _lying_height(plot: XYPlot, columns: int) -> float:
    """Return the height of lying bars or dots: more of them in a category, or a longer name, take more."""
    beside = max(1.3, len(plot.bars) / 1.5, len({dot.name for dot in plot.dots}) / 2.2)
    broken_names = sum(len(lines) - 1 for lines in lying_names(plot, columns))
    return max(2.7, 0.9 + LYING_IN * len(plot.names) * beside + 0.1 * broken_names)


def _legend_columns(wide: float) -> int:
    share = wide / PAGE_IN
    return 4 if share > 0.8 else 2 if share > 0.4 else 1


def _heads(table: NumberTable, wide: float) -> list[list[str]]:
    """Return the lines of each column's name, as wide as its numbers."""
    left, *ends = _column_places(table, wide)
    letter = HEAD_PT[len(table.columns) > 4] / 7 * LETTER_IN
    widths = [(end - begin) * wide for begin, end in itertools.pairwise((left, *ends))]
    most = [max(LEAST_LETTERS, int((width - letter) / letter)) for width in widths]
    return [head_lines(name, letters) for name, letters in zip(table.columns, most, strict=True)]


def _column_places(table: NumberTable, wide: float) -> list[float]:
    """Return where the first column begins and where each ends, as shares of the width in inches.

    Columns are equally wide where there is room, else as wide as their numbers.
    """
    points, count = _points(table, wide), len(table.columns)
    names = _names_width(table, _letters_of_names(table, wide))
    left = min(0.6, names * points / TABLE_PT[0] / wide)
    room, equal = (1 - left) * wide, 1.1 * _column_width(table)
    widths = [equal] * count
    if equal * count > room:
        least = _least_widths(table, points)
        spare = room - sum(least)
        widths = (
            [width + spare / count for width in least] if spare >= 0 else [width * room / sum(least) for width in least]
        )
    return [left, *(left + np.cumsum(widths) / wide).tolist()]


def _draw(axes: Axes, mark: Mark, *, wide: float, high: float) -> None:
    if isinstance(mark, XYPlot):
        draw_plot(axes, mark, columns=_legend_columns(wide))
    elif isinstance(mark, ShadedTable):
        draw_table(axes, mark)
    elif isinstance(mark, HeatMap):
        _draw_heat_map(axes, mark)
    elif isinstance(mark, ImageRow):
        _draw_images(axes, mark, wide=wide)
    elif isinstance(mark, NumberTable):
        _draw_numbers(axes, mark, wide=wide, high=high)


def _draw_heat_map(axes: Axes, grid: HeatMap) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    heading(axes, grid.title, grid.note, swatch=tone_color(grid.tone) if grid.tone else None)
    if not grid.values.size and grid.picture is not None:
        axes.imshow(grid.picture)
        axes.set_anchor("NW")
        axes.set_axis_off()
        return
    norm = (LogNorm if grid.log else Normalize)(grid.low, max(grid.high, grid.low * (1 + 1e-9) + 1e-12))
    values = np.clip(grid.values, grid.low, None) if grid.log else grid.values
    # A cell without a number is clear: the hatched ground is seen, which no color of the scale is.
    axes.patch.set(hatch="/////", edgecolor="#a2a9b5", linewidth=0)
    colors = fading(*map(tone_color, grid.tones)) if grid.tones else DIVERGING
    scale = LinearSegmentedColormap.from_list("difference", colors) if grid.centered else "viridis"
    if grid.picture is not None:
        down, across = values.shape
        axes.imshow(grayed(grid.picture), extent=(-0.5, across - 0.5, down - 0.5, -0.5))
        axes.spines[:].set_visible(False)
    image = axes.imshow(values, cmap=scale, norm=norm, aspect="auto", interpolation="nearest")
    # Cells that are square stand at the left of their place, and their bar stays beside them.
    beside: dict[str, Any] = {"ax": axes, "pad": 0.02, "fraction": 0.06}
    square = grid.values.shape[0] == grid.values.shape[1]
    if square:
        axes.set_aspect("equal", anchor="NW")
        lies = grid.picture is not None
        beside = {"cax": axes.inset_axes((0.1, -0.1, 0.8, 0.04) if lies else (1.02, 0, 0.05, 1))}
        beside |= {"orientation": "horizontal"} if lies else {}
    bar = axes.figure.colorbar(image, label=grid.unit, **beside)
    if grid.ends:
        reach = f"{grid.high:.2g}"
        labels = (f"−{reach}\n{grid.ends[0]}", "0", f"{reach}\n{grid.ends[1]}")
        bar.set_ticks((grid.low, 0.0, grid.high), labels=labels)
    if grid.log:
        # Written out: formulas are switched off in our style, and powers of ten would be formulas.
        first, last = np.ceil(np.log10(grid.low)), np.floor(np.log10(grid.high))
        ticks = 10.0 ** np.arange(first, last + 1)
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.minorticks_off()
    axes.set_xlabel(grid.x_label)
    axes.set_ylabel(grid.y_label)
    axes.set_xticks([at for at, _ in grid.x_ticks], [text for _, text in grid.x_ticks])
    axes.set_yticks([at for at, _ in grid.y_ticks], [text for _, text in grid.y_ticks])
    if grid.named:
        _name_cells(axes, grid, square=square)
    if np.isfinite(grid.cursor):
        axes.axvline(grid.cursor, color="white", linewidth=0.8, linestyle=(0, (4, 3)))


def _name_cells(axes: Axes, grid: HeatMap, *, square: bool) -> None:
    axes.tick_params("x", rotation=90)
    axes.tick_params(length=0, labelsize=min(6.0, 180 / max(grid.values.shape)) if square else NAMED_PT)
    if grid.rows and not square:
        names = [textwrap.shorten(name, NAMED_LETTERS, placeholder="…") for name in grid.rows]
        axes.set_yticks(range(len(names)), names)
    for divider in grid.dividers:
        axes.axhline(divider - 0.5, color="white", linewidth=1.2)
        axes.axvline(divider - 0.5, color="white", linewidth=1.2)


def _draw_images(axes: Axes, strip: ImageRow, *, wide: float) -> None:
    cells, side = strip.cells[: _fitting_images(wide)], _side(strip, wide)
    heading(axes, strip.title, strip.note or ("" if cells else "none"), swatch=tone_color(strip.tone))
    for column, cell in enumerate(cells):
        _draw_image(axes, column, cell, _caption_lines(cell, side))
    axes.set_axis_off()
    axes.set_xlim(0, max(len(cells), IMAGES_WIDE * wide / side))
    axes.set_ylim(*_ends(strip, wide))
    axes.set_aspect("equal", anchor="NW")


def _fitting_images(wide: float) -> int:
    return max(FEWEST_PICTURES, round(MOST_PICTURES * wide / PAGE_IN))


def _side(strip: ImageRow, wide: float) -> float:
    """Return the width of an image of a row in inches: as large as the row allows for their number."""
    return min(1.0, IMAGES_WIDE * wide / max(1, min(len(strip.cells), _fitting_images(wide))))


def _caption_lines(cell: RowImage, side: float) -> list[str]:
    lines = broken(cell.caption.split(" "), " ", int(CAPTION_LETTERS * side))
    return [*lines[:2], lines[2] + "…" * (len(lines) > 3)] if len(lines) > 2 else lines


def _ends(strip: ImageRow, wide: float) -> tuple[float, float]:
    """Return what a row of images takes below and above their lower edge, in images: captions, and up to two lines."""
    side = _side(strip, wide)
    below = max(len(_caption_lines(cell, side)) * bool(cell.caption) for cell in strip.cells) if strip.cells else 0
    two = any(" · " in cell.words for cell in strip.cells)
    return -0.06 - IMAGE_LINE_IN * below / side, 1 + IMAGE_LINE_IN * (1.2 + two) / side


def _draw_image(axes: Axes, column: int, cell: RowImage, lines: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    left, side = column + 0.04, 0.92
    picture = read_square(cell.path) if cell.pixels is None else cell.pixels
    if picture is not None:
        axes.imshow(picture, extent=(left, left + side, 0, side), zorder=1)
    else:
        axes.add_patch(Rectangle((left, 0), side, side, color=HAIRLINE))
    if cell.strong:
        axes.add_patch(Rectangle((left, 0), side, side, fill=False, edgecolor=INK, linewidth=1.2, zorder=2))
    middle = {"x": left + side / 2, "ha": "center"}
    axes.text(y=0.98, s=cell.words.replace(" · ", "\n"), va="bottom", color=INK, fontsize=6, **middle)
    axes.text(y=-0.06, s="\n".join(lines), va="top", color=QUIET, fontsize=6, linespacing=1.1, **middle)


def read_square(path: str) -> np.ndarray | None:
    """Return the center square of an image file in 128 pixels; None if it is missing or unreadable."""
    from trainer.images import HelperError, read_pictures

    try:
        pixels, (answer,) = read_pictures([path], 128)
    except (HelperError, OSError):
        return None
    return None if answer.reason else pixels[0]


def _badge_color(mark: NumberTable, column: int) -> str:
    index = mark.first + column
    tone = mark.tones[index] if index < len(mark.tones) else ""
    return tone_color(tone or run_tone(index))


def _draw_numbers(axes: Axes, mark: NumberTable, *, wide: float, high: float) -> None:
    heading(axes, mark.title, mark.note)
    axes.set_axis_off()
    names = _heads(mark, wide)
    heads = max(map(len, names), default=1)
    axes.set_xlim(0, 1)
    # Lines are as far apart next to a taller mark as they are alone.
    rows = _row_names(mark, wide)
    axes.set_ylim(max(sum(height for _, height in rows) + heads, (high - 0.5) / LINE_IN), 0)
    at = _column_places(mark, wide)[1:]
    for column, lines in enumerate(names):
        swatch = _badge_color(mark, column) if mark.badges else QUIET
        style: dict[str, Any] = {"ha": "right", "va": "bottom", "color": swatch, "linespacing": 1.1, "label": "column"}
        axes.text(at[column], heads - 0.1, "\n".join(lines), fontsize=HEAD_PT[len(names) > 4], **style)
    top = float(heads)
    for (name_lines, height), line in zip(rows, mark.lines, strict=True):
        middle, top = top + height / 2, top + height
        plain: dict[str, Any] = {"va": "center", "fontsize": _points(mark, wide), "color": INK, "linespacing": 1.1}
        axes.text(0, middle, "\n".join(name_lines), fontweight=400 if line.values else 600, **plain)
        for column in range(len(line.values)):
            weight = 600 if line.strong or column in line.best else 400
            axes.text(at[column], middle, line.text(column), ha="right", fontweight=weight, **plain)


def head_lines(name: str, most: int) -> list[str]:
    """Break a column name after spaces, hyphens, underscores and slashes; a longer part loses its middle.

    Names of folders and files have no spaces.
    """
    lines = [""]
    for part in re.findall(r"[^ _/-]+[ _/-]*|[ _/-]+", name) or [""]:
        if lines[-1] and len((lines[-1] + part).rstrip()) > most:
            lines.append("")
        lines[-1] += part if lines[-1] else shortened(part, lambda text: len(text.rstrip()) <= most)
    return [line.rstrip() for line in lines]


def broken(parts: list[str], between: str, most: int = 132) -> list[str]:
    """Wrap the parts to lines of at most about `most` characters, without breaking a part."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(between) + len(part) > most:
            lines.append(part)
        else:
            lines[-1] += between + part
    return lines


def draw_table(axes: Axes, table: ShadedTable) -> None:
    """Draw the shaded cells with their names."""
    axes.set_title(table.title)
    axes.set_axis_off()
    axes.set_xlim(-1, len(table.columns) - 0.45)
    axes.set_ylim(len(table.rows) - 0.3, -1.1)
    for row, column in np.ndindex(table.values.shape):
        if (depth := table.depth(row, column)) is not None:
            frame = INK if (row, column) in table.marked else "white"
            axes.add_patch(_cell(row, column, TONES["first"], 0.05 + 0.5 * depth, frame))
        _write(axes, row, column, table.text(row, column), INK)
    for row, name in enumerate(table.rows):
        _write(axes, row, -0.55, name, QUIET, side="right")
    for column, name in enumerate(table.columns):
        _write(axes, -0.72, column, name, QUIET)


def _cell(row: int, column: int, color: str, alpha: float, frame: str) -> Any:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    corner = (column - 0.47, row - 0.46)
    return Rectangle(corner, 0.94, 0.92, facecolor=to_rgba(color, alpha), edgecolor=frame, linewidth=0.8)


def _write(axes: Axes, row: float, column: float, text: str, color: str, *, side: str = "center") -> None:
    axes.text(column, row, text, ha=side, va="center", fontsize=7.5, color=color)
