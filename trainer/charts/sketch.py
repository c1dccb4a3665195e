"""A small picture of a panel without words: lines, points, bars and cells in frames side by side.

A list of charts shows it before anything is computed. It is kept as JSON, so that each theme draws it in its colors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.charts.marks import (
    Axis,
    Bars,
    HeatMap,
    ImageRow,
    Mark,
    NumberTable,
    Panel,
    Points,
    Series,
    ShadedTable,
    Tone,
    XYPlot,
    run_tone,
)

Kind = Literal["line", "area", "dots", "bars", "cells"]
MOST_FRAMES: Final = 2
MOST_POINTS: Final = 90
MOST_LINE_POINTS: Final = 48
MOST_BARS: Final = 12
MOST_TABLE_ROWS: Final = 6
MOST_CELLS: Final = (14, 20)
"""Rows and columns."""
CLASS: Final = "class "
"""Before the number of a class: the tone of points that are colored as one."""
LABEL_SHARE: Final = 0.34
"""Of the width of a table, for the names of its rows."""


@dataclass(frozen=True)
class Shape:
    """One shape of a frame; the unit square is its room, and y points up."""

    kind: Kind
    tone: Tone  # A tone of `trainer.charts.marks`, `quiet`, or `class 3`.
    # Of lines, areas and dots the points (x, y); of bars (x, y, width, height); of cells the rows from the top, 0
    # to 1.
    numbers: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class SketchFrame:
    """One plot; `axes`: it has an axis at the left and one below."""

    shapes: tuple[Shape, ...]
    axes: bool = True


Sketch = tuple[SketchFrame, ...]


def sketch_of(panel: Panel) -> Sketch:
    """Return the sketch of the first row of a panel that has a plot, else of its pictures or its first table."""
    for kinds in ((XYPlot, HeatMap, ShadedTable), (NumberTable,), (ImageRow,)):
        for row in panel.rows:
            frames = [frame for mark in row if isinstance(mark, kinds) and (frame := _frame(mark)) is not None]
            if frames:
                return tuple(frames[:MOST_FRAMES])
    return ()


def to_json(sketch: Sketch) -> list[Any]:
    """Return a sketch as lists, rounded to what can be seen."""
    return [
        [frame.axes, [[s.kind, s.tone, [[round(v, 3) for v in row] for row in s.numbers]] for s in frame.shapes]]
        for frame in sketch
    ]


def from_json(frames: Sequence[Any]) -> Sketch:
    """Return the sketch that `to_json` wrote."""
    return tuple(
        SketchFrame(tuple(Shape(kind, tone, tuple(map(tuple, rows))) for kind, tone, rows in shapes), axes)
        for axes, shapes in frames
    )


def _frame(mark: Mark) -> SketchFrame | None:
    if isinstance(mark, XYPlot):
        shapes = tuple(_shapes_of_plot(mark))
        return SketchFrame(shapes) if shapes else None
    if isinstance(mark, HeatMap):
        values, low, high = np.asarray(mark.values, np.float64), mark.low, mark.high
        if mark.log:
            values, low, high = np.log(np.maximum(values, low)), math.log(low), math.log(high)
        return _cells(values, low, high, mark.tone or "run_a")
    if isinstance(mark, ShadedTable):
        return _cells(mark.values, 0.0, mark.top or float(np.nanmax(mark.values, initial=0.0)) or 1.0, "run_a")
    if isinstance(mark, NumberTable):
        return _table(mark)
    return SketchFrame(
        (Shape("bars", mark.tone, tuple((0.02 + 0.2 * i, 0.3, 0.16, 0.4) for i in range(5))),), axes=False
    )


def _shapes_of_plot(plot: XYPlot) -> Iterator[Shape]:
    for index, bars in enumerate(plot.bars):
        yield _bars(bars, index, plot)
    for cloud in plot.points:
        yield _cloud(cloud, plot)
    for curve in plot.curves:
        xy = _line(curve, plot.x, plot.y)
        if len(xy) > 1 and curve.filled:
            yield Shape("area", curve.tone, _rows(xy))
        elif len(xy) > 1:
            yield Shape("line", curve.tone, _rows(xy))
    for tone in dict.fromkeys(dot.tone for dot in plot.dots):
        dots = np.array([(dot.x, dot.y) for dot in plot.dots if dot.tone == tone])
        yield Shape("dots", tone, _rows(_thinned(_placed(dots, plot.x, plot.y), MOST_POINTS)))


def _line(curve: Series, x_axis: Axis, y_axis: Axis) -> Float[np.ndarray, "n 2"]:
    x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    if curve.stepped:
        x, y = np.repeat(x, 2)[1:-1], np.repeat(y, 2)
    most = 2 * MOST_LINE_POINTS if curve.stepped else MOST_LINE_POINTS
    return _thinned(_placed(np.column_stack([x, y]), x_axis, y_axis), most)


def _cloud(cloud: Points, plot: XYPlot) -> Shape:
    xy = _thinned(_placed(np.asarray(cloud.xy, np.float64), plot.x, plot.y), MOST_POINTS)
    return Shape("dots", f"{CLASS}{cloud.at}" if cloud.classes else cloud.tone, _rows(xy))


def _bars(bars: Bars, index: int, plot: XYPlot) -> Shape:
    heights = np.nan_to_num(np.asarray(bars.heights[:MOST_BARS], np.float64))
    shares = np.clip((heights - plot.y.low) / ((plot.y.high - plot.y.low) or 1.0), 0.0, 1.0)
    slot = 1 / max(len(heights), 1)
    thick = 0.7 * slot / len(plot.bars)
    starts = [at * slot + 0.15 * slot + index * thick for at in range(len(heights))]
    if plot.lying:
        rows = tuple((0.0, 1 - start - thick, float(share), thick) for start, share in zip(starts, shares, strict=True))
    else:
        rows = tuple((start, 0.0, thick, float(share)) for start, share in zip(starts, shares, strict=True))
    return Shape("bars", bars.tone, rows)


def _table(table: NumberTable) -> SketchFrame | None:
    """Return bars of the rows whose values are numbers, each row by its own largest value, next to stubs of names."""
    rows = [row for row in table.lines if row.values and all(isinstance(value, float | int) for value in row.values)]
    rows = rows[:MOST_TABLE_ROWS]
    if not rows:
        return None
    slot, columns = 1 / len(rows), min(len(table.columns), 4)
    thick = min(0.6 * slot / columns, 0.12)
    tops = [1 - (at + 0.5) * slot + columns * thick / 2 for at in range(len(rows))]
    stubs = tuple(
        (0.0, top - columns * thick / 2 - 0.02, LABEL_SHARE * min(1.0, len(row.words) / 24) * 0.9, 0.04)
        for row, top in zip(rows, tops, strict=True)
    )
    shapes = [Shape("bars", "quiet", stubs)]
    for column in range(columns):
        lengths = [_share_of_row([float(value) for value in row.values], column) for row in rows]
        placed = zip(tops, lengths, strict=True)
        bars = tuple((LABEL_SHARE, top - (column + 1) * thick, 0.64 * length, 0.8 * thick) for top, length in placed)
        shapes.append(Shape("bars", run_tone(column), bars))
    return SketchFrame(tuple(shapes), axes=False)


def _share_of_row(values: list[float], column: int) -> float:
    sizes = np.nan_to_num(np.abs(values))
    return float(sizes[column] / (sizes.max() or 1.0))


def _cells(values: Float[np.ndarray, "r c"], low: float, high: float, tone: Tone) -> SketchFrame | None:
    if not values.size:
        return None
    rows, columns = (np.array_split(np.arange(n), min(n, most)) for n, most in zip(values.shape, MOST_CELLS))
    shares = np.clip((np.nan_to_num(values, nan=low) - low) / ((high - low) or 1.0), 0.0, 1.0)
    coarse = np.array([[shares[np.ix_(r, c)].mean() for c in columns] for r in rows])
    # Means of many cells are alike: the lightest is drawn as nothing and the deepest as full.
    coarse = (coarse - coarse.min()) / ((coarse.max() - coarse.min()) or 1.0)
    return SketchFrame((Shape("cells", tone, _rows(coarse)),), axes=False)


def _placed(xy: Float[np.ndarray, "n 2"], x: Axis, y: Axis) -> Float[np.ndarray, "n 2"]:
    """Return the points within the axes, in the unit square."""
    if not len(xy):
        return xy.reshape(0, 2)
    parts = [_along(axis, xy[:, at]) for at, axis in enumerate((x, y))]
    placed = np.column_stack(parts)
    return placed[np.isfinite(placed).all(axis=1) & (placed >= -0.01).all(axis=1) & (placed <= 1.01).all(axis=1)]


def _along(axis: Axis, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    if not axis.log:
        return (values - axis.low) / ((axis.high - axis.low) or 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.log(values) - np.log(axis.low)) / np.log(axis.high / axis.low)


def _thinned(rows: Float[np.ndarray, "n 2"], most: int) -> Float[np.ndarray, "m 2"]:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _rows(values: Float[np.ndarray, "r c"]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in values)
