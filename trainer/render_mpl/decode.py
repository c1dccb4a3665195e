"""The film of decoded embeddings over the steps of their runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from trainer.analysis.progress import Progress, silent
from trainer.charts.decode import DecodedChart, panel
from trainer.render_mpl.film import FilmFrame, pixels_of
from trainer.render_mpl.panel import draw

FILM_DPI: Final = 140
BETWEEN: Final = 6
"""Frames between two steps, which fade one into the other."""
BETWEEN_MS: Final = 40
HOLD_MS: Final = 1000
LAST_MS: Final = 2400


def frames(chart: DecodedChart, progress: Progress = silent) -> Iterator[FilmFrame]:
    """Yield the film over the decoded steps: each step is held for a while, then fades into the next.

    A frame has one row for each decoded run, by its newest decoder up to that step (before its first: by the first).
    """
    steps = sorted({run.of_step for run in chart.runs})
    before: np.ndarray | None = None
    for index, step in enumerate(steps):
        progress(index / len(steps), f"drawing step {step:,}")
        # Notes are those of all steps, so that the frames are of one size.
        figure = draw(replace(panel(at_step(chart, step)), notes=panel(chart).notes))
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
