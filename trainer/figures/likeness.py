"""How alike snapshots are, on paper: a heat map a measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trainer.charts.likeness import LIKENESSES, Likeness
from trainer.figures.files import Rows
from trainer.figures.style import PAGE_IN, footnote, heading, in_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_style
def draw(chart: Likeness, measures: Sequence[str]) -> Figure:
    """One matrix a measure, on one scale from 0 (dark) to 1."""
    from matplotlib.colors import Normalize

    names = [space.words for space in chart.spaces]
    high = 0.16 * len(names) + 1.9
    figure = new_figure(PAGE_IN, max(high, 2.6) * len(measures))
    for axes, measure in zip(figure.subplots(len(measures), 1, squeeze=False)[:, 0], measures):
        image = axes.imshow(chart.matrices[measure], cmap="viridis", norm=Normalize(0, 1))
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0, labelsize=6)
        for side in axes.spines.values():
            side.set_visible(False)
        figure.colorbar(image, ax=axes, shrink=0.6, aspect=30)
        heading(axes, LIKENESSES[measure])
    footnote(figure, chart.note)
    return figure


def rows(chart: Likeness) -> Rows:
    """One line for every two spaces, the same ones left out."""
    fields = ("run", "name", "step", "modality")
    header = (*(f"{field}_{side}" for side in "ab" for field in fields), *LIKENESSES, "n", "pairs", "k")
    return Rows(header, _rows(chart, fields))


def _rows(chart: Likeness, fields: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for i, first in enumerate(chart.spaces):
        for j, second in enumerate(chart.spaces[:i]):
            facts = [getattr(space, field) for space in (second, first) for field in fields]
            numbers = [float(chart.matrices[key][i, j]) for key in LIKENESSES]
            yield *facts, *numbers, chart.n, chart.pairs, chart.k
