"""The modality gap on paper: its size over the steps, and recall and loss while it is closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.charts.gap import PUBLISHED, SOURCE, GapChart
from trainer.charts.shown import labels
from trainer.figures.files import Rows
from trainer.figures.style import PAGE_IN, QUIET, footnote, in_style, new_figure, run_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@in_style
def draw(chart: GapChart) -> Figure:
    """Size over steps and recall in one panel each for all runs, then a panel of the loss for each run."""
    figure = new_figure(PAGE_IN, 5.2)
    mosaic = [["size", "size", "recall", "recall"], _loss_row(len(chart.runs))]
    axes = figure.subplot_mosaic(mosaic)
    _draw_size(axes["size"], chart)
    _draw_recall(axes["recall"], chart)
    for run in chart.runs:
        _draw_loss(axes[f"loss {run.index % 4}"], chart, run.index)
    for name, panel in axes.items():
        if name.startswith("loss") and int(name[5:]) >= len(chart.runs):
            panel.set_axis_off()
    published = "; ".join(f"{p.what}: gap {p.gap:.4f}, loss {p.loss:.4f}" for p in PUBLISHED)
    footnote(figure, f"{chart.note}\nFor comparison, {published}.\n{SOURCE}")
    return figure


def rows(chart: GapChart) -> Rows:
    """Sizes over the steps, the points of each run, and the published values."""
    header = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "way", "share", "what", "value")
    return Rows(header, _rows(chart))


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


def _loss_row(runs: int) -> list[str]:
    if runs <= 2:
        return ["loss 0", "loss 0", "loss 1", "loss 1"]
    return [f"loss {i}" for i in range(4)]


def _draw_size(axes: Axes, chart: GapChart) -> None:
    # The course of a run that is shown at two steps is one.
    once = {run.run: run for run in reversed(chart.runs)}
    for run in sorted(once.values(), key=lambda run: run.index):
        axes.plot(run.steps, run.sizes, color=run_colour(run.index), marker="o", markersize=3, label=run.name)
    axes.set_title("Size of the gap over training")
    axes.set_xlabel("Step")
    axes.set_ylabel("Length of mean image − mean text")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend()


def _draw_recall(axes: Axes, chart: GapChart) -> None:
    for run, name in zip(chart.runs, labels(chart.runs), strict=True):
        shares = [100 * p.share for p in run.points]
        colour = run_colour(run.index)
        axes.plot(shares, [p.image_to_text for p in run.points], color=colour, label=f"{name}, image to text")
        axes.plot(
            shares,
            [p.text_to_image for p in run.points],
            color=colour,
            linestyle="--",
            label=f"{name}, text to image",
        )
    _closed(axes, "R@1", "Recall at 1 while the gap is closed")
    axes.legend(loc="lower right")
    # Room for four lines of the legend under the curves.
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.5 * (high - low), high)


def _draw_loss(axes: Axes, chart: GapChart, index: int) -> None:
    run = chart.runs[index]
    axes.plot([100 * p.share for p in run.points], [p.loss for p in run.points], color=run_colour(run.index))
    _closed(axes, "Loss", f"{labels(chart.runs)[index]}: {run.objective_words}, n = {run.n:,}")


def _closed(axes: Axes, what: str, title: str) -> None:
    axes.axvline(100, color=QUIET, linewidth=0.6, linestyle=(0, (4, 3)))
    axes.set_title(title)
    axes.set_xlabel("Share of the gap closed (%)")
    axes.set_ylabel(what)
    axes.grid(axis="y")
