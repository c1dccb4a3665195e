"""Hits on paper: the first images or texts that each run finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from trainer.charts.search import Hits
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import PAGE_IN, QUIET, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN: Final = 16
"""Hits a run on paper; the CSV has all."""
EDGE: Final = 160


@in_style
def draw(charts: Sequence[Hits], question: str) -> Figure:
    """Two lines of hits a run, each with its caption's beginning and its cosine."""
    across, lines = DRAWN // 2, 2
    figure = new_figure(PAGE_IN, 0.4 + 2.75 * len(charts))
    for place, (part, chart) in enumerate(zip(figure.subfigures(len(charts), 1, squeeze=False)[:, 0], charts)):
        names = [["head"] * across, *([f"{line} {place}" for place in range(across)] for line in range(lines))]
        panels = part.subplot_mosaic(names, height_ratios=(0.02, *[1] * lines))
        for axes in panels.values():
            axes.set_axis_off()
        head = panels.pop("head")
        for number, (axes, row) in enumerate(zip(panels.values(), chart.rows.tolist())):
            _draw_hit(axes, chart, row, float(chart.cosines[number]))
        way = "CSLS" if chart.csls else "cosine"
        facts = (
            f"step {chart.step:,}, {chart.dataset} {chart.split}, {way}, first {DRAWN} of {chart.n:,} {chart.target}s"
        )
        heading(head, chart.name, facts, f"“{question}”", swatch=run_color(place), above_pt=2)
    footnote(figure, "Cosines of two runs are not on one scale: compare the order of the hits.")
    return figure


def rows(charts: Sequence[Hits], question: str) -> NumberRows:
    """One line a hit."""
    header = ("question", "run", "name", "step", "dataset", "split", "target", "n", "csls", "place", "row", "id")
    header = (*header, "caption", "label", "path", "cosine", "score")
    return NumberRows(header, (line for chart in charts for line in hit_rows(chart, question)))


def hit_rows(chart: Hits, question: str) -> list[tuple[Any, ...]]:
    """The hits of one run, best first."""
    facts = (question, chart.run, chart.name, chart.step, chart.dataset, chart.split, chart.target, chart.n, chart.csls)
    items = chart.items
    return [
        (*facts, place, row, items.id[row].item(), items.caption[row], items.label[row], items.path[row], cosine, score)
        for place, (row, cosine, score) in enumerate(
            zip(chart.rows.tolist(), chart.cosines.tolist(), chart.scores.tolist()), start=1
        )
    ]


def _draw_hit(axes: Axes, chart: Hits, row: int, cosine: float) -> None:
    import textwrap

    picture = _picture(chart.items.path[row])
    if picture is not None:
        axes.imshow(picture)
    words = textwrap.shorten(chart.items.caption[row] or chart.items.label[row], 40, placeholder="…")
    under = "\n".join([*textwrap.wrap(words, 17)[:2], f"{cosine:.3f}".replace("-", "−")])
    axes.text(0.5, -0.04, under, transform=axes.transAxes, ha="center", va="top", fontsize=5.5, color=QUIET)


def _picture(path: str) -> Any:
    """The image, small; None if it cannot be read: the caption stands alone then."""
    from trainer.images import HelperError, UnreadableImage, read_picture

    try:
        return read_picture(path, EDGE)
    except (UnreadableImage, HelperError, OSError):
        return None
