"""Which pixels a plain and a gated PixelCNN see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from trainer.analysis.receptive_field import Pixels, blind_spot, gated_field, plain_field
from trainer.charts.marks import HeatMap, NumberRow, NumberTable, Panel
from trainer.charts.settings import held
from trainer.charts.spec import Chart, no_data
from trainer.config.fields import option

METHOD: Final = """\
A PixelCNN foresees a pixel from those before it, row by row (van den Oord et al., 2016, \
https://arxiv.org/abs/1601.06759). Stacked masked kernels of the plain one never reach a cone to the right above: \
the blind spot. The gated one (van den Oord et al., 2016, https://arxiv.org/abs/1606.05328, figure 1) has a vertical \
stack for the rows above and a horizontal one for the own row, so that within its reach nothing is left out. Fields \
follow from the kernels: 7 wide first, then 3. trainer generative trains both on the pictures of a run, the gated \
one given the class, and reads the class off by Bayes' rule."""

SIZE: Final = 17


@dataclass(frozen=True)
class PixelCnnSettings:
    """The pixel, and the depth."""

    layers: int = option(4, "Layers", "Of the gated one; the plain one has as many blocks.", low=1, high=12)
    row: int = option(10, "Row", "Of the pixel that is foreseen.", low=0, high=SIZE - 1)
    column: int = option(8, "Column", "Of the pixel that is foreseen.", low=0, high=SIZE - 1)


def draw(_data: None, settings: PixelCnnSettings) -> Panel:
    """Draw both fields, and count what is before the pixel and not seen."""
    at = settings.row, settings.column
    plain = plain_field(SIZE, *at, settings.layers)
    gated = gated_field(SIZE, *at, settings.layers)
    missed = [blind_spot(SIZE, *at, seen) for seen in (plain, gated)]
    reached = [_within_reach(spot, plain | gated) for spot in missed]
    lines = (
        NumberRow("Pixels seen", "The own one included.", (float(plain.sum()), float(gated.sum())), 0),
        NumberRow("Blind spot", "Before it and not seen, in rows that are reached.", tuple(map(float, reached)), 0),
    )
    maps = (_map("plain", "Plain PixelCNN", plain, at), _map("gated", "Gated PixelCNN", gated, at))
    table = NumberTable("fields", "What is seen", ("plain", "gated"), lines, badges=False)
    return Panel(title="PixelCNN", head=(held(settings),), rows=(maps, (table,)))


def _within_reach(spot: Pixels, seen: Pixels) -> int:
    """Return how many pixels of a blind spot are in rows and columns that some stack reaches."""
    rows, columns = (np.any(seen, axis=axis, keepdims=True) for axis in (1, 0))
    return int((spot & rows & columns).sum())


def _map(key: str, title: str, seen: Pixels, at: tuple[int, int]) -> HeatMap:
    values = seen.astype(float)
    values[at] = 0.5
    ticks = tuple((float(index), str(index)) for index in range(0, SIZE, 4))
    return HeatMap(key, title, np.asarray(values), "column", "row", ticks, ticks, 0.0, 1.0, "seen")


CHART: Final = Chart(
    view="losslab",
    label="PixelCNN",
    question="Which pixels does a PixelCNN see, and which does it miss?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=PixelCnnSettings,
    needs="none",
    compute=no_data,
    draw=draw,
    quick=False,
)
