"""Draw a panel of `trainer.charts.marks` with matplotlib, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts.marks import (
    HeatMap,
    ImageRow,
    Mark,
    NumberTable,
    Panel,
    RowImage,
    ShadedTable,
    XYPlot,
    run_tone,
)
from trainer.render_mpl.style import HAIRLINE, INK, PAGE_IN, QUIET, footnote, heading, in_style, new_figure
from trainer.render_mpl.text_fitting import shortened
from trainer.render_mpl.xy_plot import TONES, draw_plot, legend_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION_LETTERS: Final = 15
MOST_PICTURES: Final = 12
COLUMN_IN: Final = 0.75
LETTER_IN: Final = 0.056
LINE_IN: Final = 0.19
"""Of a table of numbers: a column at least, a letter, and a line."""
HEAD_PT: Final = (7, 6)
"""Size of the names of up to four columns, and of more."""
LEAST_LETTERS: Final = 6
LYING_IN: Final = 0.22
"""Of a category whose bars lie."""
MOST_COLUMNS: Final = 12
"""Of shaded tables next to each other, their names included."""
MOST_BESIDE: Final = 3
"""More marks of one row than these go into further lines."""


@in_style
def draw(panel: Panel) -> Figure:
    """Draw the panel."""
    lines = list(_lines(panel))
    heights = [max(_height(mark, len(row)) for mark in row) for row in lines]
    head = [panel.title, *(line for part in panel.head for line in broken(part.split(" "), " ")), *panel.warnings]
    figure = new_figure(PAGE_IN, sum(heights) + 0.5 + 0.16 * len(head))
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.07, hspace=0.05, wspace=0.05)
    rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    for place, row in enumerate(lines):
        widths = [_table_width(mark) for mark in row if isinstance(mark, NumberTable)]
        inner = rows[place].subgridspec(1, len(row), width_ratios=widths if len(widths) == len(row) else None)
        for column, mark in enumerate(row):
            _draw(figure, inner[column], mark, beside=len(row), high=heights[place])
    figure.suptitle("\n".join(head), x=0.01, ha="left", fontsize=7.5, color=QUIET, linespacing=1.5)
    footnote(figure, "\n".join(line for note in panel.notes for line in broken(note.split(" "), " ")))
    return figure


def _lines(panel: Panel) -> Iterator[tuple[Mark, ...]]:
    """Yield the rows of the panel, stacking tables that are too wide to be side by side."""
    for row in panel.rows:
        if sum(_columns(mark) for mark in row) > MOST_COLUMNS:
            yield from ((mark,) for mark in row)
        elif all(isinstance(mark, NumberTable) for mark in row):
            yield from _fitting([mark for mark in row if isinstance(mark, NumberTable)])
        else:
            yield from (row[at : at + MOST_BESIDE] for at in range(0, len(row), MOST_BESIDE))


def _columns(mark: Mark) -> int:
    return 1 + len(mark.columns) + bool(mark.right) if isinstance(mark, ShadedTable) else 0


def _fitting(tables: list[NumberTable]) -> Iterator[tuple[Mark, ...]]:
    line: list[NumberTable] = []
    for table in tables:
        if line and sum(map(_table_width, [*line, table])) > PAGE_IN:
            yield tuple(line)
            line = []
        line.append(table)
    yield tuple(line)


def _table_width(table: NumberTable) -> float:
    return _names_width(table) + _column_width(table) * len(table.columns) + 0.2


def _column_width(table: NumberTable) -> float:
    """Return the width of a column of numbers; texts may be wider."""
    texts = [value for line in table.lines for value in line.values if isinstance(value, str)]
    return max(COLUMN_IN, 0.15 + LETTER_IN * max(map(len, texts), default=0))


def _names_width(table: NumberTable) -> float:
    return 0.1 + LETTER_IN * max((len(line.words) for line in table.lines if line.values), default=0)


def _height(mark: Mark, beside: int) -> float:
    if isinstance(mark, ShadedTable):
        return 0.55 + 0.24 * (len(mark.rows) + 1)
    if isinstance(mark, ImageRow):
        return 1.75 if mark.cells else 0.85
    if isinstance(mark, NumberTable):
        return 0.5 + LINE_IN * (len(mark.lines) + max(map(len, _heads(mark, PAGE_IN / beside)), default=1))
    if isinstance(mark, XYPlot):
        least = max(2.7, 0.9 + LYING_IN * len(mark.names) * max(1.3, len(mark.bars) / 1.5)) if mark.lying else 2.7
        return least + 0.15 * max(0, legend_lines(mark, _legend_columns(beside)) - 3)
    return 4.4 if mark.named else 2.7


def _legend_columns(beside: int) -> int:
    return {1: 4, 2: 2}.get(beside, 1)


def _heads(table: NumberTable, wide: float) -> list[list[str]]:
    """Return the lines of each column's name, as wide as its numbers."""
    _, step = _column_places(table, wide)
    letter = HEAD_PT[len(table.columns) > 4] / 7 * LETTER_IN
    most = max(LEAST_LETTERS, int((step * wide - letter) / letter))
    return [head_lines(name, most) for name in table.columns]


