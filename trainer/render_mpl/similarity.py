"""Matched against hardest unmatched cosines on paper: a panel a run, with the numbers that may be compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trainer.charts import objective_label
from trainer.charts.similarity import Facet, SimilarityChart, SimilarityRun
from trainer.charts.snapshot_label import labels
from trainer.render_mpl.files import NumberRows
from trainer.render_mpl.style import COLUMN_IN, INK, PAGE_IN, footnote, heading, in_style, new_figure, run_color

MOST_FACETS: Final = 40
"""Values drawn; the data beside the figure have all."""

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@in_style
def draw(chart: SimilarityChart) -> Figure:
    """The figure of the chart: matched pairs filled, the hardest unmatched outlined, on one pair of scales."""
    columns = min(2, len(chart.runs))
    lines = -(-len(chart.runs) // columns)
    values = _values(chart)
    below = 0.75 + 0.17 * len(values) if values else 0.0
    figure = new_figure(PAGE_IN if columns == 2 else COLUMN_IN * 1.3, 0.25 + 2.9 * lines + below)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, hspace=0.05, wspace=0.05)
    parts = figure.subfigures(2, 1, height_ratios=(0.25 + 2.9 * lines, below)) if values else (figure,)
    grid = parts[0].subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for axes, run in zip(grid.flat, chart.runs):
        _draw_run(axes, run, chart)
    for axes in list(grid.flat)[len(chart.runs) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("Share of cosines per bar (%)")
    if values:
        _draw_facets(parts[1].subplots(), chart, values)
    footnote(figure, chart.note)
    return figure


def rows(chart: SimilarityChart) -> NumberRows:
    """Counts of every bar, then of each run the numbers, one a row, with an empty bar."""
    header = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "what", "from", "to", "value")
    return NumberRows(header, _rows(chart))


def numbers(run: SimilarityRun, against: str) -> dict[str, float]:
    """What the panel prints, by name, in the order a table lists it.

    Args:
        run: Whose.
        against: Ends the names of what depends on which pairs are unmatched, as `SimilarityChart.against`.
    """
    measured = {
        "mean_unmatched": run.mean_unmatched,
        "auc": run.auc,
        "d_prime": run.d_prime,
        "overlap": run.overlap,
        "ks": run.ks,
    }
    named = {f"{name}_{against}": value for name, value in measured.items()}
    for name, ends in run.intervals.items():
        named |= {f"{name}_{against}_{end}": at for end, at in zip(("low", "high"), ends, strict=True)}
    named |= {f"{name}_{against}_shuffled": level for name, level in run.shuffled.items()}
    return {"mean_matched": run.mean_matched, **named, "image_to_text_R@1": run.recall1}


def facet_numbers(facet: Facet, k: int) -> dict[str, float]:
    """What is known of the images of one value; whatever the chart compares, these are against the `k` hardest."""
    named = {f"{name}_hard{k}": getattr(facet, name) for name in ("auc", "d_prime", "overlap")}
    return {"n": facet.n, **named, "mean_matched": facet.mean_matched, "image_to_text_R@1": facet.recall1}


def _rows(chart: SimilarityChart) -> Iterator[tuple[Any, ...]]:
    edges = chart.edges.tolist()
    for run in chart.runs:
        facts = (run.run, run.name, run.objective, run.step, run.dataset, run.split, run.n, run.pairs)
        for what, counts in (("matched", run.matched_counts), ("unmatched", run.unmatched_counts)):
            for low, high, count in zip(edges, edges[1:], counts.tolist()):
                yield *facts, what, low, high, count
        for name, value in numbers(run, chart.against).items():
            yield *facts, name, None, None, value
        yield *facts, "n_unmatched", None, None, run.n_unmatched
        for what, values in zip(("matched_density", "unmatched_density"), run.densities):
            for at, value in zip(chart.grid.tolist(), values.tolist()):
                yield *facts, what, at, at, value
        for facet in run.facets:
            for name, value in facet_numbers(facet, chart.k).items():
                yield *facts, f"{chart.facet} = {facet.value}: {name}", None, None, value


def _draw_run(axes: Axes, run: SimilarityRun, chart: SimilarityChart) -> None:
    from matplotlib.ticker import MaxNLocator

    color = run_color(run.index)
    matched, unmatched = _percent(run.matched_counts), _percent(run.unmatched_counts)
    label = f"Matched, n = {run.n:,}, mean {_signed(run.mean_matched, 3)}"
    axes.stairs(matched, chart.edges, fill=True, color=color, alpha=0.85, linewidth=0, label=label)
    label = f"{chart.unmatched_words}, n = {run.n_unmatched:,}, mean {_signed(run.mean_unmatched, 3)}"
    axes.stairs(unmatched, chart.edges, color=INK, linewidth=0.9, label=label)
    for mean, mean_color in ((run.mean_matched, color), (run.mean_unmatched, INK)):
        if np.isfinite(mean):
            axes.axvline(mean, color=mean_color, linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)
    axes.set_xlabel("Cosine")
    axes.tick_params(labelbottom=True, labelleft=True)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.02)
    # Above the bars and not over them: the peak is anywhere.
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), labelspacing=0.25)
    _head(axes, run)


def _values(chart: SimilarityChart) -> list[str]:
    """The facets' values with most images of the first run that has any, at most `MOST_FACETS`."""
    return list(dict.fromkeys(facet.value for run in chart.runs for facet in run.facets))[:MOST_FACETS]


def _draw_facets(axes: Axes, chart: SimilarityChart, values: list[str]) -> None:
    """A line a value: the AUC of its images in each run, from the hardest unmatched ones."""
    place = {value: at for at, value in enumerate(values)}
    names = values
    for number, (run, label) in enumerate(zip(chart.runs, labels(chart.runs), strict=True)):
        facets = [facet for facet in run.facets if facet.value in place and np.isfinite(facet.auc)]
        offset = 0.22 * (number - (len(chart.runs) - 1) / 2)
        axes.plot(
            [facet.auc for facet in facets],
            [place[facet.value] + offset for facet in facets],
            linestyle="none",
            marker="o",
            markersize=3.5,
            color=run_color(run.index),
            label=label,
        )
        if not number:
            counts = {facet.value: facet.n for facet in run.facets}
            names = [f"{value or '(empty)'}, n = {counts.get(value, 0):,}" for value in values]
    axes.set_yticks(range(len(values)), names)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlabel(f"AUC of the images of each {str(chart.facet).replace('_', ' ')}, against their hardest unmatched")
    axes.grid(axis="y", linewidth=0.3, alpha=0.5)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=max(1, len(chart.runs)))


def _head(axes: Axes, run: SimilarityRun) -> None:
    sampled = f" of {run.pairs:,}" if run.sampled else ""
    data = (
        f"{objective_label(run.objective)}, step {run.step:,}, {run.dataset} {run.split}, n = {run.n:,}{sampled} pairs"
    )
    separation = (
        f"AUC {run.auc:.4f} · d′ {_signed(run.d_prime, 2)} · overlap {100 * run.overlap:.1f} % · KS {run.ks:.3f}"
    )
    none = run.shuffled
    level = f"shuffled pairs: {none['auc']:.4f} · {_signed(none['d_prime'], 2)} · {100 * none['overlap']:.1f} %"
    level += f" · {none['ks']:.3f}"
    heading(axes, run.name, data, separation, level, swatch=run_color(run.index), above_pt=24)


def _signed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _percent(counts: np.ndarray) -> np.ndarray:
    return 100 * counts / max(int(counts.sum()), 1)
