"""How alike snapshots are, on paper: a heat map a measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from trainer.charts.likeness import LIKENESSES, Likeness
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import PAGE_IN, footnote, heading, in_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_COLUMNS: Final = 2
"""Of the names, which stand below the matrices; their rows and columns are numbered."""


@in_style
def draw(chart: Likeness, measures: Sequence[str]) -> Figure:
    """One matrix a measure, on one scale from 0 (dark) to 1."""
    from matplotlib.colors import Normalize

    names = [space.words for space in chart.spaces]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    across = min(len(measures), 3)
    lines = -(-len(measures) // across)
    listed = -(-len(names) // _COLUMNS)
    high = PAGE_IN / max(across, 2) + 0.1
    figure = new_figure(PAGE_IN, high * lines + 0.13 * listed + 0.5)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(high * lines, 0.13 * listed + 0.5))[:, 0]
    grid = list(above.subplots(lines, across, squeeze=False).flat)
    for axes in grid[len(measures) :]:
        axes.set_axis_off()
    for axes, measure in zip(grid, measures):
        image = axes.imshow(chart.matrices[measure], cmap="viridis", norm=Normalize(0, 1))
        axes.set_xticks(range(len(names)), numbers, rotation=90)
        axes.set_yticks(range(len(names)), numbers)
        axes.tick_params(length=0, labelsize=6)
        for side in axes.spines.values():
            side.set_visible(False)
        above.colorbar(image, ax=axes, shrink=0.7, aspect=30)
        heading(axes, LIKENESSES[measure])
    _list(below, [f"{number}  {name}" for number, name in zip(numbers, names)])
    footnote(figure, chart.note)
    return figure


def _list(part: SubFigure, names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="") for _ in names]
    style = {"handlelength": 0, "handletextpad": 0, "labelspacing": 0.2, "fontsize": 6}
    part.legend(handles, names, loc="upper left", ncols=_COLUMNS, **style)


def rows(chart: Likeness) -> NumberRows:
    """One line for every two spaces, the same ones left out."""
    fields = ("run", "name", "step", "modality")
    header = (*(f"{field}_{side}" for side in "ab" for field in fields), *LIKENESSES, "n", "pairs", "k")
    return NumberRows(header, _rows(chart, fields))


def _rows(chart: Likeness, fields: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for i, first in enumerate(chart.spaces):
        for j, second in enumerate(chart.spaces[:i]):
            facts = [getattr(space, field) for space in (second, first) for field in fields]
            numbers = [float(chart.matrices[key][i, j]) for key in LIKENESSES]
            yield *facts, *numbers, chart.n, chart.pairs, chart.k