def _column_places(table: NumberTable, wide: float) -> tuple[float, float]:
    """Return where the first column begins and how far it is to the next, as shares of the width in inches."""
    left = min(0.6, _names_width(table) / wide)
    return left, min((1 - left) / len(table.columns), 1.1 * _column_width(table) / wide)


def _draw(figure: Figure, place: Any, mark: Mark, *, beside: int, high: float) -> None:
    axes = figure.add_subplot(place)
    if isinstance(mark, XYPlot):
        draw_plot(axes, mark, columns=_legend_columns(beside))
    elif isinstance(mark, ShadedTable):
        draw_table(axes, mark)
    elif isinstance(mark, HeatMap):
        _draw_heat_map(figure, axes, mark)
    elif isinstance(mark, ImageRow):
        _draw_images(axes, mark)
    else:
        _draw_numbers(axes, mark, wide=PAGE_IN / beside, high=high)


def _draw_heat_map(figure: Figure, axes: Axes, grid: HeatMap) -> None:
    from matplotlib.colors import LogNorm, Normalize

    norm = (LogNorm if grid.log else Normalize)(grid.low, max(grid.high, grid.low * (1 + 1e-9) + 1e-12))
    values = np.clip(grid.values, grid.low, None) if grid.log else grid.values
    image = axes.imshow(values, cmap="viridis", norm=norm, aspect="auto", interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, label=grid.unit, pad=0.02, fraction=0.06)
    if grid.log:
        # Written out: formulas are switched off in our style, and powers of ten would be formulas.
        first, last = np.ceil(np.log10(grid.low)), np.floor(np.log10(grid.high))
        ticks = 10.0 ** np.arange(first, last + 1)
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.minorticks_off()
    axes.set_xlabel(grid.x_label)
    axes.set_ylabel(grid.y_label)
    axes.set_xticks([at for at, _ in grid.x_ticks], [words for _, words in grid.x_ticks])
    axes.set_yticks([])
    if grid.named:
        _name_cells(axes, grid)
    if np.isfinite(grid.cursor):
        axes.axvline(grid.cursor, color="white", linewidth=0.8, linestyle=(0, (4, 3)))
    heading(axes, grid.title, grid.note)


def _name_cells(axes: Axes, grid: HeatMap) -> None:
    axes.set_aspect("equal")
    axes.set_yticks([at for at, _ in grid.y_ticks], [words for _, words in grid.y_ticks])
    axes.tick_params("x", rotation=90)
    axes.tick_params(length=0, labelsize=min(6.0, 180 / max(grid.values.shape)))
    for place in grid.dividers:
        axes.axhline(place - 0.5, color="white", linewidth=1.2)
        axes.axvline(place - 0.5, color="white", linewidth=1.2)


def _draw_images(axes: Axes, strip: ImageRow) -> None:
    cells = strip.cells[:MOST_PICTURES]
    heading(axes, strip.title, strip.note if cells else "none", swatch=TONES[strip.tone])
    for place, cell in enumerate(cells):
        _draw_image(axes, place, cell)
    axes.set_axis_off()
    axes.set_xlim(0, MOST_PICTURES)
    axes.set_ylim(-0.75, 1.4)
    axes.set_aspect("equal", anchor="NW")


