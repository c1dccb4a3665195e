"""A board on paper: its plots, heat maps, pictures and tables, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts.board import Board, Cell, Grid, Numbers, Piece, Strip
from trainer.charts.lab.pieces import Plot, Table
from trainer.render_mpl.files import Rows
from trainer.render_mpl.lab import TONES, broken, cells_of, draw_plot, draw_table, points
from trainer.render_mpl.style import HAIRLINE, INK, PAGE_IN, QUIET, footnote, heading, in_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION_LETTERS: Final = 15
MOST_PICTURES: Final = 12


@in_style
def draw(board: Board) -> Figure:
    """The figure of the board."""
    lines = list(_lines(board))
    heights = [max(_height(piece) for piece in row) for row in lines]
    head = [board.title, *(line for part in board.head for line in broken(part.split(" "), " ")), *board.warnings]
    figure = new_figure(PAGE_IN, sum(heights) + 0.5 + 0.16 * len(head))
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.07, hspace=0.05, wspace=0.05)
    rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    for place, row in enumerate(lines):
        inner = rows[place].subgridspec(1, len(row))
        for column, piece in enumerate(row):
            _draw(figure, inner[column], piece, beside=len(row))
    figure.suptitle("\n".join(head), x=0.01, ha="left", fontsize=7.5, color=QUIET, linespacing=1.5)
    footnote(figure, "\n".join(line for note in board.notes for line in broken(note.split(" "), " ")))
    return figure


def rows(board: Board) -> Rows:
    """Every number of the board, one a row: the piece, the series, where, and how much."""
    return Rows(("panel", "part", "series", "x", "y"), _rows(board))


def numbers(board: Board) -> list[dict[str, Any]]:
    """The tables of measures, a dictionary a column; what `trainer analyse` prints."""
    found: list[dict[str, Any]] = []
    for piece in board.pieces:
        if isinstance(piece, Numbers):
            for place, column in enumerate(piece.columns):
                found.append(
                    {"table": piece.title, "column": column} | {line.words: line.values[place] for line in piece.lines}
                )
        elif isinstance(piece, Table):
            for name, values in zip(piece.rows, piece.values.tolist(), strict=True):
                found.append({"table": piece.title, "column": name} | dict(zip(piece.columns, values, strict=True)))
    return found


def _lines(board: Board) -> Iterator[tuple[Piece, ...]]:
    """The rows of the board; tables, which are too wide for half a page, one under the other."""
    for row in board.rows:
        if all(isinstance(piece, Table) for piece in row):
            yield from ((piece,) for piece in row)
        else:
            yield row


def _rows(board: Board) -> Iterator[tuple[Any, ...]]:
    for piece in board.pieces:
        yield from ((board.panel, piece.key, *values) for values in _values(piece))


def _values(piece: Piece) -> Iterator[tuple[Any, ...]]:
    if isinstance(piece, Plot):
        for curve in piece.curves:
            yield from ((curve.name, x, y) for x, y in points(curve))
        for dot in piece.dots:
            if dot.name:
                at = piece.names[round(dot.x)] if piece.names else dot.x
                yield dot.name, at, dot.y
    elif isinstance(piece, Table):
        yield from cells_of(piece)
    elif isinstance(piece, Grid):
        for (row, column), value in np.ndenumerate(piece.values):
            where = piece.columns[column] if piece.columns else column
            yield piece.rows[row] if piece.rows else str(row), where, float(value)
    elif isinstance(piece, Strip):
        for cell in piece.cells:
            yield f"pair {cell.row}: {cell.caption}", cell.words, None if cell.share != cell.share else cell.share
    else:
        for line in piece.lines:
            yield from ((column, line.words, value) for column, value in zip(piece.columns, line.values, strict=True))


def _height(piece: Piece) -> float:
    if isinstance(piece, Table):
        return 0.55 + 0.24 * (len(piece.rows) + 1)
    if isinstance(piece, Strip):
        return 1.75 if piece.cells else 0.85
    if isinstance(piece, Numbers):
        return 0.5 + 0.19 * (len(piece.lines) + 1)
    return 2.7


def _draw(figure: Figure, place: Any, piece: Piece, *, beside: int) -> None:
    axes = figure.add_subplot(place)
    if isinstance(piece, Plot):
        draw_plot(axes, piece, columns={1: 4, 2: 2}.get(beside, 1))
    elif isinstance(piece, Table):
        draw_table(axes, piece)
    elif isinstance(piece, Grid):
        _draw_grid(figure, axes, piece)
    elif isinstance(piece, Strip):
        _draw_strip(axes, piece)
    else:
        _draw_numbers(axes, piece)


def _draw_grid(figure: Figure, axes: Axes, grid: Grid) -> None:
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
    if np.isfinite(grid.cursor):
        axes.axvline(grid.cursor, color="white", linewidth=0.8, linestyle=(0, (4, 3)))
    heading(axes, grid.title, grid.note)


def _draw_strip(axes: Axes, strip: Strip) -> None:
    cells = strip.cells[:MOST_PICTURES]
    heading(axes, strip.title, strip.note if cells else "none", swatch=TONES[strip.tone])
    for place, cell in enumerate(cells):
        _draw_cell(axes, place, cell)
    axes.set_axis_off()
    axes.set_xlim(0, MOST_PICTURES)
    axes.set_ylim(-0.75, 1.4)
    axes.set_aspect("equal", anchor="NW")


def _draw_cell(axes: Axes, place: int, cell: Cell) -> None:
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
    """Its middle in 128 pixels; None where it is not there any more or cannot be read."""
    from trainer.images import HelperError, read_pictures

    try:
        pixels, (told,) = read_pictures([path], 128)
    except (HelperError, OSError):
        return None
    return None if told.reason else pixels[0]


def _draw_numbers(axes: Axes, piece: Numbers) -> None:
    heading(axes, piece.title, piece.note)
    axes.set_axis_off()
    lines = len(piece.lines) + 1
    axes.set_xlim(0, 1)
    axes.set_ylim(lines, 0)
    left, n = 0.3, len(piece.columns)
    at = [left + (1 - left) * (column + 1) / n for column in range(n)]
    for column, name in enumerate(piece.columns):
        swatch = TONES[("run_a", "run_b")[column]] if piece.badges and column < 2 else QUIET
        axes.text(at[column], 0.5, name, ha="right", va="center", fontsize=7 if n <= 4 else 6, color=swatch)
    for row, line in enumerate(piece.lines, start=1):
        weight = 600 if line.strong else 400
        axes.text(0, row + 0.5, line.words, va="center", fontsize=7, color=INK)
        for column in range(n):
            axes.text(
                at[column],
                row + 0.5,
                line.text(column),
                ha="right",
                va="center",
                fontsize=7,
                color=INK,
                fontweight=weight,
            )
