"""The modality gap on paper: its size over the steps, and recall and loss while it is closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from trainer.charts.gap import PUBLISHED, SOURCE, GapChart
from trainer.charts.snapshot_label import labels
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import PAGE_IN, QUIET, columns_of, footnote, heading, in_style, new_figure, run_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS: Final = 3
"""Panels of the loss in a row."""


@in_style
def draw(chart: GapChart) -> Figure:
    """Size over steps and recall in one panel each for all runs, then a panel of the loss for each run."""
    rows_of_losses = -(-len(chart.runs) // _ACROSS)
    figure = new_figure(PAGE_IN, 3.0 + 2.2 * rows_of_losses)
    panels: list[Any] = [["size"] * 3 + ["recall"] * 3, *_loss_rows(len(chart.runs))]
    axes = figure.subplot_mosaic(panels, empty_sentinel="")
    _draw_size(axes["size"], chart)
    _draw_recall(axes["recall"], chart)
    for place in range(len(chart.runs)):
        _draw_loss(axes[f"loss {place}"], chart, place)
    _legend(figure, chart)
    published = "; ".join(f"{p.what}: gap {p.gap:.4f}, loss {p.loss:.4f}" for p in PUBLISHED)
    footnote(figure, f"{chart.note}\nFor comparison, {published}.\n{SOURCE}")
    return figure


def rows(chart: GapChart) -> NumberRows:
    """Sizes over the steps, the points of each run, and the published values."""
    header = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "way", "share", "what", "value")
    return NumberRows(header, _rows(chart))


def _rows(chart: GapChart) -> Iterator[tuple[Any, ...]]:
    for run in chart.runs:
        facts = (run.run, run.name, run.objective)
        data = (run.dataset, run.split)
        for step, size in zip(run.steps, run.sizes):
            yield *facts, step, *data, run.pairs, run.pairs, None, None, "gap over steps", size
        for point in run.points:
            for what in ("gap", "loss", "image_to_text", "text_to_image", "matched"):
                value = getattr(point, what)
                yield *facts, run.step, *data, point.n, run.pairs, chart.way, point.share, what, value
    for published in PUBLISHED:
        yield None, f"{published.what} ({SOURCE})", None, None, None, None, None, None, None, None, "gap", published.gap
        yield (
            None,
            f"{published.what} ({SOURCE})",
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            "loss",
            published.loss,
        )


def _loss_rows(runs: int) -> list[list[str]]:
    """Two panels of the loss share a row, of more runs three."""
    across = 2 if runs <= 2 else _ACROSS
    places = [f"loss {place}" if place < runs else "" for place in range(-(-runs // across) * across)]
    return [[n for n in places[i : i + across] for _ in range(6 // across)] for i in range(0, len(places), across)]


def _legend(figure: Figure, chart: GapChart) -> None:
    from matplotlib.lines import Line2D

    names = labels(chart.runs)
    handles = [Line2D([], [], color=run_color(run.index)) for run in chart.runs]
    figure.legend(handles, names, loc="outside upper left", ncols=columns_of(names), borderaxespad=0.7)


def _draw_size(axes: Axes, chart: GapChart) -> None:
    # The course of a run that is shown at two steps is one.
    once = {run.run: run for run in reversed(chart.runs)}
    for run in sorted(once.values(), key=lambda run: run.index):
        axes.plot(run.steps, run.sizes, color=run_color(run.index), marker="o", markersize=3)
    heading(axes, "Size of the gap over training")
    axes.set_xlabel("Step")
    axes.set_ylabel("Length of mean image − mean text")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")


def _draw_recall(axes: Axes, chart: GapChart) -> None:
    from matplotlib.lines import Line2D

    for run in chart.runs:
        shares = [100 * p.share for p in run.points]
        color = run_color(run.index)
        axes.plot(shares, [p.image_to_text for p in run.points], color=color)
        axes.plot(shares, [p.text_to_image for p in run.points], color=color, linestyle="--")
    _closed(axes, "R@1", "Recall at 1 while the gap is closed", above_pt=14)
    ways = [Line2D([], [], color=QUIET), Line2D([], [], color=QUIET, linestyle="--")]
    axes.legend(ways, ["image to text", "text to image"], loc="lower left", bbox_to_anchor=(0, 1.02), ncols=2)


def _draw_loss(axes: Axes, chart: GapChart, index: int) -> None:
    run = chart.runs[index]
    axes.plot([100 * p.share for p in run.points], [p.loss for p in run.points], color=run_color(run.index))
    _closed(axes, "Loss", labels(chart.runs)[index], f"{run.objective_words}, n = {run.n:,}")


def _closed(axes: Axes, what: str, title: str, *details: str, above_pt: float = 0) -> None:
    axes.axvline(100, color=QUIET, linewidth=0.6, linestyle=(0, (4, 3)))
    heading(axes, title, *details, above_pt=above_pt)
    axes.set_xlabel("Share of the gap closed (%)")
    axes.set_ylabel(what)
    axes.grid(axis="y")