def _draw_image(axes: Axes, place: int, cell: RowImage) -> None:
    from matplotlib.patches import Rectangle

    left, side = place + 0.04, 0.92
    picture = _picture(cell.path)
    if picture is not None:
        axes.imshow(picture, extent=(left, left + side, 0, side), zorder=1)
    else:
        axes.add_patch(Rectangle((left, 0), side, side, color=HAIRLINE))
    if cell.strong:
        axes.add_patch(Rectangle((left, 0), side, side, fill=False, edgecolor=INK, linewidth=1.2, zorder=2))
    middle = {"x": left + side / 2, "ha": "center"}
    axes.text(y=0.98, s=cell.words.replace(" · ", "\n"), va="bottom", color=INK, fontsize=5, **middle)
    lines = broken(cell.caption.split(" "), " ", CAPTION_LETTERS)
    axes.text(y=-0.06, s="\n".join(lines[:3]), va="top", color=QUIET, fontsize=4.5, linespacing=1.1, **middle)


def _picture(path: str) -> np.ndarray | None:
    """Return its center square in 128 pixels; None if it is missing or unreadable."""
    from trainer.images import HelperError, read_pictures

    try:
        pixels, (told,) = read_pictures([path], 128)
    except (HelperError, OSError):
        return None
    return None if told.reason else pixels[0]


def _draw_numbers(axes: Axes, mark: NumberTable, *, wide: float, high: float) -> None:
    heading(axes, mark.title, mark.note)
    axes.set_axis_off()
    names = _heads(mark, wide)
    heads = max(map(len, names), default=1)
    axes.set_xlim(0, 1)
    # Lines are as far apart next to a taller mark as they are alone.
    axes.set_ylim(max(len(mark.lines) + heads, (high - 0.5) / LINE_IN), 0)
    left, step = _column_places(mark, wide)
    at = [left + step * (column + 1) for column in range(len(names))]
    for column, lines in enumerate(names):
        swatch = TONES[run_tone(column)] if mark.badges else QUIET
        style: dict[str, Any] = {"ha": "right", "va": "bottom", "color": swatch, "linespacing": 1.1, "label": "column"}
        axes.text(at[column], heads - 0.1, "\n".join(lines), fontsize=HEAD_PT[len(names) > 4], **style)
    for row, line in enumerate(mark.lines, start=heads):
        plain: dict[str, Any] = {"va": "center", "fontsize": 7, "color": INK}
        axes.text(0, row + 0.5, line.words, fontweight=400 if line.values else 600, **plain)
        for column in range(len(line.values)):
            weight = 600 if line.strong or column in line.best else 400
            axes.text(at[column], row + 0.5, line.text(column), ha="right", fontweight=weight, **plain)


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
    columns = len(table.columns) + bool(table.right)
    lines = len(table.rows) + bool(table.below)
    axes.set_xlim(-1, columns - 0.45)
    axes.set_ylim(lines - 0.3, -1.1)
    for (row, column), value in np.ndenumerate(table.values):
        share = min(abs(float(value)) / table.top, 1.0) if table.top and value == value else 0.0
        frame = INK if (row, column) in table.marked else "white"
        axes.add_patch(_cell(row, column, TONES["first"], 0.05 + 0.5 * share, frame))
        _write(axes, row, column, _number(value, table.digits), INK)
    for row, name in enumerate(table.rows):
        _write(axes, row, -0.55, name, QUIET, side="right")
    for column, name in enumerate(table.columns):
        _write(axes, -0.72, column, name, QUIET)
    if table.right:
        _write(axes, -0.72, columns - 1, table.right[0], QUIET)
        for row, value in enumerate(table.right[1]):
            _write(axes, row, columns - 1, _number(value, table.digits), INK)
    if table.below:
        _write(axes, lines - 1, -0.55, table.below[0], QUIET, side="right")
        for column, value in enumerate(table.below[1]):
            _write(axes, lines - 1, column, _number(value, table.digits), INK)


def _cell(row: int, column: int, color: str, alpha: float, frame: str) -> Any:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    place = (column - 0.47, row - 0.46)
    return Rectangle(place, 0.94, 0.92, facecolor=to_rgba(color, alpha), edgecolor=frame, linewidth=0.8)


def _write(axes: Axes, row: float, column: float, text: str, color: str, *, side: str = "center") -> None:
    axes.text(column, row, text, ha=side, va="center", fontsize=7.5, color=color)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−") if value == value else "–"
