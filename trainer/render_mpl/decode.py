"""Figures of decoded embeddings: a row of pictures for each decoder, and the deviation over the noises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.analysis.progress import Progress, silent
from trainer.charts.decode import WHITE, DecodedChart, DecodedRun
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.film import FilmFrame, pixels_of
from trainer.render_mpl.panel import read_square
from trainer.render_mpl.style import QUIET, footnote, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_IN: Final = 1.02
LEFT_IN: Final = 0.2
ABOVE_IN: Final = 0.36
"""For two lines of words above a row."""
FILM_DPI: Final = 140
BETWEEN: Final = 6
"""Frames between two steps, which fade one into the other."""
BETWEEN_MS: Final = 40
HOLD_MS: Final = 1000
LAST_MS: Final = 2400


@in_style
def draw(chart: DecodedChart) -> Figure:
    """Draw a row for each decoder: original, mean picture, nearest training picture, samples, deviation.

    Two more rows have the first noise on its way, and what is foreseen in it, where that was asked for.
    """
    columns = 4 + len(chart.noises)
    lines = len(chart.runs) * (3 if any(run.reverse is not None for run in chart.runs) else 1)
    figure = new_figure(LEFT_IN + PICTURE_IN * columns, 1.1 + (PICTURE_IN + ABOVE_IN) * lines)
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=ABOVE_IN / 2, wspace=0.02, hspace=0)
    grid = figure.add_gridspec(lines, columns)
    for index, run in enumerate(chart.runs):
        line = index * (lines // len(chart.runs))
        _draw_row([figure.add_subplot(grid[line, column]) for column in range(columns)], chart, run)
        if run.reverse is not None:
            for below, pictures in enumerate((run.reverse.noisy, run.reverse.foreseen), start=1):
                _draw_way([figure.add_subplot(grid[line + below, column]) for column in range(columns)],
                          pictures, run.reverse.levels, foreseen=below == 2)  # fmt: skip
    title = chart.title if len(chart.title) <= 90 else f"{chart.title[:89]}…"
    figure.suptitle(f"Decoded: {title}", fontsize=9, x=0.01, ha="left")
    footnote(figure, f"{chart.how} {chart.limits}")
    return figure


def frames(chart: DecodedChart, progress: Progress = silent) -> Iterator[FilmFrame]:
    """Yield the film over the decoded steps: each step is held for a while, then fades into the next.

    A frame has one row for each decoded run, by its newest decoder up to that step (before its first: by the first).
    """
    steps = sorted({run.of_step for run in chart.runs})
    before: np.ndarray | None = None
    for index, step in enumerate(steps):
        progress(index / len(steps), f"drawing step {step:,}")
        figure = draw(at_step(chart, step))
        figure.set_dpi(FILM_DPI)
        pixels = pixels_of(figure)
        if before is not None:
            for part in range(1, BETWEEN + 1):
                share = part / (BETWEEN + 1)
                yield FilmFrame(((1 - share) * before + share * pixels).round().astype(np.uint8), BETWEEN_MS)
        yield FilmFrame(pixels, LAST_MS if step == steps[-1] else HOLD_MS)
        before = pixels


def at_step(chart: DecodedChart, step: int) -> DecodedChart:
    """Return the chart with one decoder for each decoded run: the newest up to a step, else its first."""
    chosen = []
    for name in dict.fromkeys(run.of_name for run in chart.runs):
        decoders = sorted((run for run in chart.runs if run.of_name == name), key=lambda run: run.of_step)
        chosen.append([decoders[0], *(run for run in decoders if run.of_step <= step)][-1])
    runs = tuple(replace(run, index=index) for index, run in enumerate(chosen))
    return replace(chart, runs=runs)


def rows(chart: DecodedChart) -> NumberRows:
    """Return one row for each decoder and pixel: the mean picture, and the deviation over the noises."""
    header = ("run", "name", "of", "of_step", "step", "decoded", "row", "column", "red", "green", "blue", "deviation")
    return NumberRows(header, _rows(chart))


def _rows(chart: DecodedChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        about = (run.run, run.name, run.of_name, run.of_step, run.step, chart.title)
        for (row, column), deviation in np.ndenumerate(run.spread):
            yield *about, row, column, *map(int, run.mean[row, column]), float(deviation)


def _draw_row(cells: list[Axes], chart: DecodedChart, run: DecodedRun) -> None:
    near = run.nearest[0] if run.nearest else None
    pictures: list[tuple[np.ndarray | None, str]] = [
        (chart.original, "original" if chart.original is not None else "a sentence"),
        (run.mean, "mean picture"),
        (
            None if near is None else read_square(near.path),
            "nearest" if near is None else f"nearest, {near.cosine:.2f}",
        ),
        *((picture, f"noise {seed}") for picture, seed in zip(run.samples, chart.noises, strict=True)),
    ]
    for axes, (pixels, caption) in zip(cells, pictures, strict=False):
        _show(axes, pixels, caption)
    last = cells[-1]
    last.imshow(run.spread, cmap="gray", vmin=0, vmax=WHITE, interpolation="nearest")
    last.set_axis_off()
    _write_above(last, f"not kept, {run.not_kept:.1f} %", 3)
    caption = f"{run.of_name} at step {run.of_step:,}, by {run.name} (step {run.step:,})"
    _write_above(cells[0], caption, 13, size=7, color=run_color(run.index))


def _draw_way(cells: list[Axes], pictures: np.ndarray, levels: tuple[int, ...], *, foreseen: bool) -> None:
    """Draw as many steps of the way as there are cells, the first and the last among them."""
    chosen = sorted({round(at) for at in np.linspace(0, len(levels) - 1, min(len(cells), len(levels)))})
    for axes in cells:
        axes.set_axis_off()
    for axes, at in zip(cells, chosen, strict=False):
        _show(axes, pictures[at], f"foreseen at {levels[at]:,}" if foreseen else f"noise, t = {levels[at]:,}")


def _show(axes: Axes, pixels: np.ndarray | None, caption: str) -> None:
    if pixels is not None:
        axes.imshow(pixels, interpolation="nearest")
    else:
        axes.set_aspect("equal")
    axes.set_axis_off()
    _write_above(axes, caption, 3)


def _write_above(axes: Axes, caption: str, above_pt: float, *, size: float = 6.5, color: str = QUIET) -> None:
    """Write above a picture, over the next ones where it is long: in the layout it would widen the column."""
    text = axes.annotate(
        caption, (0, 1), (0, above_pt), xycoords="axes fraction", textcoords="offset points", fontsize=size, color=color
    )
    text.set_in_layout(False)
