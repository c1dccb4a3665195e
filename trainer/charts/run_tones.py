"""The colors of a chart of many runs: each run has the one that it has in every view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from trainer.charts.marks import RUN_TONES, HeatMap, NumberTable, Panel, Tone, XYPlot, run_tone, shade
from trainer.charts.spec import Request
from trainer.experiments.run_style import RunStyle, side_styles
from trainer.store import Workspace

FEWEST: Final = 3
"""Runs from which on marks say which run they are about; of two they say A and B, whose colors renderers know."""


def style_tone(style: RunStyle) -> Tone:
    """Return the tone of a mark that is about a run of this style."""
    return shade(run_tone(style.hue), style.tone)


def in_run_colors(panel: Panel, workspace: Workspace | None, request: Request) -> Panel:
    """Return the panel with the plots, maps and heads of tables of each run of the request in the run's own color."""
    if workspace is None or len({target.run for target in request.targets}) < FEWEST:
        return panel
    ids = [workspace.runs.get(target.run).id for target in request.targets]
    styles = side_styles(workspace.runs.all(), ids)
    tones: dict[Tone | None, Tone] = {tone: style_tone(style) for tone, style in zip(RUN_TONES, styles)}
    return replace(panel, rows=tuple(tuple(_in_tones(mark, tones) for mark in row) for row in panel.rows))


def _in_tones(mark: Any, tones: Mapping[Tone | None, Tone]) -> Any:
    if isinstance(mark, NumberTable):
        return replace(mark, tones=tuple(tones.get(run_tone(at), "") for at in range(mark.first + len(mark.columns))))
    if isinstance(mark, HeatMap):
        return replace(mark, tone=tones.get(mark.tone, mark.tone))
    if not isinstance(mark, XYPlot):
        return mark  # pictures are told by the letters of their runs
    parts: dict[str, Any] = {"tone": tones.get(mark.tone, mark.tone)}
    for name in ("curves", "dots", "points", "bars"):
        parts[name] = tuple(replace(part, tone=tones.get(part.tone, part.tone)) for part in getattr(mark, name))
    return replace(mark, **parts)
