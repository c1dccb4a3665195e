"""The colors of a chart of many runs: each run has the one that it has in every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from trainer.charts.marks import (
    RUN_TONES,
    HeatMap,
    ImageRow,
    Mark,
    NumberTable,
    PairMap,
    Panel,
    Tone,
    XYPlot,
    own_tone,
    run_tone,
    shade,
)
from trainer.charts.spec import Request
from trainer.experiments.run_style import RunStyle, side_styles, styles_of
from trainer.store import Workspace

FEWEST: Final = 3
"""Runs from which on marks say by their color alone which run they are about; of two they say A and B as well."""


def style_tone(style: RunStyle) -> Tone:
    """Return the tone of a mark that is about a run of this style."""
    return shade(run_tone(style.hue), style.tone)


def in_run_colors(panel: Panel, workspace: Workspace | None, request: Request) -> Panel:
    """Return the panel with the plots, maps and heads of tables of each run of the request in the run's own color."""
    if workspace is None or not request.targets:
        return panel
    ids = [workspace.runs.get(target.run).id for target in request.targets]
    return with_sides(panel, side_styles(styles_of(workspace), ids), letters=len(set(ids)) < FEWEST)


MarkT = TypeVar("MarkT", bound=Mark)


def with_sides(panel: Panel, sides: Sequence[tuple[int, ...]], *, letters: bool = True) -> Panel:
    """Return the panel with what is about a run in its color; with `letters` marks say A and B as well."""
    return replace(
        panel, rows=tuple(tuple(mark_with_sides(mark, sides, letters) for mark in row) for row in panel.rows)
    )


def mark_with_sides(mark: MarkT, sides: Sequence[tuple[int, ...]], letters: bool = True) -> MarkT:
    """Return one mark as `with_sides` returns a panel of marks."""
    pairs = zip(RUN_TONES, sides)
    tones: dict[Tone | None, Tone] = {
        tone: own_tone(tone, sides) if letters else style_tone(RunStyle(*style)) for tone, style in pairs
    }
    if isinstance(mark, NumberTable):
        columns = mark.tones or tuple(map(run_tone, range(mark.first + len(mark.columns))))
        return replace(mark, tones=tuple(tones.get(tone, tone) for tone in columns))
    if isinstance(mark, HeatMap | ImageRow | PairMap):
        tone: Any = tones.get(mark.tone, mark.tone)  # only a heat map has none
        if isinstance(mark, HeatMap):
            mark = replace(mark, tones=tuple(tones.get(each, each) for each in mark.tones))
        return replace(mark, tone=tone)
    if not isinstance(mark, XYPlot):
        return mark
    parts: dict[str, Any] = {"tone": tones.get(mark.tone, mark.tone)}
    symbols = {tone: RunStyle(*side).symbol for tone, side in zip(RUN_TONES, sides)}
    curves = (replace(curve, symbol=symbols.get(curve.tone, curve.symbol)) for curve in mark.curves)
    mark = replace(mark, curves=tuple(curves))
    for name in ("curves", "dots", "points", "bars"):
        parts[name] = tuple(replace(part, tone=tones.get(part.tone, part.tone)) for part in getattr(mark, name))
    return replace(mark, **parts)
